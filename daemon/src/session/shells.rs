//! Connects the shell commands of a session with its actor.

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::actor::Actor;
use super::{Message, SessionError};
use crate::config::ShellBackend;
use crate::redaction::file::FileMasks;
use crate::services::Services;
use crate::tool::large_output;
use loopd_exec::shells::{CommandContext, Shells, ShellsSetup, TaskLog, TaskLogError};
use loopd_exec::terminal::Backend;
use loopd_kernel::command::Command;

/// The mailbox of the session, as a log for shells and sub-agents.
struct Mailbox(mpsc::Sender<Message>);

impl TaskLog for Mailbox {
    fn record(&self, command: Command) -> BoxFuture<'static, Result<(), TaskLogError>> {
        let mailbox = self.0.clone();
        async move {
            let (reply, stored) = oneshot::channel();
            let message = Message::Command {
                command: Box::new(command),
                reply,
            };
            let gone = TaskLogError::SessionEnded;
            if mailbox.send(message).await.is_err() {
                return Err(gone);
            }
            match stored.await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(SessionError::Refused(refusal))) => Err(TaskLogError::Refused(refusal)),
                Ok(Err(error)) => Err(TaskLogError::NotStored(error.to_string())),
                Err(_) => Err(gone),
            }
        }
        .boxed()
    }
}

/// Returns the log for what runs beside the agent loop.
pub(super) fn log(mailbox: &mpsc::Sender<Message>) -> std::sync::Arc<dyn TaskLog> {
    std::sync::Arc::new(Mailbox(mailbox.clone()))
}

/// Makes the shells of a new session.
pub(super) fn shells(
    id: &loopd_proto::id::SessionId,
    services: &Services,
    mailbox: &mpsc::Sender<Message>,
    masks: &FileMasks,
) -> Shells {
    Shells::new(ShellsSetup {
        session: id.clone(),
        processes: services.processes.clone(),
        scratch: services.scratch_folder(id),
        name_output: large_output::file_name,
        filters: std::sync::Arc::new(masks.clone()),
        log: log(mailbox),
    })
}

impl Actor {
    /// Returns how shell commands run now: as the launch says, else as the configuration file says.
    pub(super) fn shell_backend(&self) -> Backend {
        let named = self
            .clients
            .launch()
            .and_then(|launch| launch.variable("LOOPD_SHELL_BACKEND"))
            .and_then(ShellBackend::parse);
        match named.unwrap_or(self.services.config.shell.backend) {
            ShellBackend::Terminal => Backend::Terminal,
            ShellBackend::Process => Backend::Process,
        }
    }

    /// Returns where a shell command of the model runs now.
    pub(super) fn agent_command_context(&self) -> CommandContext {
        let planning = self.planning().is_on();
        let network = self.services.config.shell.sandbox_network();
        CommandContext {
            sandbox: planning.then(|| self.shells.sandbox(network)),
            ..self.command_context()
        }
    }

    /// Returns where a shell command of a person runs now. Plan mode does not bind people.
    pub(super) fn command_context(&self) -> CommandContext {
        CommandContext {
            backend: self.shell_backend(),
            cwd: self.state.cwd.clone().into(),
            env: self.child_environment(),
            sandbox: None,
        }
    }

    /// Returns the part of the launch's environment that child processes of this session may see.
    pub(super) fn child_environment(&self) -> std::collections::BTreeMap<String, String> {
        let launch = self.clients.launch();
        let env = launch.map(|launch| launch.child_environment(&self.services.config));
        env.unwrap_or_default()
    }
}
