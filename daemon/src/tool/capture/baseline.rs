//! What the workspace was like before commands ran: a bounded copy of its files, to find out what
//! commands changed and to have the earlier contents.
//!
//! The copy is two files: `index` names the entries and says where in `pack` the content of each is.
//! Both are on disk only, so that an idle session holds nothing in memory, and so that the next
//! daemon can compare after a crash. `walk` lists the workspace, `compare` finds what changed.

mod arrivals;
mod compare;
mod uncopied;
mod walk;

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use loopd_proto::id::Seq;

use super::Bounds;
use super::state::{NotCaptured, why};
use super::unread::Unread;
use crate::tool::disk::exact::{self, Trace};
use crate::tool::disk::{self, DiskError};

pub(super) use compare::{Differences, Known, Overlay};
use uncopied::{Progress, Uncopied};
use walk::{Entry, EntryKind};

/// The largest index that is read.
const LARGEST_INDEX: u64 = 64 * 1024 * 1024;
/// The copy takes at most one part in so many of the room that is left on the disk.
const PART_OF_FREE: u64 = 4;

/// A change this much older than the copy has its own time stamp. Clocks of file systems are coarse.
const COARSE_NS: i128 = 20_000_000;

/// How many milliseconds the clock of files is waited for.
const TICKS: usize = 50;

/// One entry of the workspace as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Indexed {
    kind: EntryKind,
    trace: Trace,
    /// Where its content is, if it was captured.
    at: Option<u64>,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<NotCaptured>,
    /// Whether a change right after the copy could have the same trace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unsure: bool,
}

/// The entries of the copy.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    root: PathBuf,
    /// Whether every entry of the workspace is in it. If not, it cannot be told what is new.
    whole: bool,
    /// Set if a command began before everything was copied: when the copying had begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut_ns: Option<i128>,
    entries: HashMap<String, Indexed>,
    /// What is not in it.
    #[serde(default, skip_serializing_if = "Uncopied::is_empty")]
    uncopied: Uncopied,
    /// How long the pack is.
    packed: u64,
    /// When the copy was last made or compared.
    made_ns: i128,
    /// The rules about reading that it was made under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unread: Vec<String>,
}

impl Index {
    fn extent(&self) -> Extent {
        Extent {
            entries: self.entries.len(),
            bytes: self.packed,
            whole: self.whole,
            cut: self.cut_ns.is_some(),
        }
    }
}

/// The copy of one workspace.
#[derive(Debug)]
pub(super) struct Baseline {
    folder: PathBuf,
    bounds: Bounds,
    /// The home of the daemon, which is never part of a workspace.
    home: PathBuf,
}

/// What building or comparing told of the workspace as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) entries: usize,
    pub(super) bytes: u64,
    /// Whether all of it is in the copy.
    pub(super) whole: bool,
    /// Whether a command began before all of it was copied.
    pub(super) cut: bool,
}

impl Baseline {
    pub(super) fn new(folder: PathBuf, home: PathBuf, bounds: Bounds) -> Self {
        Self {
            folder,
            bounds,
            home,
        }
    }

    fn index_path(&self) -> PathBuf {
        self.folder.join("index")
    }

    fn pack_path(&self) -> PathBuf {
        self.folder.join("pack")
    }

    fn time_path(&self) -> PathBuf {
        self.folder.join("compared")
    }

    fn marker_path(&self) -> PathBuf {
        self.folder.join("commands-ran")
    }

    /// Notes on disk that commands of this turn may have changed files since the last comparison.
    pub(super) fn mark(&self, turn: Seq) -> Result<(), DiskError> {
        disk::put_own_quickly(&self.marker_path(), turn.0.to_string().as_bytes())?;
        Ok(())
    }

    pub(super) fn unmark(&self) {
        // There is nothing to remove if nothing was marked.
        std::fs::remove_file(self.marker_path()).ok();
    }

    /// Returns the turn of commands that ran in an earlier daemon and were not compared after.
    pub(super) fn marked(&self) -> Option<Seq> {
        let text = disk::read_own(&self.marker_path(), 32).ok()?;
        let turn = std::str::from_utf8(&text).ok()?.trim().parse().ok()?;
        Some(Seq(turn))
    }

