//! The slash commands of a session, and the agent that answers in it.

use loopd_proto::method;
use loopd_proto::params::agent::SelectParams;
use loopd_proto::params::command::{CommandInfo, Commands, InvokeParams, Invoked, ListParams};
use loopd_proto::params::completion::{CompletionItem, CompletionParams};
use loopd_proto::run_scope::RunLimits;

use crate::{Error, Session};

impl Session {
    /// Lists the slash commands of the daemon and of the clients.
    pub async fn commands(&self) -> Result<Vec<CommandInfo>, Error> {
        Ok(self.commands_and_problems().await?.commands)
    }

    /// Lists the slash commands, and the files of commands that are not used as they stand.
    pub async fn commands_and_problems(&self) -> Result<Commands, Error> {
        let params = ListParams {
            session_id: self.id().clone(),
            include_builtins: true,
            include_client_commands: true,
            include_skills: true,
        };
        self.call::<method::CommandsList>(&params).await
    }

    /// Runs a slash command; `name` has no slash. The caller shows the text of the result, or sends
    /// the message that it asks for.
    pub async fn invoke_command(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<Invoked, Error> {
        self.invoke_command_within(name, input, None).await
    }

    /// Does the same with limits for a command that runs in a sub-agent.
    pub async fn invoke_command_within(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        limits: Option<RunLimits>,
    ) -> Result<Invoked, Error> {
        let params = InvokeParams {
            session_id: self.id().clone(),
            name: name.into(),
            input: input.into(),
            keeps_scope: true,
            limits,
        };
        // At most once: a command may change something.
        let shared = &self.client().shared;
        shared.call_once::<method::CommandsInvoke>(&params).await
    }

    /// Completes what a person types, up to the cursor at this position in UTF-16 code units: the name
    /// of a slash command, or of an agent.
    pub async fn complete(
        &self,
        text: impl Into<String>,
        offset: u64,
    ) -> Result<Vec<CompletionItem>, Error> {
        let params = CompletionParams {
            session_id: self.id().clone(),
            text: text.into(),
            offset,
        };
        let found = self.call::<method::CompletionsRequest>(&params).await?;
        Ok(found.items)
    }

    /// Selects the agent that answers. An unknown name is an error that lists the names.
    pub async fn select_agent(&self, name: impl Into<String>) -> Result<(), Error> {
        let params = SelectParams {
            session_id: self.id().clone(),
            name: name.into(),
        };
        self.call::<method::AgentSelect>(&params).await?;
        Ok(())
    }
}
