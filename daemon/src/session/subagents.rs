//! The sub-agents of a session, and the session as a sub-agent of another one. Implements with
//! sessions what the module `subagent` drives.

pub(super) mod above;
pub(super) mod as_child;
mod child;
mod children;
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
use above::RestrictionsAbove;
use as_child::{Inheritance, ParentLink};
use children::Children;
use tree::Tree;

/// The sub-agents of a session, and its link to a parent.
pub(super) struct SessionSubagents {
    runs: Subagents,
    children: Children,
    /// The parent, if the session is a sub-agent.
    parent: Option<ParentLink>,
    /// What the parent restricts, if a client opened the session of a sub-agent directly.
    above: Option<RestrictionsAbove>,
    /// What a parent handed down before it adopted this session.
    early: Option<Inheritance>,
    /// How often the session has handed down changes to its sub-agents.
    handed_down: u64,
    /// What all sub-agents below share; made with the first one, in the session at the top only.
    tree: Option<Arc<Tree>>,
    /// The sub-agents that can be started, as of the last message.
    roster: RosterCell,
}

impl SessionSubagents {
    /// Makes those of a new session.
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
            above: None,
            early: None,
            handed_down: 0,
            tree: None,
            roster,
        }
    }

    /// Returns the runs of the session's sub-agents.
    pub(super) fn runs(&self) -> &Subagents {
        &self.runs
    }

    /// Returns the sub-agents that can be started.
    pub(super) fn roster_cell(&self) -> RosterCell {
        self.roster.clone()
    }

    pub(super) fn roster(&self) -> Arc<Roster> {
        self.roster.get()
    }

    /// Returns what all sub-agents below share, if there are any; only in the session at the top.
    pub(super) fn tree(&self) -> Option<&Arc<Tree>> {
        self.tree.as_ref()
    }

    /// Returns the link to the parent, if the session is a sub-agent.
    pub(super) fn parent(&self) -> Option<&ParentLink> {
        self.parent.as_ref()
    }

    /// Returns whether the session is a sub-agent of a live session.
    pub(super) fn is_child(&self) -> bool {
        self.parent.is_some()
    }
}
