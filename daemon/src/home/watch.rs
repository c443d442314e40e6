//! Notices when the home is deleted, replaced or moved away: the daemon then leaves and never
//! recreates it.

use std::path::Path;

use crate::store::lock::LOCK_FILE;

/// Resolves when the folder is no longer the one that was locked.
#[cfg(target_os = "linux")]
pub async fn gone(home: &Path) {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    let watch = || -> std::io::Result<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        // Open files keep a deleted folder's inode alive, so that its own deletion is not told:
        // that of the lock file in it is.
        let changes = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::DELETE;
        inotify::add_watch(&fd, home, changes)?;
        crate::sys::watch_descriptor(fd)
    };
    let watched = match watch() {
        Ok(watched) => watched,
        Err(error) => {
            tracing::warn!(%error, "the home cannot be watched");
            return std::future::pending().await;
        }
    };
    let locked = identity(home);
    while locked.is_some() && identity(home) == locked {
        match watched.readable().await {
            Ok(mut ready) => {
                drain(watched.get_ref());
                ready.clear_ready();
            }
            Err(error) => {
                tracing::warn!(%error, "the home is no longer watched");
                return std::future::pending().await;
            }
        }
    }
}

/// What tells the lock file from another one with its name.
#[cfg(target_os = "linux")]
fn identity(home: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(home.join(LOCK_FILE)).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(target_os = "linux")]
fn drain(descriptor: &std::os::fd::OwnedFd) {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = rustix::fs::inotify::Reader::new(descriptor, &mut buffer);
    // What happened does not matter: the files are looked at.
    while events.next().is_ok() {}
}

/// Resolves when the folder is gone.
#[cfg(not(target_os = "linux"))]
pub async fn gone(home: &Path) {
    const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(5);
    while home.join(LOCK_FILE).exists() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
