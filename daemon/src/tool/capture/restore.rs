//! Puts files back. What is to be done is written to disk first, so that a daemon that starts after a
//! crash can carry out the rest. Every step looks again: a path that is not as it was planned is left
//! alone. If a step fails, the steps before it are taken back.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use loopd_proto::id::{RewindId, Seq};
use serde::{Deserialize, Serialize};

use super::journal::{Change, Record, Source};
use super::plan::{Item, RewindPreview, SkipReason, SkippedFile};
use super::state::{FileState, NotCaptured, Now};
use super::{Captures, Inner};
use crate::tool::disk::exact;
use crate::tool::disk::{self, DiskError};

/// The largest list of steps that is read back.
const LARGEST_LIST: u64 = 64 * 1024 * 1024;

/// What was done to files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreReport {
    pub restored: Vec<PathBuf>,
    pub skipped: Vec<SkippedFile>,
}

/// Why files were not restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct RestoreFailure {
    pub error: String,
    /// Whether every file is as it was before.
    pub rolled_back: bool,
}

/// The steps of a rewind, as they are on disk.
#[derive(Debug, Serialize, Deserialize)]
struct Steps {
    rewind: RewindId,
    items: Vec<Item>,
    /// Files that were left alone from the start.
    skipped: Vec<Left>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Left {
    path: PathBuf,
    /// `None` if somebody changed it since.
    why: Option<NotCaptured>,
}

/// What became of one step.
enum Stepped {
    Done,
    /// Nothing was to do.
    Already,
    ChangedSince,
}

impl Captures {
    /// Writes down what a rewind to a position does to files; returns it for people. Blocks.
    pub fn prepare_rewind(&self, rewind: &RewindId, from: Seq) -> io::Result<RewindPreview> {
        let Some(inner) = &self.inner else {
            return Ok(RewindPreview::default());
        };
        let plan = inner.plan(from)?;
        for item in &plan.items {
            inner.keep_current(item)?;
        }
        let skipped = plan.preview.skipped.iter().map(|skipped| Left {
            path: skipped.path.clone(),
            why: match skipped.reason {
                SkipReason::ChangedSince => None,
                SkipReason::NotCaptured(why) => Some(why),
            },
        });
        let steps = Steps {
            rewind: rewind.clone(),
            items: plan.items,
            skipped: skipped.collect(),
        };
        let text = serde_json::to_vec(&steps)?;
        disk::put_own(&inner.steps_path(rewind), &text).map_err(io::Error::other)?;
        Ok(plan.preview)
    }

    /// Forgets a rewind that was prepared and not begun. Blocks.
    pub fn drop_rewind(&self, rewind: &RewindId) {
        if let Some(inner) = &self.inner {
            inner.drop_steps(rewind);
        }
    }

    /// Carries out a rewind that was prepared, or the rest of it. `began` is its position in the log.
    /// Blocks.
    pub fn carry_out_rewind(
        &self,
        rewind: &RewindId,
        began: Seq,
    ) -> Result<RestoreReport, RestoreFailure> {
        match &self.inner {
            Some(inner) => inner.carry_out(rewind, began),
            None => Ok(RestoreReport::default()),
        }
    }
}

impl Inner {
    fn steps_path(&self, rewind: &RewindId) -> PathBuf {
        self.folder.join(format!("restoring-{rewind}.json"))
    }

    fn drop_steps(&self, rewind: &RewindId) {
        match disk::remove_own(&self.steps_path(rewind)) {
            Ok(()) => {}
            Err(DiskError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "the steps of a rewind could not be removed"),
        }
    }

    /// Stores what a step replaces, so that the rewind can be undone.
    fn keep_current(&self, item: &Item) -> io::Result<()> {
        let FileState::File { hash, .. } = &item.from else {
            return Ok(());
        };
        if self.objects.has(hash) {
            return Ok(());
        }
        let now = Now::at(&item.path, self.bounds.file);
        if now.state == item.from
            && let Some(version) = now.version
        {
            let stored = self.objects.put(hash, &version.contents);
            self.stored(stored.map_err(io::Error::other)?);
        }
        Ok(())
    }

