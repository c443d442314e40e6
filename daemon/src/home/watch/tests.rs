#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use loopd_proto::home_paths::LOCK_FILE;

use super::*;

const SOON: Duration = Duration::from_secs(20);

/// Makes a home with a lock file, and holds the file open as a daemon does.
fn locked_home() -> (tempfile::TempDir, PathBuf, std::fs::File) {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let lock = std::fs::File::create_new(home.join(LOCK_FILE)).unwrap();
    (place, home, lock)
}

fn watch(home: &Path, lock: &std::fs::File) -> HomeWatch {
    HomeWatch::begin(home, FileId::of(&lock.metadata().unwrap()))
}

#[tokio::test]
async fn a_home_deleted_before_anybody_waits_is_gone() {
    let (_place, home, lock) = locked_home();
    let watching = watch(&home, &lock);
    std::fs::remove_dir_all(&home).unwrap();
    tokio::time::timeout(SOON, watching.gone()).await.unwrap();
}

#[tokio::test]
async fn a_home_that_was_never_there_is_gone() {
    let (_place, home, lock) = locked_home();
    std::fs::remove_dir_all(&home).unwrap();
    tokio::time::timeout(SOON, watch(&home, &lock).gone())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_home_moved_away_while_it_is_watched_is_gone() {
    let (place, home, lock) = locked_home();
    let watching = tokio::spawn(watch(&home, &lock).gone());
    tokio::task::yield_now().await;
    std::fs::rename(&home, place.path().join("elsewhere")).unwrap();
    tokio::time::timeout(SOON, watching).await.unwrap().unwrap();
}

#[tokio::test]
async fn another_lock_file_with_the_same_name_is_another_home() {
    let (_place, home, lock) = locked_home();
    let watching = tokio::spawn(watch(&home, &lock).gone());
    tokio::task::yield_now().await;
    std::fs::rename(home.join(LOCK_FILE), home.join("old")).unwrap();
    std::fs::write(home.join(LOCK_FILE), "").unwrap();
    tokio::time::timeout(SOON, watching).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_home_that_another_daemon_took_before_the_watch_began_is_gone() {
    let (_place, home, lock) = locked_home();
    std::fs::remove_dir_all(&home).unwrap();
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join(LOCK_FILE), "").unwrap();
    let gone = watch(&home, &lock).gone();
    tokio::time::timeout(SOON, gone).await.unwrap();
}

#[tokio::test]
async fn changes_beside_the_lock_file_do_not_end_the_watch() {
    let (_place, home, lock) = locked_home();
    let watching = tokio::spawn(watch(&home, &lock).gone());
    std::fs::write(home.join("other"), "").unwrap();
    std::fs::remove_file(home.join("other")).unwrap();
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!watching.is_finished());
    watching.abort();
}

#[tokio::test]
async fn a_home_whose_database_was_deleted_or_replaced_is_gone() {
    for replaced in [false, true] {
        let (_place, home, lock) = locked_home();
        let database = home.join(DATABASE);
        let _open = std::fs::File::create_new(&database).unwrap();
        let watching = tokio::spawn(watch(&home, &lock).gone());
        tokio::task::yield_now().await;
        std::fs::write(home.join("other"), "").unwrap();
        if replaced {
            std::fs::rename(home.join("other"), &database).unwrap();
        } else {
            std::fs::remove_file(&database).unwrap();
        }
        tokio::time::timeout(SOON, watching).await.unwrap().unwrap();
    }
}
