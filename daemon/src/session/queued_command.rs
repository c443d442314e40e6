//! Runs the slash commands of the queue that are the daemon's own or of files. What such a command does
//! is known above: the front implements [`DaemonCommands`].

use futures::future::BoxFuture;
use loopd_proto::event::fact::PendingCommand;
use loopd_proto::id::SessionId;

use super::actor::Actor;
use super::work::Work;
use crate::client::ClientId;
use loopd_kernel::command::{Command, CommandOutcome};

/// The slash commands of the daemon and of files.
pub trait DaemonCommands: Send + Sync {
    /// Runs a command line in the name of a client that is attached to the session. Dropping the
    /// future stops it.
    fn run(
        &self,
        client: ClientId,
        session: SessionId,
        line: String,
    ) -> BoxFuture<'static, Result<CommandOutcome, String>>;
}

impl Actor {
    pub(super) fn run_queued_command(&self, command: PendingCommand) -> Work {
        let request = command.request.clone();
        let crashed = request.clone();
        let commands = self.sessions.commands();
        // Nothing is taken from the queue while nobody is attached.
        let client = self.clients.attachments().last();
        let client = client.map(|attachment| attachment.client.id());
        let session = self.state.id.clone();
        let cancel = self.running.turn();
        Work::new(
            async move {
                let running = async {
                    let Some((commands, client)) = commands.zip(client) else {
                        return Err("no client is there in whose name it could run".to_owned());
                    };
                    commands.run(client, session, command.command).await
                };
                tokio::select! {
                    () = cancel.cancelled() => None,
                    outcome = running => Some(Command::CommandRan { request, outcome }),
                }
            },
            move || Command::CommandRan {
                request: crashed,
                outcome: Err("it crashed inside the daemon; this is a bug of loopd".to_owned()),
            },
        )
    }
}
