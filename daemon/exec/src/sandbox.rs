//! A sandbox for commands that may look at everything and change nothing.
//!
//! The kernel keeps it, for a command and everything that the command starts, however it is
//! started and for as long as it lives. A command in a sandbox
//!
//! - reads what its user may read, and runs what its user may run;
//! - writes only below its scratch folder, which is its `TMPDIR`, to `/dev/null` and to its own
//!   terminal. Files elsewhere cannot be made, opened for writing, truncated, linked, moved or
//!   removed (Landlock, `files.rs`);
//! - changes no mode, owner, time or extended attribute of any file, not even in its scratch
//!   folder, because Landlock does not know these (seccomp, `system_calls.rs`);
//! - has no sockets, so that no server works in its place; [`NetworkAccess::Allowed`] lets it use
//!   the internet protocols, and no local socket even then;
//! - does not trace other processes, and signals those in its sandbox only (kernels from 6.12 on);
//! - does not mount, load, trace, or otherwise change the system, also as root, and gains no rights
//!   from a program (`no_new_privs`).
//!
//! What it does not hide: a command in a sandbox reads every file that its user may read.
//!
//! Where the kernel cannot do all of this, nothing runs: [`check`] says why.

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;

use std::collections::BTreeMap;
use std::io;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

/// The sandbox of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The only folder to which the command may write. It is created when a command starts.
    pub scratch: PathBuf,
    pub network: NetworkAccess,
}

/// Whether commands in a sandbox may use the internet protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkAccess {
    Denied,
    Allowed,
}

/// Why a sandbox cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error(
        "this kernel has no Landlock, which would keep commands from writing: Linux 6.2 or newer is needed"
    )]
    NoLandlock,
    #[error(
        "Landlock, which would keep commands from writing, is switched off: add `landlock` to the `lsm=` parameter of the kernel"
    )]
    LandlockDisabled,
    #[error(
        "this kernel has version {0} of Landlock, which cannot keep commands from truncating or moving files: Linux 6.2 or newer is needed"
    )]
    OldLandlock(i64),
    #[error("this kernel does not filter system calls (seccomp): {0}")]
    NoSeccomp(#[source] io::Error),
    #[error("commands can be kept from writing on Linux only")]
    OtherSystem,
    #[error("no filter of system calls could be made: {0}")]
    Filter(String),
    #[error("the scratch folder {} could not be made: {source}", folder.display())]
    Scratch { folder: PathBuf, source: io::Error },
    #[error("the command could not be kept from writing: {0}")]
    Failed(#[source] io::Error),
}

impl Sandbox {
    /// A sandbox without a network.
    pub fn new(scratch: impl Into<PathBuf>) -> Self {
        Self {
            scratch: scratch.into(),
            network: NetworkAccess::Denied,
        }
    }

    /// Makes the scratch folder and the variables that name it; fails where there is no sandbox.
    pub(crate) fn prepare(&self, env: &mut BTreeMap<String, String>) -> Result<(), SandboxError> {
        check()?;
        let failed = |source| SandboxError::Scratch {
            folder: self.scratch.clone(),
            source,
        };
        make_private_folder(&self.scratch).map_err(failed)?;
        let scratch = self.scratch.to_string_lossy().into_owned();
        for name in ["TMPDIR", "TMP", "TEMP"] {
            env.insert(name.to_owned(), scratch.clone());
        }
        // `git status` would write its index.
        env.insert("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned());
        Ok(())
    }
}

impl NetworkAccess {
    /// The name in an order to a keeper.
    #[cfg(target_os = "linux")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Allowed => "allowed",
        }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Denied, Self::Allowed]
            .into_iter()
            .find(|access| access.name() == name)
    }
}

#[cfg(unix)]
fn make_private_folder(folder: &std::path::Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

#[cfg(not(unix))]
fn make_private_folder(folder: &std::path::Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// Whether this system can keep commands from writing.
#[cfg(not(target_os = "linux"))]
pub fn check() -> Result<(), SandboxError> {
    Err(SandboxError::OtherSystem)
}

/// Whether this system can keep commands from writing.
#[cfg(target_os = "linux")]
pub fn check() -> Result<(), SandboxError> {
    static CHECKED: AtomicBool = AtomicBool::new(false);
    // A kernel that has it keeps it.
    if !CHECKED.load(Ordering::Relaxed) {
        files::check(crate::sys::landlock_version())?;
        crate::sys::can_filter_system_calls().map_err(SandboxError::NoSeccomp)?;
        system_calls::check()?;
        CHECKED.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// What a keeper gets ready before it starts a command in a sandbox.
#[cfg(target_os = "linux")]
pub(crate) struct Confinement {
    files: files::FileRules,
    system_calls: system_calls::SystemCallFilters,
}

#[cfg(target_os = "linux")]
impl Confinement {
    /// Prepares the sandbox of a command that runs on the terminal `tty`, if it has one.
    pub(crate) fn of(sandbox: &Sandbox, tty: Option<&Path>) -> io::Result<Self> {
        Ok(Self {
            files: files::FileRules::of(&sandbox.scratch, tty)?,
            system_calls: system_calls::SystemCallFilters::of(sandbox.network)
                .map_err(io::Error::other)?,
        })
    }

    /// Confines this process and all that it starts from now on, for good.
    pub(crate) fn enter(&self) -> io::Result<()> {
        // A program that crashes leaves no file with its memory.
        let none = rustix::process::Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        rustix::process::setrlimit(rustix::process::Resource::Core, none)?;
        self.files.enter()?;
        // Last: the filters deny calls that the steps above need.
        self.system_calls.enter()
    }
}
