//! A second daemon process that owns commands and is killed by the test.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::nasty::NastyChildren;
use super::owned::{children_of, kill, parent};
use super::*;

const HOME: &str = "LOOPD_TEST_DAEMON_HOME";
const BROOD: &str = "LOOPD_TEST_BROOD";

/// A copy of this test program that has started nasty children of all classes.
struct Daemon {
    child: Child,
    /// The pid of one command of each class.
    pids: Vec<u32>,
}

impl Daemon {
    async fn start(home: &Path, children: &NastyChildren) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "process::tests::daemon::act",
                "--exact",
                "--nocapture",
                "--ignored",
            ])
            .env(HOME, home)
            .env(BROOD, &children.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let waiting = async {
            loop {
                let line = lines.next_line().await.unwrap().unwrap();
                if let Some((_, pids)) = line.split_once("ready:") {
                    return pids.split(',').map(|pid| pid.parse().unwrap()).collect();
                }
            }
        };
        let pids = tokio::time::timeout(Duration::from_secs(60), waiting)
            .await
            .unwrap();
        // A ledger file is written right after its command has started, so the last ones may be
        // missing.
        let written = async {
            while readable_files(home) < 300 {
                tokio::task::yield_now().await;
            }
        };
        let written = tokio::time::timeout(Duration::from_secs(20), written).await;
        assert!(written.is_ok(), "{} are written down", readable_files(home));
        Self { child, pids }
    }

    fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }
}

#[test]
#[ignore = "plays the daemon for the other tests"]
fn act() {
    let Some(home) = std::env::var_os(HOME).map(PathBuf::from) else {
        return;
    };
    let children = NastyChildren(std::env::var(BROOD).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let processes = Processes::new(&home, KeepAlive::default());
        let mut pids = Vec::new();
        for lifetime in [Lifetime::Turn, Lifetime::Session, Lifetime::Daemon] {
            let owned = children.start(&processes, 100, "s", &lifetime).await;
            pids.push(owned.first().unwrap().pid.to_string());
            std::mem::forget(owned);
        }
        std::fs::write("/dev/stdout", format!("\nready:{}\n", pids.join(","))).unwrap();
        std::future::pending::<()>().await;
    });
}

#[tokio::test]
async fn a_hundred_nasty_children_of_each_class_end_with_a_killed_daemon() {
    let home = TempDir::new().unwrap();
    let children = NastyChildren::new();
    let daemon = Daemon::start(home.path(), &children).await;
    assert!(children.alive() >= 300);
    kill(daemon.pid());
    // The daemon's own environment has the mark of the children, too.
    children.is_dead("the daemon was killed").await;
    let next = Processes::new(home.path(), KeepAlive::default());
    assert!(next.recover().await.is_empty());
    assert_eq!(ledger(home.path()), 0);
}

#[tokio::test]
async fn the_next_daemon_ends_a_stopped_holder_and_stopped_keepers() {
    let home = TempDir::new().unwrap();
    let children = NastyChildren::new();
    let daemon = Daemon::start(home.path(), &children).await;
    let holder = parent(parent(*daemon.pids.first().unwrap()));
    let mut stopped = children_of(holder);
    stopped.push(holder);
    let pids = stopped.iter().map(u32::to_string);
    let status = std::process::Command::new("kill")
        .arg("-STOP")
        .args(pids)
        .status();
    assert!(status.unwrap().success());
    kill(daemon.pid());
    let processes = Processes::new(home.path(), KeepAlive::default());
    assert!(processes.recover().await.is_empty());
    children.is_dead("the next daemon has started").await;
    assert_eq!(ledger(home.path()), 0);
    soon("the holder and the keepers are gone", || {
        stopped.iter().all(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
        })
    })
    .await;
}

fn ledger(home: &Path) -> usize {
    std::fs::read_dir(home.join("processes")).unwrap().count()
}

/// Counts the ledger files that can be read.
fn readable_files(home: &Path) -> usize {
    let files = std::fs::read_dir(home.join("processes")).unwrap();
    let texts = files.filter_map(|file| std::fs::read(file.unwrap().path()).ok());
    texts
        .filter(|text| serde_json::from_slice::<serde_json::Value>(text).is_ok())
        .count()
}

#[tokio::test]
async fn the_next_daemon_kills_what_a_killed_daemon_holder_and_keepers_left() {
    let home = TempDir::new().unwrap();
    let children = NastyChildren::new();
    let daemon = Daemon::start(home.path(), &children).await;
    let holder = parent(parent(*daemon.pids.first().unwrap()));
    let mut living = vec![daemon.pid(), holder];
    living.extend(children_of(holder));
    assert!(living.len() >= 302, "{}", living.len());
    // SIGSTOP first, so that none of them can clean up while others are killed.
    let all = |signal: &str| {
        let pids = living.iter().map(u32::to_string);
        let status = std::process::Command::new("kill")
            .arg(signal)
            .args(pids)
            .status();
        assert!(status.unwrap().success());
    };
    all("-STOP");
    all("-KILL");
    assert!(children.alive() >= 300, "nobody was there to end them");
    let processes = Processes::new(home.path(), KeepAlive::default());
    assert!(processes.recover().await.is_empty());
    let left = children.alive();
    assert_eq!(ledger(home.path()), 0);
    // Orphans that cleared their environment cannot be identified.
    assert!(left <= 3 * 17, "{left} are alive");
    for pid in children.pids() {
        kill(pid);
    }
}
