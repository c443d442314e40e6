//! The folder to which commands in a sandbox may write.
//!
//! Commands that ran without a sandbox could have put a link in its place, or in the place of a
//! folder above it. So it is made anew, under a name that nobody knows before, and no link below
//! the daemon's home is followed on the way to it. What counts from then on is the open descriptor.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use ulid::Ulid;

/// Opens a folder to work below it, and no link.
const STEP: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What the names of scratch folders begin with.
const PREFIX: &str = "sandbox-";

/// A scratch folder that was made.
#[derive(Debug)]
pub(super) struct MadeFolder {
    pub(super) path: PathBuf,
    pub(super) descriptor: OwnedFd,
}

impl MadeFolder {
    /// Makes a folder with a new name in `parent`, an absolute path without links.
    pub(super) fn new_in(parent: &Path) -> io::Result<Self> {
        let above = walk(parent, true)?;
        let name = format!("{PREFIX}{}", Ulid::generate());
        let path = parent.join(&name);
        rustix::fs::mkdirat(&above, &name, Mode::RWXU)?;
        let descriptor = step(above.as_fd(), Path::new(&name), &path)?;
        let facts = rustix::fs::fstat(&descriptor)?;
        let is_ours = facts.st_uid == rustix::process::geteuid().as_raw();
        let is_private = Mode::from_raw_mode(facts.st_mode) == Mode::RWXU;
        if FileType::from_raw_mode(facts.st_mode) != FileType::Directory || !is_ours || !is_private
        {
            return Err(io::Error::other(format!(
                "somebody else has replaced {}",
                path.display()
            )));
        }
        Ok(Self { path, descriptor })
    }

    /// Whether its files take at most so many bytes.
    pub(super) fn holds_at_most(&self, bytes: u64) -> bool {
        let mut entries = MOST_ENTRIES;
        size_below(self.descriptor.as_fd(), DEEPEST, &mut entries, bytes).is_some()
    }

    /// Whether its path still leads to it.
    pub(super) fn is_in_place(&self) -> bool {
        let same = |found: OwnedFd| -> io::Result<bool> {
            let (found, made): (Stat, Stat) = (
                rustix::fs::fstat(&found)?,
                rustix::fs::fstat(&self.descriptor)?,
            );
            Ok(found.st_dev == made.st_dev && found.st_ino == made.st_ino)
        };
        walk(&self.path, false).and_then(same).unwrap_or(false)
    }
}

/// The folder is removed when no command may write to it any more. Only what the descriptor leads to is
/// removed, whatever its path names by then.
impl Drop for MadeFolder {
    fn drop(&mut self) {
        if let Err(error) = remove_below(self.descriptor.as_fd(), DEEPEST) {
            tracing::warn!(folder = %self.path.display(), %error, "a scratch folder could not be emptied");
        }
        if self.is_in_place()
            && let Err(error) = rustix::fs::rmdir(&self.path)
        {
            tracing::warn!(folder = %self.path.display(), %error, "a scratch folder could not be removed");
        }
    }
}

/// Removes the scratch folders in the folders `temp` of sessions, which all are in one folder. A daemon
/// that was killed left them. Returns how many were removed.
pub(super) fn remove_left(sessions: &Path) -> io::Result<usize> {
    let sessions = match walk(sessions, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        walked => walked?,
    };
    let (opened, entries) = entries_of(sessions.as_fd())?;
    let mut removed = 0;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if !is_real(name) {
            continue;
        }
        let temp = rustix::fs::openat(&opened, name, STEP, Mode::empty())
            .and_then(|session| rustix::fs::openat(&session, "temp", STEP, Mode::empty()));
        // Most sessions have none, and a link in its place is none of ours.
        let Ok(temp) = temp else {
            continue;
        };
        removed += remove_left_in(temp.as_fd())?;
    }
    Ok(removed)
}

