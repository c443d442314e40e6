//! How a session begins and is resumed.

use loopd_proto::event::agent::SubagentIdentity;
use loopd_proto::event::session::WorkContext;
use loopd_proto::permission::{ManagedPermissions, Permissions};
use loopd_proto::session::SessionOptions;

use super::settings::{AgentChoice, AgentPick};

#[derive(Debug)]
pub struct Create {
    pub options: SessionOptions,
    pub context: WorkContext,
    pub permissions: Permissions,
    /// The agent that answers instead of the default one.
    pub agent: Option<AgentChoice>,
    pub version: String,
    /// Set when the session is an agent of another one.
    pub subagent: Option<Box<SubagentIdentity>>,
}

/// A copy of a log that becomes an agent.
#[derive(Debug)]
pub struct AdoptAsSubagent {
    pub subagent: SubagentIdentity,
    /// Where it works, if not where its parent does.
    pub cwd: Option<String>,
}

#[derive(Debug)]
pub struct Resume {
    pub options: SessionOptions,
    pub working_directory: Option<String>,
    pub context: WorkContext,
    /// The agent that answers from now on.
    pub agent: Option<Box<AgentPick>>,
    /// What an app decides for its users, besides what was decided before.
    pub managed: Option<Box<ManagedPermissions>>,
    /// Whether somebody else is attached. The session says so itself.
    pub was_active: bool,
    pub already_in_use: bool,
    pub continue_pending_work: bool,
    pub announce: bool,
}