    fn carry_out(&self, rewind: &RewindId, began: Seq) -> Result<RestoreReport, RestoreFailure> {
        let untouched = |error: String| RestoreFailure {
            error,
            rolled_back: true,
        };
        let steps = match disk::read_own(&self.steps_path(rewind), LARGEST_LIST) {
            Ok(text) => serde_json::from_slice::<Steps>(&text).ok(),
            Err(DiskError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(untouched(format!(
                    "The steps of the rewind cannot be read, and no file was touched: {error}."
                )));
            }
        };
        let Some(steps) = steps.filter(|steps| steps.rewind == *rewind) else {
            return self.carried_out(rewind).ok_or_else(|| {
                untouched("The rewind had not touched any file, and was given up.".to_owned())
            });
        };
        let mut report = RestoreReport {
            restored: Vec::new(),
            skipped: steps.skipped.into_iter().map(SkippedFile::from).collect(),
        };
        let draft = draft_name(rewind);
        remove_drafts(&steps.items, &draft);
        let done = match self.run(&steps.items, &draft, &mut report) {
            Ok(done) => done,
            Err(failure) => {
                self.drop_steps(rewind);
                return Err(failure);
            }
        };
        let changes = done.into_iter().map(|item| Change {
            path: item.path,
            before: item.from,
            after: item.to,
            added: 0,
            removed: 0,
        });
        let record = Record {
            turn: began,
            by: Source::Rewind(rewind.clone()),
            changes: changes.collect(),
            missed: Vec::new(),
            plan: None,
        };
        if let Err(error) = self.journal.lock().changed(record) {
            tracing::error!(%error, "a rewind could not be recorded");
            (self.notify)(format!(
                "The files are restored, but that could not be recorded, so that the rewind cannot be undone for them: {error}."
            ));
        }
        self.drop_steps(rewind);
        Ok(report)
    }

    /// Returns what a rewind did that was carried out before.
    fn carried_out(&self, rewind: &RewindId) -> Option<RestoreReport> {
        let recorded = self.journal.lock().read().ok()?;
        let mut records = recorded.records.into_iter().rev();
        let record = records.find(|record| record.by == Source::Rewind(rewind.clone()))?;
        Some(RestoreReport {
            restored: record.changes.into_iter().map(|it| it.path).collect(),
            skipped: Vec::new(),
        })
    }

    /// Does all steps, or none. Returns what is restored, also by an earlier daemon.
    fn run(
        &self,
        items: &[Item],
        draft: &str,
        report: &mut RestoreReport,
    ) -> Result<Vec<Item>, RestoreFailure> {
        let mut left: HashSet<&Path> = HashSet::new();
        for (phase, item) in in_order(items) {
            match self.step(phase, item, draft) {
                Ok(Stepped::Done | Stepped::Already) => {}
                Ok(Stepped::ChangedSince) => {
                    if left.insert(&item.path) {
                        report.skip(item);
                    }
                }
                Err(error) => {
                    let touched = items.iter().filter(|item| !left.contains(&*item.path));
                    return Err(self.roll_back(item, &error, touched, draft));
                }
            }
        }
        let restored = items.iter().filter(|item| !left.contains(&*item.path));
        let restored: Vec<Item> = restored.cloned().collect();
        let mut overlay = self.overlay.lock();
        for item in &restored {
            overlay.written.insert(item.path.clone(), item.to.clone());
            let is_folder = |state: &FileState| matches!(state, FileState::Folder { .. });
            if !is_folder(&item.from) && !is_folder(&item.to) {
                report.restored.push(item.path.clone());
            }
        }
        Ok(restored)
    }

    /// Takes back the steps that were done, also by an earlier daemon. Where none was done, nothing is
    /// to do.
    fn roll_back<'a>(
        &self,
        failed: &Item,
        error: &DiskError,
        touched: impl Iterator<Item = &'a Item>,
        draft: &str,
    ) -> RestoreFailure {
        let back: Vec<Item> = touched
            .map(|item| Item {
                path: item.path.clone(),
                from: item.to.clone(),
                to: item.from.clone(),
            })
            .collect();
        let mut left = Vec::new();
        for (phase, item) in in_order(&back) {
            match self.step(phase, item, draft) {
                Ok(Stepped::Done | Stepped::Already) => {}
                Ok(Stepped::ChangedSince) => left.push(item.path.display().to_string()),
                Err(error) => left.push(format!("{} ({error})", item.path.display())),
            }
        }
        left.sort();
        left.dedup();
        let path = failed.path.display();
        if left.is_empty() {
            return RestoreFailure {
                error: format!(
                    "{path} could not be restored: {error}. Every file is as it was before the rewind."
                ),
                rolled_back: true,
            };
        }
        RestoreFailure {
            error: format!(
                "{path} could not be restored: {error}. These files could not be put back as they were before the rewind: {}.",
                left.join(", ")
            ),
            rolled_back: false,
        }
    }

