//! One file of a batch on Unix. The new contents are under a random name until the batch is applied,
//! the old contents under another until the whole batch is done. Called by `disk/batch.rs`.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::super::batch::Step;
use super::folders::MadeFolders;
use super::{
    Audience, DiskError, Draft, Like, Stamp, current, io, make_folders, open_folder, parent,
    secret_name,
};

/// A prepared change.
pub(in crate::tool::disk) struct Staged {
    folder: OwnedFd,
    name: OsString,
    kind: Kind,
    /// The new contents, until the file is renamed.
    draft: Option<OsString>,
    /// The old contents, after they were renamed.
    backup: Option<OsString>,
    done: bool,
    /// The folders that were created for the file. They go again if the batch is not done.
    made: MadeFolders,
}

enum Kind {
    Create,
    Replace(Stamp),
    Remove(Stamp),
}

impl Staged {
    pub(in crate::tool::disk) fn prepare(step: Step) -> Result<Self, DiskError> {
        match step {
            Step::Create {
                real,
                contents,
                like,
            } => {
                let (folder, name) = parent(&real)?;
                let (folder, made) = make_folders(folder, Audience::Umask)?;
                let metadata = like.as_deref().map(metadata).transpose()?;
                let like = metadata
                    .as_ref()
                    .map_or(Like::New(Audience::Umask), Like::File);
                let draft = Draft::write(&folder, &contents, like)?.into_name();
                let mut staged = Self::of(folder, name, Kind::Create, draft);
                staged.made = made;
                Ok(staged)
            }
            Step::Replace {
                real,
                contents,
                seen,
            } => {
                let (folder, name) = parent(&real)?;
                let folder = open_folder(folder)?;
                let before = unchanged(&folder, name, &seen)?;
                if before.permissions().readonly() {
                    return Err(DiskError::WriteProtected);
                }
                let draft = Draft::write(&folder, &contents, Like::File(&before))?.into_name();
                Ok(Self::of(folder, name, Kind::Replace(seen), draft))
            }
            Step::Remove { real, seen } => {
                let (folder, name) = parent(&real)?;
                let folder = open_folder(folder)?;
                unchanged(&folder, name, &seen)?;
                Ok(Self::of(folder, name, Kind::Remove(seen), None))
            }
        }
    }

    fn of(folder: OwnedFd, name: &OsStr, kind: Kind, draft: Option<OsString>) -> Self {
        Self {
            folder,
            name: name.to_owned(),
            kind,
            draft,
            backup: None,
            done: false,
            made: MadeFolders::default(),
        }
    }

    /// Applies the change by renaming.
    pub(in crate::tool::disk) fn change(&mut self) -> Result<(), DiskError> {
        match &self.kind {
            Kind::Create => self.give_name()?,
            Kind::Replace(seen) => {
                unchanged(&self.folder, &self.name, seen)?;
                self.back_up()?;
                if let Some(draft) = self.draft.take() {
                    let renamed = self.rename(&draft, &self.name);
                    if renamed.is_err() {
                        self.draft = Some(draft);
                    }
                    renamed?;
                }
            }
            Kind::Remove(seen) => {
                unchanged(&self.folder, &self.name, seen)?;
                let backup = secret_name();
                self.rename(&self.name, &backup)?;
                self.backup = Some(backup);
            }
        }
        self.done = true;
        Ok(())
    }

    /// Gives the draft its final name, unless something has that name.
    fn give_name(&mut self) -> Result<(), DiskError> {
        let Some(draft) = &self.draft else {
            return Ok(());
        };
        match rustix::fs::linkat(
            &self.folder,
            draft,
            &self.folder,
            &self.name,
            AtFlags::empty(),
        ) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(DiskError::Exists),
            // Some file systems have no hard links.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(DiskError::Exists),
                    Err(_) => self
                        .rename(draft, &self.name)
                        .inspect(|()| self.draft = None),
                }
            }
            Err(error) => Err(io(error)),
        }
    }

    /// Keeps the old contents under a second name.
    fn back_up(&mut self) -> Result<(), DiskError> {
        let backup = secret_name();
        let (folder, name) = (&self.folder, &self.name);
        match rustix::fs::linkat(folder, name, folder, &backup, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                self.rename(name, &backup)?;
            }
            Err(error) => return Err(io(error)),
        }
        self.backup = Some(backup);
        Ok(())
    }

    fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), DiskError> {
        rustix::fs::renameat(&self.folder, from, &self.folder, to).map_err(io)
    }

    /// Restores the old contents.
    pub(in crate::tool::disk) fn undo(&mut self) -> Result<(), DiskError> {
        if let Some(backup) = self.backup.take() {
            // If this fails, the old contents stay under the second name and are not lost.
            self.rename(&backup, &self.name)?;
        } else if self.done && matches!(self.kind, Kind::Create) {
            rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty()).map_err(io)?;
        }
        self.done = false;
        Ok(())
    }

    /// Removes the old contents; the change can no longer be undone.
    pub(in crate::tool::disk) fn keep(mut self) {
        self.made.keep();
        if let Some(backup) = self.backup.take() {
            self.forget(&backup);
        }
    }

    fn forget(&self, name: &OsStr) {
        if let Err(error) = rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
            tracing::warn!(%error, file = %name.display(), "a temporary file was left behind");
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(draft) = self.draft.take() {
            self.forget(&draft);
        }
    }
}

fn metadata(real: &Path) -> Result<std::fs::Metadata, DiskError> {
    let (folder, name) = parent(real)?;
    current(&open_folder(folder)?, name)
}

fn unchanged(folder: &OwnedFd, name: &OsStr, seen: &Stamp) -> Result<std::fs::Metadata, DiskError> {
    let metadata = current(folder, name)?;
    if Stamp::of(&metadata) == *seen {
        Ok(metadata)
    } else {
        Err(DiskError::Changed)
    }
}
