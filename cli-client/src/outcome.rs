//! The outcome of a run and its exit code.

use std::process::ExitCode;

/// The outcome of a run. Wrong usage is exit code 2; the argument parser reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
    /// A tool needed a permission, and nobody could be asked.
    NobodyToAsk,
    /// A limit was reached, or the answer was cut off by a limit or a content filter.
    Limit,
    /// The agent says that it cannot go on, and what it needs.
    Blocked,
    TimedOut,
    Interrupted,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(match outcome {
            Outcome::Done => 0,
            Outcome::Failed => 1,
            Outcome::NobodyToAsk => 3,
            Outcome::Limit => 4,
            Outcome::Blocked => 5,
            Outcome::TimedOut => 124,
            Outcome::Interrupted => 130,
        })
    }
}
