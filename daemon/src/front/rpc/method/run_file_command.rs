//! Runs the command of a file: fills in its arguments, runs and includes its parts, and hands the
//! prompt that comes of it to the conversation or to a sub-agent.

use std::path::Path;

use loopd_proto::event::task::Execution;
use loopd_proto::id::RequestId;
use loopd_proto::params::command::Invoked;
use loopd_proto::permission::PermissionDecision;
use loopd_proto::run_scope::{RunLimits, RunScope, ScopedAgent};
use loopd_proto::session::Mode;
use serde_json::json;

use super::agent::{self, Present};
use super::command_subagent::{self, SubagentCommand};
use super::file_commands::FileCommand;
use crate::discovery::agents::{AgentDefinition, AgentMode};
use crate::discovery::commands::{CommandDefinition, CommandPlace, LONGEST_TEXT, Segment};
use crate::discovery::not_built_in;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::{PartOrder, SessionHandle};
use crate::subagent::SubagentOrder;
use crate::subagent::definitions;
use loopd_kernel::command::Command;

/// How long the command of a text may take, in seconds.
const LONGEST_SHELL: u64 = 60;
/// The longest prompt that may come of a command, in bytes.
const LONGEST_PROMPT: usize = LONGEST_TEXT;
/// The agent that runs a command in a sub-agent if its file names none.
const GENERAL: &str = "general-purpose";

/// One call of the command of a file.
pub(super) struct FileCall<'a> {
    pub(super) context: &'a Context,
    pub(super) session: &'a SessionHandle,
    pub(super) command: &'a FileCommand,
    pub(super) input: &'a str,
    /// How much it may take in a sub-agent.
    pub(super) limits: Option<RunLimits>,
}

/// What comes of a call.
pub(super) enum FileResult {
    /// A message to send, with what it sets for its run.
    Message {
        prompt: String,
        display_prompt: String,
        scope: Option<Box<RunScope>>,
        notice: Option<String>,
    },
    /// The command has run.
    Done(Invoked),
}

