//! A pipe that a shell command holds open while it runs. A test can wait for the command's start
//! and end without a timer.

use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::{AsyncReadExt, BufReader};
use tokio::task::JoinHandle;

use crate::within;

/// The reading end of the pipe, before the command has started.
pub struct Lifeline {
    path: PathBuf,
    opened: JoinHandle<std::io::Result<File>>,
}

/// A command that has started.
pub struct Alive {
    pipe: BufReader<File>,
}

impl Lifeline {
    /// Makes the pipe in a folder.
    pub fn new(folder: &Path) -> Self {
        let path = folder.join("lifeline");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(
            made.is_ok_and(|status| status.success()),
            "mkfifo is needed"
        );
        // The open blocks until the command opens its end of the pipe.
        let opened = tokio::spawn(File::open(path.clone()));
        Self { path, opened }
    }

    /// Returns a command that reports its start and then runs for ten minutes.
    pub fn command(&self) -> String {
        format!(
            "exec 9>{}; echo started >&9; sleep 600",
            self.path.display()
        )
    }

    /// Waits for the command to start.
    pub async fn started(self) -> Alive {
        let file = within("a command to start", self.opened)
            .await
            .unwrap()
            .unwrap();
        let mut pipe = BufReader::new(file);
        let mut line = [0; 8];
        within("a command to speak", pipe.read_exact(&mut line))
            .await
            .unwrap();
        assert_eq!(&line, b"started\n");
        Alive { pipe }
    }
}

impl Alive {
    /// Waits until all processes of the command have ended.
    pub async fn ended(mut self) {
        let mut rest = Vec::new();
        let read = self.pipe.read_to_end(&mut rest);
        within("a command's processes to end", read).await.unwrap();
        assert_eq!(rest, b"", "the command went on");
    }
}
