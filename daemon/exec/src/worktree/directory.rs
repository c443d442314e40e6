//! The folder `<home>/worktrees`: one folder per worktree, and beside it a record. The record is
//! written first and removed last, so that after a crash every leftover is still listed.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use loopd_proto::id::SessionId;
use loopd_proto::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::WorktreeError;

/// The maximum number of worktrees in a home.
pub(super) const MAX_WORKTREES: usize = 500;

/// How many characters of a session id are used in the id of its worktree.
const ID_CHARS: usize = 12;
const MAX_ID_CHARS: usize = 40;

/// The maximum size of a record; a larger file was not written by the daemon.
const MAX_RECORD_BYTES: u64 = 64 * 1024;

const SUFFIX: &str = ".json";

/// The stage in the life of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum WorktreeStage {
    /// Its files are being written; no agent has used it.
    Making,
    /// An agent uses or used it.
    Ready,
    /// The agent has ended, and the worktree was kept for its changes.
    Kept,
}

/// The record of a worktree on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorktreeRecord {
    pub(super) session: SessionId,
    pub(super) repository: PathBuf,
    /// The git folder that all worktrees of the repository share.
    pub(super) git_dir: PathBuf,
    pub(super) commit: String,
    pub(super) made: Timestamp,
    pub(super) stage: WorktreeStage,
}

/// The folder of all worktrees of a home.
#[derive(Debug, Clone)]
pub(super) struct WorktreeDirectory(PathBuf);

impl WorktreeDirectory {
    pub(super) fn of(home: &Path) -> Self {
        let real = home.canonicalize();
        Self(real.unwrap_or_else(|_| home.to_owned()).join("worktrees"))
    }

    pub(super) fn root(&self) -> &Path {
        &self.0
    }

    pub(super) fn folder(&self, id: &str) -> PathBuf {
        self.0.join(id)
    }

    fn record(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}{SUFFIX}"))
    }

    /// Reserves a free id, derived from the session id, by writing the record.
    pub(super) fn reserve(&self, record: &WorktreeRecord) -> Result<String, WorktreeError> {
        let disk = |source| self.disk(source);
        loopd_proto::home_paths::create_private(&self.0).map_err(disk)?;
        if self.ids()?.len() >= MAX_WORKTREES {
            return Err(WorktreeError::TooMany(MAX_WORKTREES));
        }
        let stem = stem(&record.session);
        for number in 1..=MAX_WORKTREES {
            let id = match number {
                1 => stem.clone(),
                _ => format!("{stem}-{number}"),
            };
            if self.is_taken(&id) {
                continue;
            }
            let path = self.record(&id);
            let made = std::fs::File::options()
                .write(true)
                .create_new(true)
                .open(&path);
            match made {
                Ok(mut file) => {
                    let written = write(&mut file, record);
                    if let Err(source) = written {
                        // If this fails, the incomplete record is listed as a leftover.
                        std::fs::remove_file(&path).ok();
                        return Err(WorktreeError::Disk { path, source });
                    }
                    return Ok(id);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(WorktreeError::Disk { path, source }),
            }
        }
        Err(WorktreeError::TooMany(MAX_WORKTREES))
    }

    /// Reads the record of a worktree; `None` if it is missing or invalid.
    pub(super) fn read(&self, id: &str) -> Option<WorktreeRecord> {
        let path = self.record(id);
        let metadata = std::fs::symlink_metadata(&path).ok()?;
        if !metadata.is_file() || metadata.len() > MAX_RECORD_BYTES {
            return None;
        }
        serde_json::from_slice(&std::fs::read(&path).ok()?).ok()
    }

    /// Replaces a record atomically.
    pub(super) fn rewrite(&self, id: &str, record: &WorktreeRecord) -> Result<(), WorktreeError> {
        let path = self.record(id);
        let replaced = tempfile::NamedTempFile::new_in(&self.0).and_then(|mut file| {
            write(file.as_file_mut(), record)?;
            file.persist(&path).map_err(|failed| failed.error)
        });
        replaced.map_err(|source| WorktreeError::Disk { path, source })?;
        Ok(())
    }

    pub(super) fn forget(&self, id: &str) -> Result<(), WorktreeError> {
        let path = self.record(id);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(WorktreeError::Disk { path, source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Whether the folder of a worktree exists and is not a symbolic link.
    pub(super) fn has_folder(&self, id: &str) -> bool {
        std::fs::symlink_metadata(self.folder(id)).is_ok_and(|it| it.is_dir())
    }

    /// Whether the path of a worktree exists, as a folder or anything else.
    pub(super) fn is_taken(&self, id: &str) -> bool {
        std::fs::symlink_metadata(self.folder(id)).is_ok()
    }

    pub(super) fn knows(&self, id: &str) -> bool {
        is_id(id) && (std::fs::symlink_metadata(self.record(id)).is_ok() || self.is_taken(id))
    }

    /// Removes the folder of a worktree recursively without following symbolic links.
    pub(super) fn clear(&self, id: &str) -> Result<(), WorktreeError> {
        let path = self.folder(id);
        let removed = if self.has_folder(id) {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        match removed {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(WorktreeError::Disk { path, source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// All ids that have a record or a folder, sorted.
    pub(super) fn ids(&self) -> Result<Vec<String>, WorktreeError> {
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(self.disk(source)),
        };
        let mut ids = BTreeSet::new();
        for entry in entries {
            let entry = entry.map_err(|source| self.disk(source))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let id = name.strip_suffix(SUFFIX).unwrap_or(name);
            if is_id(id) {
                ids.insert(id.to_owned());
            }
        }
        Ok(ids.into_iter().collect())
    }

    fn disk(&self, source: io::Error) -> WorktreeError {
        WorktreeError::Disk {
            path: self.0.clone(),
            source,
        }
    }
}

fn write(file: &mut std::fs::File, record: &WorktreeRecord) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(record)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_all()
}

/// Whether a name is a valid id. An id cannot lead out of the folder.
fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= MAX_ID_CHARS
        && !text.starts_with('-')
        && text.bytes().all(fits)
}

/// The last characters of a session id. The first characters encode the time and are often equal.
fn stem(session: &SessionId) -> String {
    let letters: Vec<char> = session
        .as_str()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    let from = letters.len().saturating_sub(ID_CHARS);
    let stem: String = letters.get(from..).unwrap_or_default().iter().collect();
    if stem.is_empty() {
        "agent".to_owned()
    } else {
        stem
    }
}
