//! The place of one shell id: the shell that sits there, the command that ran there last, and the
//! line of those that wait. `shells` alone uses it.

use parking_lot::Mutex;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::command::AttachedCommand;
use crate::terminal::Shell;

/// How long a shell is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Until its one command has ended and is read.
    UntilRead,
    /// Until it is closed or the session ends.
    Open,
}

/// The right to run a command at a slot; the next in line gets it when it is dropped.
pub(super) struct SlotPermit {
    _permit: OwnedSemaphorePermit,
}

/// One shell id.
pub(super) struct ShellSlot {
    pub(super) keep: Keep,
    line: Arc<Semaphore>,
    // Locked only to take, put or copy.
    held: Mutex<SlotContents>,
}

#[derive(Default)]
struct SlotContents {
    shell: Option<Shell>,
    command: Option<Arc<AttachedCommand>>,
}

impl ShellSlot {
    pub(super) fn new(keep: Keep) -> Self {
        Self {
            keep,
            line: Arc::new(Semaphore::new(1)),
            held: Mutex::default(),
        }
    }

    fn held(&self) -> parking_lot::MutexGuard<'_, SlotContents> {
        self.held.lock()
    }

    /// Waits until those who came before are done.
    pub(super) async fn line(&self) -> SlotPermit {
        loop {
            // The semaphore is never closed.
            if let Ok(permit) = self.line.clone().acquire_owned().await {
                return SlotPermit { _permit: permit };
            }
        }
    }

    pub(super) fn take_shell(&self) -> Option<Shell> {
        self.held().shell.take()
    }

    pub(super) fn put_shell(&self, shell: Shell) {
        self.held().shell = Some(shell);
    }

    pub(super) fn command(&self) -> Option<Arc<AttachedCommand>> {
        self.held().command.clone()
    }

    pub(super) fn set_command(&self, command: Arc<AttachedCommand>) {
        self.held().command = Some(command);
    }

    /// Whether a command runs here or is about to.
    pub(super) fn is_busy(&self) -> bool {
        self.line.available_permits() == 0
    }

    /// Whether no command ever ran here and none waits.
    pub(super) fn is_unused(&self) -> bool {
        self.command().is_none() && !self.is_busy()
    }
}
