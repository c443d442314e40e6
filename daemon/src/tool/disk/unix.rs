//! The Unix half of `disk`: everything goes through a folder's descriptor, opened without links.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use ulid::Ulid;

use super::{Audience, DiskError, Durability, Listed, Put, Stamp};

mod exact;
mod folders;
mod staged;

pub(super) use exact::{look, make_folder, put, remove, remove_folder, set_folder_mode, trace};
use folders::make_folders;
pub(super) use staged::Staged;

/// What identifies a version of a file besides its length and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

pub(super) fn identity(metadata: &Metadata) -> Identity {
    Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    }
}

pub(super) fn open(real: &Path) -> Result<File, DiskError> {
    // Non-blocking, so that opening a named pipe returns and can be refused.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(open_without_links(real, flags)?))
}

pub(super) fn is_there(real: &Path) -> bool {
    let Ok((folder, name)) = parent(real) else {
        return false;
    };
    open_folder(folder)
        .is_ok_and(|folder| rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
}

pub(super) fn replace(real: &Path, contents: &[u8], seen: &Stamp) -> Result<(), DiskError> {
    let (folder, name) = parent(real)?;
    let folder = open_folder(folder)?;
    let before = current(&folder, name)?;
    if before.permissions().readonly() {
        return Err(DiskError::WriteProtected);
    }
    let draft = Draft::write(&folder, contents, Like::File(&before))?;
    if Stamp::of(&current(&folder, name)?) != *seen {
        return Err(DiskError::Changed);
    }
    draft.rename_over(name)
}

pub(super) fn create(real: &Path, contents: &[u8]) -> Result<(), DiskError> {
    let (folder, name) = parent(real)?;
    let (folder, mut made) = make_folders(folder, Audience::Umask)?;
    Draft::write(&folder, contents, Like::New(Audience::Umask))?.rename_new(name)?;
    made.keep();
    Ok(())
}

pub(super) fn put_own(
    real: &Path,
    contents: &[u8],
    durability: Durability,
) -> Result<Put, DiskError> {
    let (folder, name) = parent(real)?;
    let (folder, mut made) = make_folders(folder, Audience::Owner)?;
    let put = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Put::Replaced,
        Err(_) => Put::Created,
    };
    // The rename replaces a link or a pipe of this name and never follows or opens it.
    let draft = Draft::start(&folder, contents, Like::New(Audience::Owner), durability)?;
    draft.rename_over(name)?;
    made.keep();
    Ok(put)
}

pub(super) fn remove_own(real: &Path) -> Result<(), DiskError> {
    let (folder, name) = parent(real)?;
    rustix::fs::unlinkat(open_folder(folder)?, name, AtFlags::empty()).map_err(io)
}

/// A complete file under a name that nobody else uses; removed unless it is renamed.
struct Draft<'a> {
    folder: &'a OwnedFd,
    name: Option<OsString>,
}

/// Whose mode and owner a draft takes.
enum Like<'a> {
    File(&'a Metadata),
    New(Audience),
}

impl<'a> Draft<'a> {
    fn write(folder: &'a OwnedFd, contents: &[u8], like: Like<'_>) -> Result<Self, DiskError> {
        Self::start(folder, contents, like, Durability::PowerCut)
    }

    fn start(
        folder: &'a OwnedFd,
        contents: &[u8],
        like: Like<'_>,
        durability: Durability,
    ) -> Result<Self, DiskError> {
        Self::named(folder, secret_name(), contents, like, durability)
    }

    /// Writes a draft under a name that the caller can find again after a crash.
    fn named(
        folder: &'a OwnedFd,
        name: OsString,
        contents: &[u8],
        like: Like<'_>,
        durability: Durability,
    ) -> Result<Self, DiskError> {
        let mode = match like {
            // Nobody else may open the draft before it has the mode of the file it replaces.
            Like::File(_) | Like::New(Audience::Owner) => Mode::from_raw_mode(0o600),
            Like::New(Audience::Umask) => Mode::from_raw_mode(0o666),
        };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(folder, &name, flags, mode).map_err(io)?);
        let draft = Self {
            folder,
            name: Some(name),
        };
        file.write_all(contents)?;
        if let Like::File(metadata) = like {
            take_after(&file, metadata)?;
        }
        match durability {
            Durability::PowerCut => file.sync_data()?,
            Durability::Crash => {}
        }
        Ok(draft)
    }

    /// Gives the file a mode, before it has its name.
    fn set_mode(&self, mode: u32) -> Result<(), DiskError> {
        let Some(name) = &self.name else {
            return Ok(());
        };
        // The name is random and new, so that nobody can have put a link there.
        let mode = Mode::from_raw_mode(mode & 0o7777);
        rustix::fs::chmodat(self.folder, name, mode, AtFlags::empty()).map_err(io)
    }

    /// Returns the name of the file; the caller has to remove it.
    fn into_name(mut self) -> Option<OsString> {
        self.name.take()
    }

    fn rename_over(mut self, name: &OsStr) -> Result<(), DiskError> {
        if let Some(draft) = self.name.as_ref() {
            rustix::fs::renameat(self.folder, draft, self.folder, name).map_err(io)?;
        }
        self.name = None;
        Ok(())
    }

    /// Links instead of renaming: a link never replaces a file that another process has just created.
    fn rename_new(self, name: &OsStr) -> Result<(), DiskError> {
        let Some(draft) = self.name.as_ref() else {
            return Ok(());
        };
        match rustix::fs::linkat(self.folder, draft, self.folder, name, AtFlags::empty()) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(DiskError::Exists),
            // Some file systems have no hard links.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                match rustix::fs::statat(self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(DiskError::Exists),
                    Err(_) => self.rename_over(name),
                }
            }
            Err(error) => Err(io(error)),
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name
            && let Err(error) = rustix::fs::unlinkat(self.folder, name, AtFlags::empty())
        {
            tracing::warn!(%error, draft = %name.display(), "a temporary file was left behind");
        }
    }
}

