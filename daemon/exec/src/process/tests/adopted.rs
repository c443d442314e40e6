//! Detached commands outlive the daemon, and the next daemon adopts them.

use std::path::Path;

use super::nasty::NastyChildren;
use super::owned::{kill, parent};
use super::*;
use crate::process::ledger::{self, Ledger, LedgerEntry};
use crate::process::procfs::{self, ProcessIdentity};

fn detached(command: &str, log: &Path) -> Spawn {
    let mut spawn = bash(command);
    spawn.io = Io::Log;
    spawn.lifetime = Lifetime::Detached {
        log: log.to_path_buf(),
    };
    spawn
}

/// Makes a named pipe on which a command can wait.
fn gate(path: &Path) -> String {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
    path.display().to_string()
}

#[tokio::test]
async fn the_next_daemon_finds_a_detached_command_and_no_output_is_lost() {
    let (home, first) = processes();
    let log = home.path().join("out.log");
    let gate = gate(&home.path().join("gate"));
    let command = format!(
        "for i in {{1..2000}}; do echo line $i; done; read -r _ < {gate}; echo end; exit 5"
    );
    let owned = first.spawn(detached(&command, &log)).await.unwrap();
    first.shutdown().await;
    drop(first);
    let second = Processes::new(home.path(), KeepAlive::default());
    let found = second.recover().await;
    assert_eq!(found.len(), 1);
    assert_eq!(second.list(), [owned.entry()]);
    let again = second.adopted(&owned.id).unwrap();
    let pid = std::fs::read_to_string(home.path().join("out.pid")).unwrap();
    assert_eq!(pid.trim(), again.pid.to_string());
    tokio::fs::write(&gate, "go\n").await.unwrap();
    assert_eq!(again.exit().await, Exit::Code(5));
    again.gone().await;
    let said = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let expected: Vec<String> = (1..=2000)
        .map(|i| format!("line {i}"))
        .chain(["end".to_owned()])
        .collect();
    assert_eq!(lines, expected);
    assert_eq!(second.list(), []);
    let mode = std::os::unix::fs::PermissionsExt::mode(&log.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_detached_command_that_ended_while_no_daemon_ran_is_reported_once() {
    let (home, first) = processes();
    let log = home.path().join("out.log");
    let owned = first.spawn(detached("exit 9", &log)).await.unwrap();
    assert_eq!(owned.exit().await, Exit::Code(9));
    owned.gone().await;
    assert_eq!(
        std::fs::read_to_string(home.path().join("out.exit")).unwrap(),
        "9\n"
    );
    // The state that a keeper leaves if it is killed after it wrote the exit file.
    let ledger = Ledger::of(home.path());
    let left = LedgerEntry {
        command: Some(ProcessIdentity {
            pid: owned.pid.cast_signed(),
            start: 1,
        }),
        ..entry(&owned.id, &log)
    };
    ledger::write(&ledger.path(&owned.id), &left).unwrap();
    let second = Processes::new(home.path(), KeepAlive::default());
    let found = second.recover().await;
    assert_eq!(found.first().unwrap().exit().await, Exit::Code(9));
    found.first().unwrap().gone().await;
    let third = Processes::new(home.path(), KeepAlive::default());
    assert!(third.recover().await.is_empty());
}

#[tokio::test]
async fn an_exit_file_that_a_detached_command_writes_does_not_decide_its_result() {
    let (home, first) = processes();
    let log = home.path().join("out.log");
    let gate = gate(&home.path().join("gate"));
    let forged = home.path().join("out.exit");
    let command = format!("read -r _ < {gate}; exit 5");
    let owned = first.spawn(detached(&command, &log)).await.unwrap();
    first.shutdown().await;
    drop(first);
    std::fs::write(&forged, "0\n").unwrap();
    let second = Processes::new(home.path(), KeepAlive::default());
    let found = second.recover().await;
    let again = found.first().unwrap();
    // Moved into place like the file of a keeper.
    let new = home.path().join("new");
    std::fs::write(&new, "0\n").unwrap();
    std::fs::rename(&new, &forged).unwrap();
    assert_eq!(again.id, owned.id);
    let early = tokio::time::timeout(Duration::from_millis(200), again.exit()).await;
    assert!(early.is_err(), "{early:?}");
    tokio::fs::write(&gate, "go\n").await.unwrap();
    assert_eq!(again.exit().await, Exit::Code(5));
}

#[tokio::test]
async fn the_exit_of_a_detached_command_is_seen_although_its_keeper_was_stopped() {
    let (home, first) = processes();
    let log = home.path().join("out.log");
    let gate = gate(&home.path().join("gate"));
    let command = format!("read -r _ < {gate}; exit 5");
    let owned = first.spawn(detached(&command, &log)).await.unwrap();
    let keeper = parent(owned.pid);
    first.shutdown().await;
    drop(first);
    super::owned::signal("-STOP", keeper);
    let second = Processes::new(home.path(), KeepAlive::default());
    let found = second.recover().await;
    tokio::fs::write(&gate, "go\n").await.unwrap();
    let exit = tokio::time::timeout(Duration::from_secs(5), found.first().unwrap().exit());
    assert_eq!(exit.await.unwrap(), Exit::Code(5));
}

fn entry(id: &ProcessId, log: &Path) -> LedgerEntry {
    LedgerEntry {
        id: id.clone(),
        class: Class::Detached,
        session: None,
        label: String::new(),
        started: Timestamp(0),
        log: Some(log.to_path_buf()),
        boot: procfs::boot(),
        command: None,
        keeper: None,
    }
}

#[tokio::test]
async fn nasty_detached_children_outlive_the_daemon_and_can_be_stopped_by_the_next() {
    let (home, first) = processes();
    let (children, attached) = (NastyChildren::new(), NastyChildren::new());
    for number in 0..100 {
        let log = home.path().join(format!("{number}.log"));
        first
            .spawn(children.child(number, Lifetime::Detached { log }))
            .await
            .unwrap();
    }
    let others = attached.start(&first, 12, "s", &Lifetime::Daemon).await;
    soon("all are ready", || {
        (0..100).all(|number| {
            let log = std::fs::read(home.path().join(format!("{number}.log")));
            log.is_ok_and(|said| said.starts_with(b"ready"))
        })
    })
    .await;
    first.shutdown().await;
    assert_eq!(attached.alive(), 0);
    drop(others);
    assert!(children.alive() >= 100);
    let second = Processes::new(home.path(), KeepAlive::default());
    let found = second.recover().await;
    assert_eq!(found.len(), 100);
    let stops = found
        .iter()
        .map(|owned| owned.stop(Duration::from_millis(50)));
    futures::future::join_all(stops).await;
    assert_eq!(children.alive(), 0);
    assert_eq!(second.list(), []);
}

#[tokio::test]
async fn a_detached_command_whose_keeper_was_killed_is_still_known() {
    let (home, first) = processes();
    let children = NastyChildren::new();
    let log = home.path().join("out.log");
    let owned = first
        .spawn(children.child(0, Lifetime::Detached { log }))
        .await
        .unwrap();
    kill(parent(owned.pid));
    let second = Processes::new(home.path(), KeepAlive::default());
    let found = second.recover().await;
    let again = found.first().unwrap();
    assert_eq!((again.pid, again.is_gone()), (owned.pid, false));
    again.kill().await;
    assert_eq!(again.exit().await, Exit::Unknown);
    children.is_dead("it was killed").await;
}

#[tokio::test]
async fn a_process_of_another_program_is_never_signalled() {
    let home = TempDir::new().unwrap();
    let ledger = Ledger::of(home.path());
    ledger.prepare().unwrap();
    let mut foreign = tokio::process::Command::new("sleep")
        .arg("1000")
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let identity = ProcessIdentity::of(foreign.id().unwrap().cast_signed()).unwrap();
    let reused = ProcessIdentity {
        start: identity.start - 1,
        ..identity
    };
    for (id, class, boot) in [
        ("reused", Class::Session, procfs::boot()),
        ("rebooted", Class::Turn, "another boot".to_owned()),
        ("detached", Class::Detached, procfs::boot()),
    ] {
        let id = ProcessId::from(id);
        let known = if boot == procfs::boot() {
            reused
        } else {
            identity
        };
        let left = LedgerEntry {
            class,
            boot,
            command: Some(known),
            keeper: Some(known),
            ..entry(&id, &home.path().join("none.log"))
        };
        ledger::write(&ledger.path(&id), &left).unwrap();
    }
    std::fs::write(home.path().join("processes/broken.json"), "{").unwrap();
    let processes = Processes::new(home.path(), KeepAlive::default());
    let found = processes.recover().await;
    let detached = found.first().unwrap();
    detached.kill().await;
    assert_eq!(detached.exit().await, Exit::Unknown);
    assert!(foreign.try_wait().unwrap().is_none(), "it lives");
    assert!(
        home.path()
            .join("processes/unreadable/broken.json")
            .exists()
    );
    assert_eq!(ledger.read(), []);
}
