//! Slash commands that run in a client: the client that offers a command runs it and reports once.
//!
//! These commands belong to open connections, so none of them is stored. Commands of the queue are
//! stored; `queued` gives them to clients.

use std::collections::HashMap;

use loopd_proto::event::Ephemeral;
use loopd_proto::event::ask::{CommandExecute, Completed};
use loopd_proto::id::RequestId;
use tokio::sync::oneshot;

use super::attach::Attachment;
use crate::client::{ClientId, Notice};
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
        let Some(owner) = self.clients.runner_of(name) else {
            return Err(format!("the client that runs /{name} has left"));
        };
        let request: RequestId = self.services.clock.id().into();
        let execute = CommandExecute {
            request_id: request.clone(),
            command: format!("/{name} {args}").trim_end().to_owned(),
            command_name: name.to_owned(),
            args,
        };
        self.tell_to_execute(owner, execute)?;
        Ok((request, owner.client.id()))
    }

    /// Tells a client to run a slash command.
    pub(super) fn tell_to_execute(
        &self,
        owner: &Attachment,
        execute: CommandExecute,
    ) -> Result<(), String> {
        let event = Ephemeral::CommandExecute(execute);
        let outgoing = journal::pass(&self.state, &self.services.clock, &event)
            .map_err(|error| format!("the command could not be written as JSON: {error}"))?;
        // If the client has disconnected already, its connection detaches it; that ends the
        // command.
        let notice = Notice::event(&self.state.id, &outgoing.line);
        owner.client.tell(outgoing.class, &notice);
        Ok(())
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
