//! Commands and orders of a fleet.

use loopd_proto::attachment::Attachment;
use loopd_proto::event::fact::ClientRef;
use loopd_proto::run_scope::RunLimits;

/// An order for a fleet.
#[derive(Debug)]
pub struct FleetOrder {
    /// What is to be divided into todos first; without it the todos that there are count.
    pub prompt: Option<String>,
    /// What goes with the prompt.
    pub attachments: Vec<Attachment>,
    /// How many may work at the same time; as many as agents may, unless said.
    pub workers: Option<u32>,
    pub agent_type: Option<String>,
    pub sender: Option<ClientRef>,
    /// How much the fleet may take.
    pub limits: Option<RunLimits>,
}

/// An order for one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerOrder {
    pub todo: String,
    pub title: String,
    pub prompt: String,
    pub agent_type: Option<String>,
}
