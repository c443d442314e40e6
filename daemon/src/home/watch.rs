//! Notices when the home is deleted or moved away: the daemon then leaves and never recreates it.

use std::path::Path;

/// Resolves when the folder is gone.
#[cfg(target_os = "linux")]
pub async fn gone(home: &Path) {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    let watch = || -> std::io::Result<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let changes = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
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
    // Created after the daemon took the home: it may have gone in between.
    if home.is_dir()
        && let Err(error) = watched.readable().await
    {
        tracing::warn!(%error, "the home is no longer watched");
        std::future::pending::<()>().await;
    }
}

/// Resolves when the folder is gone.
#[cfg(not(target_os = "linux"))]
pub async fn gone(home: &Path) {
    const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(5);
    while home.is_dir() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
