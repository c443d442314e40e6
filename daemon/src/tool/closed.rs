//! The places that rules keep from being read, as they are on the disk now.
//!
//! A rule names a path. The same file may have other names: the path may lead through links, and a
//! file may have several hard links. [`ClosedPlaces::names`] finds the names that a rule uses for a file, so
//! that the verdict about the file is the same under every name. A search leaves the places out. The
//! file tools call this module; it reads no contents and decides nothing.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use loopd_kernel::policy::GuardedPaths;
use loopd_proto::home_paths::FileId;

use super::texts;

/// How many entries below closed folders are looked at to find files with several hard links.
const MOST_ENTRIES: usize = 20_000;

/// Why a place is left out of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closure {
    /// A rule denies reading it.
    Denied,
    /// Reading it has to be approved by a person each time.
    Asked,
}

/// One path that a rule names.
#[derive(Debug)]
struct Named {
    /// As the rule spells it.
    rule: PathBuf,
    /// Free of links.
    real: PathBuf,
    /// What reading it comes to; `None` for a rule that is only about writing.
    reading: Option<Closure>,
}

/// Files by device and inode, with the name that a rule uses and what reading comes to.
type LinkedFiles = HashMap<(u64, u64), (PathBuf, Option<Closure>)>;

/// The places of the rules of a session, resolved once for a call.
#[derive(Debug, Default)]
pub(super) struct ClosedPlaces {
    named: Vec<Named>,
    /// What reading each place comes to, under both names.
    places: HashMap<PathBuf, Closure>,
    /// The files in these places that have several hard links, with the name that the rule uses.
    linked: OnceLock<LinkedFiles>,
}

impl ClosedPlaces {
    /// Resolves the paths of rules.
    pub(super) fn of(guarded: &GuardedPaths) -> Self {
        let mut named = Vec::new();
        for (rules, reading) in [
            (&guarded.asked_reads, Some(Closure::Asked)),
            (&guarded.denied_reads, Some(Closure::Denied)),
            (&guarded.writes, None),
        ] {
            named.extend(rules.iter().map(|rule| {
                let rule = loopd_kernel::policy::plain(rule);
                Named {
                    real: real(&rule),
                    rule,
                    reading,
                }
            }));
        }
        // A place that is denied as well as asked about is denied, so denied places come last.
        let places = named
            .iter()
            .filter_map(|named| Some((named, named.reading?)));
        let places = places
            .flat_map(|(named, reading)| {
                [(named.rule.clone(), reading), (named.real.clone(), reading)]
            })
            .collect();
        Self {
            named,
            places,
            linked: OnceLock::new(),
        }
    }

    /// Returns whether a search has to leave out this entry of a folder.
    pub(super) fn at(&self, entry: &Path) -> Option<Closure> {
        if self.places.is_empty() {
            return None;
        }
        if let Some(closure) = self.places.get(entry) {
            return Some(*closure);
        }
        if self.linked().is_empty() {
            return None;
        }
        let (_, reading) = self.linked_name(&entry.symlink_metadata().ok()?)?;
        *reading
    }

    /// Returns the places that rules about reading name: as the rule spells them, and free of links.
    pub(super) fn readings(&self) -> impl Iterator<Item = (&Path, &Path)> {
        let named = self.named.iter().filter(|named| named.reading.is_some());
        named.map(|named| (named.rule.as_path(), named.real.as_path()))
    }

    /// Returns whether a denied place is this folder or lies below it, whether it exists or not.
    pub(super) fn denies_below(&self, folder: &Path) -> bool {
        let mut denied = self
            .named
            .iter()
            .filter(|named| named.reading == Some(Closure::Denied));
        denied.any(|named| named.rule.starts_with(folder) || named.real.starts_with(folder))
    }

    /// Returns the names that rules use for a file or folder, besides its real path.
    pub(super) fn names(&self, real: &Path) -> Vec<String> {
        let mut names = Vec::new();
        for named in &self.named {
            if let Ok(rest) = real.strip_prefix(&named.real) {
                let name = if rest.as_os_str().is_empty() {
                    named.rule.clone()
                } else {
                    named.rule.join(rest)
                };
                names.push(texts::path(&name));
            }
        }
        if !self.named.is_empty()
            && let Ok(metadata) = real.symlink_metadata()
            && let Some((name, _)) = self.linked_name(&metadata)
        {
            names.push(texts::path(name));
        }
        names.retain(|name| Path::new(name) != real);
        names
    }

    fn linked_name(&self, metadata: &Metadata) -> Option<&(PathBuf, Option<Closure>)> {
        if !has_links(metadata) {
            return None;
        }
        let FileId { device, inode } = FileId::of(metadata);
        self.linked().get(&(device, inode))
    }

    /// Finds the files with several hard links in the places of the rules.
    fn linked(&self) -> &LinkedFiles {
        self.linked.get_or_init(|| {
            let mut found = HashMap::new();
            let mut left = MOST_ENTRIES;
            for named in &self.named {
                let mut waiting = vec![named.real.clone()];
                while let Some(path) = waiting.pop() {
                    let Ok(metadata) = path.symlink_metadata() else {
                        continue;
                    };
                    if has_links(&metadata) {
                        let rest = path.strip_prefix(&named.real).unwrap_or(Path::new(""));
                        let name = if rest.as_os_str().is_empty() {
                            named.rule.clone()
                        } else {
                            named.rule.join(rest)
                        };
                        let FileId { device, inode } = FileId::of(&metadata);
                        found.insert((device, inode), (name, named.reading));
                    } else if metadata.is_dir() {
                        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
                            if left == 0 {
                                break;
                            }
                            left -= 1;
                            waiting.push(entry.path());
                        }
                    }
                }
            }
            found
        })
    }
}

/// Returns the path free of links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return if rest.as_os_str().is_empty() {
                real
            } else {
                real.join(rest)
            };
        }
    }
    path.to_owned()
}

#[cfg(unix)]
fn has_links(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1 && metadata.is_file()
}

/// Files have no numbers here, so that hard links cannot be told.
#[cfg(not(unix))]
fn has_links(_metadata: &Metadata) -> bool {
    false
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
