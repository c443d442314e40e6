//! Keeps the stored contents of a session within their bound: the oldest turns go first, and people
//! are told.

use std::collections::HashSet;

use loopd_proto::id::Seq;

use super::Inner;
use super::journal::{Record, Recorded};
use super::objects::Hash;
use super::state::FileState;

/// The largest record of changes, in bytes.
const LARGEST_JOURNAL: u64 = 32 * 1024 * 1024;

const DROPPED: &str = "The earlier versions of files that this session keeps for rewinds take too much space, so the oldest were dropped: a rewind to a turn before that leaves files as they are.";

impl Inner {
    /// Counts bytes that were stored, and makes room if there are too many.
    pub(super) fn stored(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let total = {
            let mut known = self.bytes.lock();
            let total = match *known {
                Some(total) => total + bytes,
                None => self.objects.bytes(),
            };
            *known = Some(total);
            total
        };
        let journal = self.journal.lock().bytes();
        if total > self.bounds.session_bytes || journal > LARGEST_JOURNAL {
            self.make_room();
        }
    }

    /// Forgets the oldest turns until a quarter of the bound is free.
    fn make_room(&self) {
        let mut journal = self.journal.lock();
        let recorded = match journal.read() {
            Ok(recorded) => recorded,
            Err(error) => {
                tracing::warn!(%error, "the record of changed files cannot be read");
                return;
            }
        };
        let wanted = self.bounds.session_bytes / 4 * 3;
        let begins = first_kept(&recorded, wanted, LARGEST_JOURNAL / 2);
        let (gone, kept): (Vec<Record>, Vec<Record>) = recorded
            .records
            .into_iter()
            .partition(|record| record.turn < begins);
        if let Err(error) = journal.keep_only(begins, &kept, &recorded.open) {
            tracing::warn!(%error, "the record of changed files cannot be shortened");
            return;
        }
        drop(journal);
        let needed: HashSet<&Hash> = kept.iter().flat_map(hashes).collect();
        let old: HashSet<&Hash> = gone.iter().flat_map(hashes).collect();
        for hash in old.difference(&needed) {
            self.objects.remove(hash);
        }
        *self.bytes.lock() = Some(self.objects.bytes());
        self.tell_once(DROPPED);
    }
}

/// Returns the position from which on turns are kept. The newest turns whose contents and records
/// fit are kept; if the last one alone is too large, it goes, too.
fn first_kept(recorded: &Recorded, bytes: u64, journal: u64) -> Seq {
    let (mut contents, mut lines) = (0_u64, 0_u64);
    let mut seen: HashSet<&Hash> = HashSet::new();
    for record in recorded.records.iter().rev() {
        for state in states(record) {
            if let FileState::File { hash, size, .. } = state
                && seen.insert(hash)
            {
                contents += size;
            }
        }
        lines += 200 * (record.changes.len() + record.missed.len() + 1) as u64;
        if contents > bytes || lines > journal {
            return record.turn.next();
        }
    }
    recorded.begins.unwrap_or_default()
}

fn states(record: &Record) -> impl Iterator<Item = &FileState> {
    let changes = record.changes.iter();
    changes.flat_map(|change| [&change.before, &change.after])
}

fn hashes(record: &Record) -> impl Iterator<Item = &Hash> {
    states(record).filter_map(|state| match state {
        FileState::File { hash, .. } => Some(hash),
        FileState::Absent | FileState::Folder { .. } | FileState::Link | FileState::Unknown => None,
    })
}
