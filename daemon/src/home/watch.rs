//! Notices when the home is deleted, replaced or moved away: the daemon then leaves and never
//! recreates it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loopd_proto::home_paths::{self, FileId};

/// How often a home is looked at where the system does not tell.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A home, and the file in it whose lock is held.
pub struct HomeWatch {
    home: PathBuf,
    locked: FileId,
    changes: Option<changes::Changes>,
}

impl HomeWatch {
    /// Begins to watch a home; what happened since its lock was taken is noticed, too.
    pub fn begin(home: &Path, locked: FileId) -> Self {
        // Watched before it is looked at: what happens between the two is seen by the look.
        let changes = changes::Changes::of(home)
            .inspect_err(|error| tracing::warn!(%error, "the home is looked at from time to time"))
            .ok();
        Self {
            home: home.to_owned(),
            locked,
            changes,
        }
    }

    /// Resolves when the folder is no longer the one that was locked.
    pub async fn gone(mut self) {
        while home_paths::lock_id(&self.home) == Some(self.locked) {
            let Some(changes) = &self.changes else {
                tokio::time::sleep(LOOK_EVERY).await;
                continue;
            };
            if let Err(error) = changes.next().await {
                tracing::warn!(%error, "the home is looked at from time to time");
                self.changes = None;
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod changes {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use tokio::io::unix::AsyncFd;

    /// What inotify tells of one folder.
    pub(super) struct Changes(AsyncFd<OwnedFd>);

    impl Changes {
        pub(super) fn of(home: &Path) -> io::Result<Self> {
            let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            // Open files keep a deleted folder's inode alive, so that its own deletion is not
            // told: that of the lock file in it is.
            let told = WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM;
            inotify::add_watch(&fd, home, told)?;
            loopd_exec::sys::watch_descriptor(fd).map(Self)
        }

        /// Resolves when something happened; what it was is for the caller to look at.
        pub(super) async fn next(&self) -> io::Result<()> {
            let mut ready = self.0.readable().await?;
            let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
            let mut events = inotify::Reader::new(self.0.get_ref(), &mut buffer);
            while events.next().is_ok() {}
            ready.clear_ready();
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod changes {
    use std::io;
    use std::path::Path;

    /// Nothing is told on this system.
    pub(super) enum Changes {}

    impl Changes {
        pub(super) fn of(_home: &Path) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) async fn next(&self) -> io::Result<()> {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests;
