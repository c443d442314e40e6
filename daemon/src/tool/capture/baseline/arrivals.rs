//! Judges the paths that a workspace has and its copy has not. Only what commands made is deleted when
//! a session goes back, so that everything else has to be told apart from it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::walk::{Entry, EntryKind};
use super::{Index, PackReader};

/// The files that say what is ignored.
const RULES: [&str; 2] = [".gitignore", ".ignore"];

/// How a path came that the copy does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    Made,
    FromElsewhere,
    /// The copy is not whole, and it cannot be told whether the path is new.
    NotCopied,
}

/// What the copy knows that helps to judge a path.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    made_ns: i128,
    inodes: HashSet<u64>,
    /// What was ignored when the copy was made, by the folder of the rules.
    ignored: HashMap<PathBuf, Gitignore>,
}

impl Arrivals {
    /// Collects what the copy knows.
    pub(super) fn of(index: &Index, pack: &mut PackReader) -> Self {
        let known = index.entries.values();
        let mut ignored = HashMap::new();
        for (name, indexed) in &index.entries {
            let path = index.root.join(name);
            let is_rules = path
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| RULES.contains(&name));
            let (Some(folder), Some(at)) = (path.parent().filter(|_| is_rules), indexed.at) else {
                continue;
            };
            let Ok(text) = pack.get(at, indexed.trace.size) else {
                continue;
            };
            let mut builder = GitignoreBuilder::new(folder);
            for line in String::from_utf8_lossy(&text).lines() {
                // A line that cannot be read ignores nothing, for git as well.
                builder.add_line(None, line).ok();
            }
            if let Ok(rules) = builder.build() {
                ignored.insert(folder.to_owned(), rules);
            }
        }
        Self {
            made_ns: index.made_ns,
            inodes: known.map(|known| known.trace.inode).collect(),
            ignored,
        }
    }

    /// Judges a path. A file that was renamed keeps its number. An older file was there before, and is
    /// only no longer ignored, for example. Where files have no time of birth, nothing is taken for new.
    pub(super) fn judge(&self, root: &Path, entry: &Entry) -> Arrival {
        let is_born = entry.born_ns.is_some_and(|born| born > self.made_ns);
        let is_known = self.inodes.contains(&entry.trace.inode);
        if (is_born || is_known) && !self.was_ignored(root, entry) {
            Arrival::Made
        } else {
            Arrival::FromElsewhere
        }
    }

    /// Returns whether a path was ignored when the copy was made. Programs replace files by new ones, so
    /// that the time of birth does not tell whether there was a file of that name.
    fn was_ignored(&self, root: &Path, entry: &Entry) -> bool {
        let path = root.join(&entry.name);
        let is_folder = entry.kind == EntryKind::Folder;
        let above = path.ancestors().skip(1);
        let mut rules = above.filter_map(|folder| self.ignored.get(folder));
        rules.any(|rules| {
            rules
                .matched_path_or_any_parents(&path, is_folder)
                .is_ignore()
        })
    }
}
