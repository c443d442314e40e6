//! The prompts of MCP servers as slash commands: `/server:prompt`, with its arguments as words.

use std::sync::Arc;

use loopd_mcp::{Server, ServerPrompt, prompt_text};
use loopd_proto::params::command::{CommandInfo, CommandInput, CommandKind, Invoked};
use serde_json::json;

use crate::front::rpc::error::RpcError;
use crate::mcp::McpCell;

/// A prompt of a server.
pub(super) struct PromptCommand {
    pub(super) name: String,
    server: Arc<Server>,
    prompt: ServerPrompt,
}

/// Returns the prompts of all connected servers.
pub(super) fn of(cell: &McpCell) -> Vec<PromptCommand> {
    let servers = cell.servers().into_iter();
    servers
        .flat_map(|server| {
            let prompts = server.prompts();
            let commands = prompts.iter().map(|prompt| PromptCommand {
                name: format!("{}:{}", word(&server.name), word(&prompt.name)),
                server: server.clone(),
                prompt: prompt.clone(),
            });
            commands.collect::<Vec<_>>()
        })
        .collect()
}

/// Returns a name in one word.
fn word(name: &str) -> String {
    let plain = |letter: char| {
        if letter.is_whitespace() || letter == '/' {
            '_'
        } else {
            letter
        }
    };
    name.chars().map(plain).collect()
}

impl PromptCommand {
    pub(super) fn describe(&self) -> CommandInfo {
        let arguments = self.prompt.arguments.iter().map(|argument| {
            let name = &argument.name;
            if argument.is_required {
                format!("<{name}>")
            } else {
                format!("[{name}]")
            }
        });
        let arguments: Vec<String> = arguments.collect();
        CommandInfo {
            name: self.name.clone(),
            aliases: None,
            description: format!(
                "{} (MCP server {})",
                self.prompt.description, self.server.name
            ),
            kind: CommandKind::Skill,
            input: (!arguments.is_empty()).then(|| CommandInput {
                hint: arguments.join(" ").into(),
                required: self.prompt.arguments.iter().any(|it| it.is_required),
            }),
            allow_during_agent_execution: true,
            source: None,
            path: None,
            unavailable: None,
        }
    }

    /// Asks the server for the prompt.
    pub(super) async fn run(&self, input: &str) -> Result<Invoked, RpcError> {
        let arguments = self.prompt.fill(input);
        let arguments =
            arguments.map_err(|why| RpcError::Failed(format!("/{}: {why}", self.name)))?;
        self.server.connected().await?;
        let params = json!({"name": self.prompt.name, "arguments": arguments});
        let got = self.server.request("prompts/get", params).await?;
        let prompt = prompt_text(&got);
        if prompt.trim().is_empty() {
            return Err(RpcError::Failed(format!("/{} gave no text", self.name)));
        }
        let written = format!("/{} {input}", self.name);
        Ok(Invoked::AgentPrompt {
            prompt,
            display_prompt: written.trim_end().to_owned(),
            mode: None,
            notice: None,
            run_scope: None,
        })
    }
}
