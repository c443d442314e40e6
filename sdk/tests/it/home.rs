//! A home for one test, and the waits of tests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use loopd_sdk::{Client, ConnectOptions, Event, Events, StartPolicy};
use tempfile::TempDir;

/// The timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a future, and panics with `what` on a timeout.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(PATIENCE, future).await;
    outcome.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain for {what}"))
}

/// A directory that is home and working directory; its daemon exits when it is deleted.
pub(crate) struct Home {
    pub(crate) folder: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn options(&self) -> ConnectOptions {
        let home = self.folder.path().join("home");
        let env = BTreeMap::from([
            ("LOOPD_HOME".to_owned(), home.to_str().unwrap().to_owned()),
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("LOOPD_IDLE_TIMEOUT".to_owned(), "5".to_owned()),
        ]);
        ConnectOptions {
            cwd: Some(self.folder.path().to_owned()),
            env: Some(env),
            program: Some(program()),
            ..ConnectOptions::default()
        }
    }

    pub(crate) async fn client(&self) -> Client {
        within("a connection", Client::connect(self.options()))
            .await
            .unwrap()
    }

    /// Connects to a running daemon only.
    pub(crate) async fn connect_to_running(&self) -> Result<Client, loopd_sdk::Error> {
        let options = ConnectOptions {
            start: StartPolicy::Never,
            ..self.options()
        };
        within("a connection", Client::connect(options)).await
    }
}

/// The daemon that was built beside this test.
fn program() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let folder = this
        .ancestors()
        .nth(2)
        .expect("a test is in target/<profile>/deps");
    let program = folder.join("loopd");
    assert!(
        program.exists(),
        "{} is missing; build it first: cargo build -p loopd",
        program.display()
    );
    program
}

/// Kills the daemon with SIGKILL, as a crash would.
pub(crate) async fn kill_daemon(client: &Client) {
    let status = within("the daemon's status", client.daemon_status())
        .await
        .unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-KILL", &status.pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
}

/// Reads events up to the first of a kind, and returns them all.
pub(crate) async fn until(events: &mut Events, kind: &str) -> Vec<Event> {
    let mut seen = Vec::new();
    loop {
        let event = within(kind, events.next()).await;
        let event = event.unwrap_or_else(|| panic!("the stream ended before {kind}"));
        let found = event.body.kind() == kind;
        seen.push(event);
        if found {
            return seen;
        }
    }
}

pub(crate) fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.body.kind()).collect()
}
