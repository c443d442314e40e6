//! Tells whether files and folders are as they were, without reading them.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What the disk says about a file or folder; changes when it is written, replaced, made or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    /// Which file it is, and when it was last changed in any way.
    identity: [i64; 4],
}

/// How a set of paths was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

impl Stamps {
    /// Looks at paths, which need not exist. Take the stamps before you read.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let stamped = paths.into_iter().map(|path| (path.to_owned(), stamp(path)));
        Self(stamped.collect())
    }

    /// Returns whether all paths are as they were.
    pub fn still_hold(&self) -> bool {
        self.0.iter().all(|(path, known)| stamp(path) == *known)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(Stamp {
        modified: metadata.modified().ok(),
        length: metadata.len(),
        identity: identity(&metadata),
    })
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> [i64; 4] {
    use std::os::unix::fs::MetadataExt as _;
    [
        metadata.dev().cast_signed(),
        metadata.ino().cast_signed(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ]
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> [i64; 4] {
    [0; 4]
}