    pub(super) fn remove(&self) {
        match std::fs::remove_dir_all(&self.folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "the copy of a workspace could not be removed"),
        }
    }

    /// Returns what the copy knows of some paths. Those that it does not know are left out.
    pub(super) fn known<'a>(&self, paths: &'a [PathBuf]) -> HashMap<&'a Path, Known> {
        let Some(index) = self.load() else {
            return HashMap::new();
        };
        let Ok(mut reader) = PackReader::open(&self.pack_path()) else {
            return HashMap::new();
        };
        let known = paths.iter().filter_map(|path| {
            let name = path.strip_prefix(&index.root).ok()?.to_str()?;
            let indexed = index.entries.get(name)?;
            Some((path.as_path(), Known::of(Some(indexed), &mut reader)))
        });
        known.collect()
    }

    fn load(&self) -> Option<Index> {
        let text = match disk::read_own(&self.index_path(), LARGEST_INDEX) {
            Ok(text) => text,
            Err(DiskError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(%error, "the copy of a workspace cannot be used");
                return None;
            }
        };
        let mut index: Index = serde_json::from_slice(&text).ok()?;
        // A later time is the careful one: fewer files count as made by a command.
        index.made_ns = index.made_ns.max(self.time().unwrap_or(i128::MIN));
        let packed = self.pack_path().metadata().ok()?.len();
        (packed >= index.packed).then_some(index)
    }

    /// Notes that the copy was compared and is still right, without writing all of it again.
    fn save_time(&self, made_ns: i128) -> Result<(), DiskError> {
        disk::put_own_quickly(&self.time_path(), made_ns.to_string().as_bytes())?;
        Ok(())
    }

    /// Returns when the copy was last compared, if that was noted apart from the index.
    fn time(&self) -> Option<i128> {
        let text = disk::read_own(&self.time_path(), 64).ok()?;
        std::str::from_utf8(&text).ok()?.trim().parse().ok()
    }

    fn save(&self, index: &Index) -> Result<(), DiskError> {
        let text = serde_json::to_vec(index).map_err(io::Error::from)?;
        disk::put_own_quickly(&self.index_path(), &text)?;
        Ok(())
    }

    /// Copies the workspace, until all is copied, a bound is reached or `stop` is set, which says that
    /// a command begins.
    pub(super) fn build(
        &self,
        root: &Path,
        unread: &Unread,
        stop: &AtomicBool,
    ) -> Result<Extent, DiskError> {
        self.remove();
        // Makes the folder.
        disk::put_own_quickly(&self.pack_path(), b"")?;
        let index = Index {
            root: root.to_owned(),
            unread: unread.rules().to_vec(),
            ..Index::default()
        };
        self.copy_rest(index, unread, stop)
    }

    /// Copies what the copy does not have, because a command began before all was copied. The copy has
    /// to be compared before.
    pub(super) fn extend(&self, unread: &Unread, stop: &AtomicBool) -> Result<Extent, DiskError> {
        match self.load() {
            Some(index) => self.copy_rest(index, unread, stop),
            None => Ok(Extent::default()),
        }
    }

    fn copy_rest(
        &self,
        mut index: Index,
        unread: &Unread,
        stop: &AtomicBool,
    ) -> Result<Extent, DiskError> {
        let bound = self.bounds.baseline_bytes;
        let mut pack = Pack::open(&self.pack_path(), index.packed, bound)?;
        let began = pack.now()?;
        index.whole = true;
        index.cut_ns = None;
        // Listed first: a command may delete the rest before it is come to.
        let mut progress = Progress::begin(&index.root, &self.home, self.bounds.entries);
        let mut walk = walk::walk(&index.root, &self.home);
        for entry in walk.by_ref() {
            progress.goes_to(&entry.name);
            if index.entries.contains_key(&entry.name) {
                continue;
            }
            if index.entries.len() >= self.bounds.entries {
                index.whole = false;
                break;
            }
            let indexed = self.copied(&index.root, &entry, unread, (&mut pack, began))?;
            // Looked at after the file was read, which may already be what the command left.
            if stop.load(Ordering::Acquire) {
                break;
            }
            index.entries.insert(entry.name, indexed);
        }
        // Also if nothing was left to copy: the command may have deleted it.
        if stop.load(Ordering::Acquire) {
            index.whole = false;
            index.cut_ns = Some(began);
        }
        pack.flush()?;
        index.whole &= walk.is_sound();
        index.uncopied = if index.whole {
            Uncopied::default()
        } else {
            progress.rest()
        };
        index.packed = pack.length;
        index.made_ns = pack.next_tick()?;
        self.save(&index)?;
        Ok(index.extent())
    }

    /// Copies one entry into the pack.
    fn copied(
        &self,
        root: &Path,
        entry: &Entry,
        unread: &Unread,
        (pack, now): (&mut Pack, i128),
    ) -> Result<Indexed, DiskError> {
        let mut indexed = Indexed {
            kind: entry.kind,
            trace: entry.trace,
            at: None,
            why: None,
            unsure: false,
        };
        if entry.kind != EntryKind::File {
            return Ok(indexed);
        }
        if pack.length + entry.trace.size > pack.most {
            indexed.why = Some(NotCaptured::OutOfSpace);
            return Ok(indexed);
        }
        let path = root.join(&entry.name);
        if unread.has(&path) {
            indexed.why = Some(NotCaptured::Unread);
            return Ok(indexed);
        }
        match exact::read(&path, self.bounds.baseline_file) {
            Ok(version) => {
                indexed.trace = version.trace;
                indexed.unsure = version.trace.changed_ns > now - COARSE_NS;
                indexed.at = Some(pack.add(&version.contents)?);
            }
            Err(error) => indexed.why = Some(why(&error)),
        }
        Ok(indexed)
    }
}

