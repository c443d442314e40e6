//! What going back would do to files. A file is restored only if it is as a tool left it: whatever
//! somebody else changed since, or between two tools, is named and left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use loopd_proto::id::Seq;
use serde::{Deserialize, Serialize};

use super::Captures;
use super::Inner;
use super::journal::{Missed, Record};
use super::state::{FileState, NotCaptured, Now};

/// What the turns that are taken back did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedChange {
    Created,
    Deleted,
    Modified,
}

/// A file that going back restores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    pub path: PathBuf,
    pub change: PlannedChange,
    pub added: u64,
    pub removed: u64,
}

/// Why a file is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// It is not as a tool left it.
    ChangedSince,
    NotCaptured(NotCaptured),
}

/// A file that tools changed and that going back leaves alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFile {
    pub path: PathBuf,
    pub reason: SkipReason,
}

/// What going back would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindPreview {
    pub files: Vec<PlannedFile>,
    pub skipped: Vec<SkippedFile>,
}

/// One path to put into an earlier state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) path: PathBuf,
    pub(super) from: FileState,
    pub(super) to: FileState,
}

/// What going back does.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) items: Vec<Item>,
    pub(super) preview: RewindPreview,
}

/// What records say of one path.
struct Trail {
    first: FileState,
    last: FileState,
    /// Whether every tool found the path as the one before had left it.
    unbroken: bool,
    missed: Option<NotCaptured>,
    added: u64,
    removed: u64,
}

/// Collects the trail of each path from a position of the log on.
fn trails(records: &[Record], from: Seq) -> BTreeMap<&Path, Trail> {
    let mut trails: BTreeMap<&Path, Trail> = BTreeMap::new();
    for record in records.iter().filter(|record| record.turn >= from) {
        for change in &record.changes {
            let trail = trails.entry(&change.path).or_insert_with(|| Trail {
                first: change.before.clone(),
                last: change.before.clone(),
                unbroken: true,
                missed: None,
                added: 0,
                removed: 0,
            });
            trail.unbroken &= trail.last == change.before;
            trail.last = change.after.clone();
            trail.added += change.added;
            trail.removed += change.removed;
        }
        for missed in record.missed.iter().filter(|missed| !is_place(missed)) {
            let trail = trails.entry(&missed.path).or_insert_with(|| Trail {
                first: FileState::Unknown,
                last: FileState::Unknown,
                unbroken: true,
                missed: None,
                added: 0,
                removed: 0,
            });
            trail.missed.get_or_insert(missed.why);
        }
    }
    trails
}

/// Returns whether something may have been deleted at a path, which does not keep the rest from being
/// restored.
fn is_place(missed: &Missed) -> bool {
    missed.why == NotCaptured::DeletedUncopied
}

/// Names the places in which something may have been deleted that nobody can bring back.
fn lost(records: &[Record], from: Seq) -> impl Iterator<Item = SkippedFile> {
    let records = records.iter().filter(|record| record.turn >= from);
    let missed = records.flat_map(|record| &record.missed);
    let places: BTreeSet<&Path> = missed
        .filter(|missed| is_place(missed))
        .map(|missed| &*missed.path)
        .collect();
    places.into_iter().map(|path| SkippedFile {
        path: path.to_owned(),
        reason: SkipReason::NotCaptured(NotCaptured::DeletedUncopied),
    })
}

impl Captures {
    /// Returns what going back to a position of the log would do to files. Blocks.
    pub fn preview(&self, from: Seq) -> io::Result<RewindPreview> {
        match &self.inner {
            Some(inner) => Ok(inner.plan(from)?.preview),
            None => Ok(RewindPreview::default()),
        }
    }
}

impl Inner {
    pub(super) fn plan(&self, from: Seq) -> io::Result<Plan> {
        let records = self.journal.lock().read()?.with_interrupted();
        let mut plan = Plan::default();
        plan.preview.skipped.extend(lost(&records, from));
        for (path, trail) in trails(&records, from) {
            if trail.first == trail.last && trail.missed.is_none() && trail.unbroken {
                // Tools have undone it themselves.
                continue;
            }
            let now = Now::at(path, self.bounds.file);
            if trail.missed.is_none() && now.state == trail.first {
                continue;
            }
            match self.skips(&trail, &now) {
                Some(reason) => plan.preview.skipped.push(SkippedFile {
                    path: path.to_owned(),
                    reason,
                }),
                None => plan.add(path, trail, now.state),
            }
        }
        Ok(plan)
    }

    /// Returns why a path is left alone.
    fn skips(&self, trail: &Trail, now: &Now) -> Option<SkipReason> {
        if let Some(why) = trail.missed {
            return Some(SkipReason::NotCaptured(why));
        }
        match &trail.first {
            FileState::Link => return Some(SkipReason::NotCaptured(NotCaptured::Link)),
            FileState::Unknown => return Some(SkipReason::NotCaptured(NotCaptured::Unreadable)),
            FileState::File { hash, .. } if !self.objects.has(hash) => {
                return Some(SkipReason::NotCaptured(NotCaptured::Dropped));
            }
            FileState::File { .. } | FileState::Absent | FileState::Folder { .. } => {}
        }
        if now.why == Some(NotCaptured::Link) {
            return Some(SkipReason::NotCaptured(NotCaptured::Link));
        }
        let as_left = trail.unbroken && now.state == trail.last;
        (!as_left).then_some(SkipReason::ChangedSince)
    }
}

impl Plan {
    fn add(&mut self, path: &Path, trail: Trail, from: FileState) {
        let change = match (&trail.first, &from) {
            (FileState::Absent, _) => PlannedChange::Created,
            (_, FileState::Absent) => PlannedChange::Deleted,
            _ => PlannedChange::Modified,
        };
        // Folders come and go with the files in them; people are shown the files.
        if !trail.first.is_folder() && !from.is_folder() {
            self.preview.files.push(PlannedFile {
                path: path.to_owned(),
                change,
                added: trail.added,
                removed: trail.removed,
            });
        }
        self.items.push(Item {
            path: path.to_owned(),
            from,
            to: trail.first,
        });
    }
}
