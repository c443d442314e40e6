//! A holder or keeper that was stopped with SIGSTOP.

use super::nasty::NastyChildren;
use super::owned::{parent, signal};
use super::*;

/// The time limit of every wait in these tests.
const BOUND: Duration = Duration::from_secs(8);

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(BOUND, work).await;
    done.unwrap_or_else(|_| unreachable!("{what} took too long"))
}

/// Starts nasty children whose command itself does not end.
async fn start(
    children: &NastyChildren,
    processes: &Processes,
    lifetime: &Lifetime,
) -> Vec<OwnedProcess> {
    let mut started = Vec::new();
    for kind in [0, 1, 3, 4, 5] {
        let mut spawn = children.child(kind, lifetime.clone());
        spawn.session = Some("s".into());
        let mut owned = processes.spawn(spawn).await.unwrap();
        let mut ready = [0; 5];
        let pipe = owned.output.as_mut().unwrap();
        pipe.read_exact(&mut ready).await.unwrap();
        started.push(owned);
    }
    started
}

#[tokio::test]
async fn a_stopped_holder_is_continued_for_the_next_command() {
    let (_home, processes) = processes();
    let first = processes.spawn(bash("sleep 1000")).await.unwrap();
    let holder = parent(parent(first.pid));
    signal("-STOP", holder);
    let said = within("a start", output(&processes, bash("echo hi"))).await;
    assert_eq!(said, "hi\n");
    within("a kill", first.kill()).await;
    within("the end", processes.shutdown()).await;
    assert_eq!(processes.list(), []);
}

#[tokio::test]
async fn a_holder_that_is_stopped_again_and_again_is_replaced() {
    let (_home, processes) = processes();
    let children = NastyChildren::new();
    let owned = start(&children, &processes, &Lifetime::Session).await;
    let holder = parent(parent(owned.first().unwrap().pid));
    let stopping = tokio::task::spawn_blocking(move || {
        // Ends when the holder was killed.
        while std::process::Command::new("kill")
            .args(["-STOP", &holder.to_string()])
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap()
            .success()
        {}
    });
    let said = within("a start", output(&processes, bash("echo hi"))).await;
    assert_eq!(said, "hi\n");
    within("the end", processes.shutdown()).await;
    children.is_dead("the daemon has ended").await;
    assert_eq!(processes.list(), []);
    within("the stopping", stopping).await.unwrap();
}

#[tokio::test]
async fn a_stopped_holder_does_not_keep_its_commands_at_the_end() {
    let (_home, processes) = processes();
    let children = NastyChildren::new();
    let owned = start(&children, &processes, &Lifetime::Session).await;
    signal("-STOP", parent(parent(owned.first().unwrap().pid)));
    within("the end", processes.shutdown()).await;
    children.is_dead("the daemon has ended").await;
    assert_eq!(processes.list(), []);
}

#[tokio::test]
async fn the_command_of_a_stopped_keeper_is_killed() {
    let (_home, processes) = processes();
    let children = NastyChildren::new();
    for lifetime in [Lifetime::Turn, Lifetime::Session] {
        for owned in start(&children, &processes, &lifetime).await {
            signal("-STOP", parent(owned.pid));
            let exit = within("a kill", owned.kill()).await;
            assert_ne!(exit, Exit::Code(0));
            assert!(owned.is_gone());
        }
    }
    children.is_dead("the kills").await;
    assert_eq!(processes.list(), []);
}

#[tokio::test]
async fn a_stopped_keeper_does_not_hold_back_the_end_of_a_session() {
    let (_home, processes) = processes();
    let children = NastyChildren::new();
    let owned = start(&children, &processes, &Lifetime::Session).await;
    for command in &owned {
        signal("-STOP", parent(command.pid));
    }
    within("the end", processes.end_session(&"s".into())).await;
    children.is_dead("the end of the session").await;
    assert_eq!(processes.list(), []);
}

#[tokio::test]
async fn the_exit_of_a_command_is_seen_although_its_keeper_was_stopped() {
    let (_home, processes) = processes();
    let owned = processes.spawn(bash("kill -STOP $PPID; exit 3"));
    let owned = owned.await.unwrap();
    assert_eq!(within("the exit", owned.exit()).await, Exit::Code(3));
}

#[tokio::test]
async fn a_stopped_detached_command_is_killed_with_its_stopped_keeper() {
    let (home, processes) = processes();
    let children = NastyChildren::new();
    let log = home.path().join("1.log");
    let spawn = children.child(0, Lifetime::Detached { log: log.clone() });
    let owned = processes.spawn(spawn).await.unwrap();
    soon("the command runs", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains("ready"))
    })
    .await;
    signal("-STOP", parent(owned.pid));
    let status = within("a stop", owned.stop(Duration::from_millis(300))).await;
    assert_ne!(status, Exit::Code(0));
    children.is_dead("the stop").await;
    assert_eq!(processes.list(), []);
}
