//! What is not in a copy that ended before all of the workspace was copied. What a command deletes there
//! leaves nothing behind but a folder with a new time, or a gap among the entries at the top: these are
//! named, because nobody can bring back what was in them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Index;
use super::walk::{self, Entry, EntryKind};

/// The most places that are named after a command. With more of them the root stands for the rest.
const MOST_NAMED: usize = 200;

/// What is not in a copy.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Uncopied {
    /// The entries at the top that are not in it, or not with all that is in them.
    tops: Vec<String>,
    /// The folders in which the copying ended.
    partly: Vec<String>,
}

impl Uncopied {
    pub(super) fn is_empty(&self) -> bool {
        self.tops.is_empty() && self.partly.is_empty()
    }
}

/// How far the copying has come.
pub(super) struct Progress {
    /// The entries at the top before the first one was copied.
    tops: Vec<String>,
    passed: HashSet<String>,
    /// The entry that is being copied.
    at: String,
}

impl Progress {
    pub(super) fn begin(root: &Path, home: &Path, most: usize) -> Self {
        let tops = walk::top(root, home).take(most);
        Self {
            tops: tops.map(|entry| entry.name).collect(),
            passed: HashSet::new(),
            at: String::new(),
        }
    }

    pub(super) fn goes_to(&mut self, name: &str) {
        if top(&self.at) != top(name) {
            self.passed.insert(top(&self.at).to_owned());
        }
        name.clone_into(&mut self.at);
    }

    /// Returns what was not copied if the copying ends here.
    pub(super) fn rest(self) -> Uncopied {
        let Self {
            mut tops,
            passed,
            at,
        } = self;
        tops.retain(|top| !passed.contains(top));
        let folders = Path::new(&at).ancestors().filter_map(Path::to_str);
        let folders = folders.filter(|folder| !folder.is_empty());
        Uncopied {
            partly: folders.map(str::to_owned).collect(),
            tops,
        }
    }
}

fn top(name: &str) -> &str {
    let first = Path::new(name).components().next();
    first
        .and_then(|first| first.as_os_str().to_str())
        .unwrap_or_default()
}

/// The places that were changed and of which the copy does not know what was in them.
#[derive(Debug, Default)]
pub(super) struct Lost(Vec<String>);

impl Lost {
    /// Looks at a folder that is there now.
    pub(super) fn look(&mut self, index: &Index, folder: &Entry, since: i128) {
        if folder.kind != EntryKind::Folder || folder.trace.changed_ns <= since {
            return;
        }
        let is_partly = index.uncopied.partly.contains(&folder.name);
        if index.entries.contains_key(&folder.name) && !is_partly {
            return;
        }
        // A new folder in the place of another one is known by the time of the folder above.
        let is_new = folder.born_ns.is_some_and(|born| born > since);
        if !is_new || index.uncopied.tops.contains(&folder.name) {
            self.0.push(folder.name.clone());
        }
    }

    /// Adds the entries at the top that are gone, and returns all places.
    pub(super) fn places(mut self, index: &mut Index) -> Vec<PathBuf> {
        let Index {
            root,
            entries,
            uncopied,
            ..
        } = index;
        uncopied.tops.retain(|top| {
            let known = entries.get(top);
            let is_copied = known.is_some_and(|known| known.kind != EntryKind::Folder);
            let is_there = root.join(top).symlink_metadata().is_ok();
            if !is_copied && !is_there {
                self.0.push(top.clone());
            }
            is_there
        });
        self.0.sort();
        self.0.dedup();
        let more = self.0.len() > MOST_NAMED;
        let named = self.0.iter().take(MOST_NAMED).map(|name| root.join(name));
        named.chain(more.then(|| root.clone())).collect()
    }
}