impl FileCall<'_> {
    pub(super) async fn run(&self) -> Result<FileResult, RpcError> {
        let command = &self.command.definition;
        if let Some(why) = &self.command.untrusted {
            return Err(RpcError::Failed(why.clone()));
        }
        let (cwd, user) = self
            .session
            .view(|view| {
                let user = view.launch.and_then(|launch| launch.variable("HOME"));
                (view.state.cwd.clone(), user.map(str::to_owned))
            })
            .await?;
        let segments = command.template.fill(self.input, &cwd);
        let segments = segments.map_err(|why| self.failed(why))?;
        let mut notices = Vec::new();
        if command.template.has_open_command() {
            notices.push(format!(
                "a command of /{} in !`…` goes over several lines and is not run; write it in one line",
                command.name
            ));
        }
        if let Some(what) = not_built_in(command.unknown_tools.iter().map(String::as_str)) {
            notices.push(format!("of the tools of /{}, {what}", command.name));
        }
        // Before anything runs: a command that cannot be run at all runs no part of it.
        let setting = self.setting(command, &mut notices).await?;
        let prompt = self
            .assemble(segments, &cwd, user.as_deref(), &mut notices)
            .await?;
        let notice = (!notices.is_empty()).then(|| notices.join("\n"));
        match setting {
            Setting::Conversation(scope) => Ok(FileResult::Message {
                prompt,
                display_prompt: self.shown(),
                scope: scope.sets_something().then(|| Box::new(scope)),
                notice,
            }),
            Setting::Subagent { agent } => self.in_subagent(agent, prompt).await,
        }
    }

    /// Returns what the person typed.
    fn shown(&self) -> String {
        let name = &self.command.definition.name;
        format!("/{name} {}", self.input).trim_end().to_owned()
    }

    fn failed(&self, why: impl std::fmt::Display) -> RpcError {
        let name = &self.command.definition.name;
        RpcError::Failed(format!("/{name} did not run: {why}"))
    }

    /// Returns who answers: the agent and the model that the file names.
    async fn setting(
        &self,
        command: &CommandDefinition,
        notices: &mut Vec<String>,
    ) -> Result<Setting, RpcError> {
        let mut scope = RunScope {
            command: command.name.clone(),
            tools: command.tools.clone(),
            ..RunScope::default()
        };
        if command.place == CommandPlace::Subagent {
            let agent = command.agent.clone();
            let agent = agent.unwrap_or_else(|| GENERAL.to_owned());
            return Ok(Setting::Subagent { agent });
        }
        if command.agent.is_none() && command.model.is_none() {
            return Ok(Setting::Conversation(scope));
        }
        let present = agent::present(self.context, self.session).await?;
        if let Some(name) = &command.agent {
            let found = present.roster.get(name).ok_or_else(|| {
                self.failed(format_args!(
                    "its file names the agent `{name}`, and there is none"
                ))
            })?;
            let works_for_others = found.mode == AgentMode::Subagent;
            if works_for_others && command.place == CommandPlace::AsAgentWants {
                let agent = found.name.clone();
                return Ok(Setting::Subagent { agent });
            }
            scope.agent = Some(self.scoped(found)?);
            if command.model.is_none() {
                scope.model = agent::model_of(found, &present.route).await.unwrap_or(None);
            }
        }
        if let Some(name) = &command.model {
            scope.model = self.model(&present, name, notices).await;
        }
        Ok(Setting::Conversation(scope))
    }

    fn scoped(&self, agent: &AgentDefinition) -> Result<ScopedAgent, RpcError> {
        if !agent.user_invocable {
            return Err(self.failed(format_args!(
                "the agent `{}` works for other agents only; set `subtask: true` or `context: fork` in the file",
                agent.name
            )));
        }
        if agent.hooks.is_some() {
            return Err(self.failed(format_args!(
                "the agent `{}` has hooks of its own, which hold only while it is selected; select it, or \
                 set `context: fork` in the file",
                agent.name
            )));
        }
        let choice = agent::choice(self.context, agent, None);
        Ok(ScopedAgent {
            name: choice.name,
            tools: choice.tools,
            stance: choice.stance,
        })
    }

    /// Returns the model that a name means; `None`, with a notice, if nothing serves it.
    async fn model(
        &self,
        present: &Present,
        name: &str,
        notices: &mut Vec<String>,
    ) -> Option<String> {
        let listed = present.route.models().await.unwrap_or_default();
        // opencode puts the vendor before the name.
        let plain = name.split_once('/').map_or(name, |(_, model)| model);
        for name in [name, plain] {
            let id = definitions::model::id_of(name, &listed);
            if present.route.find_target(&id).await.is_ok() {
                return Some(id);
            }
        }
        notices.push(format!(
            "/{} wants the model `{name}`, which is not available; the session's own model answers",
            self.command.definition.name
        ));
        None
    }

    /// Runs the commands of the text and includes its files.
    async fn assemble(
        &self,
        segments: Vec<Segment>,
        cwd: &str,
        user: Option<&str>,
        notices: &mut Vec<String>,
    ) -> Result<String, RpcError> {
        let mut prompt = String::new();
        let mut files = String::new();
        for segment in segments {
            match segment {
                Segment::Text(text) => prompt.push_str(&text),
                Segment::Shell(command) => {
                    let said = self.shell(&command).await?;
                    prompt.push_str(&said);
                }
                Segment::File(path) => {
                    prompt.push('@');
                    prompt.push_str(&path);
                    let real = match (path.strip_prefix("~/"), user) {
                        (Some(below), Some(user)) => Path::new(user).join(below),
                        _ => Path::new(cwd).join(&path),
                    };
                    if !tokio::fs::try_exists(&real).await.unwrap_or(false) {
                        // `@name` may be a person.
                        if path.contains(['/', '.']) {
                            notices.push(format!(
                                "@{path} is left as it stands: there is no such file"
                            ));
                        }
                        continue;
                    }
                    let said = self.include(&path, &real).await?;
                    files.extend(["\n\n<file path=\"", &path, "\">\n", &said, "\n</file>"]);
                }
            }
            if prompt.len() + files.len() > LONGEST_PROMPT {
                return Err(self.failed(format_args!(
                    "its prompt has more than {} KiB with what it runs and includes",
                    LONGEST_PROMPT / 1024
                )));
            }
        }
        let prompt = format!("{}{files}", prompt.trim());
        if prompt.trim().is_empty() {
            let definition = &self.command.definition;
            let why = if definition.template.runs_commands() {
                "its commands ran and printed nothing, and it has no other text"
            } else {
                "all of its text is what is typed after its name; type something there"
            };
            return Err(RpcError::Failed(format!(
                "/{} has nothing to send: {why}",
                definition.name
            )));
        }
        Ok(prompt)
    }

    async fn shell(&self, command: &str) -> Result<String, RpcError> {
        let name = &self.command.definition.name;
        let arguments = json!({
            "command": command,
            "description": format!("Run a command of /{name}"),
            "initial_wait": LONGEST_SHELL,
        });
        let said = self.part("bash", arguments).await?;
        let said =
            said.map_err(|why| self.failed(format_args!("its command `{command}`: {why}")))?;
        let said = said.trim_end();
        let said = said
            .strip_suffix("<exited with exit code 0>")
            .unwrap_or(said);
        Ok(said.trim_end().to_owned())
    }

    async fn include(&self, path: &str, real: &Path) -> Result<String, RpcError> {
        let arguments = json!({"path": real});
        let said = self.part("view", arguments).await?;
        said.map_err(|why| self.failed(format_args!("the file @{path}: {why}")))
    }

    async fn part(
        &self,
        tool: &'static str,
        arguments: serde_json::Value,
    ) -> Result<Result<String, String>, RpcError> {
        let request: RequestId = self.context.app.services.clock.id().into();
        let mut asker = PartAsker {
            session: self.session.clone(),
            request: Some(request.clone()),
        };
        let ran = self.session.run_part(PartOrder {
            request,
            tool,
            arguments,
        });
        let ran = ran.await;
        asker.request = None;
        Ok(ran?)
    }

    /// Runs the command in a sub-agent. A person waits for its answer. In autopilot mode nobody does:
    /// the model is told of the answer when it comes.
    async fn in_subagent(&self, agent: String, prompt: String) -> Result<FileResult, RpcError> {
        let command = &self.command.definition;
        let mode = self.session.state(|state| state.mode).await?;
        let waits = mode != Mode::Autopilot;
        let order = SubagentOrder {
            agent_type: Some(agent),
            name: Some(command.name.replace(':', "-")),
            description: self.shown(),
            prompt,
            model: command.model.clone(),
            execution: Some(if waits {
                Execution::Sync
            } else {
                Execution::Background
            }),
            isolation: None,
            cwd: None,
            call: None,
            tools: command.tools.clone(),
            answers_person: waits,
            command: Some(command_subagent::begin(self.context, self.limits)),
            skill: None,
            todo: None,
        };
        SubagentCommand {
            session: self.session,
            name: &command.name,
        }
        .run(order)
        .await
        .map(FileResult::Done)
    }
}

/// Where the prompt of a command goes.
enum Setting {
    Conversation(RunScope),
    Subagent { agent: String },
}

/// Closes the permission request of a part when its caller stops waiting: the request was cancelled,
/// or its connection is gone.
struct PartAsker {
    session: SessionHandle,
    /// `None` once the part has run or was refused.
    request: Option<RequestId>,
}

impl Drop for PartAsker {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            // The call posts the command; nobody waits for the outcome.
            drop(self.session.command(Command::AnswerPermission {
                request,
                decision: PermissionDecision::Cancelled { reason: None },
            }));
        }
    }
}
