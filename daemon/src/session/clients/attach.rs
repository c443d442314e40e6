//! Attaches a client with what it offers to a session, and detaches it again.

use std::sync::Arc;

use loopd_proto::event::Ephemeral;
use loopd_proto::event::ask::{CommandName, CommandsChanged};
use loopd_proto::event::session::{CapabilitiesChanged, UiCapabilities};
use loopd_proto::id::{Seq, SessionId};
use loopd_proto::session::{ClientOffer, SessionOptions};

use super::Clients;
use crate::client::{Client, ClientId};
use crate::hook::HookClient;
use crate::launch::Launch;
use crate::session::SessionError;
use crate::session::actor::{Actor, Flow};
use crate::session::waits::Whose;
use loopd_kernel::command::Command;
use loopd_model::secret::Secret;

/// A client that receives the events of a session and answers its requests.
#[derive(Clone)]
pub struct Attachment {
    pub client: Arc<dyn Client>,
    pub launch: Arc<Launch>,
    /// The name that the client gave; empty if it gave none.
    pub name: String,
    /// Whether the client was attached before and its connection broke.
    pub returns: bool,
    pub offer: ClientOffer,
    /// The configuration as the client gave it, with its secrets; kept in memory only.
    pub options: SessionOptions,
    pub api_token: Option<Secret>,
    /// The names of the client's settings that were not taken, because others use the session.
    pub kept: Vec<&'static str>,
    /// The client is first sent the durable events after this one.
    pub from: Seq,
    pub pending: PendingWork,
}

impl Attachment {
    /// Returns the client as one that answers the hooks of a session that it knows.
    pub(in crate::session) fn hook_client(&self, session: &SessionId) -> HookClient {
        HookClient {
            client: self.client.clone(),
            name: self.name.clone(),
            session: session.clone(),
        }
    }
}

/// Whether attaching a client continues the messages that wait in an idle session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingWork {
    /// The session takes up the messages at once.
    Continues,
    /// The messages wait for the next prompt.
    Waits,
}

/// Why a client is detached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetachReason {
    /// The client asked for it. When it was the last client, the session ends.
    Destroy,
    /// Its connection was lost. The session goes on as far as it can without a client.
    ConnectionLost,
}

impl Actor {
    pub(in crate::session) async fn attach(&mut self, attachment: Attachment) {
        let client = attachment.client.clone();
        if self.subagents.is_child() {
            // The clients of a sub-agent are those that its parent hands down; others only watch.
            if !self.clients.audience.has(client.id()) {
                self.show_missed(&client, &attachment).await;
                self.clients.audience.join(client.clone());
            }
            self.tell_kept(&client, &self.not_taken(&attachment));
            return;
        }
        self.options = std::mem::take(&mut self.options).updated_by(attachment.options.clone());
        self.clients.learn_tokens(&attachment.options, &client);
        let newcomer = self.clients.make_room_for(&attachment);
        // A client that was attached already has received all of these events.
        if newcomer {
            self.show_missed(&client, &attachment).await;
        }
        self.tell_kept(&client, &self.not_taken(&attachment));
        if newcomer && attachment.offer.request_elicitation {
            self.show_open_forms(&client);
        }
        let asks = attachment.offer.request_user_input;
        let approves = attachment.offer.request_exit_plan_mode;
        let switches = attachment.offer.request_auto_mode_switch;
        let brings_commands = attachment.offer.commands.is_some();
        self.clients.attachments.push(attachment);
        // The new client learns the capabilities from its reply, the other clients from an event.
        self.capabilities_may_have_changed();
        let joined = self.clients.attachments.last().filter(|_| newcomer);
        match (self.subagents.tree(), joined) {
            (Some(tree), Some(joined)) => tree.join(client.clone(), &joined.offer),
            (None, _) | (_, None) => self.clients.audience.join(client.clone()),
        }
        if brings_commands {
            self.tell_commands();
        }
        if asks {
            self.ask_late_joiner(&client);
        }
        if approves {
            self.ask_late_joiner_about_plans(&client);
        }
        if switches {
            self.ask_late_joiner_for_models(&client);
        }
        if newcomer {
            self.show_queued_command(&client);
        }
        self.hand_down();
    }

    /// Returns whether the session has a parent, or a client that is not just an observer.
    pub(in crate::session) fn is_attended(&self) -> bool {
        match self.subagents.parent() {
            // The parent waits for its result, until it rests.
            Some(parent) => !parent.rests(),
            None => self.clients.is_attended(),
        }
    }

