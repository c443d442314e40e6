//! Terminals on systems where shells have none yet: opening one says so.

use std::convert::Infallible;
use std::io;

use crate::process::Processes;

use super::{Close, CommandRun, CommandStartError, OpenError, ShellSpec};

/// A shell that cannot be.
#[derive(Debug)]
pub(super) struct PtyShell(Infallible);

impl PtyShell {
    #[expect(clippy::unused_async, reason = "the real one waits")]
    pub(super) async fn open(_: &Processes, _: ShellSpec) -> Result<Self, OpenError> {
        Err(OpenError::Terminal(io::Error::from(
            io::ErrorKind::Unsupported,
        )))
    }

    #[expect(clippy::unused_async, reason = "the real one waits")]
    pub(super) async fn start(&mut self, _: &str) -> Result<CommandRun, CommandStartError> {
        match self.0 {}
    }

    pub(super) fn alive(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn pid(&self) -> u32 {
        match self.0 {}
    }

    #[expect(clippy::unused_async, reason = "the real one waits")]
    pub(super) async fn close(self, _: Close) {
        match self.0 {}
    }
}
