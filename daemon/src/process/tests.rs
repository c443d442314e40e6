use std::time::Duration;

use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use super::*;

fn bash(command: &str) -> Spawn {
    let path = std::env::var("PATH").unwrap();
    Spawn {
        program: "bash".into(),
        args: ["-c", command].map(Into::into).to_vec(),
        env: BTreeMap::from([("PATH".to_owned(), path)]),
        cwd: "/".into(),
        io: Io::Merged,
        lifetime: Lifetime::Turn,
        session: None,
        label: command.to_owned(),
    }
}

fn processes() -> (TempDir, Processes) {
    let home = TempDir::new().unwrap();
    let processes = Processes::new(home.path(), Presence::default());
    (home, processes)
}

#[tokio::test]
async fn a_command_is_listed_until_it_ends() {
    let (_home, processes) = processes();
    let mut owned = processes
        .spawn(bash("echo out; echo err >&2; exit 3"))
        .await
        .unwrap();
    assert_eq!(processes.list(), [owned.entry()]);
    let mut said = String::new();
    owned
        .output
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .await
        .unwrap();
    assert_eq!(said, "out\nerr\n");
    assert_eq!(owned.exit().await, Exit::Code(3));
    owned.gone().await;
    assert_eq!(processes.list(), []);
}

#[tokio::test]
async fn a_stopped_command_is_asked_and_then_killed() {
    let (_home, processes) = processes();
    let mut owned = processes
        .spawn(bash(
            "trap '' TERM; echo ready; while :; do sleep 100; done",
        ))
        .await
        .unwrap();
    let mut byte = [0];
    owned
        .output
        .as_mut()
        .unwrap()
        .read_exact(&mut byte)
        .await
        .unwrap();
    assert_eq!(owned.stop(Duration::from_millis(50)).await, Exit::Signal(9));
}
