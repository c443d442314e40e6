//! The ledger: a folder `<home>/processes` with one file per command. A keeper writes the file when
//! its command starts and removes it when all processes of the command are gone. The next daemon
//! reads the files that are left.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use loopd_proto::id::{ProcessId, SessionId};
use loopd_proto::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::ancestry::KEEPER_NAME;
use super::procfs::ProcessIdentity;
use super::{Class, Exit};

/// The file that names the running holder.
const HOLDER: &str = "holder";

/// The folder for files that cannot be read.
const ASIDE: &str = "unreadable";

/// The contents of the ledger file of one command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LedgerEntry {
    pub(super) id: ProcessId,
    pub(super) class: Class,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<SessionId>,
    pub(super) label: String,
    pub(super) started: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) log: Option<PathBuf>,
    pub(super) boot: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<ProcessIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) keeper: Option<ProcessIdentity>,
}

/// The folder with the ledger files.
#[derive(Debug, Clone)]
pub(super) struct Ledger(PathBuf);

impl Ledger {
    pub(super) fn of(home: &Path) -> Self {
        Self(home.join("processes"))
    }

    /// Makes the folder.
    pub(super) fn prepare(&self) -> io::Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
    }

    pub(super) fn path(&self, id: &ProcessId) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }

    /// Notes the running holder, in case that the daemon is killed while the holder is stopped.
    pub(super) fn note_holder(&self, boot: &str, holder: ProcessIdentity) -> io::Result<()> {
        let text = format!("{boot} {} {}\n", holder.pid, holder.start);
        write_beside(&self.0.join(HOLDER), &text)
    }

    /// The noted holder, if it was started since the last boot.
    pub(super) fn noted_holder(&self, boot: &str) -> Option<ProcessIdentity> {
        let text = fs::read_to_string(self.0.join(HOLDER)).ok()?;
        let mut words = text.split_whitespace();
        (words.next()? == boot).then_some(())?;
        Some(ProcessIdentity {
            pid: words.next()?.parse().ok()?,
            start: words.next()?.parse().ok()?,
        })
    }

    /// Removes the note after the holder has ended.
    pub(super) fn forget_holder(&self) {
        remove(&self.0.join(HOLDER));
    }

    pub(super) fn remove(&self, id: &ProcessId) {
        remove(&self.path(id));
    }

    /// Reads all files; moves files that cannot be read to [`ASIDE`].
    pub(super) fn read(&self) -> Vec<LedgerEntry> {
        let Ok(entries) = fs::read_dir(&self.0) else {
            return Vec::new();
        };
        let files = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "json")
            });
        files
            .filter_map(|path| match read(&path) {
                Ok(entry) if self.path(&entry.id) == path => Some(entry),
                Ok(_) => {
                    self.set_aside(&path, "it is not named after its id");
                    None
                }
                Err(error) => {
                    self.set_aside(&path, &error.to_string());
                    None
                }
            })
            .collect()
    }

    fn set_aside(&self, path: &Path, why: &str) {
        tracing::warn!(file = %path.display(), why, "a file of the ledger of processes is set aside");
        let folder = self.0.join(ASIDE);
        let moved = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .and_then(|()| fs::rename(path, folder.join(path.file_name().unwrap_or_default())));
        if let Err(error) = moved {
            tracing::warn!(%error, "it could not be moved and stays where it is");
        }
    }
}

/// Writes the file of a command that has started.
pub(super) fn write(path: &Path, entry: &LedgerEntry) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // Not synced: a system crash also ends the command.
    file.write_all(&serde_json::to_vec(entry)?)
}

pub(super) fn remove(path: &Path) {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(file = %path.display(), %error, "a file of the ledger of processes stays");
        }
    }
}

fn read(path: &Path) -> io::Result<LedgerEntry> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// The file beside a log that holds the pid of its command.
pub(super) fn pid_file(log: &Path) -> PathBuf {
    log.with_extension("pid")
}

/// The file beside a log that says how its command ended.
pub(super) fn exit_file(log: &Path) -> PathBuf {
    log.with_extension("exit")
}

/// Writes a file beside a log atomically.
pub(super) fn write_beside(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&new, path)
}

/// The text of an exit file: the exit code as a shell would show it.
pub(super) fn exit_text(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("{code}\n"),
        Exit::Signal(signal) => format!("{} signal {signal}\n", 128 + signal),
        Exit::Unknown => "unknown\n".to_owned(),
    }
}

/// Shows how a detached command ended in the name of its keeper, as three characters.
pub(super) fn show_exit(exit: Exit) {
    let shown = match exit {
        Exit::Code(code) => format!("{:03}", code & 0xFF),
        Exit::Signal(signal) => format!("s{signal:02}"),
        Exit::Unknown => return,
    };
    let name = [KEEPER_NAME.to_bytes(), shown.as_bytes()].concat();
    if let Ok(name) = std::ffi::CString::new(name) {
        // If it fails, the daemon learns the exit when the keeper has ended.
        rustix::thread::set_name(&name).ok();
    }
}

/// Reads what `show_exit` put into the name of a keeper.
pub(super) fn shown_exit(keeper: &str) -> Option<Exit> {
    let shown = keeper.strip_prefix(KEEPER_NAME.to_str().ok()?)?;
    match shown.strip_prefix('s') {
        Some(signal) => signal.parse().ok().map(Exit::Signal),
        None => shown.parse().ok().map(Exit::Code),
    }
}

/// Reads what `exit_text` wrote.
pub(crate) fn read_exit(log: &Path) -> Option<Exit> {
    let text = fs::read_to_string(exit_file(log)).ok()?;
    let mut words = text.split_whitespace();
    let code = words.next()?.parse();
    Some(match (code, words.nth(1)) {
        (Ok(_), Some(signal)) => signal.parse().map_or(Exit::Unknown, Exit::Signal),
        (Ok(code), None) => Exit::Code(code),
        (Err(_), _) => Exit::Unknown,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
