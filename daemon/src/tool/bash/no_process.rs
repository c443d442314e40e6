//! Stands in for `process.rs` where there is no bash: every call is answered with that fact.

use std::time::Duration;

use super::capture::Capture;
use crate::tool::ToolContext;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    pub(super) limit: Duration,
    pub(super) kill_after: Duration,
    pub(super) pipe_grace: Duration,
    pub(super) partial_every: Duration,
}

/// How a command ended.
#[derive(Debug)]
pub(super) enum End {
    Exited(i32),
    Killed(i32),
    Interrupted,
    OutOfTime,
    NotStopped,
}

/// A command that ended and what it said.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) end: End,
    pub(super) capture: Capture,
    pub(super) note: Option<&'static str>,
}

/// Why no command ran.
#[derive(Debug, thiserror::Error)]
#[error("This system has no bash, so the command was not run.")]
pub(super) struct NotStarted;

pub(super) async fn run(
    _command: &str,
    _context: &ToolContext,
    _timing: Timing,
) -> Result<Finished, NotStarted> {
    Err(NotStarted)
}
