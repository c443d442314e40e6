//! The contents of files, each stored once under the hash of its bytes. They are copies of the user's
//! files, so that nobody else may read them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::tool::disk::{self, DiskError};

/// The SHA-256 of a content, in hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::tool) struct Hash(Box<str>);

impl Hash {
    pub(super) fn of(contents: &[u8]) -> Self {
        use std::fmt::Write as _;
        let digest = ring::digest::digest(&ring::digest::SHA256, contents);
        let mut text = String::with_capacity(64);
        for byte in digest.as_ref() {
            // Writing to a string cannot fail.
            write!(text, "{byte:02x}").ok();
        }
        Self(text.into())
    }

    /// Whether this can be the name of a file of ours; a record may have been damaged.
    fn is_sound(&self) -> bool {
        self.0.len() == 64 && self.0.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get(..8).unwrap_or(&self.0))
    }
}

/// The stored contents of one session.
#[derive(Debug, Clone)]
pub(super) struct Objects {
    folder: PathBuf,
}

impl Objects {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        self.folder.join(&*hash.0)
    }

    pub(super) fn has(&self, hash: &Hash) -> bool {
        hash.is_sound() && self.path(hash).exists()
    }

    /// Stores a content; returns how many bytes that took.
    pub(super) fn put(&self, hash: &Hash, contents: &[u8]) -> Result<u64, DiskError> {
        if self.has(hash) {
            return Ok(0);
        }
        disk::put_own_quickly(&self.path(hash), contents)?;
        Ok(contents.len() as u64)
    }

    /// Reads a content; `None` if it is not there or is damaged.
    pub(super) fn get(&self, hash: &Hash, size: u64) -> Option<Vec<u8>> {
        if !hash.is_sound() {
            return None;
        }
        let contents = match disk::read_own(&self.path(hash), size) {
            Ok(contents) => contents,
            Err(DiskError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(%error, "a stored content could not be read");
                return None;
            }
        };
        (Hash::of(&contents) == *hash).then_some(contents)
    }

    /// Removes a content; returns how many bytes that freed.
    pub(super) fn remove(&self, hash: &Hash) -> u64 {
        let path = self.path(hash);
        let size = path.metadata().map_or(0, |metadata| metadata.len());
        match disk::remove_own(&path) {
            Ok(()) => size,
            Err(error) => {
                tracing::debug!(%error, "a stored content could not be removed");
                0
            }
        }
    }

    /// Counts the bytes of all contents.
    pub(super) fn bytes(&self) -> u64 {
        bytes_in(&self.folder)
    }
}

/// Counts the bytes of the files in a folder; 0 if there is no such folder.
pub(super) fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| entry.metadata().map_or(0, |metadata| metadata.len()));
    sizes.sum()
}
