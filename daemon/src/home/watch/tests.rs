#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use super::*;

const SOON: Duration = Duration::from_secs(20);

fn locked_home() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join(LOCK_FILE), "").unwrap();
    (place, home)
}

#[tokio::test]
async fn a_home_deleted_before_anybody_waits_is_gone() {
    let (_place, home) = locked_home();
    let watch = HomeWatch::begin(&home);
    std::fs::remove_dir_all(&home).unwrap();
    tokio::time::timeout(SOON, watch.gone()).await.unwrap();
}

#[tokio::test]
async fn a_home_that_was_never_there_is_gone() {
    let (_place, home) = locked_home();
    std::fs::remove_dir_all(&home).unwrap();
    tokio::time::timeout(SOON, HomeWatch::begin(&home).gone())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_home_moved_away_while_it_is_watched_is_gone() {
    let (place, home) = locked_home();
    let watching = tokio::spawn(HomeWatch::begin(&home).gone());
    tokio::task::yield_now().await;
    std::fs::rename(&home, place.path().join("elsewhere")).unwrap();
    tokio::time::timeout(SOON, watching).await.unwrap().unwrap();
}

#[tokio::test]
async fn another_lock_file_with_the_same_name_is_another_home() {
    let (_place, home) = locked_home();
    let watching = tokio::spawn(HomeWatch::begin(&home).gone());
    tokio::task::yield_now().await;
    std::fs::rename(home.join(LOCK_FILE), home.join("old")).unwrap();
    std::fs::write(home.join(LOCK_FILE), "").unwrap();
    tokio::time::timeout(SOON, watching).await.unwrap().unwrap();
}

#[tokio::test]
async fn changes_beside_the_lock_file_do_not_end_the_watch() {
    let (_place, home) = locked_home();
    let watching = tokio::spawn(HomeWatch::begin(&home).gone());
    std::fs::write(home.join("other"), "").unwrap();
    std::fs::remove_file(home.join("other")).unwrap();
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!watching.is_finished());
    watching.abort();
}
