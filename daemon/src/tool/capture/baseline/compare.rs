//! Finds what changed in a workspace since it was copied, and brings the copy up to date.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::arrivals::{Arrival, Arrivals};
use super::uncopied::Lost;
use super::walk::{Entry, EntryKind, walk};
use super::{Baseline, COARSE_NS, Extent, Index, Indexed, Pack, PackReader};
use crate::tool::capture::journal::{Change, Missed};
use crate::tool::capture::lines::changed_lines;
use crate::tool::capture::objects::{Hash, Objects};
use crate::tool::capture::state::{FileState, NotCaptured, Now};
use crate::tool::capture::unread::Unread;
use crate::tool::disk::DiskError;
use crate::tool::disk::exact::Trace;

/// What file tools did since the copy was last compared.
#[derive(Debug, Default)]
pub(in crate::tool::capture) struct Overlay {
    /// The states that they left behind. Their contents are stored.
    pub(in crate::tool::capture) written: HashMap<PathBuf, FileState>,
    /// The paths that they are writing now.
    pub(in crate::tool::capture) writing: HashMap<PathBuf, usize>,
}

/// What is known of a path before a change.
#[derive(Debug)]
pub(in crate::tool::capture) struct Known {
    pub(in crate::tool::capture) state: FileState,
    pub(in crate::tool::capture) contents: Option<Vec<u8>>,
    why: Option<NotCaptured>,
}

impl Known {
    /// Returns what the copy has of an entry; nothing was there if there is none.
    pub(super) fn of(indexed: Option<&Indexed>, pack: &mut PackReader) -> Self {
        let plain = |state| Self {
            state,
            contents: None,
            why: None,
        };
        let lost = |why| Self {
            state: FileState::Unknown,
            contents: None,
            why: Some(why),
        };
        let Some(indexed) = indexed else {
            return plain(FileState::Absent);
        };
        let Trace { mode, size, .. } = indexed.trace;
        match (indexed.kind, indexed.at) {
            (EntryKind::Folder, _) => plain(FileState::Folder { mode }),
            (EntryKind::Link, _) => Self {
                why: Some(NotCaptured::Link),
                ..plain(FileState::Link)
            },
            (EntryKind::Special, _) => lost(NotCaptured::Special),
            (EntryKind::File, None) => lost(indexed.why.unwrap_or(NotCaptured::Unreadable)),
            (EntryKind::File, Some(at)) => match pack.get(at, size) {
                Ok(contents) => Self {
                    state: FileState::File {
                        hash: Hash::of(&contents),
                        size,
                        mode,
                    },
                    contents: Some(contents),
                    why: None,
                },
                Err(error) => {
                    tracing::warn!(%error, "the copy of a workspace is damaged");
                    lost(NotCaptured::Dropped)
                }
            },
        }
    }
}

/// What changed.
#[derive(Debug, Default)]
pub(in crate::tool::capture) struct Differences {
    /// The folder that the copy is of.
    pub(in crate::tool::capture) root: PathBuf,
    pub(in crate::tool::capture) changes: Vec<Change>,
    pub(in crate::tool::capture) missed: Vec<Missed>,
    pub(in crate::tool::capture) extent: Extent,
    /// How many bytes of content were stored.
    pub(in crate::tool::capture) stored: u64,
    /// Whether the copy has grown so much that it should be made anew.
    pub(in crate::tool::capture) is_worn: bool,
}

/// A path that differs from the copy, or may differ.
struct Candidate {
    name: String,
    /// Set for a path that the copy does not have and that no tool has written.
    new: Option<Arrival>,
}

