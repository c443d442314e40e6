//! Creates the missing folders above a file, and takes them away again if the file cannot be made.
//! Called by `disk/unix.rs`.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{DiskError, open_folder};
use crate::tool::disk::Audience;

/// The folders that were created for one file. They are removed unless they are kept.
#[derive(Debug, Default)]
pub(super) struct MadeFolders {
    /// The path of each folder, the outermost first.
    paths: Vec<PathBuf>,
}

impl MadeFolders {
    /// Keeps the folders, because the file is in its place.
    pub(super) fn keep(&mut self) {
        self.paths.clear();
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for path in self.paths.iter().rev() {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                continue;
            };
            let removed = open_folder(parent).and_then(|parent| {
                rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).map_err(super::io)
            });
            match removed {
                Ok(()) => {}
                // Something else was put into it meanwhile.
                Err(DiskError::Io(error)) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, folder = %path.display(), "an empty folder was left behind");
                    return;
                }
            }
        }
    }
}

/// Creates the missing folders of a path, one at a time from the last that exists.
pub(super) fn make_folders(
    real: &Path,
    audience: Audience,
) -> Result<(OwnedFd, MadeFolders), DiskError> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut existing = PathBuf::from(real);
    let mut folder = loop {
        match open_folder(&existing) {
            Err(DiskError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
                    return Err(error.into());
                };
                missing.push(name.to_owned());
                existing = parent.to_owned();
            }
            opened => break opened?,
        }
    };
    let mode = match audience {
        Audience::Umask => Mode::from_raw_mode(0o777),
        Audience::Owner => Mode::from_raw_mode(0o700),
    };
    let mut new = MadeFolders::default();
    for name in missing.iter().rev() {
        existing.push(name);
        match rustix::fs::mkdirat(&folder, name, mode) {
            Ok(()) => new.paths.push(existing.clone()),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(super::io(error)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        folder = rustix::fs::openat(&folder, name, flags, Mode::empty()).map_err(super::io)?;
    }
    Ok((folder, new))
}
