//! However many start at once on one home, and whatever a dead daemon left there: exactly one
//! serves, everybody is served, and nobody stays.
//!
//! LOOPD_START_ROUNDS says how often (4 unless told: each kind of remains once).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loopd_proto::home_paths;
use loopd_tests::binary::{Loopd, daemons};
use loopd_tests::within;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How many apps start at once.
const STARTS: usize = 20;

/// What is found in the home when everybody starts.
#[derive(Debug, Clone, Copy)]
enum Remains {
    /// A daemon that was killed: its socket, and a lock file that names its process.
    Killed,
    /// A lock file that names a process which is somebody else's by now.
    ReusedPid,
    /// Neither the lock file nor the socket is what it should be.
    Garbage,
    /// A daemon that is just leaving.
    Leaving,
}

const KINDS: [Remains; 4] = [
    Remains::Killed,
    Remains::ReusedPid,
    Remains::Garbage,
    Remains::Leaving,
];

fn kill(signal: &str, pid: u32) {
    let sent = std::process::Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(
        sent.unwrap().success(),
        "{signal} could not be sent to {pid}"
    );
}

/// Waits until no daemon holds the home, by its lock.
async fn free(home: &Path) {
    let home = home.to_owned();
    let waiting = tokio::task::spawn_blocking(move || home_paths::wait_until_free(&home));
    within("the daemon to give up its home", waiting)
        .await
        .unwrap()
        .unwrap();
}

fn socket_of(home: &Path) -> PathBuf {
    let folder = home.join("run");
    let mut entries = std::fs::read_dir(folder).unwrap();
    entries.next().expect("a socket is there").unwrap().path()
}

/// Leaves a home as a daemon with this end would.
async fn leave(remains: Remains, home: &Path, daemon: u32) {
    let lock = home.join(home_paths::LOCK_FILE);
    let socket = socket_of(home);
    if matches!(remains, Remains::Leaving) {
        kill("-TERM", daemon);
        // From here on it takes nobody; its lock it gives up last.
        let closed = async {
            while socket.exists() {
                tokio::task::yield_now().await;
            }
        };
        return within("the daemon to close its socket", closed).await;
    }
    kill("-KILL", daemon);
    free(home).await;
    match remains {
        Remains::Killed | Remains::Leaving => {}
        Remains::ReusedPid => {
            let told = std::fs::read_to_string(&lock).unwrap();
            let ours = std::process::id().to_string();
            std::fs::write(&lock, told.replace(&daemon.to_string(), &ours)).unwrap();
        }
        Remains::Garbage => {
            std::fs::write(&lock, b"\xff\0{ nobody").unwrap();
            std::fs::remove_file(&socket).unwrap();
            std::fs::write(&socket, "no socket").unwrap();
        }
    }
}

/// Starts an app, uses a session of its own, and tells which daemon served it.
async fn use_once(home: PathBuf) -> (Loopd, u32) {
    let (loopd, client) = Loopd::relay(&home, json!({"model": "offline"}));
    let mut session = client.create(json!({})).await;
    session.ask("hello").await;
    assert_eq!(session.count("assistant.message"), 1);
    let status = client.call("loopd.daemonStatus", json!({})).await;
    let pid = status["pid"].as_u64().unwrap();
    (loopd, pid.try_into().unwrap())
}

/// Starts everybody at once; the daemon that all of them reached.
async fn start_all(home: &Path, story: &str) -> u32 {
    let apps = (0..STARTS).map(|_| tokio::spawn(use_once(home.to_owned())));
    let apps = futures::future::join_all(apps.collect::<Vec<_>>()).await;
    let (apps, served): (Vec<Loopd>, Vec<u32>) =
        apps.into_iter().map(|app| app.expect(story)).unzip();
    let one = *served.first().unwrap();
    assert_eq!(served, [one; STARTS], "{story}: one daemon served all");
    assert_eq!(
        daemons(home),
        BTreeSet::from([one]),
        "{story}: no other runs"
    );
    for app in apps {
        app.terminate();
        assert!(app.exited().await.success(), "{story}");
    }
    one
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_at_once_are_served_by_one_daemon_whatever_was_left_behind() {
    let rounds = std::env::var("LOOPD_START_ROUNDS").map_or(KINDS.len(), |n| n.parse().unwrap());
    let home = TempDir::new().unwrap();
    let mut daemon = start_all(home.path(), "an empty home").await;
    for (round, remains) in KINDS.iter().cycle().take(rounds).enumerate() {
        leave(*remains, home.path(), daemon).await;
        daemon = start_all(home.path(), &format!("round {round}, {remains:?}")).await;
    }
    kill("-TERM", daemon);
    free(home.path()).await;
}

#[tokio::test]
async fn nobody_stays_after_the_last_client() {
    let home = TempDir::new().unwrap();
    let mut command = Loopd::command(home.path());
    command.env("LOOPD_IDLE_TIMEOUT", "1");
    let (loopd, client) = Loopd::spawn(command, &[], json!({"model": "offline"}));
    let mut session = client.create(json!({})).await;
    session.ask("hello").await;
    let owned = daemons(home.path());
    assert_eq!(owned.len(), 1);
    assert!(home_paths::is_held(home.path()).unwrap());
    client.vanish().await;
    assert!(loopd.exited().await.success());
    free(home.path()).await;
    let socket: Value = json!(home.path().join("run").read_dir().unwrap().count());
    assert_eq!(socket, 0, "its socket is gone with it");
}