/// The contents, one after the other.
struct Pack {
    file: io::BufWriter<File>,
    length: u64,
    /// How long it may become.
    most: u64,
}

impl Pack {
    /// Opens the pack to add to it after `length` bytes, up to `bound`, or less on a disk that is almost full:
    /// the log of the session is on it, too.
    fn open(path: &Path, length: u64, bound: u64) -> Result<Self, DiskError> {
        let mut options = OpenOptions::new();
        options.write(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
        }
        let mut file = options.open(path)?;
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        Ok(Self {
            most: longest(length, bound, free_bytes(path)),
            file: io::BufWriter::with_capacity(256 * 1024, file),
            length,
        })
    }

    /// Returns the time by the clock that stamps files.
    fn now(&mut self) -> Result<i128, DiskError> {
        let file = self.file.get_mut();
        // A file that was written just now has the time of now.
        file.set_len(self.length + 1)?;
        file.set_len(self.length)?;
        Ok(Trace::of(&file.metadata()?).modified_ns)
    }

    /// Waits until the clock that stamps files has moved on, and returns the time before: what is made
    /// from now on has a later time. A clock that stands still is waited for a moment only.
    fn next_tick(&mut self) -> Result<i128, DiskError> {
        let now = self.now()?;
        for _ in 0..TICKS {
            if self.now()? > now {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(now)
    }

    /// Adds a content; returns where it is.
    fn add(&mut self, contents: &[u8]) -> Result<u64, DiskError> {
        let at = self.length;
        self.file.write_all(contents)?;
        self.length += contents.len() as u64;
        Ok(at)
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        Ok(self.file.flush()?)
    }
}

/// Returns how long a pack may become that has `length` bytes, on a disk with `free` ones.
fn longest(length: u64, bound: u64, free: u64) -> u64 {
    bound.min(length.saturating_add(free / PART_OF_FREE))
}

/// Returns how much room there is on the disk of a file; as much as one wants if that cannot be found out.
fn free_bytes(path: &Path) -> u64 {
    #[cfg(unix)]
    if let Ok(disk) = rustix::fs::statvfs(path) {
        return disk.f_bavail.saturating_mul(disk.f_frsize);
    }
    u64::MAX
}

/// Reads contents out of the pack.
struct PackReader(File);

impl PackReader {
    fn open(path: &Path) -> Result<Self, DiskError> {
        let (file, _) = disk::open(path)?;
        Ok(Self(file))
    }

    fn get(&mut self, at: u64, size: u64) -> Result<Vec<u8>, DiskError> {
        self.0.seek(SeekFrom::Start(at))?;
        let mut contents = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        self.0.read_exact(&mut contents)?;
        Ok(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::longest;

    #[test]
    fn a_pack_leaves_room_on_the_disk() {
        for (length, bound, free, most) in [
            (0, 100, u64::MAX, 100),
            (0, 100, 40, 10),
            (50, 100, 40, 60),
            (50, 100, 0, 50),
        ] {
            assert_eq!(
                longest(length, bound, free),
                most,
                "{length} {bound} {free}"
            );
        }
    }
}
