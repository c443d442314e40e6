//! The work of an effect, which ends in a command even if it panics. `effects` makes and drives it.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::future::BoxFuture;

use loopd_exec::keep_alive::{KeepAlive, KeepAliveGuard};
use loopd_kernel::command::Command;

/// Work that ends in one command or none, and in a fallback command if it panics.
pub(super) struct Work {
    ending: BoxFuture<'static, std::thread::Result<Option<Command>>>,
    on_panic: Box<dyn FnOnce() -> Command + Send>,
    waits: bool,
}

impl Work {
    pub(super) fn new(
        work: impl Future<Output = Option<Command>> + Send + 'static,
        on_panic: impl FnOnce() -> Command + Send + 'static,
    ) -> Self {
        Self {
            ending: AssertUnwindSafe(work).catch_unwind().boxed(),
            on_panic: Box::new(on_panic),
            waits: false,
        }
    }

    /// Marks work that mostly waits for what is counted as work on its own.
    pub(super) fn that_waits(self) -> Self {
        Self {
            waits: true,
            ..self
        }
    }

    /// Keeps the daemon running as long as the guard lives.
    pub(super) fn keep_alive(&self, keep_alive: &KeepAlive) -> KeepAliveGuard {
        if self.waits {
            keep_alive.waiting()
        } else {
            keep_alive.work()
        }
    }

    /// Polls the work once; returns it if it is not finished.
    pub(super) fn at_once(mut self) -> Result<Option<Command>, Self> {
        match (&mut self.ending).now_or_never() {
            Some(ended) => Ok(command(ended, self.on_panic)),
            None => Err(self),
        }
    }

    /// Waits until the work has ended.
    pub(super) async fn done(self) -> Option<Command> {
        command(self.ending.await, self.on_panic)
    }
}

fn command(
    ended: std::thread::Result<Option<Command>>,
    on_panic: impl FnOnce() -> Command,
) -> Option<Command> {
    ended.unwrap_or_else(|_| {
        tracing::error!("an effect of a session panicked");
        Some(on_panic())
    })
}
