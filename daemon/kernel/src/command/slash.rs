//! Slash commands in the queue of a session.

use loopd_proto::event::fact::ClientRef;

use super::Send;

/// A slash command for the queue.
#[derive(Debug, Clone)]
pub struct QueuedLine {
    /// The command with its slash and arguments.
    pub command: String,
    pub runner: CommandRunner,
    pub sender: Option<ClientRef>,
    /// The text that people see instead of the command.
    pub display_text: Option<String>,
}

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