    /// Does one step, if the path is as it was planned.
    fn step(&self, phase: Phase, item: &Item, draft: &str) -> Result<Stepped, DiskError> {
        match self.try_step(phase, item, draft) {
            // Somebody else was faster.
            Err(DiskError::Changed | DiskError::Exists) => Ok(Stepped::ChangedSince),
            Err(DiskError::Io(error))
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(Stepped::ChangedSince)
            }
            stepped => stepped,
        }
    }

    fn try_step(&self, phase: Phase, item: &Item, draft: &str) -> Result<Stepped, DiskError> {
        let path = &item.path;
        let now = Now::at(path, self.bounds.file);
        if now.state == item.to {
            return Ok(Stepped::Already);
        }
        if now.state != item.from && !is_halfway(item, &now.state) {
            return Ok(Stepped::ChangedSince);
        }
        match (phase, &item.to) {
            (Phase::Clear, _) => match (&now.state, &now.version) {
                (FileState::File { .. }, Some(version)) => exact::remove(path, &version.stamp)?,
                (FileState::Folder { .. }, _) => match exact::remove_folder(path) {
                    Ok(()) => {}
                    // Somebody else put something into it.
                    Err(DiskError::Io(error))
                        if error.kind() == io::ErrorKind::DirectoryNotEmpty =>
                    {
                        return Ok(Stepped::ChangedSince);
                    }
                    Err(error) => return Err(error),
                },
                _ => return Ok(Stepped::Already),
            },
            (Phase::Folders, FileState::Folder { .. }) => {
                if now.state != FileState::Absent {
                    return Ok(Stepped::Already);
                }
                // Its own mode may not let anybody write into it.
                exact::make_folder(path, NEW_FOLDER)?;
            }
            (Phase::Files, FileState::File { hash, size, mode }) => {
                let Some(contents) = self.objects.get(hash, *size) else {
                    return Err(DiskError::Io(io::Error::other(
                        "its stored content is damaged",
                    )));
                };
                let over = now.version.as_ref().map(|version| &version.stamp);
                exact::put(path, &contents, *mode, over, draft)?;
            }
            (Phase::Modes, FileState::Folder { mode }) => exact::set_folder_mode(path, *mode)?,
            (Phase::Folders | Phase::Files | Phase::Modes, _) => return Ok(Stepped::Already),
        }
        Ok(Stepped::Done)
    }
}

/// The mode of a folder until everything is in it.
const NEW_FOLDER: u32 = 0o700;

/// The order of the steps: what is in the way goes first, then folders come before what is in them,
/// and a folder gets its mode last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Clear,
    Folders,
    Files,
    Modes,
}

/// Returns whether something has to go before the earlier state can come.
fn clears(item: &Item) -> bool {
    let kind = |state: &FileState| std::mem::discriminant(state);
    kind(&item.from) != kind(&item.to)
}

/// Returns whether a path is between its two states, because a step was done and the next one was not.
fn is_halfway(item: &Item, now: &FileState) -> bool {
    let is_folder = |state: &FileState| matches!(state, FileState::Folder { .. });
    match now {
        FileState::Absent => clears(item),
        FileState::Folder { mode } => {
            *mode == NEW_FOLDER && (is_folder(&item.from) || is_folder(&item.to))
        }
        FileState::File { .. } | FileState::Link | FileState::Unknown => false,
    }
}

fn in_order(items: &[Item]) -> Vec<(Phase, &Item)> {
    let mut sorted: Vec<&Item> = items.iter().collect();
    sorted.sort_by(|one, other| one.path.cmp(&other.path));
    let is_folder = |item: &&&Item| matches!(item.to, FileState::Folder { .. });
    let deepest_first = || sorted.iter().rev();
    let cleared = deepest_first().filter(|item| clears(item));
    let folders = sorted.iter().filter(is_folder);
    let files = sorted.iter().filter(|item| !is_folder(item));
    let modes = deepest_first().filter(is_folder);
    cleared
        .map(|item| (Phase::Clear, *item))
        .chain(folders.map(|item| (Phase::Folders, *item)))
        .chain(files.map(|item| (Phase::Files, *item)))
        .chain(modes.map(|item| (Phase::Modes, *item)))
        .collect()
}

/// Returns the name that a file has until it is complete. Only one file at a time has it.
pub(super) fn draft_name(rewind: &RewindId) -> String {
    format!(".{rewind}.tmp")
}

/// Removes what a daemon left behind that was killed while it wrote a file.
fn remove_drafts(items: &[Item], draft: &str) {
    let folders: HashSet<&Path> = items.iter().filter_map(|item| item.path.parent()).collect();
    for folder in folders {
        // Almost always there is none.
        disk::remove_own(&folder.join(draft)).ok();
    }
}

impl RestoreReport {
    fn skip(&mut self, item: &Item) {
        self.skipped.push(SkippedFile {
            path: item.path.clone(),
            reason: SkipReason::ChangedSince,
        });
    }
}

impl From<Left> for SkippedFile {
    fn from(left: Left) -> Self {
        Self {
            path: left.path,
            reason: left
                .why
                .map_or(SkipReason::ChangedSince, SkipReason::NotCaptured),
        }
    }
}
