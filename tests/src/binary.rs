//! The real `loopd` as a child process, for tests that need a process to kill.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::SystemTime;

use serde_json::Value;
use tokio::process::{Child, Command};

use crate::client::Client;
use crate::transcript::Scrub;
use crate::within;

/// Finds the binary that was built beside this test, and checks that it is up to date.
pub fn path() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let folder = this
        .ancestors()
        .nth(2)
        .expect("a test is in target/<profile>/deps");
    let binary = folder.join("loopd");
    let built = modified(&binary).unwrap_or_else(|| {
        panic!(
            "{} does not exist; build it first: cargo build -p loopd (with the same target directory and profile)",
            binary.display()
        )
    });
    let sources = std::fs::read_to_string(folder.join("loopd.d")).unwrap_or_default();
    for source in sources.split_whitespace().skip(1) {
        assert!(
            modified(Path::new(source)).is_none_or(|changed| changed <= built),
            "{} is older than {source}; build it again: cargo build -p loopd",
            binary.display()
        );
    }
    binary
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

/// Returns the pids of the running daemons of a home, as `/proc` shows them.
pub fn daemons(home: &Path) -> BTreeSet<u32> {
    // The environment of a daemon is not to be read, so it is known by its socket.
    let chosen = BTreeMap::from([("LOOPD_HOME".to_owned(), home.display().to_string())]);
    let user = loopd::front::transport::local_socket::user();
    let socket = loopd_proto::home_paths::socket(home, &chosen, user);
    let is_one = |pid: &u32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let has = |word: &[u8]| arguments.split(|byte| *byte == 0).any(|said| said == word);
        has(b"serve") && has(socket.as_os_str().as_encoded_bytes())
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(is_one).collect()
}

/// A running `loopd` process.
pub struct Loopd {
    pub child: Child,
}

impl Loopd {
    /// Returns a command that starts `loopd` with this home and `PATH`, and nothing else of our
    /// environment.
    pub fn command(home: &Path) -> Command {
        let mut command = Command::new(path());
        command
            .env_clear()
            .env("LOOPD_HOME", home)
            .env("PATH", std::env::var("PATH").unwrap())
            .current_dir(home)
            .kill_on_drop(true);
        command
    }

    /// Starts a daemon that serves only its own pipes (`--private`), and connects to it.
    pub fn private(home: &Path, defaults: Value) -> (Self, Client) {
        Self::on_stdio(home, &["--private"], defaults)
    }

    /// Starts a private daemon that allows every tool (`--yolo`), and connects to it.
    pub fn permissive(home: &Path, defaults: Value) -> (Self, Client) {
        Self::on_stdio(home, &["--private", "--yolo"], defaults)
    }

    /// Starts a relay as an SDK does. The relay connects its pipes to the home's shared daemon.
    pub fn relay(home: &Path, defaults: Value) -> (Self, Client) {
        Self::on_stdio(home, &[], defaults)
    }

    fn on_stdio(home: &Path, more: &[&str], defaults: Value) -> (Self, Client) {
        Self::spawn(Self::command(home), more, defaults)
    }

    /// Starts this command as an SDK does, with more arguments.
    pub fn spawn(mut command: Command, more: &[&str], defaults: Value) -> (Self, Client) {
        let mut child = command
            .args(["--headless", "--no-auto-update", "--stdio"])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stream = tokio::io::join(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let client = Client::over(stream, defaults, Scrub::default());
        (Self { child }, client)
    }

    /// Kills the process with SIGKILL, as a crash would end it.
    pub async fn kill_hard(mut self) {
        self.child.start_kill().unwrap();
        within("a killed process to end", self.child.wait())
            .await
            .unwrap();
    }

    /// Sends SIGTERM to the process.
    pub fn terminate(&self) {
        let pid = self.child.id().expect("the process runs");
        let sent = std::process::Command::new("kill")
            .arg(pid.to_string())
            .status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "no signal could be sent"
        );
    }

    /// Waits for the process to end by itself.
    pub async fn exited(mut self) -> ExitStatus {
        within("the process to exit", self.child.wait())
            .await
            .unwrap()
    }
}
