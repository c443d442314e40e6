//! Commands and orders of a fleet.

use loopd_proto::event::fact::ClientRef;

/// An order for a fleet.
#[derive(Debug)]
pub struct FleetOrder {
    /// What is to be divided into todos first; without it the todos that there are count.
    pub prompt: Option<String>,
    pub workers: u32,
    pub agent_type: Option<String>,
    pub sender: Option<ClientRef>,
}

/// An order for one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerOrder {
    pub todo: String,
    pub title: String,
    pub prompt: String,
    pub agent_type: Option<String>,
}
