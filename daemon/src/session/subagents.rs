//! The sub-agents of a session, and the session as one of another: the sessions behind the room
//! `subagent`.

mod child;
mod children;
pub(super) mod parent;
pub(super) mod roster;
pub(super) mod spawn;
pub mod tree;

use std::sync::Arc;

use loopd_proto::id::SessionId;
use tokio::sync::mpsc;

pub(super) use child::{is_at_work, result};

use super::Message;
use super::registry::Sessions;
use crate::services::Services;
use crate::subagent::Subagents;
use crate::subagent::definitions::Roster;
use crate::subagent::definitions::refresh::RosterCell;
use children::Children;
use parent::{Inheritance, ParentLink};
use tree::Tree;

/// What a session has to do with sub-agents.
pub(super) struct SessionSubagents {
    runs: Subagents,
    children: Children,
    /// Set in the session of an agent.
    parent: Option<ParentLink>,
    /// What a parent handed down before the session knew whose agent it is.
    early: Option<Inheritance>,
    /// How often something was handed down to the agents.
    handed_down: u64,
    /// What the agents below share; made with the first of them, at the top only.
    tree: Option<Arc<Tree>>,
    /// The agents that can be started, as of the last message.
    roster: RosterCell,
}

impl SessionSubagents {
    /// Those of a new session.
    pub(super) fn new(
        id: &SessionId,
        services: &Arc<Services>,
        sessions: &Arc<Sessions>,
        mailbox: &mpsc::Sender<Message>,
    ) -> Self {
        let children = Children::default();
        let roster = RosterCell::default();
        let runs = spawn::subagents(id, services, sessions, mailbox, &children, &roster);
        Self {
            runs,
            children,
            parent: None,
            early: None,
            handed_down: 0,
            tree: None,
            roster,
        }
    }

    /// The agents of the session and what they do.
    pub(super) fn runs(&self) -> &Subagents {
        &self.runs
    }

    /// The agents that can be started.
    pub(super) fn roster(&self) -> Arc<Roster> {
        self.roster.get()
    }

    /// What the agents below share, once there are any; at the top only.
    pub(super) fn tree(&self) -> Option<&Arc<Tree>> {
        self.tree.as_ref()
    }

    /// Set in the session of an agent.
    pub(super) fn parent(&self) -> Option<&ParentLink> {
        self.parent.as_ref()
    }

    /// Whether the session is an agent of a live one.
    pub(super) fn is_child(&self) -> bool {
        self.parent.is_some()
    }
}
