//! Slash commands that run in a client: the client that offers a command runs it and reports once.
//!
//! These commands belong to open connections, so none of them is stored. Commands of the queue are
//! stored; the kernel has them, and this module only shows the current one to clients that join.

use std::collections::HashMap;
use std::sync::Arc;

use loopd_kernel::state::Phase;
use loopd_proto::event::Ephemeral;
use loopd_proto::event::ask::{CommandExecute, CommandQueued, Completed};
use loopd_proto::id::RequestId;
use tokio::sync::oneshot;

use crate::client::{Client, ClientId, Notice};
use crate::session::actor::Actor;
use crate::session::journal;

/// The most slash commands that may run in clients at a time.
const MOST_RUNNING: usize = 100;

/// The result of a client's slash command, or why it failed.
pub type ClientRan = Result<(), String>;

/// The slash commands that run in clients now.
pub(super) type RunningCommands = HashMap<RequestId, RunningCommand>;

/// A slash command that runs in a client.
pub(super) struct RunningCommand {
    client: ClientId,
    reply: oneshot::Sender<ClientRan>,
}

impl Actor {
    /// Hands a slash command to the client that attached last among those that offer it.
    pub(in crate::session) fn run_client_command(
        &mut self,
        name: &str,
        args: String,
        reply: oneshot::Sender<ClientRan>,
    ) {
        // The callers of these commands have stopped waiting.
        let known = &mut self.clients.running_commands;
        known.retain(|_, running| !running.reply.is_closed());
        match self.hand_over(name, args) {
            // The send fails if the caller has stopped waiting.
            Err(why) => drop(reply.send(Err(why))),
            Ok((request, client)) => {
                let running = RunningCommand { client, reply };
                self.clients.running_commands.insert(request, running);
            }
        }
    }

    fn hand_over(&self, name: &str, args: String) -> Result<(RequestId, ClientId), String> {
        if self.clients.running_commands.len() >= MOST_RUNNING {
            return Err(format!(
                "{MOST_RUNNING} commands run in clients already; wait for some of them"
            ));
        }
        let brings = |offered: &loopd_proto::session::ClientCommand| offered.name == name;
        let mut newest_first = self.clients.attachments.iter().rev();
        let owner = newest_first.find(|attachment| {
            let offered = attachment.offer.commands.as_ref();
            offered.is_some_and(|offered| offered.iter().any(brings))
        });
        let Some(owner) = owner else {
            return Err(format!("the client that runs /{name} has left"));
        };
        let request: RequestId = self.services.clock.id().into();
        let event = Ephemeral::CommandExecute(CommandExecute {
            request_id: request.clone(),
            command: format!("/{name} {args}").trim_end().to_owned(),
            command_name: name.to_owned(),
            args,
        });
        let outgoing = journal::pass(&self.state, &self.services.clock, &event)
            .map_err(|error| format!("the command could not be written as JSON: {error}"))?;
        // If the client has disconnected already, its connection detaches it; that ends the
        // command.
        let notice = Notice::event(&self.state.id, &outgoing.line);
        owner.client.tell(outgoing.class, &notice);
        Ok((request, owner.client.id()))
    }

    /// Shows a client that joins the queued slash command that clients are to run now, if this client
    /// runs it or any client may.
    pub(in crate::session) fn show_queued_command(&self, client: &Arc<dyn Client>) {
        let Phase::Commanding(pending) = &self.state.phase else {
            return;
        };
        let id = client.id();
        let mut attachments = self.clients.attachments.iter();
        let joined = attachments.find(|attachment| attachment.client.id() == id);
        let runs_it = joined.is_some_and(|joined| {
            let offered = joined.offer.commands.iter().flatten();
            let mut names = offered.map(|command| command.name.as_str());
            names.any(|name| name.eq_ignore_ascii_case(pending.name()))
        });
        if pending.registered && !runs_it {
            return;
        }
        let event = Ephemeral::CommandQueued(CommandQueued {
            request_id: pending.request.clone(),
            command: pending.command.clone(),
        });
        match journal::pass(&self.state, &self.services.clock, &event) {
            Ok(outgoing) => {
                let notice = Notice::event(&self.state.id, &outgoing.line);
                client.tell(outgoing.class, &notice);
            }
            Err(error) => {
                tracing::error!(session = %self.state.id, %error, "a queued command could not be shown to a client that joined");
            }
        }
    }

    /// Takes the report of a client; returns whether the command was known as running.
    pub(in crate::session) fn client_command_ran(
        &mut self,
        request: RequestId,
        ran: ClientRan,
    ) -> bool {
        let Some(running) = self.clients.running_commands.remove(&request) else {
            return false;
        };
        self.tell(&Ephemeral::CommandCompleted(Completed {
            request_id: request,
        }));
        // The send fails if the caller has stopped waiting.
        running.reply.send(ran).ok();
        true
    }

    /// Ends the slash commands of a client that was detached.
    pub(in crate::session) fn end_commands_of(&mut self, client: ClientId) {
        let running = self.clients.running_commands.iter();
        let lost: Vec<RequestId> = running
            .filter(|(_, running)| running.client == client)
            .map(|(request, _)| request.clone())
            .collect();
        for request in lost {
            let why = "the client that ran the command left before its end".to_owned();
            self.client_command_ran(request, Err(why));
        }
    }
}
