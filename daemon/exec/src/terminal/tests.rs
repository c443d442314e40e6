//! Both kinds of shell with real programs.

mod commands;
mod ends;
mod process;
mod programs;
mod volume;

use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;
use ulid::Ulid;

use super::*;
use crate::keep_alive::KeepAlive;

/// How long anything may take before a test fails for it.
const PATIENCE: Duration = Duration::from_secs(60);

struct Fixture {
    folder: TempDir,
    processes: Processes,
}

impl Fixture {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let processes = Processes::new(folder.path(), KeepAlive::default());
        Self { folder, processes }
    }

    fn spec(&self) -> ShellSpec {
        let path = std::env::var("PATH").unwrap();
        let home = self.folder.path().display().to_string();
        ShellSpec {
            cwd: self.folder.path().to_owned(),
            env: BTreeMap::from([
                ("PATH".to_owned(), path),
                ("HOME".to_owned(), home),
                ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ]),
            scratch: self.folder.path().join("scratch"),
            name_output: || format!("{}.txt", Ulid::generate()),
            session: SessionId::from(Ulid::generate()),
            lifetime: Lifetime::Turn,
            label: "test".to_owned(),
        }
    }

    async fn terminal(&self) -> Shell {
        let opened = Shell::open(&self.processes, Backend::Terminal, self.spec());
        timeout(PATIENCE, opened).await.unwrap().unwrap()
    }

    async fn process(&self) -> Shell {
        Shell::open(&self.processes, Backend::Process, self.spec())
            .await
            .unwrap()
    }
}

/// Fails with what to do if a program that a test needs is not there.
fn needs(program: &str) {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    assert!(found, "this test needs {program}: install it");
}

fn text(shown: &Shown) -> &str {
    match &shown.body {
        Body::Whole(text) => text,
        Body::Preview { .. } => unreachable!("the output is short: {shown:?}"),
    }
}

async fn end(run: &CommandRun) -> CommandEnd {
    let ended = timeout(PATIENCE, run.ended()).await;
    ended.unwrap_or_else(|_| unreachable!("still running after: {:?}", run.output()))
}

/// Runs a command to its end and returns what it wrote and how it ended.
async fn run(shell: &mut Shell, command: &str) -> (String, CommandEnd) {
    let run = shell.start(command).await.unwrap();
    let end = end(&run).await;
    (text(&run.output()).to_owned(), end)
}

/// Waits until a run shows something.
async fn until(run: &CommandRun, what: impl Fn(&CommandRun) -> bool) {
    let mut changes = run.changes();
    let seen = async {
        while !what(run) {
            changes.changed().await.unwrap();
        }
    };
    let seen = timeout(PATIENCE, seen).await;
    assert!(seen.is_ok(), "{:?} {:?}", run.state(), run.output());
}

async fn until_shows(run: &CommandRun, part: &str) {
    let shows = |run: &CommandRun| {
        let shown = run.output();
        text(&shown).contains(part)
            || shown
                .screen
                .is_some_and(|screen| screen.text.contains(part))
    };
    until(run, shows).await;
}

async fn until_waiting(run: &CommandRun, expected: WaitingFor) {
    until(run, |run| run.state() == CommandState::Waiting(expected)).await;
}

async fn send(run: &CommandRun, keys: &str) {
    run.send(&parse_input(keys).unwrap()).await.unwrap();
}

/// Says whether a process is there and not merely waiting to be counted.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}
