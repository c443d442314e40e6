//! Notices when the home or the database in it is deleted, replaced or moved away. The daemon then
//! exits; it never recreates the home.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loopd_proto::home_paths::{self, DATABASE, FileId};

/// How often the home is checked where the system does not report changes.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Watches a home, and in it the lock file and the database.
pub struct HomeWatch {
    home: PathBuf,
    locked: FileId,
    /// The files of the database; what is stored goes into these files and no others.
    database: Vec<(PathBuf, FileId)>,
    changes: Option<changes::Changes>,
}

impl HomeWatch {
    /// Begins to watch a home. A change between taking the lock and this call is noticed, too.
    pub fn begin(home: &Path, locked: FileId) -> Self {
        // The watch begins before the first check, so that no change is missed between the two.
        let changes = changes::Changes::of(home)
            .inspect_err(|error| tracing::warn!(%error, "the home is looked at from time to time"))
            .ok();
        let database = [DATABASE.to_owned(), format!("{DATABASE}-wal")];
        let database = database.map(|name| home.join(name)).into_iter();
        Self {
            home: home.to_owned(),
            locked,
            database: database
                .filter_map(|path| home_paths::file_id(&path).map(|id| (path, id)))
                .collect(),
            changes,
        }
    }

    fn is_here(&self) -> bool {
        let mut database = self.database.iter();
        home_paths::lock_id(&self.home) == Some(self.locked)
            && database.all(|(path, id)| home_paths::file_id(path) == Some(*id))
    }

    /// Resolves when the home is no longer the folder that was locked, or has another database.
    pub async fn gone(mut self) {
        while self.is_here() {
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

    /// The changes of one folder, reported by inotify.
    pub(super) struct Changes(AsyncFd<OwnedFd>);

    impl Changes {
        pub(super) fn of(home: &Path) -> io::Result<Self> {
            let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            // The deletion of the folder itself is not reported while files in it are open. The
            // deletion of its lock file is.
            let watched = WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO;
            inotify::add_watch(&fd, home, watched)?;
            loopd_exec::sys::watch_descriptor(fd).map(Self)
        }

        /// Resolves when something changed. The caller has to check what.
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

    /// This system reports no changes.
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