impl Baseline {
    /// Compares the workspace with the copy; `None` without a copy. After commands, what changed is
    /// returned. Without commands it counts as changed by others, and only the copy changes, until
    /// `begun` says that a command has begun.
    pub(in crate::tool::capture) fn compare(
        &self,
        overlay: &Mutex<Overlay>,
        objects: &Objects,
        unread: &Unread,
        after_commands: bool,
        begun: &AtomicBool,
    ) -> Result<Option<Differences>, DiskError> {
        let Some(mut index) = self.load() else {
            return Ok(None);
        };
        let bound = self.bounds.baseline_bytes;
        let mut pack = Pack::open(&self.pack_path(), index.packed, bound)?;
        let mut reader = PackReader::open(&self.pack_path())?;
        let now = pack.now()?;
        let was_whole = index.whole;
        let (candidates, lost) = self.candidates(&mut index, overlay, &mut reader);
        let is_same = candidates.is_empty() && index.whole == was_whole;
        let mut differences = Differences::default();
        if after_commands || begun.load(Ordering::Acquire) {
            let why = NotCaptured::DeletedUncopied;
            let missed = lost.into_iter().map(|path| Missed { path, why });
            differences.missed.extend(missed);
        }
        for candidate in candidates {
            let path = index.root.join(&candidate.name);
            // Held, so that no tool begins to write the path meanwhile.
            let mut overlay = overlay.lock();
            if overlay.writing.contains_key(&path) {
                continue;
            }
            let mut known = Known::of(index.entries.get(&candidate.name), &mut reader);
            if let Some(written) = overlay.written.remove(&path) {
                known = Known {
                    state: written,
                    contents: None,
                    why: None,
                };
            }
            let found = if unread.has(&path) {
                Now::without_content(&path, NotCaptured::Unread)
            } else {
                Now::at(&path, self.bounds.baseline_file)
            };
            drop(overlay);
            // What was not captured may have changed although it is still the same kind of thing.
            let is_plain = !matches!(known.state, FileState::Unknown | FileState::Link);
            // Looked at after the file was read: if no command had begun, none has changed it.
            let is_told = after_commands || begun.load(Ordering::Acquire);
            if is_told && (known.state != found.state || !is_plain) {
                differences.add(path.clone(), &known, &found, candidate.new, objects)?;
            }
            let entry = Self::indexed(&path, found, &mut pack, now)?;
            let is_full = index.entries.len() >= self.bounds.entries;
            match entry {
                Some(_) if is_full && !index.entries.contains_key(&candidate.name) => {
                    index.whole = false;
                }
                Some(entry) => {
                    index.entries.insert(candidate.name, entry);
                }
                None => {
                    index.entries.remove(&candidate.name);
                }
            }
        }
        // What was written outside of the workspace or is ignored there is not compared.
        let mut overlay = overlay.lock();
        let writing: HashSet<PathBuf> = overlay.writing.keys().cloned().collect();
        overlay.written.retain(|path, _| writing.contains(path));
        drop(overlay);
        pack.flush()?;
        index.packed = pack.length;
        index.made_ns = if begun.load(Ordering::Acquire) {
            // What the command makes from now on, or made since the folder was listed, is new.
            now - 1
        } else {
            pack.next_tick()?
        };
        if is_same {
            // Most often nothing changed between two runs, and a command may wait for this.
            self.save_time(index.made_ns)?;
        } else {
            self.save(&index)?;
        }
        // Under other rules it may have what it should not have now.
        differences.is_worn = pack.length > self.bounds.baseline_bytes.saturating_mul(2)
            || index.unread != unread.rules();
        differences.extent = index.extent();
        differences.root = index.root;
        Ok(Some(differences))
    }

