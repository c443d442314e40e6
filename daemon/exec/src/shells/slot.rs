//! The slot of one shell id: its live shell, its last command, and the queue of waiting commands.
//! Only `shells` uses it.

use parking_lot::Mutex;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::command::AttachedCommand;
use crate::keep_alive::KeepAliveGuard;
use crate::terminal::Shell;

/// How long a shell stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retention {
    /// Until its one command has ended and its output was read.
    UntilRead,
    /// Until a tool or client closes it or the session ends.
    UntilClosed,
}

/// The right to run a command in a slot; dropping it lets the next waiting command run.
pub(super) struct SlotPermit {
    _permit: OwnedSemaphorePermit,
}

/// The state of one shell id.
pub(super) struct ShellSlot {
    pub(super) retention: Retention,
    /// Whether its shell runs in a sandbox.
    pub(super) sandboxed: bool,
    /// Keeps the daemon running for a while, because the shell may be used again.
    _waiting: KeepAliveGuard,
    queue: Arc<Semaphore>,
    // Locked only for a moment, never across an await.
    contents: Mutex<SlotContents>,
}

#[derive(Default)]
struct SlotContents {
    shell: Option<Shell>,
    command: Option<Arc<AttachedCommand>>,
}

impl ShellSlot {
    pub(super) fn new(retention: Retention, sandboxed: bool, waiting: KeepAliveGuard) -> Self {
        Self {
            retention,
            sandboxed,
            _waiting: waiting,
            queue: Arc::new(Semaphore::new(1)),
            contents: Mutex::default(),
        }
    }

    fn contents(&self) -> parking_lot::MutexGuard<'_, SlotContents> {
        self.contents.lock()
    }

    /// Waits until earlier commands in this slot have ended.
    pub(super) async fn acquire(&self) -> SlotPermit {
        loop {
            // The semaphore is never closed.
            if let Ok(permit) = self.queue.clone().acquire_owned().await {
                return SlotPermit { _permit: permit };
            }
        }
    }

    pub(super) fn take_shell(&self) -> Option<Shell> {
        self.contents().shell.take()
    }

    pub(super) fn put_shell(&self, shell: Shell) {
        self.contents().shell = Some(shell);
    }

    pub(super) fn command(&self) -> Option<Arc<AttachedCommand>> {
        self.contents().command.clone()
    }

    pub(super) fn set_command(&self, command: Arc<AttachedCommand>) {
        self.contents().command = Some(command);
    }

    /// Whether a command runs in this slot or is about to.
    pub(super) fn is_busy(&self) -> bool {
        self.queue.available_permits() == 0
    }

    /// Whether no command ever ran in this slot and none waits.
    pub(super) fn is_unused(&self) -> bool {
        self.command().is_none() && !self.is_busy()
    }
}
