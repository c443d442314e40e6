//! Finds the places of rules about reading that a command may reach without naming them: by patterns, by
//! words that are computed when it runs, and in folders that it goes through. What does not exist is not
//! reached.

mod tracked;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use self::tracked::Tracked;
use super::places::tidy;
use crate::tool::closed::ClosedPlaces;
use crate::tool::texts;
use loopd_kernel::policy::path_pattern::is_like;
use loopd_kernel::policy::shell::analysis::{ComputedPath, LeftOut, Reach, Shows, Walk, reach};

/// How many files in closed folders are compared. What lies in a folder with more may be reached.
const MOST_FILES: usize = 5_000;

/// How many entries of folders are looked at for one place.
const MOST_ENTRIES: usize = 20_000;

/// Finds the places of rules that a command may reach which begins in one of these directories.
pub(super) fn reached(
    command: &str,
    starts: &[PathBuf],
    closed: &ClosedPlaces,
) -> BTreeSet<String> {
    let places = || closed.readings();
    let Some(reach) = reach(command) else {
        return places().map(|(rule, _)| texts::path(rule)).collect();
    };
    let bases = bases(starts, &reach);
    let mut comparison = Comparison {
        reach: &reach,
        bases: &bases,
        tracked: Tracked::default(),
        files_left: MOST_FILES,
    };
    let reached = places().filter(|(_, real)| comparison.reaches(real));
    reached.map(|(rule, _)| texts::path(rule)).collect()
}

/// Returns the directories in which the words of a command may be meant.
fn bases(starts: &[PathBuf], reach: &Reach) -> Vec<PathBuf> {
    let folders = |start: &PathBuf| {
        let below = reach.folders.iter().map(|folder| tidy(&start.join(folder)));
        below.collect::<Vec<_>>()
    };
    starts.iter().flat_map(folders).collect()
}

/// Returns a path without links; one that does not exist without `..`.
fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| tidy(path))
}

struct Comparison<'a> {
    reach: &'a Reach,
    bases: &'a [PathBuf],
    tracked: Tracked,
    files_left: usize,
}

