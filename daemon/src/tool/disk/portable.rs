//! The half of `disk` for systems without folder descriptors: temporary files and renames by path.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::batch::Step;
use super::exact::{Found, Trace};
use super::{DiskError, Durability, Listed, Put, Stamp};

/// Here only length and time identify a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity;

pub(super) fn identity(_metadata: &Metadata) -> Identity {
    Identity
}

pub(super) fn open(real: &Path) -> Result<File, DiskError> {
    Ok(File::open(real)?)
}

pub(super) fn is_there(real: &Path) -> bool {
    real.symlink_metadata().is_ok()
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

pub(super) fn put_own(
    real: &Path,
    contents: &[u8],
    _durability: Durability,
) -> Result<Put, DiskError> {
    if let Some(folder) = real.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let put = if is_there(real) {
        Put::Replaced
    } else {
        Put::Created
    };
    let draft = draft(real, contents)?;
    draft.persist(real).map_err(|error| error.error)?;
    Ok(put)
}

pub(super) fn remove_own(real: &Path) -> Result<(), DiskError> {
    Ok(std::fs::remove_file(real)?)
}

fn draft(real: &Path, contents: &[u8]) -> Result<NamedTempFile, DiskError> {
    let folder = real.parent().ok_or(DiskError::Folder)?;
    let mut draft = NamedTempFile::new_in(folder)?;
    draft.write_all(contents)?;
    draft.as_file().sync_data()?;
    Ok(draft)
}

pub(super) fn list(real: &Path, most: usize) -> Result<Vec<(OsString, Listed)>, DiskError> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(real)?.take(most) {
        let entry = entry?;
        let kind = entry.file_type()?;
        let listed = if kind.is_dir() {
            Listed::Folder
        } else if kind.is_file() {
            Listed::File
        } else {
            Listed::Other
        };
        names.push((entry.file_name(), listed));
    }
    Ok(names)
}

/// A prepared change; the old contents are in a temporary file beside it.
pub(super) struct Staged {
    real: PathBuf,
    draft: Option<NamedTempFile>,
    seen: Option<Stamp>,
    backup: Option<PathBuf>,
    done: bool,
}

impl Staged {
    pub(super) fn prepare(step: Step) -> Result<Self, DiskError> {
        let staged = |real: PathBuf, draft, seen| Self {
            real,
            draft,
            seen,
            backup: None,
            done: false,
        };
        match step {
            Step::Create { real, contents, .. } => {
                if let Some(folder) = real.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                let draft = draft(&real, &contents)?;
                Ok(staged(real, Some(draft), None))
            }
            Step::Replace {
                real,
                contents,
                seen,
            } => {
                if real.metadata()?.permissions().readonly() {
                    return Err(DiskError::WriteProtected);
                }
                let draft = draft(&real, &contents)?;
                Ok(staged(real, Some(draft), Some(seen)))
            }
            Step::Remove { real, seen } => Ok(staged(real, None, Some(seen))),
        }
    }

    pub(super) fn change(&mut self) -> Result<(), DiskError> {
        if let Some(seen) = &self.seen {
            if Stamp::of(&self.real.metadata()?) != *seen {
                return Err(DiskError::Changed);
            }
            let folder = self.real.parent().ok_or(DiskError::Folder)?;
            let (_, backup) = NamedTempFile::new_in(folder)?
                .keep()
                .map_err(|error| error.error)?;
            std::fs::rename(&self.real, &backup)?;
            self.backup = Some(backup);
        }
        if let Some(draft) = self.draft.take() {
            match draft.persist_noclobber(&self.real) {
                Ok(_) => {}
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(DiskError::Exists);
                }
                Err(error) => return Err(error.error.into()),
            }
        }
        self.done = true;
        Ok(())
    }

    pub(super) fn undo(&mut self) -> Result<(), DiskError> {
        if let Some(backup) = self.backup.take() {
            std::fs::rename(backup, &self.real)?;
        } else if self.done {
            std::fs::remove_file(&self.real)?;
        }
        self.done = false;
        Ok(())
    }

    pub(super) fn keep(mut self) {
        if let Some(backup) = self.backup.take()
            && let Err(error) = std::fs::remove_file(&backup)
        {
            tracing::warn!(%error, file = %backup.display(), "a temporary file was left behind");
        }
    }
}

pub(super) fn trace(metadata: &Metadata) -> Trace {
    let modified = metadata.modified().ok();
    let since = modified.and_then(|it| it.duration_since(std::time::UNIX_EPOCH).ok());
    let modified_ns = since.map_or(0, |it| i128::try_from(it.as_nanos()).unwrap_or(0));
    Trace {
        size: metadata.len(),
        mode: 0,
        inode: 0,
        modified_ns,
        changed_ns: modified_ns,
    }
}

pub(super) fn look(real: &Path) -> Result<Found, DiskError> {
    let metadata = real.symlink_metadata()?;
    Ok(if metadata.is_file() {
        Found::File
    } else if metadata.is_dir() {
        Found::Folder { mode: 0 }
    } else if metadata.is_symlink() {
        Found::Link
    } else {
        Found::Special
    })
}

pub(super) fn put(
    real: &Path,
    contents: &[u8],
    _mode: u32,
    over: Option<&Stamp>,
    _draft: &str,
) -> Result<(), DiskError> {
    let draft = draft(real, contents)?;
    let Some(seen) = over else {
        return match draft.persist_noclobber(real) {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(DiskError::Exists)
            }
            Err(error) => Err(error.error.into()),
        };
    };
    if Stamp::of(&real.metadata()?) != *seen {
        return Err(DiskError::Changed);
    }
    draft.persist(real).map_err(|error| error.error)?;
    Ok(())
}

pub(super) fn remove(real: &Path, seen: &Stamp) -> Result<(), DiskError> {
    if Stamp::of(&real.metadata()?) != *seen {
        return Err(DiskError::Changed);
    }
    Ok(std::fs::remove_file(real)?)
}

pub(super) fn make_folder(real: &Path, _mode: u32) -> Result<(), DiskError> {
    Ok(std::fs::create_dir(real)?)
}

pub(super) fn remove_folder(real: &Path) -> Result<(), DiskError> {
    Ok(std::fs::remove_dir(real)?)
}

pub(super) fn set_folder_mode(_real: &Path, _mode: u32) -> Result<(), DiskError> {
    Ok(())
}
