//! A pipe that holds a shell command back until the test lets it go on, without a timer.

use std::path::{Path, PathBuf};

use crate::within;

/// The pipe at which commands wait.
pub struct Latch {
    path: PathBuf,
}

impl Latch {
    /// Makes the pipe in a folder.
    pub fn new(folder: &Path, name: &str) -> Self {
        let path = folder.join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(
            made.is_ok_and(|status| status.success()),
            "mkfifo is needed"
        );
        Self { path }
    }

    /// Returns a command that waits for [`Latch::release`], and then has its text in `$line`.
    pub fn wait(&self) -> String {
        format!("read -r line < {}", self.path.display())
    }

    /// Waits until a command is held here, then lets it go on.
    pub async fn release(&self, line: &str) {
        // The open blocks until the command opens its end of the pipe.
        let write = tokio::fs::write(self.path.clone(), format!("{line}\n"));
        within("a command to wait at a latch", write).await.unwrap();
    }
}
