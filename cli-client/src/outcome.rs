//! How a run ended, as its exit code tells.

use std::process::ExitCode;

/// How a run ended; wrong usage is 2 and told by the argument parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
    /// A tool needed a permission, and nobody was there to ask.
    NobodyToAsk,
    Interrupted,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(match outcome {
            Outcome::Done => 0,
            Outcome::Failed => 1,
            Outcome::NobodyToAsk => 3,
            Outcome::Interrupted => 130,
        })
    }
}
