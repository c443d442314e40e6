//! A tool that writes files: what was there before is stored first, what is there afterwards when the
//! tool is done.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_proto::id::{Seq, ToolCallId};

use super::journal::{Change, Missed, Record, Source};
use super::lines::changed_lines;
use super::state::{FileState, NotCaptured, Now};
use super::{Captures, Inner};

/// Files that a tool is writing. Dropping it says that nothing was written.
pub(in crate::tool) struct Writing {
    started: Option<Started>,
}

struct Started {
    inner: Arc<Inner>,
    turn: Seq,
    call: ToolCallId,
    before: Vec<Before>,
    plan: Option<String>,
}

/// A path before the tool wrote it.
struct Before {
    path: PathBuf,
    state: FileState,
    contents: Option<Vec<u8>>,
    why: Option<NotCaptured>,
}

impl Captures {
    /// Stores what is at these paths, which have no links in them, before a tool writes them. Blocks.
    /// A content that cannot be stored does not keep the tool from writing: it is named later.
    pub(in crate::tool) fn writing<'a>(
        &self,
        call: &ToolCallId,
        paths: impl IntoIterator<Item = &'a Path>,
    ) -> Writing {
        let Some(inner) = &self.inner else {
            return Writing { started: None };
        };
        let paths = paths.into_iter().filter(|path| {
            let own = path.starts_with(&inner.home);
            let left_out = self.left_out.as_ref();
            !own && !left_out.is_some_and(|folder| path.starts_with(folder))
        });
        let paths = with_missing_folders(paths);
        if paths.is_empty() {
            return Writing { started: None };
        }
        inner.announce(&paths);
        inner.claim(&paths);
        let turn = inner.turn();
        let before = paths.iter().map(|path| inner.before(path)).collect();
        let plan = match inner.journal.lock().plans(turn, &paths) {
            Ok(plan) => Some(plan),
            Err(error) => {
                tracing::warn!(%error, "it could not be recorded what a tool writes");
                None
            }
        };
        Writing {
            started: Some(Started {
                inner: inner.clone(),
                turn,
                call: call.clone(),
                before,
                plan,
            }),
        }
    }
}

impl Writing {
    /// Stores what is there after the tool has written. Blocks.
    pub(in crate::tool) fn done(mut self) {
        if let Some(started) = self.started.take() {
            started.finish();
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(started) = self.started.take() {
            started.void();
        }
    }
}

/// Adds the folders that are missing above the paths, which the tool creates.
fn with_missing_folders<'a>(paths: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for path in paths {
        let above = path.ancestors().skip(1);
        let missing = above.take_while(|folder| folder.symlink_metadata().is_err());
        all.extend(missing.map(Path::to_owned));
        all.push(path.to_owned());
    }
    all.sort();
    all.dedup();
    // A name that is not UTF-8 cannot be recorded.
    all.retain(|path| path.to_str().is_some());
    all
}

impl Inner {
    fn announce(&self, paths: &[PathBuf]) {
        let mut overlay = self.overlay.lock();
        for path in paths {
            *overlay.writing.entry(path.clone()).or_default() += 1;
        }
    }

    fn release(&self, path: &Path, left: Option<FileState>) {
        let mut overlay = self.overlay.lock();
        if let Some(count) = overlay.writing.get_mut(path) {
            *count -= 1;
            if *count == 0 {
                overlay.writing.remove(path);
            }
        }
        if let Some(state) = left {
            overlay.written.insert(path.to_owned(), state);
        }
    }

    /// Records what commands that were not compared yet did to these paths, so that it is not taken
    /// for what was there before.
    fn claim(&self, paths: &[PathBuf]) {
        let ran = *self.commands_ran.lock();
        let Some(turn) = ran else {
            return;
        };
        let mut changes = Vec::new();
        let mut copied = self.baseline.known(paths);
        for path in paths {
            let written = self.overlay.lock().written.get(path).cloned();
            let known = if let Some(state) = written {
                Some((state, None))
            } else {
                let known = copied.remove(path.as_path());
                known.map(|known| (known.state, known.contents))
            };
            let Some((known, contents)) = known else {
                continue;
            };
            let now = Now::at(path, self.bounds.file);
            let is_whole =
                |state: &FileState| !matches!(state, FileState::Unknown | FileState::Link);
            if known == now.state || !is_whole(&known) || !is_whole(&now.state) {
                continue;
            }
            let after = now.version.as_ref().map(|version| &*version.contents);
            let stored = self.keep(&known, contents.as_deref()) && self.keep(&now.state, after);
            if !stored {
                continue;
            }
            let (added, removed) = changed_lines(contents.as_deref(), after);
            self.overlay
                .lock()
                .written
                .insert(path.clone(), now.state.clone());
            changes.push(Change {
                path: path.clone(),
                before: known,
                after: now.state,
                added,
                removed,
            });
        }
        if changes.is_empty() {
            return;
        }
        let record = Record {
            turn,
            by: Source::Commands,
            changes,
            missed: Vec::new(),
            plan: None,
        };
        if let Err(error) = self.journal.lock().changed(record) {
            tracing::warn!(%error, "what commands changed could not be recorded");
        }
    }

    fn before(&self, path: &Path) -> Before {
        let now = Now::at(path, self.bounds.file);
        let contents = now.version.map(|version| version.contents);
        let why = if self.keep(&now.state, contents.as_deref()) {
            now.why
        } else {
            Some(NotCaptured::OutOfSpace)
        };
        Before {
            path: path.to_owned(),
            state: now.state,
            contents,
            why,
        }
    }

    /// Stores the content of a state; returns whether that worked.
    fn keep(&self, state: &FileState, contents: Option<&[u8]>) -> bool {
        let (FileState::File { hash, .. }, Some(contents)) = (state, contents) else {
            return true;
        };
        match self.objects.put(hash, contents) {
            Ok(bytes) => {
                self.stored(bytes);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "an earlier version of a file could not be stored");
                false
            }
        }
    }
}

impl Started {
    fn finish(self) {
        let inner = &self.inner;
        let mut changes = Vec::new();
        let mut missed = Vec::new();
        for before in self.before {
            let now = Now::at(&before.path, inner.bounds.file);
            let after = now.version.as_ref().map(|version| &*version.contents);
            let kept = inner.keep(&now.state, after);
            inner.release(&before.path, kept.then(|| now.state.clone()));
            if before.state == now.state && before.why.is_none() {
                continue;
            }
            let why = before.why.or(now.why);
            let why = why.or((!kept).then_some(NotCaptured::OutOfSpace));
            if let Some(why) = why {
                missed.push(Missed {
                    path: before.path,
                    why,
                });
                continue;
            }
            let (added, removed) = changed_lines(before.contents.as_deref(), after);
            changes.push(Change {
                path: before.path,
                before: before.state,
                after: now.state,
                added,
                removed,
            });
        }
        let record = Record {
            turn: self.turn,
            by: Source::Tool(self.call),
            changes,
            missed,
            plan: self.plan,
        };
        if let Err(error) = inner.journal.lock().changed(record) {
            tracing::warn!(%error, "it could not be recorded what a tool wrote");
        }
    }

    fn void(self) {
        for before in &self.before {
            self.inner.release(&before.path, None);
        }
        if let Some(plan) = self.plan
            && let Err(error) = self.inner.journal.lock().void(plan)
        {
            tracing::warn!(%error, "it could not be recorded that a tool wrote nothing");
        }
    }
}
