//! The home folder and its lock: one daemon at a time owns everything below a home.
//!
//! The lock knows nothing of the store. Whoever opens a home takes the lock before it touches
//! anything else in the home. The operating system's lock on the open file decides, never the text
//! in it, which only says who the owner is. The file is never removed: a second file under
//! the same name would be a second lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use loopd_proto::home_paths::LOCK_FILE;
use loopd_proto::home_paths::{self, FileId};

/// A locked file cannot be read on Windows, so there the owner is written to a second file.
const OWNER_FILE: &str = if cfg!(windows) {
    "loopd.owner"
} else {
    LOCK_FILE
};

/// The longest owner line that is read.
const OWNER_BYTES: u64 = 16 * 1024;

/// Which daemon holds a home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub pid: u32,
    pub build: String,
    /// The path or pipe name where it listens.
    pub socket: String,
}

/// Why a home could not be taken.
#[derive(Debug, Error)]
pub enum LockError {
    #[error("{} is in use{}", home.display(), describe(owner.as_ref()))]
    Held { home: PathBuf, owner: Option<Owner> },
    #[error("{} was emptied while a daemon started in it; start again", home.display())]
    Replaced { home: PathBuf },
    #[error("{} is not a folder; move it away or choose another home", home.display())]
    NotAFolder { home: PathBuf },
    #[error(
        "other users can write in {} (mode {mode:o}); run `chmod 700` on it or choose another home",
        home.display()
    )]
    Exposed { home: PathBuf, mode: u32 },
    #[error("{} belongs to user {owner}, not to user {user}; choose another home", home.display())]
    NotOurs {
        home: PathBuf,
        owner: u32,
        user: u32,
    },
    #[error("{} cannot be written; make it writable for this user or choose another home", path.display())]
    NotWritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no space is left for {}; free some and start again", path.display())]
    Full {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the filesystem of {} cannot lock files; put the home on a local disk", path.display())]
    Unsupported {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} cannot be used; check that every folder above it can be entered", path.display())]
    Unusable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

fn describe(owner: Option<&Owner>) -> String {
    match owner {
        Some(Owner { pid, build, socket }) => {
            format!(
                " by loopd {build} (process {pid}, listening at {socket}); connect to it or stop it first"
            )
        }
        None => " by a loopd that has not told its name yet; try again".into(),
    }
}

/// Proof that this process owns a home; the operating system releases it when the value is dropped or the
/// process ends, however it ends.
#[derive(Debug)]
pub struct HomeLock {
    home: PathBuf,
    file: File,
    id: FileId,
}

impl HomeLock {
    /// Creates the home when it is missing, takes its lock and writes down who holds it.
    pub fn acquire(home: &Path, owner: &Owner) -> Result<Self, LockError> {
        prepare_home(home)?;
        let path = home.join(LOCK_FILE);
        let mut file = open_private(&path).map_err(|error| refused(&path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held {
                    home: home.to_owned(),
                    // Only for the message: without it the home is held all the same.
                    owner: read_owner(home).unwrap_or_default(),
                });
            }
            Err(TryLockError::Error(source)) => {
                return Err(LockError::Unsupported { path, source });
            }
        }
        if OWNER_FILE == LOCK_FILE {
            write_owner(&mut file, owner).map_err(|error| refused(&path, error))?;
        } else {
            let path = home.join(OWNER_FILE);
            open_private(&path)
                .and_then(|mut file| write_owner(&mut file, owner))
                .map_err(|error| refused(&path, error))?;
        }
        let id = FileId::of(&file.metadata().map_err(|error| refused(&path, error))?);
        let lock = Self {
            home: home.to_owned(),
            file,
            id,
        };
        // Between the opening and the locking of the file, the home may have been emptied and taken
        // by another daemon: a lock on a file that nobody finds is none.
        lock.check()?;
        Ok(lock)
    }

    /// Which file is locked.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Fails when the home no longer has this lock, because it was emptied, deleted or moved.
    pub fn check(&self) -> Result<(), LockError> {
        if home_paths::lock_id(&self.home) == Some(self.id) {
            Ok(())
        } else {
            Err(LockError::Replaced {
                home: self.home.clone(),
            })
        }
    }
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child that was forked and has yet to exec. If
        // unlocking fails, closing is still to come.
        drop(self.file.unlock());
    }
}

/// Reads who holds a home, or held it last; `None` when nobody ever did.
///
/// It is no proof that the owner lives: connect to its socket to know.
fn read_owner(home: &Path) -> Result<Option<Owner>, LockError> {
    let path = home.join(OWNER_FILE);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(LockError::Unusable { path, source }),
    };
    let mut line = String::new();
    match BufReader::new(file.take(OWNER_BYTES)).read_line(&mut line) {
        // A line that is only half written, or that another program wrote, names no owner.
        Ok(_) => Ok(serde_json::from_str(&line).ok()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(source) => Err(LockError::Unusable { path, source }),
    }
}

fn prepare_home(home: &Path) -> Result<(), LockError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    if let Err(error) = builder.create(home) {
        return Err(match error.kind() {
            io::ErrorKind::AlreadyExists => LockError::NotAFolder {
                home: home.to_owned(),
            },
            _ => refused(home, error),
        });
    }
    #[cfg(unix)]
    check_private(home)?;
    Ok(())
}

/// Refuses a home that another user made or can write in. Others may be able to look into a folder
/// that was there before: what is made in it is private by itself, and a folder that was named by
/// mistake must not lose its mode.
#[cfg(unix)]
fn check_private(home: &Path) -> Result<(), LockError> {
    use std::os::unix::fs::MetadataExt;
    let facts = fs::metadata(home).map_err(|error| refused(home, error))?;
    let user = rustix::process::geteuid().as_raw();
    if facts.uid() != user {
        return Err(LockError::NotOurs {
            home: home.to_owned(),
            owner: facts.uid(),
            user,
        });
    }
    let mode = facts.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(LockError::Exposed {
            home: home.to_owned(),
            mode,
        });
    }
    Ok(())
}

/// Opens or creates a file only its owner can read, and not what a link at its place points to.
fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let no_links = rustix::fs::OFlags::NOFOLLOW.bits();
        options.mode(0o600).custom_flags(no_links.cast_signed());
    }
    options.open(path)
}

/// Writes the new line over the old one before it cuts the rest off, so that a reader finds one of
/// the two at the start.
fn write_owner(file: &mut File, owner: &Owner) -> io::Result<()> {
    let mut line = serde_json::to_string(owner)?;
    line.push('\n');
    file.rewind()?;
    file.write_all(line.as_bytes())?;
    file.set_len(line.len() as u64)
}

fn refused(path: &Path, source: io::Error) -> LockError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            LockError::NotWritable { path, source }
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            LockError::Full { path, source }
        }
        io::ErrorKind::NotADirectory => LockError::NotAFolder { home: path },
        _ => LockError::Unusable { path, source },
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
