//! What a session changed in files so far: the first version that is known, and the one of now.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::Captures;
use super::state::{FileState, Now};

/// The most files that are compared.
const MOST_FILES: usize = 1_000;

/// A file that the session changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionChange {
    pub path: PathBuf,
    /// `None` if there was no file.
    pub before: Option<Vec<u8>>,
    /// `None` if there is no file.
    pub after: Option<Vec<u8>>,
}

impl Captures {
    /// Returns the files that tools changed and that are not as they were at first. Blocks.
    pub fn session_changes(&self) -> io::Result<Vec<SessionChange>> {
        let Some(inner) = &self.inner else {
            return Ok(Vec::new());
        };
        let recorded = inner.journal.lock().read()?;
        let mut first: BTreeMap<&Path, &FileState> = BTreeMap::new();
        for change in recorded.records.iter().flat_map(|record| &record.changes) {
            first.entry(&change.path).or_insert(&change.before);
        }
        let mut changes = Vec::new();
        for (path, before) in first.into_iter().take(MOST_FILES) {
            let before = match before {
                FileState::File { hash, size, .. } => match inner.objects.get(hash, *size) {
                    Some(contents) => Some(contents),
                    // It was dropped to make room.
                    None => continue,
                },
                FileState::Absent => None,
                FileState::Folder { .. } | FileState::Link | FileState::Unknown => continue,
            };
            let now = Now::at(path, inner.bounds.file);
            let after = match now.state {
                FileState::File { .. } => now.version.map(|version| version.contents),
                FileState::Absent => None,
                FileState::Folder { .. } | FileState::Link | FileState::Unknown => continue,
            };
            if before != after {
                changes.push(SessionChange {
                    path: path.to_owned(),
                    before,
                    after,
                });
            }
        }
        Ok(changes)
    }
}
