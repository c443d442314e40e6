//! The half of `disk` for systems without folder descriptors: temporary files and renames by path.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use super::{DiskError, Stamp};

/// Nothing beyond length and time names a version here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity;

pub(super) fn identity(_metadata: &Metadata) -> Identity {
    Identity
}

pub(super) fn open(real: &Path) -> Result<File, DiskError> {
    Ok(File::open(real)?)
}

pub(super) fn replace(real: &Path, contents: &[u8], seen: &Stamp) -> Result<(), DiskError> {
    let before = real.metadata()?;
    if before.permissions().readonly() {
        return Err(DiskError::WriteProtected);
    }
    let draft = draft(real, contents)?;
    if Stamp::of(&real.metadata()?) != *seen {
        return Err(DiskError::Changed);
    }
    draft.persist(real).map_err(|error| error.error)?;
    Ok(())
}

pub(super) fn create(real: &Path, contents: &[u8]) -> Result<(), DiskError> {
    if let Some(folder) = real.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match draft(real, contents)?.persist_noclobber(real) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(DiskError::Exists),
        Err(error) => Err(error.error.into()),
    }
}

fn draft(real: &Path, contents: &[u8]) -> Result<NamedTempFile, DiskError> {
    let folder = real.parent().ok_or(DiskError::Folder)?;
    let mut draft = NamedTempFile::new_in(folder)?;
    draft.write_all(contents)?;
    draft.as_file().sync_data()?;
    Ok(draft)
}
