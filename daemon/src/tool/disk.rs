//! Opens and writes files for the tools without following a link that appeared after permission
//! was given, and without ever leaving a half-written file. Knows no tool and no permission.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use super::Outcome;

pub(super) mod batch;
pub(super) mod exact;
#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
use portable as platform;
#[cfg(unix)]
use unix as platform;

/// The maximum size of a file that is read, changed or created as a whole.
pub(super) const MAX_WHOLE_FILE: u64 = 10 * 1024 * 1024;

/// How many bytes are checked to tell text from binary data.
const SNIFFED: usize = 8 * 1024;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiskError {
    #[error("it is a folder")]
    Folder,
    #[error("it is not a regular file")]
    Special,
    #[error("it has more than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("it holds binary data")]
    Binary,
    #[error("it is not valid UTF-8 text")]
    NotUtf8,
    #[error("it is write-protected")]
    WriteProtected,
    #[error("it already exists")]
    Exists,
    #[error("another process changed it at the same moment")]
    Changed,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A text file as it was when read.
#[derive(Debug)]
pub(super) struct TextFile {
    pub(super) text: String,
    pub(super) stamp: Stamp,
}

/// Identifies one version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    platform: platform::Identity,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            platform: platform::identity(metadata),
        }
    }
}

/// The kind of an entry in a folder. A link is neither a folder nor a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    Folder,
    File,
    Other,
}

/// Who may read a new file or enter a new folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// Whoever the umask of the daemon leaves; for the files of projects.
    Umask,
    /// Only this user; for the daemon's own files.
    Owner,
}

/// What a new file survives as soon as it has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// The end of the daemon.
    Crash,
    /// The end of the machine, too; this takes a write to the disk.
    PowerCut,
}

/// What happened to one of the daemon's own files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Created,
    Replaced,
}

/// Lists up to `most` entries of a folder at a path that is free of links.
pub(crate) fn list(real: &Path, most: usize) -> Result<Vec<(OsString, Listed)>, DiskError> {
    platform::list(real, most)
}

/// Opens a regular file at a path that is free of links.
pub(crate) fn open(real: &Path) -> Result<(File, Metadata), DiskError> {
    let file = platform::open(real)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(DiskError::Folder);
    }
    if !metadata.is_file() {
        return Err(DiskError::Special);
    }
    Ok((file, metadata))
}

/// Returns whether something exists now at a path that is free of links.
pub(super) fn is_there(real: &Path) -> bool {
    platform::is_there(real)
}

/// Reads the first bytes of an open file, enough to determine its format.
pub(super) fn sniff(file: &mut File) -> Result<Vec<u8>, DiskError> {
    let mut start = Vec::with_capacity(SNIFFED);
    file.take(SNIFFED as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// Returns whether bytes look like binary data.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0)
}

/// Reads a whole text file of bounded size.
pub(super) fn read_text(real: &Path) -> Result<TextFile, DiskError> {
    let (file, metadata) = open(real)?;
    let mut bytes = Vec::new();
    (&file).take(MAX_WHOLE_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_WHOLE_FILE {
        return Err(DiskError::TooLarge {
            limit: MAX_WHOLE_FILE,
        });
    }
    if is_binary(&bytes) {
        return Err(DiskError::Binary);
    }
    let text = String::from_utf8(bytes).map_err(|_| DiskError::NotUtf8)?;
    Ok(TextFile {
        text,
        stamp: Stamp::of(&metadata),
    })
}

/// Replaces the contents of a file atomically, unless it has changed since `seen`.
pub(super) fn replace(real: &Path, contents: &[u8], seen: &Stamp) -> Result<(), DiskError> {
    platform::replace(real, contents, seen)
}

/// Creates a file and the folders above it; fails if the file exists.
pub(super) fn create(real: &Path, contents: &[u8]) -> Result<(), DiskError> {
    platform::create(real, contents)
}

/// Writes one of the daemon's own files as a whole, with the folders above it. Nobody else can read
/// them, and nothing is left if it fails. A link in the place of the file is replaced; a link in the
/// place of a folder is an error.
pub(crate) fn put_own(real: &Path, contents: &[u8]) -> Result<Put, DiskError> {
    platform::put_own(real, contents, Durability::PowerCut)
}

/// Does the same without waiting for the disk, for a file whose content is checked when it is read.
pub(super) fn put_own_quickly(real: &Path, contents: &[u8]) -> Result<Put, DiskError> {
    platform::put_own(real, contents, Durability::Crash)
}

/// Reads one of the daemon's own files, of at most `limit` bytes.
pub(crate) fn read_own(real: &Path, limit: u64) -> Result<Vec<u8>, DiskError> {
    let (file, _) = open(real)?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(DiskError::TooLarge { limit });
    }
    Ok(bytes)
}

/// Removes one of the daemon's own files.
pub(crate) fn remove_own(real: &Path) -> Result<(), DiskError> {
    platform::remove_own(real)
}

/// Runs blocking work on a thread where it delays no task.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Outcome> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a tool's blocking work did not finish");
        Outcome::failure("The tool stopped because of an internal error; nothing more was done.")
    })
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
