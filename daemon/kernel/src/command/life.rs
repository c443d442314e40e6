//! Commands that create a session and resume it.

use loopd_proto::event::agent::SubagentIdentity;
use loopd_proto::event::hook::VouchedFolder;
use loopd_proto::event::session::WorkContext;
use loopd_proto::permission::{ManagedPermissions, Permissions};
use loopd_proto::session::SessionOptions;

use super::settings::{AgentChoice, AgentPick};
use super::tasks::RecoveredOutcome;

#[derive(Debug)]
pub struct Create {
    pub options: SessionOptions,
    pub context: WorkContext,
    pub permissions: Permissions,
    /// The agent that is used instead of the default one.
    pub agent: Option<AgentChoice>,
    pub version: String,
    /// Set when the session is an agent of another one.
    pub subagent: Option<Box<SubagentIdentity>>,
    /// The name of the session, if a client gives it one.
    pub name: Option<String>,
    /// What is in the folders of hooks that the client names.
    pub vouched_hooks: Vec<VouchedFolder>,
}

/// Turns a session with a copied log into an agent.
#[derive(Debug)]
pub struct AdoptAsSubagent {
    pub subagent: SubagentIdentity,
    /// The directory of the agent, if it is not its parent's.
    pub cwd: Option<String>,
}

#[derive(Debug)]
pub struct Resume {
    pub options: SessionOptions,
    pub working_directory: Option<String>,
    pub context: WorkContext,
    /// The agent that is used from now on.
    pub agent: Option<Box<AgentPick>>,
    /// Managed settings of an app, in addition to those that were set before.
    pub managed: Option<Box<ManagedPermissions>>,
    /// What is in the folders of hooks that the client names.
    pub vouched_hooks: Option<Vec<VouchedFolder>>,
    /// Whether another client is attached. The session fills this in itself.
    pub was_active: bool,
    pub already_in_use: bool,
    pub continue_pending_work: bool,
    pub announce: bool,
}

#[derive(Debug, Default)]
pub struct Shutdown {
    /// Why, if an error is the reason.
    pub error: Option<String>,
    /// How far the agents got that are at work. The session fills this in itself.
    pub agents: Vec<RecoveredOutcome>,
}

impl Shutdown {
    pub fn because_of(error: Option<String>) -> Self {
        Self {
            error,
            agents: Vec::new(),
        }
    }
}