    /// Lists what differs by what the file system says of it, or was written by a tool, and where
    /// something may have been deleted that was not copied.
    fn candidates(
        &self,
        index: &mut Index,
        overlay: &Mutex<Overlay>,
        pack: &mut PackReader,
    ) -> (Vec<Candidate>, Vec<PathBuf>) {
        let written: HashSet<String> = {
            let overlay = overlay.lock();
            let names = overlay.written.keys().filter_map(|path| {
                let below = path.strip_prefix(&index.root).ok()?;
                below.to_str().map(str::to_owned)
            });
            names.collect()
        };
        let mut seen: HashSet<String> = HashSet::with_capacity(index.entries.len());
        let mut candidates = Vec::new();
        let mut arrived: Vec<Entry> = Vec::new();
        let mut listed = walk(&index.root, &self.home);
        // Without a whole copy it is not known what is new. Then files that changed since are named.
        let is_known = index.whole;
        let since = index.cut_ns.map_or(index.made_ns, |began| began - 1);
        let mut others = 0;
        let mut lost = Lost::default();
        for entry in listed.by_ref() {
            if !is_known {
                lost.look(index, &entry, since);
            }
            match index.entries.get(&entry.name) {
                Some(known) => {
                    let is_same = is_same(known, &entry) && !written.contains(&entry.name);
                    if !is_same {
                        candidates.push(Candidate {
                            name: entry.name.clone(),
                            new: None,
                        });
                    }
                    seen.insert(entry.name);
                }
                None if is_known => arrived.push(entry),
                None if entry.kind != EntryKind::Folder && entry.trace.changed_ns > since => {
                    arrived.push(entry);
                }
                None => others += 1,
            }
            if seen.len() + arrived.len() + others > self.bounds.entries {
                index.whole = false;
                break;
            }
        }
        index.whole &= listed.is_sound();
        let arrivals = if arrived.is_empty() {
            Arrivals::default()
        } else {
            Arrivals::of(index, pack)
        };
        for entry in arrived {
            let is_written = written.contains(&entry.name);
            let arrival = if is_known {
                arrivals.judge(&index.root, &entry)
            } else {
                Arrival::NotCopied
            };
            candidates.push(Candidate {
                new: (!is_written).then_some(arrival),
                name: entry.name,
            });
        }
        // What the walk did not list is gone, or is ignored now.
        for (name, known) in &index.entries {
            if seen.contains(name) {
                continue;
            }
            let metadata = index.root.join(name).symlink_metadata().ok();
            let is_same = metadata.is_some_and(|metadata| {
                Trace::of(&metadata) == known.trace && !known.unsure && !written.contains(name)
            });
            if !is_same {
                candidates.push(Candidate {
                    name: name.clone(),
                    new: None,
                });
            }
        }
        candidates.sort_by(|one, other| one.name.cmp(&other.name));
        (candidates, lost.places(index))
    }

    /// Brings an entry of the copy up to date.
    fn indexed(
        path: &Path,
        found: Now,
        pack: &mut Pack,
        now: i128,
    ) -> Result<Option<Indexed>, DiskError> {
        let Ok(metadata) = path.symlink_metadata() else {
            return Ok(None);
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
        let mut indexed = Indexed {
            kind,
            trace: Trace::of(&metadata),
            at: None,
            why: found.why,
            unsure: false,
        };
        if let Some(version) = found.version {
            indexed.kind = EntryKind::File;
            indexed.trace = version.trace;
            indexed.unsure = version.trace.changed_ns > now - COARSE_NS;
            indexed.at = Some(pack.add(&version.contents)?);
        }
        Ok(Some(indexed))
    }
}

/// Returns whether an entry is the one that was copied.
fn is_same(known: &Indexed, entry: &Entry) -> bool {
    if known.kind != entry.kind {
        return false;
    }
    match entry.kind {
        // The other times of a folder change with what is in it.
        EntryKind::Folder => known.trace.mode == entry.trace.mode,
        EntryKind::File | EntryKind::Link | EntryKind::Special => {
            known.trace == entry.trace && !known.unsure
        }
    }
}

impl Differences {
    fn add(
        &mut self,
        path: PathBuf,
        known: &Known,
        found: &Now,
        new: Option<Arrival>,
        objects: &Objects,
    ) -> Result<(), DiskError> {
        let why = match new {
            Some(Arrival::FromElsewhere) => Some(NotCaptured::Moved),
            Some(Arrival::NotCopied) => Some(NotCaptured::NotCopied),
            Some(Arrival::Made) | None => known.why.or(found.why),
        };
        if let Some(why) = why {
            self.missed.push(Missed { path, why });
            return Ok(());
        }
        let after = found.version.as_ref().map(|version| &*version.contents);
        for (state, contents) in [
            (&known.state, known.contents.as_deref()),
            (&found.state, after),
        ] {
            if let (FileState::File { hash, .. }, Some(contents)) = (state, contents) {
                self.stored += objects.put(hash, contents)?;
            }
        }
        let before = match (&known.state, &known.contents) {
            (FileState::File { hash, size, .. }, None) => objects.get(hash, *size),
            (_, contents) => contents.clone(),
        };
        let (added, removed) = changed_lines(before.as_deref(), after);
        self.changes.push(Change {
            path,
            before: known.state.clone(),
            after: found.state.clone(),
            added,
            removed,
        });
        Ok(())
    }
}
