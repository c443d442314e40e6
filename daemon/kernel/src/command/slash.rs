//! Slash commands in the queue of a session.

use super::Send;

/// Who runs a slash command when its turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandRunner {
    /// A client that offers it, or any client that takes it.
    Clients,
    /// The daemon: it is one of its own, or one of a file.
    Daemon,
}

/// What came of a slash command that the daemon ran.
#[derive(Debug, Default)]
pub struct CommandOutcome {
    /// A text for people.
    pub said: Option<String>,
    /// A message that the command wants sent.
    pub message: Option<Box<Send>>,
}
