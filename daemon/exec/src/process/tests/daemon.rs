//! Another process that owns commands, to be killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::nasty::Brood;
use super::owned::{children, kill, parent};
use super::*;

const HOME: &str = "LOOPD_TEST_DAEMON_HOME";
const BROOD: &str = "LOOPD_TEST_BROOD";

/// A copy of this test program that started nasty children of all classes.
struct Daemon {
    child: Child,
    /// Of one command of each class.
    pids: Vec<u32>,
}

impl Daemon {
    async fn start(home: &Path, brood: &Brood) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "process::tests::daemon::act",
                "--exact",
                "--nocapture",
                "--ignored",
            ])
            .env(HOME, home)
            .env(BROOD, &brood.0)
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
        // A command is written down right after it has started; the last may still be at it.
        let written = async {
            while whole_lines(home) < 300 {
                tokio::task::yield_now().await;
            }
        };
        let written = tokio::time::timeout(Duration::from_secs(20), written).await;
        assert!(written.is_ok(), "{} are written down", whole_lines(home));
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
    let brood = Brood(std::env::var(BROOD).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let processes = Processes::new(&home, KeepAlive::default());
        let mut pids = Vec::new();
        for lifetime in [Lifetime::Turn, Lifetime::Session, Lifetime::Daemon] {
            let owned = brood.start(&processes, 100, "s", &lifetime).await;
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
    let brood = Brood::new();
    let daemon = Daemon::start(home.path(), &brood).await;
    assert!(brood.alive() >= 300);
    kill(daemon.pid());
    // Its own environment names the brood, too.
    brood.is_dead("the daemon was killed").await;
    let next = Processes::new(home.path(), KeepAlive::default());
    assert!(next.recover().await.is_empty());
    assert_eq!(ledger(home.path()), 0);
}

fn ledger(home: &Path) -> usize {
    std::fs::read_dir(home.join("processes")).unwrap().count()
}

/// The files of the ledger that can be read.
fn whole_lines(home: &Path) -> usize {
    let files = std::fs::read_dir(home.join("processes")).unwrap();
    let texts = files.filter_map(|file| std::fs::read(file.unwrap().path()).ok());
    texts
        .filter(|text| serde_json::from_slice::<serde_json::Value>(text).is_ok())
        .count()
}

#[tokio::test]
async fn the_next_daemon_ends_what_was_left_when_everybody_was_killed() {
    let home = TempDir::new().unwrap();
    let brood = Brood::new();
    let daemon = Daemon::start(home.path(), &brood).await;
    let holder = parent(parent(*daemon.pids.first().unwrap()));
    let mut everybody = vec![daemon.pid(), holder];
    everybody.extend(children(holder));
    assert!(everybody.len() >= 302, "{}", everybody.len());
    // All at once, so that nobody has the time to clean up: first they are stopped.
    let all = |signal: &str| {
        let pids = everybody.iter().map(u32::to_string);
        let status = std::process::Command::new("kill")
            .arg(signal)
            .args(pids)
            .status();
        assert!(status.unwrap().success());
    };
    all("-STOP");
    all("-KILL");
    assert!(brood.alive() >= 300, "nobody was there to end them");
    let processes = Processes::new(home.path(), KeepAlive::default());
    assert!(processes.recover().await.is_empty());
    let left = brood.alive();
    assert_eq!(ledger(home.path()), 0);
    // Those that cleared their environment and were orphaned before cannot be told from others.
    assert!(left <= 3 * 17, "{left} are alive");
    for pid in brood.pids() {
        kill(pid);
    }
}
