mod adopted;
mod daemon;
mod nasty;
mod owned;
mod stopped;

use std::time::Duration;

use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use super::*;

/// A bash command with the lifetime of a turn.
pub(super) fn bash(command: &str) -> Spawn {
    let path = std::env::var("PATH").unwrap();
    Spawn {
        program: "bash".into(),
        args: ["--norc", "-c", command].map(Into::into).to_vec(),
        env: BTreeMap::from([("PATH".to_owned(), path)]),
        cwd: "/".into(),
        io: Io::Merged,
        lifetime: Lifetime::Turn,
        session: None,
        label: command.to_owned(),
        sandbox: None,
    }
}

pub(super) fn processes() -> (TempDir, Processes) {
    let home = TempDir::new().unwrap();
    let processes = Processes::new(home.path(), KeepAlive::default());
    (home, processes)
}

/// Runs a command to its end and returns its output.
async fn output(processes: &Processes, spawn: Spawn) -> String {
    let mut owned = processes.spawn(spawn).await.unwrap();
    let mut said = String::new();
    let mut pipe = owned.output.take().unwrap();
    pipe.read_to_string(&mut said).await.unwrap();
    owned.exit().await;
    said
}

/// Waits for a condition that must hold within a second.
pub(super) async fn soon(what: &str, mut happened: impl FnMut() -> bool) {
    let happening = async {
        while !happened() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(1), happening).await;
    assert!(waited.is_ok(), "{what}");
}
