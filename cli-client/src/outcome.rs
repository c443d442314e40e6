//! The outcome of a run and its exit code.

use std::fmt;
use std::process::ExitCode;

/// The exit code of wrong usage; the argument parser has the same one.
pub(crate) const WRONG_USAGE: u8 = 2;

/// The command line cannot be used as it is written. Nothing was done.
#[derive(Debug)]
pub(crate) struct WrongUsage(String);

impl WrongUsage {
    pub(crate) fn error(what: impl Into<String>) -> anyhow::Error {
        Self(what.into()).into()
    }
}

impl fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

/// The outcome of a run. [`WrongUsage`] is an error.
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
    /// Somebody stopped it here.
    Interrupted,
    /// Somebody left, and the session goes on.
    Left,
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
            Outcome::Interrupted | Outcome::Left => 130,
        })
    }
}
