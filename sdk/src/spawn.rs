//! Which daemon to connect to, with what, and which program to start when none runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use loopd_proto::home_paths;
use loopd_proto::params::launch::{LaunchParams, LaunchState};
use loopd_proto::reach::{Creates, Target};

use crate::Error;

/// Names the daemon's executable.
const PROGRAM: &str = "LOOPD_BIN";

/// How to connect; the default is this process's directory and environment.
#[derive(Debug, Clone, Default)]
pub struct ConnectOptions {
    /// Where sessions work unless they say otherwise.
    pub cwd: Option<PathBuf>,
    /// What shells and providers of this client's sessions see; it also names the home.
    pub env: Option<BTreeMap<String, String>>,
    /// The daemon's executable, instead of looking for it.
    pub program: Option<PathBuf>,
    /// Whether a daemon is started when none runs.
    pub start: StartPolicy,
    /// Lets every tool of this client's sessions run without asking.
    pub allow_all: bool,
}

/// Whether a daemon is started when none runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StartPolicy {
    #[default]
    WhenNeeded,
    /// Only looks in: the client brings no launch, and a broken connection stays broken.
    Never,
}

/// Where things are for some options, whether or not a daemon runs.
#[derive(Debug, Clone)]
pub struct Whereabouts {
    pub home: PathBuf,
    pub socket: PathBuf,
    /// The daemon's executable, when there is one.
    pub program: Option<PathBuf>,
    /// What the daemon calls the build of that executable.
    pub build: Option<String>,
}

impl ConnectOptions {
    /// Finds out where the daemon would be, without connecting or starting anything.
    pub fn whereabouts(&self) -> Result<Whereabouts, Error> {
        let env = self.env.clone().unwrap_or_else(environment);
        let home = home_paths::home(&env)?;
        let program = self.program.clone().or_else(|| find_program(&env));
        Ok(Whereabouts {
            socket: home_paths::socket(&home, &env, user()),
            build: program.as_deref().map(home_paths::build_of),
            home,
            program,
        })
    }
}

/// Where the daemon is, and what this client brings it.
pub(crate) struct Spawn {
    pub(crate) target: Target,
    pub(crate) launch: LaunchParams,
    pub(crate) start: StartPolicy,
}

impl Spawn {
    pub(crate) fn new(options: ConnectOptions) -> Result<Self, Error> {
        let Whereabouts {
            home,
            socket,
            program,
            build,
        } = options.whereabouts()?;
        if program.is_none() && options.start == StartPolicy::WhenNeeded {
            return Err(Error::NoProgram);
        }
        let cwd = options.cwd.or_else(|| std::env::current_dir().ok());
        let cwd = cwd.unwrap_or_else(|| PathBuf::from("/"));
        Ok(Self {
            target: Target {
                home,
                socket,
                user: user(),
                program: program.unwrap_or_default(),
                creates: Creates::WithParents,
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

/// This process's environment; what is not text cannot be told to a daemon and is left out.
pub fn environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Looks for the daemon's executable: as named, beside this program, on the path.
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
