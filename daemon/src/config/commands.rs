//! How long slash commands of the queue wait for clients.

use std::time::Duration;

/// How long a client may take to run a slash command of the queue that it offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandTimeout(pub Duration);

impl Default for CommandTimeout {
    fn default() -> Self {
        Self(Duration::from_secs(60 * 60))
    }
}

impl CommandTimeout {
    /// Returns how long a command that no client offers waits for a client that runs it.
    pub fn unclaimed(self) -> Duration {
        self.0.min(Duration::from_secs(10 * 60))
    }
}
