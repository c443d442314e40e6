//! What all parts of the daemon share: the store, the clock, the tools, the settings.
//!
//! `app` builds it once for all sessions. It holds nothing that belongs to a connection.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_mcp::SharedServers;
use loopd_proto::id::SessionId;
use loopd_store::Store;

use crate::config::Config;
use crate::hook_times::HookTimes;
use crate::logins::Logins;
use crate::token_cache::TokenCache;
use crate::tool::catalog::Catalog;
use loopd_exec::clock::Clock;
use loopd_exec::keep_alive::KeepAlive;
use loopd_exec::process::Processes;
use loopd_exec::worktree::Worktrees;
use loopd_kernel::model::ToolSpec;
use loopd_model::model_lists::ModelLists;
use loopd_model::replay::RecordingLock;

/// The name of the file with a session's plan, in the session's folder.
pub const PLAN: &str = "plan.md";

/// What sessions need from the daemon.
pub struct Services {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub catalog: Catalog,
    /// The descriptions of the built-in tools for models; their schemas are made once.
    pub tool_specs: Vec<Arc<ToolSpec>>,
    pub config: Config,
    pub model_lists: Arc<ModelLists>,
    /// Serialises the writing of recorded conversations.
    pub recording: RecordingLock,
    pub home: PathBuf,
    pub keep_alive: KeepAlive,
    /// Starts every process of the daemon.
    pub processes: Processes,
    /// The worktrees that isolated sub-agents work in.
    pub worktrees: Worktrees,
    /// How often hooks ran, and how long they took.
    pub hook_times: HookTimes,
    /// How many tokens texts have that go out with every request.
    pub tokens: TokenCache,
    /// The MCP servers that several sessions share.
    pub shared_servers: SharedServers,
    /// The logins at MCP servers.
    pub logins: Logins,
    pub version: &'static str,
}

impl Services {
    /// Returns the folder of a session; it is created when the first file is stored in it.
    pub fn session_folder(&self, id: &SessionId) -> PathBuf {
        self.sessions_folder().join(id.as_str())
    }

    /// Returns the folder with the folders of all sessions.
    pub fn sessions_folder(&self) -> PathBuf {
        self.home.join("session-state")
    }

    /// Returns the file with a session's plan, without links, as requests to write it name it.
    pub fn plan_file(&self, id: &SessionId) -> String {
        let folder = self.session_folder(id);
        let folder = folder.canonicalize().unwrap_or(folder);
        folder.join(PLAN).to_string_lossy().into_owned()
    }

    /// Returns the folder for large outputs of a session.
    pub fn scratch_folder(&self, id: &SessionId) -> PathBuf {
        self.session_folder(id).join("temp")
    }

    /// Returns how many bytes the files in a session's folder take; links count as 0.
    pub async fn session_folder_size(&self, id: &SessionId) -> u64 {
        let folder = self.session_folder(id);
        let counted = tokio::task::spawn_blocking(move || folder_size(&folder));
        counted.await.unwrap_or(0)
    }

    /// Removes the files of a session. It is no failure if it has none.
    pub async fn remove_session_folder(&self, id: &SessionId) -> Result<(), FilesNotRemoved> {
        let folder = self.session_folder(id);
        match tokio::fs::remove_dir_all(&folder).await {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(FilesNotRemoved {
                session: id.clone(),
                folder,
                error,
            }),
        }
    }
}

/// Why the files of a session are still there.
#[derive(Debug, thiserror::Error)]
#[error(
    "the session {session} was not deleted, because its files in {} could not be removed: {error}",
    folder.display()
)]
pub struct FilesNotRemoved {
    session: SessionId,
    folder: PathBuf,
    error: std::io::Error,
}

/// The most entries of a folder that are counted.
const MOST_ENTRIES: usize = 100_000;

/// Adds up the sizes of the files in a folder. Entries that cannot be read count as 0.
fn folder_size(folder: &Path) -> u64 {
    let mut waiting = vec![folder.to_owned()];
    let (mut bytes, mut entries) = (0_u64, 0_usize);
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MOST_ENTRIES {
                return bytes;
            }
            // A link has its own metadata here, so that nothing outside the folder is counted.
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => waiting.push(entry.path()),
                Ok(metadata) if metadata.is_file() => bytes = bytes.saturating_add(metadata.len()),
                Ok(_) | Err(_) => {}
            }
        }
    }
    bytes
}
