//! What can be looked at from outside without changing the session.

use std::sync::Arc;

use loopd_proto::session::{ClientCommand, SessionOptions};
use loopd_proto::wire::PeerId;
use tokio::sync::watch;

use super::actor::Actor;
use super::attach::Attachment;
use super::subagents::tree::Tree;
use crate::launch::Launch;
use crate::publish::Audience;
use crate::publish::recent::Recent;
use crate::subagent::Subagents;
use crate::subagent::definitions::Roster;
use crate::turn::route::Route;
use loopd_exec::shells::{CommandContext, Shells};
use loopd_kernel::model::ToolSpec;
use loopd_kernel::state::State;
use loopd_model::secret::Secret;

/// What can be looked at from outside.
pub struct View<'a> {
    pub state: &'a State,
    pub recent: &'a Recent,
    /// Ticks with everything published.
    pub ticks: &'a watch::Sender<u64>,
    attachments: &'a [Attachment],
    /// Whether anybody is attached.
    pub in_use: bool,
    pub launch: Option<&'a Arc<Launch>>,
    /// The configuration with its secrets.
    pub options: &'a SessionOptions,
    pub api_token: Option<&'a Secret>,
    pub tools: &'a dyn Fn() -> Vec<ToolSpec>,
    pub commands: &'a dyn Fn() -> Vec<ClientCommand>,
    pub elicitation: bool,
    /// How the session's model calls find their provider.
    pub route: &'a dyn Fn() -> Route,
    /// The commands of the session.
    pub shells: &'a Shells,
    /// The agents of the session.
    pub agents: &'a Subagents,
    /// What the agents below share, once there are any.
    pub tree: Option<&'a Arc<Tree>>,
    /// The agents that may be started.
    pub roster: &'a dyn Fn() -> Arc<Roster>,
    pub command_context: &'a dyn Fn() -> CommandContext,
    /// Those who listen.
    pub audience: &'a Audience,
}

impl View<'_> {
    /// Whether somebody else is attached.
    pub fn attached_besides(&self, peer: PeerId) -> bool {
        self.attachments
            .iter()
            .any(|attachment| attachment.connection.peer.id() != peer)
    }
}

impl Actor {
    pub(super) fn show(&self, look: Box<dyn FnOnce(&View<'_>) + Send>) {
        let tools = || self.toolset().specs();
        let command_context = || self.command_context();
        let route = || self.route();
        let roster = || self.subagents.roster();
        let commands = || {
            self.attachments
                .iter()
                .filter_map(|attachment| attachment.offer.commands.clone())
                .flatten()
                .collect()
        };
        look(&View {
            state: &self.state,
            recent: &self.recent,
            ticks: &self.ticks,
            in_use: !self.attachments.is_empty(),
            attachments: &self.attachments,
            launch: self.launch.as_ref(),
            options: &self.options,
            api_token: self.api_token.as_ref(),
            tools: &tools,
            commands: &commands,
            elicitation: self.can_elicit,
            route: &route,
            shells: &self.shells,
            agents: self.subagents.runs(),
            tree: self.subagents.tree(),
            roster: &roster,
            command_context: &command_context,
            audience: &self.audience,
        });
    }
}
