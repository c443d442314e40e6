//! How much is kept of files for rewinds, and where that is configured.

use schemars::JsonSchema;
use serde::Deserialize;

/// How much is kept of files for rewinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The largest file that a tool may write and whose versions are kept.
    pub file: u64,
    /// All versions of one session.
    pub session_bytes: u64,
    /// The largest file of a workspace that is copied.
    pub baseline_file: u64,
    /// All files of a workspace that are copied.
    pub baseline_bytes: u64,
    /// The most files and folders of a workspace.
    pub entries: usize,
}

/// The section `[rewind]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RewindSettings {
    /// Whether earlier versions of files are kept, for sessions that do not say.
    pub track_files: bool,
    /// How many MiB of them are kept for a session; the oldest versions go first.
    session_mb: u32,
    /// How many MiB of the working directory are copied, to see what commands change.
    workspace_mb: u32,
    /// How many files and folders of the working directory are looked at.
    workspace_files: u32,
}

impl Default for RewindSettings {
    fn default() -> Self {
        Self {
            track_files: true,
            session_mb: 256,
            workspace_mb: 32,
            workspace_files: 20_000,
        }
    }
}

impl RewindSettings {
    pub fn bounds(self) -> Bounds {
        const MB: u64 = 1024 * 1024;
        Bounds {
            file: 10 * MB,
            session_bytes: u64::from(self.session_mb) * MB,
            baseline_file: MB,
            baseline_bytes: u64::from(self.workspace_mb) * MB,
            entries: usize::try_from(self.workspace_files).unwrap_or(usize::MAX),
        }
    }
}
