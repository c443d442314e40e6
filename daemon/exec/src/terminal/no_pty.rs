//! The terminal backend on systems that do not support it yet: opening a shell fails.

use std::convert::Infallible;
use std::io;

use crate::process::Processes;

use super::{CloseMode, CommandRun, CommandStartError, ShellOpenError, ShellSpec};

/// A shell that cannot exist.
#[derive(Debug)]
pub(super) struct PtyShell(Infallible);

impl PtyShell {
    #[expect(
        clippy::unused_async,
        reason = "the signature is that of the Unix version"
    )]
    pub(super) async fn open(_: &Processes, _: ShellSpec) -> Result<Self, ShellOpenError> {
        Err(ShellOpenError::Terminal(io::Error::from(
            io::ErrorKind::Unsupported,
        )))
    }

    #[expect(
        clippy::unused_async,
        reason = "the signature is that of the Unix version"
    )]
    pub(super) async fn start(&mut self, _: &str) -> Result<CommandRun, CommandStartError> {
        match self.0 {}
    }

    pub(super) fn alive(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn pid(&self) -> u32 {
        match self.0 {}
    }

    #[expect(
        clippy::unused_async,
        reason = "the signature is that of the Unix version"
    )]
    pub(super) async fn close(self, _: CloseMode) {
        match self.0 {}
    }
}