    pub(in crate::session) async fn detach(
        &mut self,
        client: ClientId,
        reason: DetachReason,
    ) -> Flow {
        if self.subagents.is_child() {
            // Its parent ends it.
            self.clients.audience.leave(client);
            let left = SessionError::Left(self.state.id.clone());
            self.waits.refuse(Whose::Of(client), &left);
            return Flow::Go;
        }
        let ends = !self.clients.has_others_than(client) && reason == DetachReason::Destroy;
        if reason == DetachReason::Destroy {
            self.guard_left(client, !ends).await;
        }
        // The last client is still attached, so that it receives the final event.
        if ends {
            let notes = Box::pin(self.consolidation()).await;
            match self.shut_down(None).await {
                Ok(()) => self.notes = notes,
                Err(error) => {
                    tracing::error!(session = %self.state.id, %error, "the session's end could not be stored");
                }
            }
        }
        let took_commands = self.clients.remove(client);
        self.note_hook_clients();
        if ends {
            return Flow::Stop;
        }
        let left = SessionError::Left(self.state.id.clone());
        self.waits.refuse(Whose::Of(client), &left);
        self.clients.take_launch_of_those_left();
        self.end_commands_of(client);
        if took_commands {
            self.tell_commands();
        }
        self.capabilities_may_have_changed();
        self.hand_down();
        self.guards_changed().await;
        if let Some(unanswered) = self.take_queued_command_of(client)
            && self.report(unanswered).await == Flow::Stop
        {
            return Flow::Stop;
        }
        if self.state.waits_for_commands() {
            return self.report(Command::ClientsLeft).await;
        }
        Flow::Go
    }

    /// Tells all clients which slash commands the clients of the session run.
    fn tell_commands(&mut self) {
        let commands = self.clients.commands();
        let commands = commands.map(|command| CommandName {
            name: command.name.clone(),
            description: (!command.description.is_empty()).then(|| command.description.clone()),
        });
        let commands = commands.collect();
        self.tell(&Ephemeral::CommandsChanged(CommandsChanged { commands }));
    }

    fn capabilities_may_have_changed(&mut self) {
        let can = self.clients.offers().any(|offer| offer.request_elicitation);
        if can != self.clients.can_elicit {
            self.clients.can_elicit = can;
            self.tell(&Ephemeral::CapabilitiesChanged(CapabilitiesChanged {
                ui: UiCapabilities { elicitation: can },
            }));
        }
    }
}

impl Clients {
    /// Takes the client's token, and its launch if the session needs one; drops its earlier
    /// attachment. Returns whether the client was not attached before.
    fn make_room_for(&mut self, attachment: &Attachment) -> bool {
        let id = attachment.client.id();
        let before = self.attachments.len();
        self.attachments.retain(|known| known.client.id() != id);
        // A session uses the launch of an observer only until another client attaches. It keeps the
        // launch of a client while that client is attached, so that it does not change environments
        // under that client.
        let served = attachment.offer.observer || self.is_attended();
        if self.launch.is_none() || self.borrowed_launch || !served {
            self.launch = Some(attachment.launch.clone());
            self.borrowed_launch = attachment.offer.observer;
        }
        // The token of a client that joins others is taken only if there is none.
        if attachment.api_token.is_some() && (self.api_token.is_none() || !served) {
            self.api_token.clone_from(&attachment.api_token);
        }
        self.attachments.len() == before
    }

    /// Detaches a client; returns whether it offered slash commands.
    fn remove(&mut self, id: ClientId) -> bool {
        self.audience.leave(id);
        let mut leaving = self.attachments.iter();
        let leaving = leaving.find(|attachment| attachment.client.id() == id);
        let took_commands = leaving.is_some_and(|it| it.offer.commands.is_some());
        self.attachments.retain(|known| known.client.id() != id);
        took_commands
    }

    /// Replaces a launch whose client has left by that of a client that is still attached.
    fn take_launch_of_those_left(&mut self) {
        let here = |launch: &Arc<Launch>| {
            let mut attachments = self.attachments.iter();
            attachments.any(|attachment| Arc::ptr_eq(&attachment.launch, launch))
        };
        if self.launch.as_ref().is_some_and(here) {
            return;
        }
        let mut attachments = self.attachments.iter();
        if let Some(next) = attachments.find(|attachment| !attachment.offer.observer) {
            self.launch = Some(next.launch.clone());
            self.borrowed_launch = false;
        }
    }
}
