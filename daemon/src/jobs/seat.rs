//! The place of one shell id: the shell that sits there, the command that ran there last, and the
//! line of those that wait. `jobs` alone uses it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::job::Job;
use crate::shell::Shell;

/// How long a shell is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Until its one command has ended and is read.
    UntilRead,
    /// Until it is closed or the session ends.
    Open,
}

/// The right to run a command at a seat; the next in line gets it when it is dropped.
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
}

/// One shell id.
pub(super) struct Seat {
    pub(super) keep: Keep,
    line: Arc<Semaphore>,
    // Locked only to take, put or copy.
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    shell: Option<Shell>,
    job: Option<Arc<Job>>,
}

impl Seat {
    pub(super) fn new(keep: Keep) -> Self {
        Self {
            keep,
            line: Arc::new(Semaphore::new(1)),
            held: Mutex::default(),
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until those who came before are done.
    pub(super) async fn line(&self) -> Turn {
        loop {
            // The semaphore is never closed.
            if let Ok(permit) = self.line.clone().acquire_owned().await {
                return Turn { _permit: permit };
            }
        }
    }

    pub(super) fn take_shell(&self) -> Option<Shell> {
        self.held().shell.take()
    }

    pub(super) fn put_shell(&self, shell: Shell) {
        self.held().shell = Some(shell);
    }

    pub(super) fn job(&self) -> Option<Arc<Job>> {
        self.held().job.clone()
    }

    pub(super) fn set_job(&self, job: Arc<Job>) {
        self.held().job = Some(job);
    }

    /// Whether a command runs here or is about to.
    pub(super) fn is_busy(&self) -> bool {
        self.line.available_permits() == 0
    }

    /// Whether no command ever ran here and none waits.
    pub(super) fn is_unused(&self) -> bool {
        self.job().is_none() && !self.is_busy()
    }
}
