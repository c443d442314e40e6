//! Tests of both backends with real programs.

mod commands;
mod crippled;
mod ends;
mod forged;
mod process;
mod programs;
mod shadowed;
mod volume;

use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;
use ulid::Ulid;

use super::*;
use crate::keep_alive::KeepAlive;

/// The time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Leaves outputs as they are.
#[derive(Debug)]
struct Unfiltered;

impl OutputFilters for Unfiltered {
    fn begin(&self) -> Box<dyn OutputFilter> {
        Box::new(Self)
    }
}

impl OutputFilter for Unfiltered {
    fn next(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes.to_vec()
    }

    fn rest(&mut self) -> Vec<u8> {
        Vec::new()
    }
}

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
            filters: std::sync::Arc::new(Unfiltered),
            session: SessionId::from(Ulid::generate()),
            lifetime: Lifetime::Turn,
            label: "test".to_owned(),
            sandbox: None,
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

/// Fails with a hint if a program that a test needs is missing.
fn needs(program: &str) {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    assert!(found, "this test needs {program}: install it");
}

fn text(shown: &CommandOutput) -> &str {
    match &shown.body {
        OutputBody::Whole(text) => text,
        OutputBody::Preview { .. } => unreachable!("the output is short: {shown:?}"),
    }
}

async fn end(run: &CommandRun) -> CommandEnd {
    let ended = timeout(PATIENCE, run.ended()).await;
    ended.unwrap_or_else(|_| unreachable!("still running after: {:?}", run.output()))
}

/// Runs a command to its end and returns its output and how it ended.
async fn run(shell: &mut Shell, command: &str) -> (String, CommandEnd) {
    let run = shell.start(command).await.unwrap();
    let end = end(&run).await;
    (text(&run.output()).to_owned(), end)
}

/// Waits until a condition on a run holds.
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

/// Whether a process exists and is not a zombie.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}
