//! What a connection brings to a session and how it takes it away again.

use std::sync::Arc;

use loopd_proto::event::Ephemeral;
use loopd_proto::event::ask::{CommandName, CommandsChanged};
use loopd_proto::event::session::{CapabilitiesChanged, UiCapabilities};
use loopd_proto::id::Seq;
use loopd_proto::session::{ClientOffer, SessionOptions};
use loopd_proto::wire::PeerId;

use super::SessionError;
use super::actor::{Actor, Flow};
use super::waits::Whose;
use crate::connection::Connection;
use crate::launch::Launch;
use loopd_kernel::command::Command;
use loopd_model::secret::Secret;

/// A connection that listens to a session and answers for it.
#[derive(Clone)]
pub struct Attachment {
    pub connection: Arc<Connection>,
    pub offer: ClientOffer,
    /// The configuration as the client gave it, secrets included; kept in memory only.
    pub options: SessionOptions,
    pub api_token: Option<Secret>,
    /// Durable events after this one are sent first.
    pub from: Seq,
    pub pending: PendingWork,
}

/// What becomes of messages that wait in an idle session when somebody comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingWork {
    /// They are taken up at once.
    Continues,
    /// They wait for the next prompt.
    Waits,
}

/// How a connection leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetachReason {
    /// It said so: the last one out ends the session.
    Destroy,
    /// It vanished: the session goes on as far as it can without anybody.
    ConnectionLost,
}

impl Actor {
    pub(super) async fn attach(&mut self, attachment: Attachment) {
        let peer = attachment.connection.peer.clone();
        self.options = std::mem::take(&mut self.options).updated_by(attachment.options.clone());
        self.learn_token_peers(&attachment.options, &peer);
        // The launch of who only looks on serves until another one comes; that of who was here
        // before serves while they are here: nobody's environment is put upon them.
        let mut others = self.attachments.iter();
        let others =
            others.any(|other| other.connection.peer.id() != peer.id() && !other.offer.observer);
        if self.launch.is_none() || self.borrowed_launch || !(attachment.offer.observer || others) {
            self.launch = Some(attachment.connection.launch().clone());
            self.borrowed_launch = attachment.offer.observer;
        }
        if attachment.api_token.is_some() {
            self.api_token.clone_from(&attachment.api_token);
        }
        let newcomer = !self
            .attachments
            .iter()
            .any(|known| known.connection.peer.id() == peer.id());
        // Who listened already has heard all of this.
        if newcomer {
            self.show_missed(&peer, &attachment).await;
        }
        if newcomer && attachment.offer.request_elicitation {
            self.show_open_forms(&peer);
        }
        self.attachments
            .retain(|known| known.connection.peer.id() != peer.id());
        let asks = attachment.offer.request_user_input;
        let brings_commands = attachment.offer.commands.is_some();
        self.attachments.push(attachment);
        // The newcomer learns what the session can do from its reply; the others from an event.
        self.capabilities_may_have_changed();
        let id = peer.id();
        let joined = self.attachments.last().filter(|_| newcomer);
        match (self.subagents.tree(), joined) {
            (Some(tree), Some(joined)) => tree.join(peer, &joined.offer),
            (None, _) | (_, None) => self.audience.join(peer),
        }
        if brings_commands {
            self.tell_commands();
        }
        if asks {
            self.ask_late_joiner(id);
        }
        self.hand_down();
    }

    /// When who brought the launch has left, that of somebody who is here serves.
    fn take_launch_of_those_left(&mut self) {
        let here = |launch: &Arc<Launch>| {
            let mut attachments = self.attachments.iter();
            attachments.any(|it| Arc::ptr_eq(&it.connection.launch(), launch))
        };
        if self.launch.as_ref().is_some_and(here) {
            return;
        }
        let mut attachments = self.attachments.iter();
        if let Some(next) = attachments.find(|attachment| !attachment.offer.observer) {
            self.launch = Some(next.connection.launch().clone());
            self.borrowed_launch = false;
        }
    }

    /// What a connection brought, if it is attached.
    pub(super) fn attachment_of(&mut self, peer: PeerId) -> Option<&mut Attachment> {
        let mut attachments = self.attachments.iter_mut();
        attachments.find(|attachment| attachment.connection.peer.id() == peer)
    }

    /// Whether somebody is there for whom the session works; who only looks on does not count.
    pub(super) fn is_attended(&self) -> bool {
        if self.subagents.is_child() {
            // Its parent wants to know what it comes to.
            return true;
        }
        let mut offers = self.attachments.iter().map(|attachment| &attachment.offer);
        offers.any(|offer| !offer.observer)
    }

    pub(super) async fn detach(&mut self, peer: PeerId, reason: DetachReason) -> Flow {
        let others = self
            .attachments
            .iter()
            .any(|attachment| attachment.connection.peer.id() != peer);
        let ends = !others && reason == DetachReason::Destroy;
        // The last one out still hears the end.
        if ends && let Err(error) = self.execute(Command::Shutdown { error: None }).await {
            tracing::error!(session = %self.state.id, %error, "the session's end could not be stored");
        }
        self.audience.leave(peer);
        let mut leaving = self.attachments.iter();
        let takes_commands = leaving.any(|attachment| {
            attachment.connection.peer.id() == peer && attachment.offer.commands.is_some()
        });
        self.attachments
            .retain(|attachment| attachment.connection.peer.id() != peer);
        if ends {
            return Flow::Stop;
        }
        let left = SessionError::Left(self.state.id.clone());
        self.waits.refuse(Whose::Of(peer), &left);
        self.take_launch_of_those_left();
        self.end_commands_of(peer);
        if takes_commands {
            self.tell_commands();
        }
        self.capabilities_may_have_changed();
        self.hand_down();
        Flow::Go
    }

    /// Tells everyone which commands the clients of the session run.
    fn tell_commands(&mut self) {
        let commands = self
            .attachments
            .iter()
            .filter_map(|attachment| attachment.offer.commands.as_ref())
            .flatten()
            .map(|command| CommandName {
                name: command.name.clone(),
                description: (!command.description.is_empty()).then(|| command.description.clone()),
            })
            .collect();
        self.tell(&Ephemeral::CommandsChanged(CommandsChanged { commands }));
    }

    fn capabilities_may_have_changed(&mut self) {
        let can = self
            .attachments
            .iter()
            .any(|attachment| attachment.offer.request_elicitation);
        if can != self.can_elicit {
            self.can_elicit = can;
            self.tell(&Ephemeral::CapabilitiesChanged(CapabilitiesChanged {
                ui: UiCapabilities { elicitation: can },
            }));
        }
    }
}
