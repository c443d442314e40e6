//! A command of the session exchanges the script of a trusted guard while the guard runs, and puts it
//! back, over and over: what the exchanged script says never counts.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use loopd_tests::{Daemon, Gate, Turn, within};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use super::edited::trust;
use super::support::{bash, end_of, without_hooks};

/// Denies what has the word "forbidden" in it.
const GOOD: &str = "#!/bin/bash\nif grep -q forbidden; then echo 'not this' >&2; exit 2; fi\n";

/// How many calls are raced.
const CALLS: usize = 25;

/// Exchanges the script in one way by one that allows everything, and puts it back, until its input ends.
const FLIP: &str = r"
import mmap, os, select, sys
good = open('tools/guard.sh', 'rb').read()
evil = b'#!/bin/bash\nexit 0\n'.ljust(len(good), b'#')
def put(path, text):
    with open(path, 'wb') as file: file.write(text)
    os.chmod(path, 0o755)
def write():
    for text in (evil, good):
        with open('tools/guard.sh', 'r+b') as file: file.write(text)
def rename():
    for text in (evil, good):
        put('tools/new', text)
        os.replace('tools/new', 'tools/guard.sh')
def kept():
    # The script itself is only moved away and back.
    put('evil.sh', evil)
    os.rename('tools/guard.sh', 'kept')
    os.rename('evil.sh', 'tools/guard.sh')
    os.rename('kept', 'tools/guard.sh')
def folder():
    os.rename('tools', 'kept')
    os.rename('evil', 'tools')
    os.rename('tools', 'evil')
    os.rename('kept', 'tools')
def link():
    for target in ('evil/guard.sh', 'tools/guard.sh'):
        os.symlink(target, 'new')
        os.replace('new', 'link.sh')
def created():
    put('extra.sh', evil)
    os.remove('extra.sh')
mapped = []
def mapping():
    if not mapped:
        with open('tools/guard.sh', 'r+b') as file: mapped.append(mmap.mmap(file.fileno(), 0))
    for text in (evil, good): mapped[0][:] = text
os.makedirs('evil', exist_ok=True)
put('evil/guard.sh', evil)
flip = globals()[sys.argv[1]]
flip()
print('begun', flush=True)
while not select.select([sys.stdin], [], [], 0)[0]: flip()
";

/// Exchanges files until it is dropped.
struct Flipper(Child);

impl Flipper {
    fn start(daemon: &Daemon, way: &str) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", FLIP, way])
            .current_dir(daemon.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n");
        Self(child)
    }

