//! The lists of tools that servers had last time, so that tools are offered before a server is there.
//!
//! A list belongs to the fingerprint of a configuration: another command, environment or address has
//! another list. A list that cannot be read is as good as none.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::config::Fingerprint;
use crate::tools::ServerTool;

/// The most lists that are kept; the oldest go first.
const MOST_LISTS: usize = 200;
/// The largest list.
const LARGEST_LIST: u64 = 4 * 1024 * 1024;
/// Changes when older lists cannot be used any more.
const VERSION: u32 = 1;

/// The lists in a folder.
#[derive(Debug, Clone)]
pub struct ToolCache {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct CachedTools {
    version: u32,
    /// `None` if the server did not say them last time.
    tools: Option<Vec<ServerTool>>,
}

/// What is known from last time.
pub(crate) enum LastTime {
    Tools(Vec<ServerTool>),
    /// The server could not be used. Nobody waits for it again.
    Failed,
}

impl ToolCache {
    /// Uses a folder, which is made when the first list is stored.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn file(&self, of: &Fingerprint) -> PathBuf {
        self.folder.join(format!("{}.json", of.as_str()))
    }

    /// Returns the list of a configuration. Reads the disk.
    pub(crate) fn load(&self, of: &Fingerprint) -> Option<LastTime> {
        let file = self.file(of);
        if std::fs::metadata(&file).ok()?.len() > LARGEST_LIST {
            return None;
        }
        let cached: CachedTools = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
        let known = cached.tools.map_or(LastTime::Failed, LastTime::Tools);
        (cached.version == VERSION).then_some(known)
    }

    /// Notes that a server could not be used, unless its tools are known from before.
    pub(crate) fn note_failure(&self, of: &Fingerprint) {
        if self.load(of).is_none() {
            self.write_list(of, None);
        }
    }

    /// Stores the list of a configuration. Writes to the disk.
    pub(crate) fn store(&self, of: &Fingerprint, tools: &[ServerTool]) {
        self.write_list(of, Some(tools.to_vec()));
    }

    fn write_list(&self, of: &Fingerprint, tools: Option<Vec<ServerTool>>) {
        let cached = CachedTools {
            version: VERSION,
            tools,
        };
        let stored = serde_json::to_vec(&cached)
            .map_err(std::io::Error::from)
            .and_then(|bytes| self.write(&self.file(of), &bytes));
        if let Err(error) = stored {
            tracing::warn!(%error, "the tools of a server could not be kept for the next start");
        }
    }

    fn write(&self, file: &Path, bytes: &[u8]) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        // Readers see the old list or the new one, never a part.
        let mut new = tempfile::NamedTempFile::new_in(&self.folder)?;
        new.write_all(bytes)?;
        new.persist(file).map_err(|error| error.error)?;
        self.prune()
    }

    /// Removes the oldest lists when there are too many.
    fn prune(&self) -> std::io::Result<()> {
        let mut lists: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let changed = entry.metadata().and_then(|it| it.modified());
            lists.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
        }
        lists.sort_unstable();
        let excess = lists.len().saturating_sub(MOST_LISTS);
        for (_, file) in lists.into_iter().take(excess) {
            std::fs::remove_file(file)?;
        }
        Ok(())
    }
}
