//! Slash commands: lists them, and runs one here or in the client that offers it.
//!
//! A name belongs to a client's command first, then to a built-in one, then to a skill, then to one of a
//! file, then to a prompt of an MCP server.

use loopd_proto::params::command::{
    CommandInfo, CommandKind, Commands, ExecuteParams, Executed, HandlePendingParams, InvokeParams,
    Invoked, ListParams, Reported,
};
use loopd_proto::run_scope::{RunLimits, RunScope};
use loopd_proto::session::{ClientCommand, Mode};

use super::builtin::{self, Builtin};
use super::discovery_problems;
use super::file_commands::{self, FileCommand, FileCommands};
use super::mcp_prompts::{self, PromptCommand};
use super::queue::{self, QueuedAnswer};
use super::run_file_command::{FileCall, FileResult};
use super::session_skills;
use super::skill_commands::{SkillCommand, SkillCommands};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use loopd_kernel::command::{CommandRunner, Send, SendPlace};
use loopd_proto::id::MessageId;
use loopd_proto::misspelt::difference;

/// How many letters may differ between a name and the one that was meant.
const MOST_DIFFERENT: usize = 2;

/// All commands of a session at one moment.
pub(super) struct AllCommands {
    clients: Vec<ClientCommand>,
    skills: SkillCommands,
    files: FileCommands,
    prompts: Vec<PromptCommand>,
}

/// A command of a session.
enum Found<'a> {
    Client(&'a ClientCommand),
    Builtin(&'static Builtin),
    Skill(&'a SkillCommand),
    File(&'a FileCommand),
    Prompt(&'a PromptCommand),
}

impl AllCommands {
    pub(super) async fn of(context: &Context, session: &SessionHandle) -> Result<Self, RpcError> {
        let seen = session.view(|view| ((view.commands)(), view.mcp.clone()));
        let (clients, servers) = seen.await?;
        let prompts = mcp_prompts::of(&servers);
        let mut taken = builtin::names();
        taken.extend(clients.iter().map(|command| command.name.as_str()));
        let skills = session_skills::look(session).await?;
        let skills = SkillCommands::of(&skills, &taken);
        taken.extend(skills.names());
        let files = file_commands::of_session(context, session, &taken).await?;
        Ok(Self {
            clients,
            skills,
            files,
            prompts,
        })
    }

    fn find(&self, name: &str) -> Option<Found<'_>> {
        if let Some(command) = self.client(name) {
            return Some(Found::Client(command));
        }
        let builtin = builtin::find(name).map(Found::Builtin);
        let known = builtin
            .or_else(|| self.skills.find(name).map(Found::Skill))
            .or_else(|| self.files.find(name).map(Found::File));
        let mut prompts = self.prompts.iter();
        known.or_else(|| {
            prompts
                .find(|prompt| prompt.name == name)
                .map(Found::Prompt)
        })
    }

    fn client(&self, name: &str) -> Option<&ClientCommand> {
        let mut clients = self.clients.iter();
        clients.find(|command| command.name.eq_ignore_ascii_case(name))
    }

    /// Lists the daemon's commands, then those of clients, then skills, then those of files.
    pub(super) fn list(&self) -> Vec<CommandInfo> {
        let ours = builtin::ALL.iter();
        let ours = ours.filter(|ours| self.client(ours.name).is_none());
        let mut commands: Vec<CommandInfo> = ours.map(Builtin::describe).collect();
        commands.extend(self.clients.iter().map(describe));
        commands.extend(self.skills.describe());
        commands.extend(self.files.commands.iter().map(FileCommand::describe));
        commands.extend(self.prompts.iter().map(PromptCommand::describe));
        commands
    }

    /// Returns who runs the command of this name. What is unknown here may be known to a client.
    pub(super) fn runner(&self, name: &str) -> CommandRunner {
        match self.find(name) {
            Some(Found::Builtin(_) | Found::Skill(_) | Found::File(_) | Found::Prompt(_)) => {
                CommandRunner::Daemon
            }
            Some(Found::Client(_)) | None => CommandRunner::Clients,
        }
    }

    /// Returns why the command of this name does not run if its file is not used. A command that somebody
    /// else offers has nothing to do with such a file.
    pub(super) fn unused_file(&self, name: &str) -> Option<String> {
        let problem = match self.find(name) {
            Some(_) => None,
            None => self.files.problem_with(name),
        };
        problem.map(|problem| format!("/{name} did not run: its file is not used: {problem}"))
    }

    /// Returns the name that was most likely meant.
    fn nearest(&self, name: &str) -> Option<String> {
        let name = name.to_lowercase();
        let names = self.list().into_iter().flat_map(|command| {
            let aliases = command.aliases.unwrap_or_default();
            [command.name].into_iter().chain(aliases)
        });
        let near = names.filter_map(|known| {
            let lower = known.to_lowercase();
            let begins = name.len() > 1 && (lower.starts_with(&name) || name.starts_with(&lower));
            let differs = difference(&name, &lower);
            let is_near = begins || (differs <= MOST_DIFFERENT && differs < name.chars().count());
            is_near.then_some((differs, known))
        });
        near.min().map(|(_, known)| known)
    }
}

pub(super) async fn list(context: Context, params: ListParams) -> Result<Commands, RpcError> {
    let session = context.session(&params.session_id)?;
    let all = AllCommands::of(&context, &session).await?;
    let mut commands = all.list();
    commands.retain(|command| match command.kind {
        CommandKind::Builtin => params.include_builtins,
        CommandKind::Client => params.include_client_commands,
        CommandKind::Skill => params.include_skills,
    });
    let problems = all.files.problems.iter().filter(|_| params.include_skills);
    Ok(Commands {
        commands,
        problems: problems.map(discovery_problems::describe).collect(),
    })
}

fn describe(command: &ClientCommand) -> CommandInfo {
    CommandInfo {
        name: command.name.clone(),
        aliases: None,
        description: command.description.clone(),
        kind: CommandKind::Client,
        input: None,
        allow_during_agent_execution: true,
        source: None,
        path: None,
        unavailable: None,
    }
}

/// Returns a command's name without its slash.
fn named<'a>(member: &str, given: &'a str) -> Result<&'a str, RpcError> {
    let name = given.trim().trim_start_matches('/');
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(RpcError::InvalidParams(format!(
            "{member}: one word is expected, the name of a command"
        )));
    }
    Ok(name)
}

