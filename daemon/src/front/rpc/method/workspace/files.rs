//! Reads and writes files in a folder. No path may lead out of it: no `..`, no absolute path and no
//! link.
//!
//! These functions block; callers run them on a blocking thread.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use loopd_proto::event::session::FileOperation;

use crate::tool::disk::{self, DiskError, Listed, Put};

/// The largest file that is read or written.
const LARGEST: u64 = 10 * 1024 * 1024;
/// The most files that are listed, and the most directory entries that are read for that.
const MOST_FILES: usize = 10_000;
const MOST_ENTRIES: usize = 100_000;

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::front::rpc::method) enum FileError {
    #[error("{0} leads out of the workspace files directory; name a file below it")]
    Outside(String),
    #[error("{path} has more than {limit} bytes")]
    TooLarge { path: String, limit: u64 },
    #[error("{0} is not a text file in UTF-8")]
    NotText(String),
    #[error("{path} cannot be used: {source}")]
    Io {
        path: String,
        #[source]
        source: io::Error,
    },
}

impl FileError {
    /// Returns whether there is no such file.
    pub(in crate::front::rpc::method) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// A folder below the home in which a session keeps its files.
#[derive(Debug, Clone)]
pub(in crate::front::rpc::method) struct OwnFolder {
    pub(in crate::front::rpc::method) home: PathBuf,
    /// The path below the home.
    pub(in crate::front::rpc::method) below: PathBuf,
}

impl OwnFolder {
    fn real(&self) -> io::Result<PathBuf> {
        Ok(self.home.canonicalize()?.join(&self.below))
    }
}

/// A path whose components stay below the folder. Links are checked when the path is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::front::rpc::method) struct Inside(PathBuf);

impl Inside {
    pub(in crate::front::rpc::method) fn new(path: &str) -> Result<Self, FileError> {
        let mut inside = PathBuf::new();
        for component in Path::new(path).components() {
            match component {
                Component::Normal(name) => inside.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(FileError::Outside(path.to_owned()));
                }
            }
        }
        if inside.as_os_str().is_empty() || path.contains('\0') {
            return Err(FileError::Outside(path.to_owned()));
        }
        Ok(Self(inside))
    }

    fn unusable(&self, source: io::Error) -> FileError {
        FileError::Io {
            path: self.to_string(),
            source,
        }
    }

    fn too_large(&self, limit: u64) -> FileError {
        FileError::TooLarge {
            path: self.to_string(),
            limit,
        }
    }

    /// Says why the file could not be used.
    fn refused(&self, error: DiskError) -> FileError {
        match error {
            // A link is in the place of the file or of a folder above it.
            DiskError::Changed => FileError::Outside(self.to_string()),
            DiskError::TooLarge { limit } => self.too_large(limit),
            DiskError::Folder | DiskError::Special | DiskError::Binary | DiskError::NotUtf8 => {
                FileError::NotText(self.to_string())
            }
            DiskError::Io(source) => self.unusable(source),
            DiskError::WriteProtected | DiskError::Exists => {
                self.unusable(io::Error::other(error.to_string()))
            }
        }
    }
}

impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            let slash = if at == 0 { "" } else { "/" };
            write!(f, "{slash}{}", part.to_string_lossy())?;
        }
        Ok(())
    }
}

/// Returns the path of a file below the folder. Only the home may be reached through links: below it,
/// a link is an error when the path is opened.
fn real(own: &OwnFolder, path: &Inside) -> Result<PathBuf, FileError> {
    Ok(own.real().map_err(|e| path.unusable(e))?.join(&path.0))
}

pub(in crate::front::rpc::method) fn read(
    own: &OwnFolder,
    path: &Inside,
) -> Result<String, FileError> {
    let bytes = read_bytes(own, path, LARGEST)?;
    String::from_utf8(bytes).map_err(|_| FileError::NotText(path.to_string()))
}

/// Reads a file of at most `largest` bytes, whatever they are.
pub(in crate::front::rpc::method) fn read_bytes(
    own: &OwnFolder,
    path: &Inside,
    largest: u64,
) -> Result<Vec<u8>, FileError> {
    disk::read_own(&real(own, path)?, largest).map_err(|error| path.refused(error))
}

/// Writes the whole file or nothing, and creates the folders above it.
pub(in crate::front::rpc::method) fn write(
    own: &OwnFolder,
    path: &Inside,
    content: &[u8],
) -> Result<FileOperation, FileError> {
    write_bytes(own, path, content, LARGEST)
}

/// Writes a file of at most `largest` bytes.
pub(in crate::front::rpc::method) fn write_bytes(
    own: &OwnFolder,
    path: &Inside,
    content: &[u8],
    largest: u64,
) -> Result<FileOperation, FileError> {
    if content.len() as u64 > largest {
        return Err(path.too_large(largest));
    }
    match disk::put_own(&real(own, path)?, content) {
        Ok(Put::Created) => Ok(FileOperation::Create),
        Ok(Put::Replaced) => Ok(FileOperation::Update),
        Err(error) => Err(path.refused(error)),
    }
}

/// Removes the file; returns whether there was one.
pub(in crate::front::rpc::method) fn remove(
    own: &OwnFolder,
    path: &Inside,
) -> Result<bool, FileError> {
    match disk::remove_own(&real(own, path)?) {
        Ok(()) => Ok(true),
        Err(DiskError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(path.refused(error)),
    }
}

/// Lists the files below the folder in order. Links are neither followed nor listed.
pub(in crate::front::rpc::method) fn list(own: &OwnFolder) -> Result<Vec<String>, FileError> {
    let mut files = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    let mut looked_at = 0_usize;
    let root = own
        .real()
        .map_err(|error| Inside(PathBuf::new()).unusable(error))?;
    while let Some(below) = waiting.pop() {
        let entries = match disk::list(&root.join(&below), MOST_ENTRIES - looked_at) {
            Ok(entries) => entries,
            Err(DiskError::Io(error)) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Inside(below).refused(error)),
        };
        looked_at += entries.len();
        for (name, kind) in entries {
            match kind {
                Listed::Folder => waiting.push(below.join(name)),
                Listed::File => files.push(Inside(below.join(name)).to_string()),
                Listed::Other => {}
            }
        }
        if looked_at >= MOST_ENTRIES || files.len() >= MOST_FILES {
            tracing::warn!(folder = %root.display(), "there are more files than are listed");
            files.truncate(MOST_FILES);
            break;
        }
    }
    files.sort();
    Ok(files)
}
