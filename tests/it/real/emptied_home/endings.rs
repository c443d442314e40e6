//! What still ends a relay: a daemon that is killed, and a home that may not be made again.

use std::process::Stdio;

use loopd_tests::binary::Loopd;
use loopd_tests::transcript::Scrub;
use loopd_tests::{Client, within};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use super::{Place, daemon_of, offline, send_signal, uses_a_session};

#[tokio::test]
async fn a_daemon_that_is_killed_still_ends_its_relays() {
    let place = Place::new();
    let mut command = place.command();
    let mut child = command
        .args(["--headless", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stream = tokio::io::join(child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let client = Client::over(stream, offline(), Scrub::default());
    // Once with the first daemon's successor: it is watched like the first.
    uses_a_session(&client).await;
    place.empty();
    send_signal("-KILL", daemon_of(&client).await);
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    within("stderr to end", stderr.read_to_string(&mut said))
        .await
        .unwrap();
    assert_eq!(said.matches('\n').count(), 1, "{said}");
    assert!(said.contains("the daemon is gone"), "{said}");
    assert_eq!(Loopd { child }.exited().await.code(), Some(1));
}

#[tokio::test]
async fn a_folder_that_was_deleted_is_not_made_again() {
    let outer = TempDir::new().unwrap();
    let place = Place(TempDir::new_in(outer.path()).unwrap());
    let mut child = place
        .command()
        .current_dir(outer.path())
        .args(["--headless", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stream = tokio::io::join(child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let client = Client::over(stream, offline(), Scrub::default());
    uses_a_session(&client).await;
    while place.0.path().exists() {
        std::fs::remove_dir_all(place.0.path()).ok();
    }
    let pending = client.pending("ping", json!({}));
    assert!(pending.await.is_err());
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    within("stderr to end", stderr.read_to_string(&mut said))
        .await
        .unwrap();
    assert!(said.contains("create that folder"), "{said}");
    assert_eq!(Loopd { child }.exited().await.code(), Some(1));
    assert!(!place.0.path().exists());
}
