//! Reads and writes files in a folder. No path may lead out of it: no `..`, no absolute path and no
//! link.
//!
//! These functions block; callers run them on a blocking thread.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use loopd_proto::event::session::FileOperation;

/// The largest file that is read or written.
const LARGEST: u64 = 10 * 1024 * 1024;
/// The most files that are listed, and the most directory entries that are read for that.
const MOST_FILES: usize = 10_000;
const MOST_ENTRIES: usize = 100_000;

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{0} leads out of the workspace files directory; name a file below it")]
    Outside(String),
    #[error("{0} has more than {LARGEST} bytes")]
    TooLarge(String),
    #[error("{0} is not a text file in UTF-8")]
    NotText(String),
    #[error("{path} cannot be used: {source}")]
    Io {
        path: String,
        #[source]
        source: io::Error,
    },
}

/// A path whose components stay below the folder. Links are checked when the path is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inside(PathBuf);

impl Inside {
    pub(super) fn new(path: &str) -> Result<Self, FileError> {
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

/// Resolves the path; refuses it if a link leads out of the folder.
fn real(folder: &Path, path: &Inside) -> Result<PathBuf, FileError> {
    let root = folder.canonicalize().map_err(|e| path.unusable(e))?;
    let found = root.join(&path.0).canonicalize();
    let found = found.map_err(|error| path.unusable(error))?;
    if found == root.join(&path.0) {
        Ok(found)
    } else {
        Err(FileError::Outside(path.to_string()))
    }
}

pub(super) fn read(folder: &Path, path: &Inside) -> Result<String, FileError> {
    let found = real(folder, path)?;
    let metadata = found.metadata().map_err(|error| path.unusable(error))?;
    if !metadata.is_file() {
        return Err(FileError::NotText(path.to_string()));
    }
    let file = File::open(found).map_err(|error| path.unusable(error))?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| path.unusable(error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(FileError::TooLarge(path.to_string()));
    }
    String::from_utf8(bytes).map_err(|_| FileError::NotText(path.to_string()))
}

/// Writes the whole file or nothing, and creates the folders above it.
pub(super) fn write(
    folder: &Path,
    path: &Inside,
    content: &[u8],
) -> Result<FileOperation, FileError> {
    if content.len() as u64 > LARGEST {
        return Err(FileError::TooLarge(path.to_string()));
    }
    let unusable = |error| path.unusable(error);
    loopd_proto::home_paths::create_private(folder).map_err(unusable)?;
    let mut above = folder.canonicalize().map_err(unusable)?;
    for part in path.0.parent().into_iter().flat_map(Path::iter) {
        above.push(part);
        match fs::create_dir(&above) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(unusable(error));
            }
            Ok(()) | Err(_) => {}
        }
        // This asks about the folder itself and follows no link: below a link, the file would be
        // elsewhere.
        let is_link = above.symlink_metadata().map_err(unusable)?.is_symlink();
        if is_link {
            return Err(FileError::Outside(path.to_string()));
        }
    }
    let Some(name) = path.0.file_name() else {
        return Err(FileError::Outside(path.to_string()));
    };
    let target = above.join(name);
    let operation = if target.symlink_metadata().is_ok() {
        FileOperation::Update
    } else {
        FileOperation::Create
    };
    let mut draft = tempfile::NamedTempFile::new_in(&above).map_err(unusable)?;
    draft.write_all(content).map_err(unusable)?;
    draft.as_file().sync_data().map_err(unusable)?;
    // This replaces a link instead of following it.
    draft.persist(&target).map_err(|e| unusable(e.error))?;
    Ok(operation)
}

/// Lists the files below the folder in order. Links are neither followed nor listed.
pub(super) fn list(folder: &Path) -> Result<Vec<String>, FileError> {
    let mut files = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    let mut looked_at = 0_usize;
    while let Some(below) = waiting.pop() {
        let entries = match fs::read_dir(folder.join(&below)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Inside(below).unusable(error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| Inside(below.clone()).unusable(error))?;
            looked_at += 1;
            if looked_at > MOST_ENTRIES || files.len() >= MOST_FILES {
                tracing::warn!(folder = %folder.display(), "there are more files than are listed");
                waiting.clear();
                break;
            }
            let path = below.join(entry.file_name());
            // A file that vanished meanwhile is left out.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(path),
                Ok(kind) if kind.is_file() => files.push(Inside(path).to_string()),
                Ok(_) | Err(_) => {}
            }
        }
    }
    files.sort();
    Ok(files)
}
