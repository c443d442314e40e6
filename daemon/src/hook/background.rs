//! Hooks that run beside a session, which does not wait for them.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// The most hooks of one session that run in the background at the same time.
const MOST_AT_ONCE: usize = 16;

/// The hooks of one session that run in the background. They end with it.
pub struct BackgroundHooks {
    handle: BackgroundHandle,
    _end: DropGuard,
}

/// Starts hooks in the background of a session.
#[derive(Clone)]
pub struct BackgroundHandle {
    tasks: TaskTracker,
    room: Arc<Semaphore>,
    end: CancellationToken,
}

impl Default for BackgroundHooks {
    fn default() -> Self {
        let end = CancellationToken::new();
        Self {
            handle: BackgroundHandle {
                tasks: TaskTracker::new(),
                room: Arc::new(Semaphore::new(MOST_AT_ONCE)),
                end: end.clone(),
            },
            _end: end.drop_guard(),
        }
    }
}

impl BackgroundHooks {
    pub fn handle(&self) -> BackgroundHandle {
        self.handle.clone()
    }
}

impl BackgroundHandle {
    /// Takes the place of one hook; `None` if too many run already.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.room.clone().try_acquire_owned().ok()
    }

    /// Returns what ends hooks with the session.
    pub(super) fn end(&self) -> CancellationToken {
        self.end.clone()
    }

    pub(super) fn start(&self, hook: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(hook);
    }
}
