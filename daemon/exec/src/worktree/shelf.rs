//! The folder `<home>/worktrees`: a folder per worktree, and beside it a record that is written
//! before anything else and removed last, so that no crash leaves something that nobody finds.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use loopd_proto::id::SessionId;
use loopd_proto::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::WorktreeError;

/// How many worktrees a home has at most.
pub(super) const MOST: usize = 500;

/// How many letters of a session's id the id of its worktree has.
const ID_CHARS: usize = 12;
const LONGEST_ID: usize = 40;

/// A record is small; more than this was not written by us.
const LONGEST_RECORD: u64 = 64 * 1024;

const ENDING: &str = ".json";

/// How far a worktree has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Stage {
    /// Its files are being written; no agent has been in it.
    Making,
    /// An agent works or worked in it.
    Ready,
    /// The agent has ended, and its changes were kept.
    Kept,
}

/// What is known of a worktree whatever happens to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) session: SessionId,
    pub(super) repository: PathBuf,
    /// The folder of git that all worktrees of the repository share.
    pub(super) git_dir: PathBuf,
    pub(super) commit: String,
    pub(super) made: Timestamp,
    pub(super) stage: Stage,
}

/// The folder of all worktrees of a home.
#[derive(Debug, Clone)]
pub(super) struct Shelf(PathBuf);

impl Shelf {
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
        self.0.join(format!("{id}{ENDING}"))
    }

    /// Takes an id that nobody has, derived from the session's, by writing the record.
    pub(super) fn reserve(&self, record: &Record) -> Result<String, WorktreeError> {
        let disk = |source| self.disk(source);
        loopd_proto::home_paths::create_private(&self.0).map_err(disk)?;
        if self.ids()?.len() >= MOST {
            return Err(WorktreeError::TooMany(MOST));
        }
        let stem = stem(&record.session);
        for number in 1..=MOST {
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
                        // It says nothing; when it stays it is listed as a leftover.
                        std::fs::remove_file(&path).ok();
                        return Err(WorktreeError::Disk { path, source });
                    }
                    return Ok(id);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(WorktreeError::Disk { path, source }),
            }
        }
        Err(WorktreeError::TooMany(MOST))
    }

    /// The record of a worktree; none when there is none or it makes no sense.
    pub(super) fn read(&self, id: &str) -> Option<Record> {
        let path = self.record(id);
        let metadata = std::fs::symlink_metadata(&path).ok()?;
        if !metadata.is_file() || metadata.len() > LONGEST_RECORD {
            return None;
        }
        serde_json::from_slice(&std::fs::read(&path).ok()?).ok()
    }

    /// Replaces a record, in one step.
    pub(super) fn rewrite(&self, id: &str, record: &Record) -> Result<(), WorktreeError> {
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

    /// Whether the folder of a worktree is there as one; a link is none.
    pub(super) fn has_folder(&self, id: &str) -> bool {
        std::fs::symlink_metadata(self.folder(id)).is_ok_and(|it| it.is_dir())
    }

    /// Whether anything is in the place of a worktree.
    pub(super) fn is_taken(&self, id: &str) -> bool {
        std::fs::symlink_metadata(self.folder(id)).is_ok()
    }

    pub(super) fn knows(&self, id: &str) -> bool {
        is_id(id) && (std::fs::symlink_metadata(self.record(id)).is_ok() || self.is_taken(id))
    }

    /// Removes the folder of a worktree and all in it; links are removed, not followed.
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

    /// Every id of which there is a record or a folder, in order.
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
            let id = name.strip_suffix(ENDING).unwrap_or(name);
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

fn write(file: &mut std::fs::File, record: &Record) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(record)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_all()
}

/// Only such names are ids, so that none leads out of the folder.
fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= LONGEST_ID && !text.starts_with('-') && text.bytes().all(fits)
}

/// The last letters of a session's id; the first ones are the time, which many share.
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
