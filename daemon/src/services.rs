//! What every part of the daemon may need: the store, the clock, the tools, the settings.
//!
//! Built once by `app`, shared by all sessions; holds nothing of any connection.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_proto::id::SessionId;
use loopd_store::Store;

use crate::config::Config;
use crate::tool::catalog::Catalog;
use loopd_exec::clock::Clock;
use loopd_exec::keep_alive::KeepAlive;
use loopd_exec::process::Processes;
use loopd_exec::worktree::Worktrees;
use loopd_kernel::model::ToolSpec;
use loopd_model::model_lists::ModelLists;
use loopd_model::replay::RecordingLock;

/// What sessions need from the daemon.
pub struct Services {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub catalog: Catalog,
    /// What models are told of the built-in tools; schemas are made once.
    pub tool_specs: Vec<ToolSpec>,
    pub config: Config,
    pub model_lists: Arc<ModelLists>,
    /// Keeps recordings of conversations from each other.
    pub recording: RecordingLock,
    pub home: PathBuf,
    pub keep_alive: KeepAlive,
    /// Every program that is started is started here.
    pub processes: Processes,
    /// Copies of repositories in which agents work alone.
    pub worktrees: Worktrees,
    pub version: &'static str,
}

impl Services {
    /// The folder of a session; it exists once something is kept in it.
    pub fn session_folder(&self, id: &SessionId) -> PathBuf {
        self.home.join("session-state").join(id.as_str())
    }

    /// Where large outputs of a session go.
    pub fn scratch_folder(&self, id: &SessionId) -> PathBuf {
        self.session_folder(id).join("temp")
    }

    /// How many bytes the files of a session's folder take; links count as nothing.
    pub async fn session_folder_size(&self, id: &SessionId) -> u64 {
        let folder = self.session_folder(id);
        let counted = tokio::task::spawn_blocking(move || folder_size(&folder));
        counted.await.unwrap_or(0)
    }

    pub async fn remove_session_folder(&self, id: &SessionId) {
        let folder = self.session_folder(id);
        match tokio::fs::remove_dir_all(&folder).await {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "a session's folder could not be removed");
            }
        }
    }
}

/// How many entries of a folder are counted; what is more is not.
const MOST_ENTRIES: usize = 100_000;

/// Adds up the files of a folder. What cannot be read takes no room that we know of.
fn folder_size(folder: &Path) -> u64 {
    let mut waiting = vec![folder.to_owned()];
    let (mut bytes, mut entries) = (0_u64, 0_usize);
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MOST_ENTRIES {
                return bytes;
            }
            // Of the link itself, so that nothing outside is counted or walked.
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => waiting.push(entry.path()),
                Ok(metadata) if metadata.is_file() => bytes = bytes.saturating_add(metadata.len()),
                Ok(_) | Err(_) => {}
            }
        }
    }
    bytes
}
