//! The folder to which commands in a sandbox may write.
//!
//! Commands that ran without a sandbox could have put a link in its place, or in the place of a
//! folder above it. So it is made anew, under a name that nobody knows before, and no link below
//! the daemon's home is followed on the way to it. What counts from then on is the open descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use ulid::Ulid;

/// Opens a folder to work below it, and no link.
const STEP: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

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
        let name = format!("sandbox-{}", Ulid::generate());
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
