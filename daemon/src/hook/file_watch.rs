//! Watches the files that the command of a trusted hook, or of a guard of the user's own, names, from
//! before they are compared with what was trusted or last used until the hook has ended.
//!
//! A hook runs its files where they are: a script may use its own path, and a copy elsewhere would
//! guard another folder. So a file could be exchanged after it was compared, and put back before the
//! hook ends. Then what the hook answers does not count. A change is seen
//!
//! - by events about each name that the paths consist of, and about the content of the files;
//! - by a process that has a file open for writing, which can change it through a mapping without any
//!   event;
//! - by the identity of what the paths lead to. Where the system cannot tell the first two, the times of
//!   change count as well, so that more is taken for a change than is one.

#[cfg(target_os = "linux")]
mod events;
#[cfg(not(target_os = "linux"))]
#[path = "file_watch/no_events.rs"]
mod events;
mod path_steps;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use loopd_proto::time::Timestamp;

use crate::discovery::hooks::{HookDefinition, is_unchanged, named_paths};
use crate::regular_file;
use events::Events;
use path_steps::{PathSteps, TooManySteps};

/// How exact the times of files are, at worst.
const COARSEST_TIME: Duration = Duration::from_secs(2);

/// The files of one hook, while it runs.
pub(super) struct FileWatch {
    paths: Vec<PathBuf>,
    /// The root of the project.
    root: PathBuf,
    /// What each name led to before the hook ran.
    before: BTreeMap<PathBuf, Option<Identity>>,
    files: Vec<File>,
    /// `None` if the system tells no events.
    events: Option<Events>,
    /// Whether it could be told that nobody had a file open for writing.
    tells_writers: bool,
}

/// Why what a hook says does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FilesChanged {
    #[error("a file that its command names has changed since it was trusted")]
    SinceTrusted,
    #[error("a file that its command names has changed since loopd last used the hook")]
    SinceUsed,
    #[error("a file that its command names was changed or open for writing while it ran")]
    WhileRunning,
    #[error("its command names too many files")]
    TooMany,
}

impl FileWatch {
    /// Begins to watch the files of a hook, then compares them with what was trusted. Blocks on the
    /// disk.
    pub(super) fn begin(hook: &HookDefinition, now: Timestamp) -> Result<Self, FilesChanged> {
        let mut watch = Self {
            paths: named_paths(hook),
            root: hook.root.clone(),
            before: BTreeMap::new(),
            files: Vec::new(),
            // Without events the times of files decide.
            events: Events::new().ok(),
            tells_writers: true,
        };
        watch.before = watch.look(true)?;
        let changed = match hook.source.folder {
            Some(_) => FilesChanged::SinceTrusted,
            None => FilesChanged::SinceUsed,
        };
        for file in &hook.named_files {
            watch.watch_file(file).map_err(|_| changed)?;
        }
        if !is_unchanged(hook) {
            return Err(changed);
        }
        if watch.has_writer() || (watch.is_strict() && watch.changed_just_before(now)) {
            return Err(FilesChanged::WhileRunning);
        }
        Ok(watch)
    }

    /// Follows all paths; returns what each name leads to. `begins` says whether the folders are to be
    /// watched from now on.
    fn look(&mut self, begins: bool) -> Result<BTreeMap<PathBuf, Option<Identity>>, FilesChanged> {
        let mut steps = PathSteps::default();
        let events = &mut self.events;
        for path in &self.paths {
            let followed = steps.follow(path, |folder| {
                let watched = events.as_mut().filter(|_| begins);
                if watched.is_some_and(|events| events.watch_folder(folder).is_err()) {
                    *events = None;
                }
            });
            followed.map_err(|TooManySteps| FilesChanged::TooMany)?;
        }
        Ok(steps.identities())
    }

    fn watch_file(&mut self, path: &Path) -> std::io::Result<()> {
        let opened = regular_file::open(path)?;
        let watched = self.events.as_mut();
        if watched.is_some_and(|events| events.watch_file(path).is_err()) {
            self.events = None;
        }
        self.files.push(opened);
        Ok(())
    }

    /// Returns whether the files stayed the same until now. Blocks on the disk.
    pub(super) fn end(mut self) -> Result<(), FilesChanged> {
        let now = self.look(false)?;
        let has_writer = self.has_writer();
        let is_same = now.len() == self.before.len()
            && now.iter().zip(&self.before).all(|(now, before)| {
                now.0 == before.0 && self.is_same(now.0, now.1.as_ref(), before.1.as_ref())
            });
        let had_events = match &self.events {
            Some(events) => events.tell_change(&self.before),
            None => false,
        };
        if has_writer || had_events || !is_same {
            return Err(FilesChanged::WhileRunning);
        }
        Ok(())
    }

    fn is_same(&self, path: &Path, now: Option<&Identity>, before: Option<&Identity>) -> bool {
        let (Some(now), Some(before)) = (now, before) else {
            return now.is_none() && before.is_none();
        };
        let counts = if now.content.is_some() {
            self.is_strict()
        } else {
            self.events.is_none() && (cfg!(target_os = "linux") || self.is_below_root(path))
        };
        now.device == before.device
            && now.number == before.number
            && now.content == before.content
            && (!counts || now.changed == before.changed)
    }

    /// Whether a folder is inside of the project. Systems that never tell events do not look at the
    /// times of the others, which change all the time.
    fn is_below_root(&self, path: &Path) -> bool {
        path.starts_with(&self.root) && path != self.root
    }

    /// Whether the times of change count.
    fn is_strict(&self) -> bool {
        self.events.is_none() || !self.tells_writers
    }

    /// Whether a process may have one of the files open for writing.
    fn has_writer(&mut self) -> bool {
        let mut found = false;
        for file in &self.files {
            match loopd_exec::sys::is_open_for_writing(file) {
                Ok(is_open) => found |= is_open,
                // Another user's file, or a file system that cannot tell.
                Err(_) => self.tells_writers = false,
            }
        }
        found
    }

    /// Whether a file was changed so shortly ago that a further change may not show in its times.
    fn changed_just_before(&self, now: Timestamp) -> bool {
        let now = Duration::from_millis(now.0.try_into().unwrap_or_default());
        let now = SystemTime::UNIX_EPOCH + now;
        let mut files = self.before.values().flatten();
        files.any(|file| {
            let age = now.duration_since(file.changed).unwrap_or_default();
            file.content.is_some() && age < COARSEST_TIME
        })
    }
}

/// What tells one file, link or folder from others, and one content from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
    /// Size and time of the content; `None` for a folder, whose content is not that of the files in it.
    content: Option<(u64, SystemTime)>,
    /// When anything about it changed.
    changed: SystemTime,
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
