//! Where the daemon keeps things: the home, a session's folder, a private runtime folder.

pub mod watch;

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

/// Where a background daemon writes what it has to say.
pub fn log_file(home: &Path) -> PathBuf {
    home.join("daemon.log")
}

/// A log that grew past this begins anew; the old one is kept beside it.
const LOG_LIMIT: u64 = 4 * 1024 * 1024;

/// Opens the log for appending, for this user's eyes only.
pub fn open_log(home: &Path) -> io::Result<std::fs::File> {
    let path = log_file(home);
    if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > LOG_LIMIT) {
        std::fs::rename(&path, home.join("daemon.log.old"))?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

/// Creates a folder that only this user can enter, with its parents.
pub async fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = tokio::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(folder).await
}