fn remove_left_in(temp: BorrowedFd<'_>) -> io::Result<usize> {
    let (opened, entries) = entries_of(temp)?;
    let mut removed = 0;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let Ok(left) = rustix::fs::openat(&opened, name, STEP, Mode::empty()) else {
            continue;
        };
        let gone = remove_below(left.as_fd(), DEEPEST)
            .and_then(|()| Ok(rustix::fs::unlinkat(&opened, name, AtFlags::REMOVEDIR)?));
        match gone {
            Ok(()) => removed += 1,
            // A command that is being killed may still write there. The next start tries again.
            Err(error) => tracing::warn!(?name, %error, "a scratch folder could not be removed"),
        }
    }
    Ok(removed)
}

/// How many folders inside each other are looked at.
const DEEPEST: usize = 128;

/// How many entries are looked at to add up their sizes.
const MOST_ENTRIES: usize = 100_000;

/// Opens a folder that is known by a descriptor, to read it.
fn entries_of(folder: BorrowedFd<'_>) -> io::Result<(OwnedFd, Dir)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(folder, ".", flags, Mode::empty())?;
    let entries = Dir::read_from(&opened)?;
    Ok((opened, entries))
}

fn is_real(name: &CStr) -> bool {
    !matches!(name.to_bytes(), b"." | b"..")
}

/// Removes what is in a folder, without following a link.
fn remove_below(folder: BorrowedFd<'_>, depth: usize) -> io::Result<()> {
    let (opened, entries) = entries_of(folder)?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if !is_real(name) {
            continue;
        }
        match rustix::fs::unlinkat(&opened, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            Err(Errno::ISDIR | Errno::PERM) if depth > 0 => {}
            Err(error) => return Err(error.into()),
        }
        let below = rustix::fs::openat(&opened, name, STEP, Mode::empty())?;
        remove_below(below.as_fd(), depth - 1)?;
        rustix::fs::unlinkat(&opened, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Adds up the sizes of files; `None` if there are too many of them, or too much.
fn size_below(
    folder: BorrowedFd<'_>,
    depth: usize,
    entries_left: &mut usize,
    bytes_left: u64,
) -> Option<u64> {
    let (opened, entries) = entries_of(folder).ok()?;
    let mut size = 0_u64;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !is_real(name) {
            continue;
        }
        *entries_left = entries_left.checked_sub(1)?;
        let Ok(facts) = rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let left = bytes_left.checked_sub(size)?;
        if FileType::from_raw_mode(facts.st_mode) == FileType::Directory {
            let depth = depth.checked_sub(1)?;
            let below = rustix::fs::openat(&opened, name, STEP, Mode::empty());
            if let Ok(below) = below {
                size += size_below(below.as_fd(), depth, entries_left, left)?;
            }
        } else {
            size += u64::try_from(facts.st_blocks).unwrap_or_default() * 512;
        }
    }
    (size <= bytes_left).then_some(size)
}

/// Opens a folder by an absolute path, step by step and without following a link. Makes the folders
/// that are missing, if `make` says so.
fn walk(folder: &Path, make: bool) -> io::Result<OwnedFd> {
    let mut path = PathBuf::from("/");
    let mut reached = rustix::fs::open(&path, STEP, Mode::empty())?;
    for part in folder.components() {
        let name = match part {
            Component::RootDir => continue,
            Component::Normal(name) => Path::new(name),
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        };
        path.push(name);
        reached = match step(reached.as_fd(), name, &path) {
            Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                match rustix::fs::mkdirat(&reached, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                step(reached.as_fd(), name, &path)?
            }
            opened => opened?,
        };
    }
    Ok(reached)
}

/// Opens the folder `name`, whose whole path is `path`.
fn step(above: BorrowedFd<'_>, name: &Path, path: &Path) -> io::Result<OwnedFd> {
    match rustix::fs::openat(above, name, STEP, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => Err(io::Error::other(format!(
            "{} is a link or no folder; remove it",
            path.display()
        ))),
        opened => Ok(opened?),
    }
}
