//! Looks at a path and puts it into an exact state: this content and mode, this folder, or nothing.
//! No link is followed, and nothing is changed that is not as the caller saw it. Called by `capture`.

use std::fs::Metadata;
use std::io::{self, Read};
use std::path::Path;

use super::{DiskError, Stamp, open, platform};

/// What is at a path.
#[derive(Debug)]
pub(in crate::tool) enum Found {
    Absent,
    File,
    Folder {
        mode: u32,
    },
    /// A link at the path itself.
    Link,
    Special,
}

/// What the file system says of a version of a file. Two versions with the same trace are the same,
/// unless one was made right after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(in crate::tool) struct Trace {
    pub(in crate::tool) size: u64,
    pub(in crate::tool) mode: u32,
    pub(in crate::tool) inode: u64,
    pub(in crate::tool) modified_ns: i128,
    /// When the content or the mode was last changed, in nanoseconds.
    pub(in crate::tool) changed_ns: i128,
}

impl Trace {
    pub(in crate::tool) fn of(metadata: &Metadata) -> Self {
        platform::trace(metadata)
    }
}

/// Looks at a path. A link in the place of a folder above it is an error.
pub(in crate::tool) fn look(real: &Path) -> Result<Found, DiskError> {
    match platform::look(real) {
        Err(DiskError::Io(error)) if is_absent(&error) => Ok(Found::Absent),
        found => found,
    }
}

/// Returns whether the error means that nothing is there.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// One version of a file.
#[derive(Debug)]
pub(in crate::tool) struct Version {
    pub(in crate::tool) contents: Vec<u8>,
    pub(in crate::tool) trace: Trace,
    pub(in crate::tool) stamp: Stamp,
}

/// Reads a file of at most `limit` bytes. It is an error if the file changes meanwhile.
pub(in crate::tool) fn read(real: &Path, limit: u64) -> Result<Version, DiskError> {
    let (file, before) = open(real)?;
    if before.len() > limit {
        return Err(DiskError::TooLarge { limit });
    }
    let mut contents = Vec::with_capacity(usize::try_from(before.len()).unwrap_or(0));
    (&file).take(limit + 1).read_to_end(&mut contents)?;
    let after = file.metadata()?;
    let stamp = Stamp::of(&before);
    if Stamp::of(&after) != stamp || contents.len() as u64 != after.len() {
        return Err(DiskError::Changed);
    }
    Ok(Version {
        contents,
        trace: Trace::of(&after),
        stamp,
    })
}

/// Puts a file in its place, in one step. `over` is the version that it replaces; `None` if there must
/// be nothing. `draft` is the name that the file has before; after a crash it may still be there.
pub(in crate::tool) fn put(
    real: &Path,
    contents: &[u8],
    mode: u32,
    over: Option<&Stamp>,
    draft: &str,
) -> Result<(), DiskError> {
    platform::put(real, contents, mode, over, draft)
}

/// Removes a file if it is still the version that was seen.
pub(in crate::tool) fn remove(real: &Path, seen: &Stamp) -> Result<(), DiskError> {
    platform::remove(real, seen)
}

/// Creates a folder; the folder above it has to be there.
pub(in crate::tool) fn make_folder(real: &Path, mode: u32) -> Result<(), DiskError> {
    platform::make_folder(real, mode)
}

/// Removes a folder that is empty.
pub(in crate::tool) fn remove_folder(real: &Path) -> Result<(), DiskError> {
    platform::remove_folder(real)
}

pub(in crate::tool) fn set_folder_mode(real: &Path, mode: u32) -> Result<(), DiskError> {
    platform::set_folder_mode(real, mode)
}
