//! Walks a tree of files for `grep` and `glob`: sorted, without the files that git ignores, and
//! stoppable. The answer is bounded and says how much was left out. Opens no file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ignore::overrides::Override;
use ignore::types::Types;
use ignore::{DirEntry, WalkBuilder};
use tokio_util::sync::CancellationToken;

use super::closed::{ClosedPlaces, Closure};
use super::resolved_path::ResolvedPath;
use super::{Outcome, ToolContext, disk, texts};

/// How long one search may take.
const SEARCH_TIME: Duration = Duration::from_secs(30);

/// How much text one search answers with; stays below the size from which results are moved to a
/// file.
const MAX_ANSWER: usize = 48 * 1024;

/// Which files of a tree are visited.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    pub(super) overrides: Override,
    pub(super) types: Types,
    /// Left out with all that is below.
    pub(super) closed: Arc<ClosedPlaces>,
    /// How many places were left out because a person has to approve reading them.
    pub(super) asked: Arc<AtomicUsize>,
}

impl Selection {
    /// Returns the notes about what the rules left out of a walk through this folder.
    pub(super) fn closed_notes(&self, root: &Path) -> Vec<String> {
        let denied = self.closed.denies_below(root);
        closed_notes(denied, self.asked.load(Ordering::Relaxed))
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            overrides: Override::empty(),
            types: Types::empty(),
            closed: Arc::default(),
            asked: Arc::default(),
        }
    }
}

/// Iterates over the regular files below a folder, or over the one file given.
pub(super) fn files(root: &Path, selection: Selection) -> impl Iterator<Item = PathBuf> {
    WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        // The daemon's environment is not the user's, so the user's git settings are not read.
        .git_global(false)
        .follow_links(false)
        .overrides(selection.overrides)
        .types(selection.types)
        .filter_entry(move |entry| {
            if entry.file_name() == ".git" {
                return false;
            }
            match selection.closed.at(entry.path()) {
                None => true,
                Some(Closure::Denied) => false,
                Some(Closure::Asked) => {
                    selection.asked.fetch_add(1, Ordering::Relaxed);
                    false
                }
            }
        })
        .sort_by_file_path(Path::cmp)
        .build()
        // A folder that cannot be read is skipped, as in other search tools.
        .filter_map(Result::ok)
        .filter(is_regular)
        .map(DirEntry::into_path)
}

fn is_regular(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// How found files are named: in the same way as the model named the searched path.
#[derive(Debug, Clone)]
pub(super) struct Labels {
    root: PathBuf,
    prefix: String,
}

impl Labels {
    pub(super) fn new(place: &ResolvedPath, given: Option<&str>) -> Self {
        let given = given.unwrap_or(".");
        let prefix = match given.trim_end_matches('/') {
            "" if given.is_empty() => ".".to_owned(),
            trimmed => trimmed.to_owned(),
        };
        Self {
            root: place.real.clone(),
            prefix,
        }
    }

    pub(super) fn label(&self, file: &Path) -> String {
        match file.strip_prefix(&self.root) {
            Ok(rest) if rest.as_os_str().is_empty() => self.prefix.clone(),
            Ok(rest) => format!("{}/{}", self.prefix, texts::listed(&texts::path(rest))),
            Err(_) => texts::listed(&texts::path(file)),
        }
    }
}

/// An answer that grows line by line up to its limits and counts the lines that did not fit.
#[derive(Debug)]
pub(super) struct Answer {
    text: String,
    lines: usize,
    most: usize,
    left_out: usize,
}

impl Answer {
    pub(super) fn new(most: usize) -> Self {
        Self {
            text: String::new(),
            lines: 0,
            most,
            left_out: 0,
        }
    }

    /// Adds one line that counts towards the limit of lines.
    pub(super) fn add(&mut self, line: &str) {
        if self.is_full() || self.lines == self.most || !self.fits(line) {
            self.left_out += 1;
            return;
        }
        self.lines += 1;
        self.append(line);
    }

    /// Adds a separator line, which does not count.
    pub(super) fn add_break(&mut self, line: &str) {
        if !self.is_full() && self.lines < self.most && self.lines > 0 && self.fits(line) {
            self.append(line);
        }
    }

    fn is_full(&self) -> bool {
        self.left_out > 0
    }

    fn fits(&self, line: &str) -> bool {
        self.text.len() + line.len() < MAX_ANSWER
    }

    fn append(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
    }

    /// Returns the answer. `nothing` is its text if there is no line; `advice` is added if lines are
    /// missing.
    pub(super) fn finish(self, nothing: &str, advice: &str, notes: Vec<String>) -> String {
        let mut parts = vec![if self.lines == 0 && self.left_out == 0 {
            nothing.to_owned()
        } else {
            self.text
        }];
        if self.left_out > 0 {
            parts.push(format!(
                "[{} more lines were left out. {advice}]",
                self.left_out
            ));
        }
        parts.extend(notes);
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Everything,
    OutOfTime,
}

/// Runs a search on its own thread. It is stopped after [`SEARCH_TIME`] or with the turn.
pub(super) async fn search<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
) -> Result<(T, Reach), Outcome> {
    let stop = context.cancel.child_token();
    // Dropping the call stops the search, too.
    let _guard = stop.clone().drop_guard();
    let watched = stop.clone();
    let mut work = Box::pin(disk::blocking(move || work(&watched)));
    let (found, reach) = tokio::select! {
        found = &mut work => (found, Reach::Everything),
        () = tokio::time::sleep(SEARCH_TIME) => {
            stop.cancel();
            (work.await, Reach::OutOfTime)
        }
    };
    if context.cancel.is_cancelled() {
        return Err(Outcome::failure("The search was interrupted."));
    }
    Ok((found?, reach))
}

/// Returns the notes about places that rules leave out of a search or a list. That something is
/// denied here is said whether it exists or not.
pub(super) fn closed_notes(denied: bool, asked: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if denied {
        notes.push("[What rules deny reading was left out.]".to_owned());
    }
    if asked > 0 {
        notes.push(format!(
            "[{asked} files or folders were left out, because reading each has to be approved. Give its own path to ask for one.]"
        ));
    }
    notes
}

/// Returns the note that a search ended early.
pub(super) fn reach_note(reach: Reach) -> Option<String> {
    match reach {
        Reach::Everything => None,
        Reach::OutOfTime => Some(format!(
            "[The search was stopped after {} seconds, so there may be more. Search a smaller folder or fewer files.]",
            SEARCH_TIME.as_secs()
        )),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