fn secret_name() -> OsString {
    OsString::from(format!(".{}.tmp", Ulid::generate()))
}

fn take_after(file: &File, like: &Metadata) -> Result<(), DiskError> {
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (like.uid(), like.gid()) {
        // Only root may change the owner; for other users the file becomes theirs, as in most editors.
        let owner = Some(Uid::from_raw(like.uid()));
        if let Err(error) = rustix::fs::fchown(file, owner, Some(Gid::from_raw(like.gid()))) {
            tracing::debug!(%error, "the owner of an edited file changed");
        }
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(like.mode() & 0o7777)).map_err(io)
}

fn current(folder: &OwnedFd, name: &OsStr) -> Result<Metadata, DiskError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(io)?;
    Ok(File::from(file).metadata()?)
}

fn parent(real: &Path) -> Result<(&Path, &OsStr), DiskError> {
    match (real.parent(), real.file_name()) {
        (Some(folder), Some(name)) => Ok((folder, name)),
        _ => Err(DiskError::Folder),
    }
}

fn open_folder(real: &Path) -> Result<OwnedFd, DiskError> {
    open_without_links(real, OFlags::RDONLY | OFlags::DIRECTORY)
}

#[cfg(target_os = "linux")]
fn open_without_links(real: &Path, flags: OFlags) -> Result<OwnedFd, DiskError> {
    use rustix::fs::ResolveFlags;

    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(CWD, real, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
        // Kernels before 5.6 and some container filters have no openat2.
        Err(Errno::NOSYS | Errno::PERM) => open_step_by_step(real, flags),
        opened => opened.map_err(io),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_without_links(real: &Path, flags: OFlags) -> Result<OwnedFd, DiskError> {
    open_step_by_step(real, flags)
}

/// Opens one component of the path after the other from its folder's descriptor, so that no
/// component may be a link, even if the kernel cannot check that itself.
pub(super) fn open_step_by_step(real: &Path, flags: OFlags) -> Result<OwnedFd, DiskError> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
        return rustix::fs::openat(CWD, real, flags, Mode::empty()).map_err(io);
    };
    let mut parts = folder.components();
    let Some(first) = parts.next() else {
        return Err(DiskError::Changed);
    };
    let mut opened = rustix::fs::openat(CWD, first.as_os_str(), step, Mode::empty()).map_err(io)?;
    for part in parts {
        opened = rustix::fs::openat(&opened, part.as_os_str(), step, Mode::empty())
            .map_err(|error| not_a_link(&opened, part.as_os_str(), error))?;
    }
    rustix::fs::openat(&opened, name, flags, Mode::empty())
        .map_err(|error| not_a_link(&opened, name, error))
}

/// Translates "not a directory", the error for opening a link as a folder, which means something
/// else to the caller.
fn not_a_link(folder: &OwnedFd, name: &OsStr, error: Errno) -> DiskError {
    let is_link = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink);
    if error == Errno::NOTDIR && is_link {
        return DiskError::Changed;
    }
    io(error)
}

/// Lists a folder through its own descriptor, so that a link that replaced it is not followed.
pub(super) fn list(real: &Path, most: usize) -> Result<Vec<(OsString, Listed)>, DiskError> {
    let folder = open_folder(real)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if names.len() == most {
            break;
        }
        let kind = match entry.file_type() {
            // Some file systems do not report the kind.
            FileType::Unknown => rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |found| {
                    FileType::from_raw_mode(found.st_mode)
                }),
            known => known,
        };
        let listed = match kind {
            FileType::Directory => Listed::Folder,
            FileType::RegularFile => Listed::File,
            _ => Listed::Other,
        };
        names.push((name.to_owned(), listed));
    }
    Ok(names)
}

fn io(error: Errno) -> DiskError {
    match error {
        Errno::LOOP => DiskError::Changed,
        error => DiskError::Io(error.into()),
    }
}
