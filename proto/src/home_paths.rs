//! The paths of a home: where its daemon, socket, lock and log are. The daemon and its clients
//! share these rules.
//!
//! Knows paths, variables and file modes; connects to nothing and starts nothing.

mod problem;

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::problem::problem;

/// Why the paths of a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomePathError {
    #[error("no home: set LOOPD_HOME, COPILOT_HOME or HOME to a directory that can be written")]
    NoHome,
    #[error(
        "the folder of the daemon's socket cannot be used: {}",
        problem(path, error)
    )]
    Runtime { path: PathBuf, error: io::Error },
}

/// Identifies a file, so that another file of the same name is not taken for it. Valid while the
/// file is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

impl FileId {
    #[cfg(unix)]
    pub fn of(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// Files have no numbers here: all ids are equal and only say that a file exists.
    #[cfg(not(unix))]
    pub fn of(_metadata: &std::fs::Metadata) -> Self {
        Self {
            device: 0,
            inode: 0,
        }
    }
}

/// Returns the id of the lock file that is in the home now; `None` if there is none.
pub fn lock_id(home: &Path) -> Option<FileId> {
    let metadata = std::fs::metadata(home.join(LOCK_FILE)).ok()?;
    Some(FileId::of(&metadata))
}

/// Returns which file has this path; `None` if there is none.
pub fn file_id(path: &Path) -> Option<FileId> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(FileId::of(&metadata))
}

/// The database in a home.
pub const DATABASE: &str = "loopd.db";

/// The file in a home that its daemon locks.
pub const LOCK_FILE: &str = "loopd.lock";

/// The longest socket path that can be bound on every system.
const LONGEST_SOCKET: usize = 100;
/// The part of that length that the socket's file name takes.
const SOCKET_NAME: usize = 24;

/// A log that is larger than this is renamed, and a new one is begun.
const LOG_LIMIT: u64 = 4 * 1024 * 1024;

fn variable<'a>(env: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    env.get(name)
        .map(String::as_str)
        .filter(|value| !value.is_empty())
}

/// Finds the home: LOOPD_HOME, else loopd below COPILOT_HOME, else .loopd below HOME.
///
/// A relative path is resolved here, because the daemon has another working directory.
pub fn home(env: &BTreeMap<String, String>) -> Result<PathBuf, HomePathError> {
    let named = variable(env, "LOOPD_HOME").map(PathBuf::from);
    let home = named
        .or_else(|| Some(Path::new(variable(env, "COPILOT_HOME")?).join("loopd")))
        .or_else(|| Some(Path::new(variable(env, "HOME")?).join(".loopd")))
        .ok_or(HomePathError::NoHome)?;
    Ok(resolved(&home))
}

/// Returns the one spelling of a path: absolute, and without links as far as the path exists. All
/// spellings of a home have one daemon and one socket.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if !cfg!(unix) {
        return absolute;
    }
    for ancestor in absolute.ancestors() {
        let (Ok(mut real), Ok(rest)) = (ancestor.canonicalize(), absolute.strip_prefix(ancestor))
        else {
            continue;
        };
        for part in rest.components() {
            match part {
                // What does not exist is no link, so that `..` means the folder before.
                Component::ParentDir => {
                    real.pop();
                }
                Component::Normal(name) => real.push(name),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        return real;
    }
    absolute
}

/// Returns the socket path of a home: in the user's runtime directory, or inside the home if it is
/// not the user's usual one, or in a private temporary directory if the path would be too long.
pub fn socket(home: &Path, env: &BTreeMap<String, String>, user: u32) -> PathBuf {
    let is_named = ["LOOPD_HOME", "COPILOT_HOME"]
        .iter()
        .any(|name| variable(env, name).is_some());
    let usual = variable(env, "HOME").map(|user| resolved(&Path::new(user).join(".loopd")));
    let is_usual = usual.is_some_and(|usual| usual == home);
    let runtime = variable(env, "XDG_RUNTIME_DIR").filter(|_| !is_named || is_usual);
    let mut folder = match runtime {
        Some(runtime) => Path::new(runtime).join("loopd"),
        None => home.join("run"),
    };
    if folder.as_os_str().len() + SOCKET_NAME > LONGEST_SOCKET {
        folder = std::env::temp_dir().join(format!("loopd-{user}"));
    }
    folder.join(format!("{:016x}.sock", fingerprint(home)))
}

/// Tells homes apart in a shared runtime folder (FNV-1a; no secret depends on it).
fn fingerprint(home: &Path) -> u64 {
    let bytes = home.as_os_str().as_encoded_bytes();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Creates the socket's directory and makes sure that only this user can use it.
pub fn prepare_socket(socket: &Path, user: u32) -> Result<(), HomePathError> {
    let Some(folder) = socket.parent() else {
        return Ok(());
    };
    create_private(folder)
        .and_then(|()| check_private(folder, user))
        .map_err(|error| HomePathError::Runtime {
            path: folder.to_owned(),
            error,
        })
}

/// Creates a directory that only this user can enter, if it is missing; never its parents.
pub fn create_private_alone(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        created => created,
    }
}

/// Creates a directory that only this user can enter, with its parents.
pub fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(unix)]
fn check_private(folder: &Path, user: u32) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let metadata = std::fs::symlink_metadata(folder)?;
    if !metadata.is_dir() || metadata.uid() != user {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is not a folder of this user",
        ));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(_folder: &Path, _user: u32) -> io::Result<()> {
    Ok(())
}

/// Blocks the thread until no daemon holds the home.
pub fn wait_until_free(home: &Path) -> io::Result<()> {
    match std::fs::File::open(home.join(LOCK_FILE)) {
        // Locked shared and released at once: a daemon that starts meanwhile tries again.
        Ok(file) => file.lock_shared().and_then(|()| file.unlock()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns whether a daemon holds the lock of the home.
pub fn is_held(home: &Path) -> io::Result<bool> {
    let file = match std::fs::File::open(home.join(LOCK_FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| false),
        Err(std::fs::TryLockError::WouldBlock) => Ok(true),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Returns the log file of a background daemon.
pub fn log_file(home: &Path) -> PathBuf {
    home.join("daemon.log")
}

/// Opens the log for appending; only this user can read it.
pub fn open_log(home: &Path) -> io::Result<std::fs::File> {
    let path = log_file(home);
    if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > LOG_LIMIT) {
        std::fs::rename(&path, home.join("daemon.log.old"))?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