impl Comparison<'_> {
    /// Whether the command may reach a place, which is free of links.
    fn reaches(&mut self, real: &Path) -> bool {
        let Ok(metadata) = real.metadata() else {
            return false;
        };
        let is_folder = metadata.is_dir();
        let (files, is_complete) = if is_folder {
            self.files_below(real)
        } else {
            (vec![real.to_owned()], true)
        };
        let may_be_unseen = !is_complete && !self.reach.computed.is_empty();
        may_be_unseen
            || (is_folder && self.matches(real))
            || files.iter().any(|file| {
                let mut computed = self.reach.computed.iter();
                self.matches(file) || computed.any(|path| self.may_be(path, file))
            })
            || self.is_walked(real, is_folder, &files, is_complete)
    }

    /// Returns the files in a closed folder, and whether these are all.
    fn files_below(&mut self, folder: &Path) -> (Vec<PathBuf>, bool) {
        let mut files = Vec::new();
        let mut waiting = vec![folder.to_owned()];
        while let Some(folder) = waiting.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Some(left) = self.files_left.checked_sub(1) else {
                    return (files, false);
                };
                self.files_left = left;
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                    Ok(_) | Err(_) => files.push(entry.path()),
                }
            }
        }
        (files, true)
    }

    /// Whether a pattern of the command matches a path, which is free of links.
    fn matches(&self, path: &Path) -> bool {
        let mut entries_left = MOST_ENTRIES;
        let mut patterns = self.reach.patterns.iter();
        patterns.any(|pattern| {
            let root = [PathBuf::from("/")];
            let bases = if pattern.starts_with('/') {
                &root[..]
            } else {
                self.bases
            };
            let parts = pattern.split('/').filter(|part| !matches!(*part, "" | "."));
            let parts: Vec<&str> = parts.collect();
            let mut bases = bases.iter().map(|base| real_path(base));
            bases.any(|base| self.leads_to(&base, &parts, path, &mut entries_left))
        })
    }

    /// Whether the shell may come from a folder to a path by the parts of a pattern, through links and
    /// `..` as well. If it has to look at too many entries for that, it may.
    fn leads_to(&self, folder: &Path, parts: &[&str], path: &Path, left: &mut usize) -> bool {
        let Some((part, rest)) = parts.split_first() else {
            return folder == path;
        };
        if *part == ".." {
            let above = folder.parent().unwrap_or(folder);
            return self.leads_to(above, rest, path, left);
        }
        if !part.contains('*') {
            return self.leads_to(&real_path(&folder.join(part)), rest, path, left);
        }
        let below = path.strip_prefix(folder).ok();
        if let Some(name) = below.and_then(|below| below.components().next())
            && self.fits(part, &name.as_os_str().to_string_lossy())
            && self.leads_to(&folder.join(name), rest, path, left)
        {
            return true;
        }
        // Links lead elsewhere, and so does whatever `..` follows.
        let goes_up = rest.contains(&"..");
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Some(fewer) = left.checked_sub(1) else {
                return true;
            };
            *left = fewer;
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if (is_link || goes_up)
                && self.fits(part, &entry.file_name().to_string_lossy())
                && self.leads_to(&real_path(&entry.path()), rest, path, left)
            {
                return true;
            }
        }
        false
    }

    /// Whether a part of a pattern matches a name.
    fn fits(&self, part: &str, name: &str) -> bool {
        let is_hidden = name.starts_with('.') && !part.starts_with('.');
        is_like(part, name) && (!is_hidden || self.reach.matches_hidden)
    }

    /// Whether a word that is computed may become this path. It is not expected to lead up with `..`.
    fn may_be(&self, path: &ComputedPath, file: &Path) -> bool {
        if !file.to_string_lossy().ends_with(&path.end) {
            return false;
        }
        if path.start.is_empty() {
            return true;
        }
        let (folder, name) = path.start.rsplit_once('/').unwrap_or(("", &path.start));
        let folder = if path.start.starts_with('/') && folder.is_empty() {
            "/"
        } else {
            folder
        };
        self.bases.iter().any(|base| {
            let below = file.strip_prefix(tidy(&base.join(folder)));
            below.is_ok_and(|below| {
                let first = below.components().next();
                first.is_some_and(|first| first.as_os_str().to_string_lossy().starts_with(name))
            })
        })
    }

    fn is_walked(
        &mut self,
        real: &Path,
        is_folder: bool,
        files: &[PathBuf],
        is_complete: bool,
    ) -> bool {
        for walk in &self.reach.walks {
            let roots: Vec<PathBuf> = self
                .bases
                .iter()
                .map(|base| tidy(&base.join(&walk.root)))
                .collect();
            for root in roots {
                if !real.starts_with(&root) {
                    continue;
                }
                let goes_there = match walk.shows {
                    // A list shows the names in a folder.
                    Shows::Names => {
                        is_folder && walk.is_deep && passes(walk, &root, real, Kind::Folder)
                    }
                    Shows::Content => {
                        !is_complete
                            || files
                                .iter()
                                .any(|file| passes(walk, &root, file, Kind::File))
                    }
                };
                if goes_there && (!walk.is_tracked || self.tracked.has(real)) {
                    return true;
                }
            }
        }
        false
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

/// Whether a walk through a folder comes to a path.
fn passes(walk: &Walk, root: &Path, path: &Path, kind: Kind) -> bool {
    let Ok(below) = path.strip_prefix(root) else {
        return false;
    };
    let names = below
        .components()
        .map(|it| it.as_os_str().to_string_lossy());
    let names: Vec<_> = names.collect();
    let last = names.last().map(AsRef::as_ref).unwrap_or_default();
    let is_hidden = |name: &str| walk.skips_hidden && name.starts_with('.');
    let folders = || {
        let count = names.len().saturating_sub(usize::from(kind == Kind::File));
        names.iter().take(count)
    };
    let is_left_out = walk.without.iter().any(|left_out| match left_out {
        LeftOut::File(pattern) => kind == Kind::File && is_like(pattern, last),
        LeftOut::Folder(pattern) => folders().any(|name| is_like(pattern, name)),
        LeftOut::Any(pattern) => names.iter().any(|name| is_like(pattern, name)),
        LeftOut::Path(path) => below.starts_with(path),
    });
    let is_wanted =
        |name: &str| walk.only.is_empty() || walk.only.iter().any(|it| is_like(it, name));
    (walk.is_deep || names.len() <= 1)
        && !is_left_out
        && !names.iter().any(|name| is_hidden(name))
        && (kind == Kind::Folder || is_wanted(last))
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