pub(super) async fn invoke(context: Context, params: InvokeParams) -> Result<Invoked, RpcError> {
    let session = context.session(&params.session_id)?;
    let name = named("name", &params.name)?;
    let input = params.input.trim();
    let ran = run(&context, &session, name, input, params.limits).await?;
    let Invoked::AgentPrompt {
        prompt,
        display_prompt,
        mode,
        notice,
        run_scope: Some(scope),
    } = ran
    else {
        return Ok(ran);
    };
    if params.keeps_scope {
        return Ok(Invoked::AgentPrompt {
            prompt,
            display_prompt,
            mode,
            notice,
            run_scope: Some(scope),
        });
    }
    // The client would send the prompt without what the command sets for its run.
    let message = message(&context, prompt, display_prompt, Some(scope));
    Ok(Invoked::Completed {
        message_id: Some(send(&session, message).await?),
        message: notice,
        begun: None,
    })
}

pub(super) async fn run(
    context: &Context,
    session: &SessionHandle,
    name: &str,
    input: &str,
    limits: Option<RunLimits>,
) -> Result<Invoked, RpcError> {
    let all = AllCommands::of(context, session).await?;
    match all.find(name) {
        Some(Found::Client(command)) => {
            let ran = session.run_client_command(command.name.clone(), input.to_owned());
            match ran.await? {
                Ok(()) => Ok(Invoked::Completed {
                    message: None,
                    message_id: None,
                    begun: None,
                }),
                Err(why) => Err(RpcError::Failed(why)),
            }
        }
        Some(Found::Builtin(builtin)) => builtin.run(context, session, input, limits).await,
        Some(Found::Skill(skill)) => skill.run(context, session, input, limits).await,
        Some(Found::Prompt(prompt)) => prompt.run(input).await,
        Some(Found::File(command)) => {
            let call = FileCall {
                context,
                session,
                command,
                input,
                limits,
            };
            Ok(match call.run().await? {
                FileResult::Done(invoked) => invoked,
                FileResult::Message {
                    prompt,
                    display_prompt,
                    scope,
                    notice,
                } => Invoked::AgentPrompt {
                    prompt,
                    display_prompt,
                    mode: None::<Mode>,
                    notice,
                    run_scope: scope,
                },
            })
        }
        None => {
            if let Some(why) = all.unused_file(name) {
                return Err(RpcError::Failed(why));
            }
            let near = all.nearest(name);
            let near = near.map(|near| format!("; did you mean /{near}?"));
            Err(RpcError::Failed(format!(
                "there is no command /{name}{} /help lists those there are",
                near.unwrap_or_else(|| ";".to_owned())
            )))
        }
    }
}

/// Runs a command to its end, and sends the model what the command wants it to get.
pub(super) async fn execute(context: Context, params: ExecuteParams) -> Result<Executed, RpcError> {
    let session = context.session(&params.session_id)?;
    let name = named("commandName", &params.command_name)?;
    let error = match run(&context, &session, name, params.args.trim(), None).await {
        Ok(Invoked::AgentPrompt {
            prompt,
            display_prompt,
            run_scope,
            ..
        }) => {
            let message = message(&context, prompt, display_prompt, run_scope);
            send(&session, message).await?;
            None
        }
        Ok(Invoked::Text { .. } | Invoked::Completed { .. }) => None,
        Err(RpcError::Failed(why) | RpcError::LimitReached(why)) => Some(why),
        Err(error) => return Err(error),
    };
    Ok(Executed { error })
}

/// Builds the message that a command wants sent.
pub(super) fn message(
    context: &Context,
    prompt: String,
    display_prompt: String,
    scope: Option<Box<RunScope>>,
) -> Send {
    Send {
        id: None,
        prompt,
        display_prompt: Some(display_prompt),
        attachments: Vec::new(),
        agent_mode: None,
        required_tool: None,
        request_headers: std::collections::BTreeMap::new(),
        source: None,
        place: SendPlace::Enqueue,
        sender: Some(context.caller()),
        scope,
    }
}

async fn send(session: &SessionHandle, message: Send) -> Result<MessageId, RpcError> {
    super::session_send::queue(session, message).await
}

/// Takes a client's report that its command has run. If nobody waits for it any more, that is no
/// error of the client, which may have been slow; the reply says so all the same.
pub(super) async fn handle_pending(
    context: Context,
    params: HandlePendingParams,
) -> Result<Reported, RpcError> {
    let session = context.session(&params.session_id)?;
    let (request, error) = (params.request_id, params.error);
    let ran = session.client_command_ran(request.clone(), error.clone());
    let mut waited_for = ran.await?;
    if !waited_for {
        let answer = QueuedAnswer {
            request,
            stop: false,
            error,
        };
        waited_for = queue::answered(&context, &session, answer).await?;
    }
    Ok(Reported {
        success: true,
        waited_for: (!waited_for).then_some(false),
    })
}
