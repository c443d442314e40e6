//! The Unix half of `disk/exact.rs`.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode};

use super::{
    Audience, DiskError, Draft, Durability, Like, Stamp, current, io, open_folder, parent,
};
use crate::tool::disk::exact::{Found, Trace};

/// The bits of a mode that a rewind restores.
const MODE_BITS: u32 = 0o7777;

pub(in crate::tool::disk) fn trace(metadata: &Metadata) -> Trace {
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Trace {
        size: metadata.len(),
        mode: metadata.mode() & MODE_BITS,
        inode: metadata.ino(),
        modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    }
}

pub(in crate::tool::disk) fn look(real: &Path) -> Result<Found, DiskError> {
    let (folder, name) = parent(real)?;
    let folder = open_folder(folder)?;
    let found = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io)?;
    Ok(match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Found::File,
        FileType::Directory => Found::Folder {
            mode: found.st_mode & MODE_BITS,
        },
        FileType::Symlink => Found::Link,
        _ => Found::Special,
    })
}

pub(in crate::tool::disk) fn put(
    real: &Path,
    contents: &[u8],
    mode: u32,
    over: Option<&Stamp>,
    draft: &str,
) -> Result<(), DiskError> {
    let (folder, name) = parent(real)?;
    let folder = open_folder(folder)?;
    let write = |like| Draft::named(&folder, draft.into(), contents, like, Durability::PowerCut);
    let Some(seen) = over else {
        let draft = write(Like::New(Audience::Owner))?;
        draft.set_mode(mode)?;
        return draft.rename_new(name);
    };
    let before = current(&folder, name)?;
    let draft = write(Like::File(&before))?;
    draft.set_mode(mode)?;
    if Stamp::of(&current(&folder, name)?) != *seen {
        return Err(DiskError::Changed);
    }
    draft.rename_over(name)
}

pub(in crate::tool::disk) fn remove(real: &Path, seen: &Stamp) -> Result<(), DiskError> {
    let (folder, name) = parent(real)?;
    let folder = open_folder(folder)?;
    if Stamp::of(&current(&folder, name)?) != *seen {
        return Err(DiskError::Changed);
    }
    rustix::fs::unlinkat(&folder, name, AtFlags::empty()).map_err(io)
}

pub(in crate::tool::disk) fn make_folder(real: &Path, mode: u32) -> Result<(), DiskError> {
    let (folder, name) = parent(real)?;
    let folder = open_folder(folder)?;
    rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o700)).map_err(io)?;
    // The umask does not count here: the folder gets the mode that it had.
    set_folder_mode(real, mode)
}

pub(in crate::tool::disk) fn remove_folder(real: &Path) -> Result<(), DiskError> {
    let (folder, name) = parent(real)?;
    rustix::fs::unlinkat(open_folder(folder)?, name, AtFlags::REMOVEDIR).map_err(io)
}

pub(in crate::tool::disk) fn set_folder_mode(real: &Path, mode: u32) -> Result<(), DiskError> {
    let folder = File::from(open_folder(real)?);
    rustix::fs::fchmod(&folder, Mode::from_raw_mode(mode & MODE_BITS)).map_err(io)
}