    fn stop(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

/// Makes a project with a script whose guard runs this command, and trusts it.
async fn project(daemon: &Daemon, script: &str, guard: &str) {
    let file = |name: &str, text: &str| {
        let path = daemon.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    };
    file("tools/guard.sh", script);
    symlink("tools/guard.sh", daemon.file("link.sh")).unwrap();
    let hooks = json!({"version": 1, "hooks": {"preToolUse": [{"bash": guard}]}});
    file(".github/hooks/guard.json", &hooks.to_string());
    trust(&daemon.client()).await;
}

/// A pipe that a guard waits at.
pub(super) struct Barrier(TempDir);

impl Barrier {
    pub(super) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let made = Command::new("mkfifo")
            .arg(folder.path().join("pipe"))
            .status();
        assert!(made.unwrap().success());
        Self(folder)
    }

    fn pipe(&self) -> PathBuf {
        self.0.path().join("pipe")
    }

    /// A script that says nothing, after it has waited.
    pub(super) fn script(&self) -> String {
        let pipe = self.pipe();
        format!(
            "#!/bin/bash\ncat > /dev/null; read -r _ < {}\n",
            pipe.display()
        )
    }

    /// Waits until the guard waits; returns what lets it go on.
    pub(super) async fn reached(&self) -> tokio::fs::File {
        let mut options = tokio::fs::OpenOptions::new();
        let opened = options.write(true).open(self.pipe());
        within("the guard to wait", opened).await.unwrap()
    }
}

pub(super) async fn go_on(mut pipe: tokio::fs::File) {
    pipe.write_all(b"go on\n").await.unwrap();
    pipe.flush().await.unwrap();
}

/// Races a guard that runs this command.
async fn raced(way: &str, guard: &str) {
    let gate = Gate::new();
    let calls = (0..CALLS).map(|at| bash(&format!("c{at}"), "touch forbidden"));
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("first", "true")]),
        Turn::results([""]).calls(calls).held_by(&gate),
        Turn::any().says("done"),
    ])
    .await;
    project(&daemon, GOOD, guard).await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.send("go").await;
    // The guard is in force by now.
    assert_eq!(end_of(&mut session, "first").await["success"], true);
    let flipper = Flipper::start(&daemon, way);
    gate.open();
    session.next("session.idle").await;
    flipper.stop();
    let events = session.messages().await;
    let is_end = |event: &&Value| event["type"] == "tool.execution_complete";
    let ends = events.iter().filter(is_end).skip(1);
    let passed = ends.filter(|end| end["data"]["success"] == true).count();
    assert_eq!(passed, 0, "of {CALLS} calls, {way}");
    assert!(!daemon.file("forbidden").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_script_that_is_replaced_in_a_race_does_not_decide() {
    raced("rename", "bash tools/guard.sh").await;
}

#[tokio::test]
async fn a_script_that_is_moved_away_and_back_in_a_race_does_not_decide() {
    raced("kept", "\"$CLAUDE_PROJECT_DIR\"/tools/guard.sh").await;
}

#[tokio::test]
async fn a_folder_that_is_moved_away_and_back_in_a_race_does_not_decide() {
    raced("folder", "cd tools && ./guard.sh").await;
}

#[tokio::test]
async fn a_link_that_is_replaced_in_a_race_does_not_decide() {
    raced("link", "./link.sh").await;
}

/// Exchanges a script once while its guard runs, and puts it back. Nothing is left to chance.
#[tokio::test]
async fn what_a_guard_says_does_not_count_if_its_files_were_exchanged_meanwhile() {
    let table = [
        ("write", "tools/guard.sh"),
        ("rename", "bash tools/guard.sh"),
        ("kept", "\"$CLAUDE_PROJECT_DIR\"/tools/guard.sh"),
        ("folder", "cd tools && ./guard.sh"),
        ("link", "./link.sh"),
        (
            "created",
            "[ -e extra.sh ] && bash extra.sh; tools/guard.sh",
        ),
        // No event and no time tells of a change through a mapping.
        ("mapping", "tools/guard.sh"),
    ];
    for (way, guard) in table {
        let daemon = Daemon::playing([
            Turn::user("go").calls([bash("c", "touch made")]),
            Turn::results(["was changed or open for writing while it ran"]).says("done"),
        ])
        .await;
        let barrier = Barrier::new();
        project(&daemon, &barrier.script(), guard).await;
        let mut session = daemon.client().create(without_hooks()).await;
        session.approve_all().await;
        session.send("go").await;
        let pipe = barrier.reached().await;
        Flipper::start(&daemon, way).stop();
        go_on(pipe).await;
        let end = end_of(&mut session, "c").await;
        assert_eq!(end["success"], false, "{way}: {end}");
        session.next("session.idle").await;
        assert!(!daemon.file("made").exists(), "{way}");
        daemon.finish().await;
    }
}

/// Other files in the same folders come and go, and the script is read, listed and gets other rights.
#[tokio::test]
async fn what_happens_beside_the_files_of_a_guard_does_not_matter() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("c", "touch made")]),
        Turn::results([""]).says("done"),
    ])
    .await;
    let barrier = Barrier::new();
    let guard = "chmod +x tools/guard.sh && tools/guard.sh > out.txt && cat out.txt && rm out.txt";
    project(&daemon, &barrier.script(), guard).await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.send("go").await;
    let pipe = barrier.reached().await;
    for name in ["beside", "tools/beside"] {
        std::fs::write(daemon.file(name), "x").unwrap();
        std::fs::rename(daemon.file(name), daemon.file("moved")).unwrap();
        std::fs::remove_file(daemon.file("moved")).unwrap();
    }
    std::fs::read(daemon.file("tools/guard.sh")).unwrap();
    go_on(pipe).await;
    assert_eq!(end_of(&mut session, "c").await["success"], true);
    session.next("session.idle").await;
    daemon.finish().await;
}
