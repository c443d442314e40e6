//! Lists a workspace: folders, files and links, without what git ignores, without the folders of
//! version control and of installed packages, and without the home of the daemon. Follows no link.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ignore::{Walk, WalkBuilder};
use serde::{Deserialize, Serialize};

use crate::tool::disk::exact::Trace;

/// Folders that are never looked into. Version control keeps its own past; packages are installed
/// again.
const LEFT_OUT: [&str; 6] = [".git", ".hg", ".jj", ".svn", "node_modules", ".venv"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EntryKind {
    Folder,
    File,
    Link,
    Special,
}

/// One entry of the workspace.
#[derive(Debug)]
pub(super) struct Entry {
    /// The path below the root.
    pub(super) name: String,
    pub(super) kind: EntryKind,
    pub(super) trace: Trace,
    /// When it was made, in nanoseconds, if the file system knows.
    pub(super) born_ns: Option<i128>,
}

/// The entries of a workspace, the folders before what is in them.
pub(super) struct Entries {
    root: PathBuf,
    walk: Walk,
    sound: bool,
}

pub(super) fn walk(root: &Path, home: &Path) -> Entries {
    listed(root, home, None)
}

/// Lists the entries at the top only.
pub(super) fn top(root: &Path, home: &Path) -> Entries {
    listed(root, home, Some(1))
}

fn listed(root: &Path, home: &Path, depth: Option<usize>) -> Entries {
    let home = home.to_owned();
    let walk = WalkBuilder::new(root)
        .max_depth(depth)
        .hidden(false)
        .require_git(false)
        // The daemon's environment is not the user's, so the user's git settings are not read.
        .git_global(false)
        .follow_links(false)
        .same_file_system(true)
        .filter_entry(move |entry| {
            let name = entry.file_name().to_str();
            let left_out = name.is_some_and(|name| LEFT_OUT.contains(&name));
            !left_out && entry.path() != home
        })
        .build();
    Entries {
        root: root.to_owned(),
        walk,
        sound: true,
    }
}

impl Entries {
    /// Returns whether every entry could be listed so far.
    pub(super) fn is_sound(&self) -> bool {
        self.sound
    }
}

fn born_ns(metadata: &Metadata) -> Option<i128> {
    let since = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i128::try_from(since.as_nanos()).ok()
}

impl Iterator for Entries {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            let entry = match self.walk.next()? {
                Ok(entry) => entry,
                Err(error) => {
                    // An entry that went away meanwhile is no loss.
                    let gone = error.io_error().map(std::io::Error::kind);
                    self.sound &= gone == Some(std::io::ErrorKind::NotFound);
                    continue;
                }
            };
            let below = entry.path().strip_prefix(&self.root).ok();
            // A name that is not UTF-8 cannot be recorded; such a file is never touched.
            let Some(name) = below.and_then(Path::to_str) else {
                continue;
            };
            if name.is_empty() {
                continue;
            }
            let Ok(metadata) = entry.path().symlink_metadata() else {
                continue;
            };
            let kind = if metadata.is_dir() {
                EntryKind::Folder
            } else if metadata.is_file() {
                EntryKind::File
            } else if metadata.is_symlink() {
                EntryKind::Link
            } else {
                EntryKind::Special
            };
            return Some(Entry {
                name: name.to_owned(),
                kind,
                trace: Trace::of(&metadata),
                born_ns: born_ns(&metadata),
            });
        }
    }
}
