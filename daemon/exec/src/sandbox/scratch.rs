//! The folder to which commands in a sandbox may write.
//!
//! Commands that ran without a sandbox could have put a link in its place, or in the place of a
//! folder above it. So it is made anew, under a name that nobody knows before, and no link below
//! the daemon's home is followed on the way to it. What counts from then on is the open descriptor.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
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
    is_removed: bool,
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
        Ok(Self {
            path,
            descriptor,
            is_removed: false,
        })
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

impl MadeFolder {
    /// Removes the folder with all that is in it. Only what the descriptor leads to is removed, whatever its
    /// path names by then.
    pub(super) fn remove(mut self) -> io::Result<()> {
        self.remove_now()
    }

    fn remove_now(&mut self) -> io::Result<()> {
        self.is_removed = true;
        remove_below(self.descriptor.as_fd())?;
        if self.is_in_place() {
            rustix::fs::rmdir(&self.path)?;
        }
        Ok(())
    }
}

/// The folder is removed when no command may write to it any more.
impl Drop for MadeFolder {
    fn drop(&mut self) {
        if !self.is_removed
            && let Err(error) = self.remove_now()
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
        let gone = remove_below(left.as_fd())
            .and_then(|()| Ok(rustix::fs::unlinkat(&opened, name, AtFlags::REMOVEDIR)?));
        match gone {
            Ok(()) => removed += 1,
            // A command that is being killed may still write there. The next start tries again.
            Err(error) => tracing::warn!(?name, %error, "a scratch folder could not be removed"),
        }
    }
    Ok(removed)
}

/// How many folders inside each other are looked at to add up their sizes.
const DEEPEST: usize = 128;

/// How many entries are removed at most.
const MOST_REMOVED: usize = 5_000_000;

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

/// Removes what is in a folder, without following a link. A folder inside of another is moved up before that
/// one is removed, so that it does not matter how deep they are.
fn remove_below(top: BorrowedFd<'_>) -> io::Result<()> {
    let mut entries_left = MOST_REMOVED;
    let mut waiting = empty(top, &mut entries_left, |name| Ok(name.to_owned()))?;
    let prefix = Ulid::generate();
    let mut moved = 0_u64;
    while let Some(name) = waiting.pop() {
        let folder = open_to_empty(top, &name)?;
        let below = empty(folder.as_fd(), &mut entries_left, |name| {
            // Whoever moves a folder has to write to it.
            open_to_empty(folder.as_fd(), name)?;
            moved += 1;
            let up = CString::new(format!("{prefix}-{moved}"))?;
            rustix::fs::renameat(&folder, name, top, &up)?;
            Ok(up)
        })?;
        waiting.extend(below);
        rustix::fs::unlinkat(top, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Removes the files of a folder. Returns what `keep` makes of the name of each folder in it.
fn empty(
    folder: BorrowedFd<'_>,
    entries_left: &mut usize,
    mut keep: impl FnMut(&CStr) -> io::Result<CString>,
) -> io::Result<Vec<CString>> {
    let (opened, entries) = entries_of(folder)?;
    let mut folders = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if !is_real(name) {
            continue;
        }
        *entries_left = entries_left.checked_sub(1).ok_or_else(|| {
            io::Error::other(format!("there are more than {MOST_REMOVED} files in it"))
        })?;
        match rustix::fs::unlinkat(&opened, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR | Errno::PERM) => folders.push(keep(name)?),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(folders)
}

/// Opens a folder whose entries are removed next. Its command may have closed it to everybody.
fn open_to_empty(above: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let opened = rustix::fs::openat(above, name, STEP, Mode::empty())?;
    let facts = rustix::fs::fstat(&opened)?;
    if !Mode::from_raw_mode(facts.st_mode).contains(Mode::RWXU) {
        let itself = format!("/proc/self/fd/{}", opened.as_raw_fd());
        rustix::fs::chmod(itself, Mode::RWXU)?;
    }
    Ok(opened)
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_removed_however_deep_it_is() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().canonicalize().unwrap();
        let outside = parent.join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("kept"), "x").unwrap();
        let made = MadeFolder::new_in(&parent).unwrap();
        let mut at = made.descriptor.try_clone().unwrap();
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            rustix::fs::mkdirat(&at, "beside", Mode::RWXU).unwrap();
            rustix::fs::symlinkat(&outside, &at, "link").unwrap();
            at = rustix::fs::openat(&at, "d", STEP, Mode::empty()).unwrap();
        }
        rustix::fs::mkdirat(&at, "closed", Mode::empty()).unwrap();
        let path = made.path.clone();
        made.remove().unwrap();
        assert!(!path.exists());
        assert!(outside.join("kept").exists());
    }
}
