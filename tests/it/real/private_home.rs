//! What a home holds: files that nobody else can read, whatever the umask of the caller, and nothing
//! of sessions that were deleted.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use loopd_tests::binary::{self, Loopd};
use loopd_tests::{Client, Script, Turn, call};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

const MARKER: &str = "a-word-of-a-deleted-session";

/// A model that uses everything that leaves a file: a large output, a detached command, an agent.
async fn model() -> Script {
    Script::answering(|request| {
        if request.first_user_text().contains("find the number") {
            return Turn::any().says(MARKER);
        }
        if !request.last_results().is_empty() || !request.last_user_text().contains("go") {
            return Turn::any().says("fine");
        }
        let large = format!("for i in {{1..5000}}; do echo {MARKER}; done");
        let detached =
            json!({"command": format!("echo {MARKER}"), "mode": "async", "detach": true});
        let agent = json!({"description": "a number", "prompt": "find the number", "mode": "sync",
                           "name": "finder"});
        Turn::any().calls([
            call("large", "bash", json!({"command": large})),
            call("detached", "bash", detached),
            call("agent", "task", agent),
        ])
    })
    .await
}

/// Starts a daemon whose caller has a umask that takes nothing away.
fn start(home: &Path, defaults: Value) -> (Loopd, Client) {
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 0; exec \"$0\" \"$@\""])
        .arg(binary::path())
        .env_clear()
        .env("LOOPD_HOME", home)
        .env("PATH", std::env::var("PATH").unwrap())
        .current_dir(home.parent().unwrap())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    Loopd::spawn(command, &["--yolo"], defaults)
}

/// Everything below a folder, without following links.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

fn holders(home: &Path) -> Vec<PathBuf> {
    let mut found = below(home);
    found.retain(|path| {
        let bytes = path
            .is_file()
            .then(|| std::fs::read(path).unwrap_or_default());
        let bytes = bytes.unwrap_or_default();
        bytes
            .windows(MARKER.len())
            .any(|at| at == MARKER.as_bytes())
    });
    found
}

#[tokio::test]
async fn a_home_is_private_and_forgets_what_is_deleted() {
    let folder = TempDir::new().unwrap();
    let home = folder.path().join("home");
    let mut script = model().await;
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    let (loopd, client) = start(&home, json!({"model": "scripted", "provider": provider}));
    client.call("connect", json!({})).await;
    let mut session = client.create(json!({})).await;
    session
        .call("session.plan.update", json!({"content": MARKER}))
        .await;
    let file = json!({"path": "deep/er/file.txt", "content": MARKER});
    session.call("session.workspaces.createFile", file).await;
    session.ask("go").await;
    session
        .call("session.name.set", json!({"name": MARKER}))
        .await;
    let found = below(&home);
    assert!(found.len() > 10, "{found:?}");
    for path in &found {
        let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
    assert_ne!(holders(&home), [""; 0].map(PathBuf::from));
    client
        .call("session.delete", json!({"sessionId": session.id}))
        .await;
    // The store tidies up before its next write is done.
    let other = client.create(json!({})).await;
    other
        .call("session.name.set", json!({"name": "other"}))
        .await;
    other
        .call("session.name.set", json!({"name": "another"}))
        .await;
    assert_eq!(holders(&home), [""; 0].map(PathBuf::from));
    drop(client);
    loopd.kill_hard().await;
    script.finish();
}
