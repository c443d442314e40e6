//! The options of a run: how far the agent goes on by itself, and when it has to stop.

use std::time::Duration;

use clap::Args as Group;

use super::tasks::seconds;

/// The options of `loop` with a prompt and of `loop resume`.
#[derive(Debug, Clone, Default, Group)]
pub(crate) struct RunOptions {
    /// Let the agent work until it marks the task as complete; the same as --mode autopilot.
    ///
    /// When the agent stops earlier, it is told to go on. It ends with 0 when the task is complete, 5
    /// when the agent is blocked and says what it needs, and 4 when it was told to go on too often.
    #[arg(long, global = true, conflicts_with = "mode")]
    pub(crate) autopilot: bool,

    /// How often an agent in autopilot mode is told to go on; 5 unless the session says otherwise.
    #[arg(long, global = true, value_name = "N")]
    pub(crate) max_continues: Option<u64>,

    /// Stop the agent when it wants to call the model more than N times for this prompt (exit code 4).
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_turns: Option<u64>,

    /// Stop the agent after this time (exit code 124).
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
}

impl RunOptions {
    /// Returns the first of these options that is given and needs a prompt.
    pub(crate) fn needs_prompt(&self) -> Option<&'static str> {
        let given = [
            ("--max-turns", self.max_turns.is_some()),
            ("--timeout", self.timeout.is_some()),
        ];
        given.into_iter().find(|(_, is)| *is).map(|(name, _)| name)
    }

    /// Returns the first of these options that is given.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let own = [
            ("--autopilot", self.autopilot),
            ("--max-continues", self.max_continues.is_some()),
        ];
        let own = own.into_iter().find(|(_, is)| *is).map(|(name, _)| name);
        own.or(self.needs_prompt())
    }
}
