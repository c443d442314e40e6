//! A sandbox for commands that may look at everything and change nothing.
//!
//! The kernel keeps it, for a command and everything that the command starts, however it is
//! started and for as long as it lives. A command in a sandbox
//!
//! - reads what its user may read, the database of the daemon excepted (`readable.rs`), and runs what
//!   its user may run;
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
//! What it does not hide: a command in a sandbox reads every other file that its user may read. A file
//! that is made beside the home of the daemon, or beside a folder that the home is in, after the command
//! started, cannot be read.
//!
//! Where the kernel cannot do all of this, nothing runs: [`check`] says why.

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod readable;
#[cfg(target_os = "linux")]
mod scratch;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;

use std::collections::BTreeMap;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_os = "linux")]
use parking_lot::Mutex;

/// The largest file that a command may write, in bytes. A command that writes more is ended by the
/// kernel, and its shell says "File size limit exceeded".
#[cfg(target_os = "linux")]
const LARGEST_FILE: u64 = 256 * 1024 * 1024;

/// How much a scratch folder may hold for another command or shell to start, in bytes.
#[cfg(target_os = "linux")]
const MOST_SCRATCH: u64 = 512 * 1024 * 1024;

/// The sandbox of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The only folder to which the command may write.
    pub scratch: ScratchFolder,
    pub network: NetworkAccess,
}

/// The scratch folder of commands that share one. It is made when the first of them starts.
#[derive(Debug, Clone)]
pub struct ScratchFolder(Arc<ScratchPlace>);

#[derive(Debug)]
struct ScratchPlace {
    parent: PathBuf,
    #[cfg(target_os = "linux")]
    made: Mutex<Option<scratch::MadeFolder>>,
}

/// Two scratch folders are equal if they are the same one.
impl PartialEq for ScratchFolder {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ScratchFolder {}

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
    #[error(
        "the scratch folder {} of plan mode holds more than {} MiB; leave plan mode, which empties it, or remove files there", folder.display(), limit / 1024 / 1024
    )]
    ScratchFull { folder: PathBuf, limit: u64 },
    #[error("the command could not be kept from writing: {0}")]
    Failed(#[source] io::Error),
}

impl Sandbox {
    /// A sandbox without a network, whose scratch folder will be in the folder `parent`.
    pub fn new(parent: impl Into<PathBuf>) -> Self {
        Self {
            scratch: ScratchFolder::below(parent),
            network: NetworkAccess::Denied,
        }
    }

    /// Makes the scratch folder and the variables that name it; fails where there is no sandbox.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn prepare(
        &self,
        _home: &HomePath,
        _env: &mut BTreeMap<String, String>,
    ) -> Result<(), SandboxError> {
        check()
    }

    /// Makes the scratch folder and the variables that name it; fails where there is no sandbox.
    #[cfg(target_os = "linux")]
    pub(crate) fn prepare(
        &self,
        home: &HomePath,
        env: &mut BTreeMap<String, String>,
    ) -> Result<(), SandboxError> {
        check()?;
        let scratch = self.scratch.open(home)?;
        let scratch = scratch.to_string_lossy().into_owned();
        for name in ["TMPDIR", "TMP", "TEMP"] {
            env.insert(name.to_owned(), scratch.clone());
        }
        // `git status` would write its index.
        env.insert("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned());
        Ok(())
    }
}

/// Removes the scratch folders that a daemon which was killed left in the folders of its sessions, which
/// all are in the folder `sessions` of its home. Blocks on the disk. No command may run in a sandbox yet.
#[cfg_attr(
    not(target_os = "linux"),
    expect(
        unused_variables,
        reason = "there is no sandbox that would leave folders"
    )
)]
pub fn remove_left_scratch(home: &Path, sessions: &Path) {
    #[cfg(target_os = "linux")]
    match scratch::remove_left(&HomePath::new(home).real(sessions)) {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "scratch folders of an earlier daemon were removed"),
        Err(error) => tracing::warn!(%error, "scratch folders could not be looked for"),
    }
}

impl ScratchFolder {
    /// A scratch folder that will be in the folder `parent`.
    pub fn below(parent: impl Into<PathBuf>) -> Self {
        Self(Arc::new(ScratchPlace {
            parent: parent.into(),
            #[cfg(target_os = "linux")]
            made: Mutex::default(),
        }))
    }

    /// Another folder in the same place, for commands that do not share this one.
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self::below(self.0.parent.clone())
    }

    /// Removes the folder with all that is in it, once its commands have ended. Fails with what people are
    /// told if something stays.
    pub(crate) fn remove(&self) -> Result<(), String> {
        #[cfg(target_os = "linux")]
        if let Some(made) = self.0.made.lock().take() {
            let path = made.path.clone();
            made.remove().map_err(|error| {
                let path = path.display();
                format!("The scratch folder of plan mode {path} stays, because it could not be removed: {error}.")
            })?;
        }
        Ok(())
    }

    /// Returns the path of the folder; makes it if it is not there.
    #[cfg(target_os = "linux")]
    fn open(&self, home: &HomePath) -> Result<PathBuf, SandboxError> {
        let mut made = self.0.made.lock();
        if let Some(made) = made.as_ref().filter(|made| made.is_in_place()) {
            if !made.holds_at_most(MOST_SCRATCH) {
                return Err(SandboxError::ScratchFull {
                    folder: made.path.clone(),
                    limit: MOST_SCRATCH,
                });
            }
            return Ok(made.path.clone());
        }
        let fresh = scratch::MadeFolder::new_in(&home.real(&self.0.parent));
        let fresh = fresh.map_err(|source| SandboxError::Scratch {
            folder: self.0.parent.clone(),
            source,
        })?;
        let path = fresh.path.clone();
        *made = Some(fresh);
        Ok(path)
    }

    /// Returns a descriptor of the folder, which was opened when it was made.
    #[cfg(target_os = "linux")]
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        let made = self.0.made.lock();
        let made = made.as_ref().ok_or(io::ErrorKind::NotFound)?;
        made.descriptor.try_clone()
    }
}

/// The daemon's home as it is named, and where it was when the daemon started.
#[derive(Debug)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "there is no sandbox that would need the paths")
)]
pub(crate) struct HomePath {
    named: PathBuf,
    found: PathBuf,
}

impl HomePath {
    pub(crate) fn new(home: &Path) -> Self {
        let found = home.canonicalize();
        Self {
            named: home.to_owned(),
            found: found.unwrap_or_else(|_| home.to_owned()),
        }
    }

    /// Returns a path in the home without the links that led to the home.
    #[cfg(target_os = "linux")]
    fn real(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.named) {
            Ok(inside) => self.found.join(inside),
            Err(_) => path.to_owned(),
        }
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
    /// Prepares the sandbox of a command that writes to the folder `scratch` and runs on the
    /// terminal `tty`, if it has one. `home` is the home of the daemon.
    pub(crate) fn of(
        network: NetworkAccess,
        scratch: &OwnedFd,
        tty: Option<&Path>,
        home: &Path,
    ) -> io::Result<Self> {
        Ok(Self {
            files: files::FileRules::of(scratch, tty, home)?,
            system_calls: system_calls::SystemCallFilters::of(network).map_err(io::Error::other)?,
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
        let largest = rustix::process::Rlimit {
            current: Some(LARGEST_FILE),
            maximum: Some(LARGEST_FILE),
        };
        rustix::process::setrlimit(rustix::process::Resource::Fsize, largest)?;
        self.files.enter()?;
        // Last: the filters deny calls that the steps above need.
        self.system_calls.enter()
    }
}
