//! Which daemon to connect to, and which program to start if none is running.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use loopd_proto::daemon_connection::{CreateHome, DaemonTarget};
use loopd_proto::params::launch::{LaunchParams, LaunchState};
use loopd_proto::{build_id, home_paths};

use crate::Error;

/// The environment variable that names the daemon's executable.
const PROGRAM: &str = "LOOPD_BIN";

/// How to connect. The default is the directory and environment of this process.
#[derive(Debug, Clone, Default)]
pub struct ConnectOptions {
    /// The working directory of sessions that name none.
    pub cwd: Option<PathBuf>,
    /// The environment for the shells and providers of this client's sessions. It also names the
    /// home.
    pub env: Option<BTreeMap<String, String>>,
    /// The daemon's executable; searched for when absent.
    pub program: Option<PathBuf>,
    pub start: StartPolicy,
    /// Lets every tool of this client's sessions run without a permission request.
    pub allow_all: bool,
}

/// Whether to start a daemon if none is running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StartPolicy {
    #[default]
    WhenNeeded,
    /// Connect only to a running daemon, send no launch, and do not reconnect.
    Never,
}

/// The paths of a daemon, running or not.
#[derive(Debug, Clone)]
pub struct DaemonPaths {
    pub home: PathBuf,
    pub socket: PathBuf,
    /// The daemon's executable, if one was found.
    pub program: Option<PathBuf>,
    /// The build id of that executable.
    pub build: Option<String>,
}

impl ConnectOptions {
    /// Returns the paths of the daemon, without connecting or starting anything.
    pub fn daemon_paths(&self) -> Result<DaemonPaths, Error> {
        let env = self.env.clone().unwrap_or_else(environment);
        let home = home_paths::home(&env)?;
        let program = self.program.clone().or_else(|| find_program(&env));
        Ok(DaemonPaths {
            socket: home_paths::socket(&home, &env, user()),
            build: program.as_deref().map(build_id::of),
            home,
            program,
        })
    }
}

/// Where the daemon is, and the launch that this client sends to it.
pub(crate) struct ConnectPlan {
    pub(crate) target: DaemonTarget,
    pub(crate) launch: LaunchParams,
    pub(crate) start: StartPolicy,
}

impl ConnectPlan {
    pub(crate) fn new(options: ConnectOptions) -> Result<Self, Error> {
        let DaemonPaths {
            home,
            socket,
            program,
            build,
        } = options.daemon_paths()?;
        if program.is_none() && options.start == StartPolicy::WhenNeeded {
            return Err(Error::NoProgram);
        }
        let cwd = options.cwd.or_else(|| std::env::current_dir().ok());
        let cwd = cwd.unwrap_or_else(|| PathBuf::from("/"));
        Ok(Self {
            target: DaemonTarget {
                home,
                socket,
                user: user(),
                program: program.unwrap_or_default(),
                create_home: CreateHome::WithParents,
            },
            launch: LaunchParams {
                build: build.unwrap_or_default(),
                cwd: cwd.to_string_lossy().into_owned(),
                env: options.env.unwrap_or_else(environment),
                auth_token_env: None,
                connection_token: None,
                yolo: options.allow_all,
                session_idle_timeout: None,
                outlives_home: false,
                state: LaunchState::default(),
            },
            start: options.start,
        })
    }
}

/// Returns this process's environment. Variables that are not UTF-8 are left out, because the
/// protocol cannot carry them.
pub fn environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Searches for the daemon's executable: as named by `LOOPD_BIN`, beside this program, on `PATH`.
fn find_program(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    if let Some(named) = env.get(PROGRAM).filter(|named| !named.is_empty()) {
        return Some(PathBuf::from(named));
    }
    let name = format!("loopd{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok();
    let beside = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = env.get("PATH").map(String::as_str).unwrap_or_default();
    beside
        .into_iter()
        .chain(std::env::split_paths(path))
        .map(|folder| folder.join(&name))
        .find(|program| program.is_file())
}

#[cfg(unix)]
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn user() -> u32 {
    0
}
