//! Where the daemon keeps things: the home, a session's folder, a private runtime folder.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no home.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("no home: set LOOPD_HOME, COPILOT_HOME or HOME to a directory that can be written")]
    Unset,
    #[error("the runtime folder {path} cannot be used: {source}")]
    Runtime { path: PathBuf, source: io::Error },
}

/// Finds the home: LOOPD_HOME, else loopd below COPILOT_HOME, else .loopd below HOME.
pub fn find(env: &BTreeMap<String, String>) -> Result<PathBuf, HomeError> {
    let variable = |name: &str| env.get(name).filter(|value| !value.is_empty());
    if let Some(home) = variable("LOOPD_HOME") {
        return Ok(PathBuf::from(home));
    }
    if let Some(home) = variable("COPILOT_HOME") {
        return Ok(Path::new(home).join("loopd"));
    }
    variable("HOME")
        .map(|home| Path::new(home).join(".loopd"))
        .ok_or(HomeError::Unset)
}

/// Creates a folder that only this user can enter, with its parents.
pub async fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = tokio::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(folder).await
}
