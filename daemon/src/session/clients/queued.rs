//! Slash commands of the queue that run in a client. The kernel has the command that runs; this module
//! gives it to a client, takes it back when that client leaves, and waits for no answer for ever.

use std::sync::Arc;
use std::time::Duration;

use loopd_kernel::command::Command;
use loopd_kernel::state::Phase;
use loopd_proto::event::Ephemeral;
use loopd_proto::event::ask::{CommandExecute, CommandQueued};
use loopd_proto::event::fact::PendingCommand;
use loopd_proto::id::RequestId;
use tokio::time::Instant;

use super::Clients;
use super::attach::Attachment;
use crate::client::{Client, ClientId, Notice};
use crate::config::CommandTimeout;
use crate::session::actor::Actor;
use crate::session::journal;

/// A slash command of the queue that clients are to run.
#[derive(Debug)]
pub(super) struct OfferedCommand {
    request: RequestId,
    /// The client that was told to run it; without one, any client may.
    owner: Option<ClientId>,
    since: Instant,
}

impl OfferedCommand {
    fn limit(&self, timeout: CommandTimeout) -> Duration {
        match self.owner {
            Some(_) => timeout.0,
            None => timeout.unclaimed(),
        }
    }
}

impl Clients {
    /// Returns the client that attached last among those that offer a slash command.
    pub(super) fn runner_of(&self, name: &str) -> Option<&Attachment> {
        let mut newest_first = self.attachments.iter().rev();
        newest_first.find(|attachment| offers(attachment, name))
    }

    pub(in crate::session) fn queued_command_of(&self) -> Option<(RequestId, ClientId)> {
        let queued = self.queued.as_ref()?;
        Some((queued.request.clone(), queued.owner?))
    }
}

fn offers(attachment: &Attachment, name: &str) -> bool {
    let offered = attachment.offer.commands.iter().flatten();
    let mut names = offered.map(|command| command.name.as_str());
    names.any(|offered| offered.eq_ignore_ascii_case(name))
}

/// Returns what a client is told that runs the command, which offers it under this name.
fn execute(pending: &PendingCommand, owner: &Attachment) -> CommandExecute {
    let offered = owner.offer.commands.iter().flatten();
    let mut names = offered.map(|command| &command.name);
    let name = names.find(|name| name.eq_ignore_ascii_case(pending.name()));
    let line = pending.command.trim_start_matches('/').trim_start();
    let args = line.strip_prefix(pending.name()).unwrap_or_default();
    CommandExecute {
        request_id: pending.request.clone(),
        command: pending.command.clone(),
        command_name: name.map_or(pending.name(), String::as_str).to_owned(),
        args: args.trim().to_owned(),
    }
}

impl Actor {
    /// Gives a command whose turn has come to the client that offers it. All clients were shown it.
    pub(in crate::session) fn offer_queued_command(&mut self, pending: &PendingCommand) {
        let owner = self.give_queued_command(pending, self.clients.runner_of(pending.name()));
        self.clients.queued = Some(OfferedCommand {
            request: pending.request.clone(),
            owner,
            since: Instant::now(),
        });
    }

    fn give_queued_command(
        &self,
        pending: &PendingCommand,
        owner: Option<&Attachment>,
    ) -> Option<ClientId> {
        let owner = owner?;
        if let Err(error) = self.tell_to_execute(owner, execute(pending, owner)) {
            tracing::error!(session = %self.state.id, error, "a queued command was not given to its client");
            return None;
        }
        Some(owner.client.id())
    }

    /// Shows a client that joins the queued slash command that clients are to run now, if this client
    /// runs it or any client may. If no client runs it yet and this one offers it, it is to run it.
    pub(in crate::session) fn show_queued_command(&mut self, client: &Arc<dyn Client>) {
        let Phase::Commanding(pending) = &self.state.phase else {
            return;
        };
        if pending.by_daemon {
            return;
        }
        let id = client.id();
        let mut attachments = self.clients.attachments.iter();
        let joined = attachments.find(|attachment| attachment.client.id() == id);
        let joined = joined.filter(|joined| offers(joined, pending.name()));
        if pending.registered && joined.is_none() {
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
        let is_free = self
            .clients
            .queued
            .as_ref()
            .is_some_and(|queued| queued.request == pending.request && queued.owner.is_none());
        if is_free
            && let Some(owner) = self.give_queued_command(pending, joined)
            && let Some(queued) = &mut self.clients.queued
        {
            queued.owner = Some(owner);
            queued.since = Instant::now();
        }
    }

    /// Returns the command of the queue that a client was told to run and will not report any more.
    pub(in crate::session) fn take_queued_command_of(
        &mut self,
        client: ClientId,
    ) -> Option<Command> {
        let queued = self.clients.queued.as_ref()?;
        if queued.owner != Some(client) {
            return None;
        }
        let queued = self.clients.queued.take()?;
        Some(unanswered(
            queued.request,
            "the client that ran it left before its end".to_owned(),
        ))
    }

    /// Returns until when the command that clients are to run may stay without an answer.
    pub(in crate::session) fn queued_command_due(&self) -> Option<Instant> {
        let Phase::Commanding(pending) = &self.state.phase else {
            return None;
        };
        let queued = self.clients.queued.as_ref()?;
        let limit = queued.limit(self.services.config.command_timeout);
        (queued.request == pending.request).then(|| queued.since + limit)
    }

    /// Returns the report that no client has answered in time.
    pub(in crate::session) fn queued_command_overdue(&mut self) -> Option<Command> {
        let queued = self.clients.queued.take()?;
        let limit = queued.limit(self.services.config.command_timeout);
        let seconds = limit.as_secs();
        let why = match queued.owner {
            Some(_) => format!("its client did not report its end within {seconds} seconds"),
            None => format!("no client ran it within {seconds} seconds"),
        };
        Some(unanswered(queued.request, why))
    }
}

fn unanswered(request: RequestId, why: String) -> Command {
    Command::CommandHandled {
        request,
        stop: false,
        error: Some(why),
    }
}
