//! Connects to the daemon of a home, and starts one if none is running. Called by relays and
//! clients, which bring their launch. However many start a daemon at once, exactly one serves.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinHandle;

use crate::params::launch::{LAUNCH_LIMIT, LaunchParams, Launched};
use crate::wire::{CallError, CloseReason, Limits, Peer, Service, connect};
use crate::{error, home_paths};

/// How long connecting may take, the start of a daemon included.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long to wait before the next attempt to connect.
const RETRY_AFTER: Duration = Duration::from_millis(5);

/// How much a message is longer than its parameters.
const ENVELOPE: usize = 256;

/// The environment variable that holds the daemon's idle timeout in seconds.
const IDLE_TIMEOUT: &str = "LOOPD_IDLE_TIMEOUT";
/// Sets how many seconds after the last client left a started daemon keeps idle shells and questions.
const UNATTENDED_TIMEOUT: &str = "LOOPD_UNATTENDED_TIMEOUT";

/// Why no connection to a daemon could be made.
#[derive(Debug, thiserror::Error)]
pub enum DaemonConnectionError {
    #[error("no daemon answered within {} s on {}; look into {}", START_TIMEOUT.as_secs(), socket.display(), log.display())]
    Timeout { socket: PathBuf, log: PathBuf },
    #[error(
        "this launch has {length} bytes, the limit is {LAUNCH_LIMIT}; make the environment smaller"
    )]
    TooLarge { length: usize },
    #[error("the variable {name} is `{value}`; give a whole number of seconds, or leave it unset")]
    TimeoutVariable { name: &'static str, value: String },
    #[error("the daemon refused this launch: {0}")]
    Refused(#[source] CallError),
    /// The daemon takes no connection from this process.
    #[error("{0}")]
    TurnedAway(String),
    #[error("the home cannot be used: {}", home_paths::problem(path, error))]
    Home { path: PathBuf, error: io::Error },
    #[error(transparent)]
    HomePath(#[from] home_paths::HomePathError),
    #[error("{} cannot be started: {source}", program.display())]
    Spawn { program: PathBuf, source: io::Error },
    #[error("the daemon could not start: {0}")]
    Start(String),
    #[error("the daemon ended before it was ready; look into {}", log.display())]
    Ended { log: PathBuf },
}

/// The daemon to connect to, and how to start it.
#[derive(Debug, Clone)]
pub struct DaemonTarget {
    pub home: PathBuf,
    pub socket: PathBuf,
    /// The user who must own the socket's directory.
    pub user: u32,
    /// The daemon's executable.
    pub program: PathBuf,
    /// What to create if the home is missing.
    pub create_home: CreateHome,
}

/// Which directories are created for a new daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateHome {
    /// The home and its parents.
    WithParents,
    /// The home only. If its parent was deleted, the user does not want it back.
    HomeOnly,
}

/// Checks the variables that hold a timeout in seconds.
pub fn check_timeouts(env: &BTreeMap<String, String>) -> Result<(), DaemonConnectionError> {
    for name in [IDLE_TIMEOUT, UNATTENDED_TIMEOUT] {
        if let Some(value) = env.get(name)
            && value.trim().parse::<u64>().is_err()
        {
            let value = value.escape_debug().to_string();
            return Err(DaemonConnectionError::TimeoutVariable { name, value });
        }
    }
    Ok(())
}

/// A connection on which the daemon has accepted the launch.
pub struct LaunchedConnection {
    pub peer: Peer,
    pub launched: Launched,
    /// The task that drives the connection. It ends with the connection; aborting it closes it.
    pub driving: JoinHandle<CloseReason>,
}

/// The result of starting a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartOutcome {
    /// The daemon serves the socket.
    Ready,
    /// Another daemon holds the home and will do. It may not serve the socket yet.
    HomeInUse,
}

impl DaemonTarget {
    /// Connects and sends the launch; starts a daemon if none answers.
    pub async fn connect_or_start(
        &self,
        launch: &LaunchParams,
        service: Arc<dyn Service>,
    ) -> Result<LaunchedConnection, DaemonConnectionError> {
        check_timeouts(&launch.env)?;
        let variable = |name: &str| launch.env.get(name).map(|value| value.trim());
        let timeouts = [
            ("--idle-timeout", variable(IDLE_TIMEOUT)),
            ("--unattended-timeout", variable(UNATTENDED_TIMEOUT)),
        ];
        // The daemon cuts off a larger one, and that looks like a daemon that is about to exit.
        let length = serde_json::to_vec(launch).map_or(0, |launch| launch.len());
        if length > LAUNCH_LIMIT - ENVELOPE {
            return Err(DaemonConnectionError::TooLarge { length });
        }
        let connecting = async {
            loop {
                if let Some(connected) = self.try_connect(launch, service.clone()).await? {
                    return Ok(connected);
                }
                match self.start(&timeouts).await? {
                    StartOutcome::Ready => {}
                    StartOutcome::HomeInUse => tokio::time::sleep(RETRY_AFTER).await,
                }
            }
        };
        match tokio::time::timeout(START_TIMEOUT, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(DaemonConnectionError::Timeout {
                socket: self.socket.clone(),
                log: home_paths::log_file(&self.home),
            }),
        }
    }

    /// Connects and sends the launch; `None` if no daemon serves the socket, or it is about to exit.
    async fn try_connect(
        &self,
        launch: &LaunchParams,
        service: Arc<dyn Service>,
    ) -> Result<Option<LaunchedConnection>, DaemonConnectionError> {
        let Ok((peer, driving)) = connect_running(&self.socket, service).await else {
            return Ok(None);
        };
        let launched = peer.request::<_, Launched>("loopd.launch", launch).await;
        let launched = match launched {
            Ok(launched) => launched,
            Err(CallError::Closed) => return Ok(None),
            // The daemon has lost its home and exits.
            Err(CallError::Remote(refusal)) if refusal.code == i64::from(error::HOME_EMPTIED) => {
                peer.closed().await;
                return Ok(None);
            }
            Err(CallError::Remote(refusal))
                if refusal.code == i64::from(error::CONNECTION_REFUSED) =>
            {
                return Err(DaemonConnectionError::TurnedAway(refusal.message));
            }
            Err(error) => {
                peer.close(CloseReason::Done);
                return Err(DaemonConnectionError::Refused(error));
            }
        };
        if launched.leaving {
            peer.closed().await;
            return Ok(None);
        }
        if launched.build != launch.build {
            tracing::warn!(
                daemon = launched.build,
                own = launch.build,
                "a daemon of another build is at work and is used"
            );
        }
        Ok(Some(LaunchedConnection {
            peer,
            launched,
            driving,
        }))
    }

    /// Starts a daemon and waits until it serves or reports an error.
    async fn start(
        &self,
        timeouts: &[(&str, Option<&str>)],
    ) -> Result<StartOutcome, DaemonConnectionError> {
        let home_error = |path: &Path, error| DaemonConnectionError::Home {
            path: path.to_owned(),
            error,
        };
        let spawn_error = |source| DaemonConnectionError::Spawn {
            program: self.program.clone(),
            source,
        };
        match self.create_home {
            CreateHome::WithParents => home_paths::create_private(&self.home),
            CreateHome::HomeOnly => home_paths::create_private_alone(&self.home),
        }
        .map_err(|error| home_error(&self.home, error))?;
        home_paths::prepare_socket(&self.socket, self.user)?;
        let log = home_paths::open_log(&self.home)
            .map_err(|error| home_error(&home_paths::log_file(&self.home), error))?;
        let mut command = tokio::process::Command::new(&self.program);
        command
            .arg("serve")
            .arg("--background")
            .arg("--socket")
            .arg(&self.socket)
            .current_dir("/")
            .env_clear()
            .env("LOOPD_HOME", &self.home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        for (option, seconds) in timeouts {
            if let Some(seconds) = seconds {
                command.arg(option).arg(seconds);
            }
        }
        let mut child = command.spawn().map_err(spawn_error)?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let mut stdout = BufReader::new(stdout);
            stdout.read_line(&mut line).await.map_err(spawn_error)?;
        }
        match line.trim().split_once(": ") {
            Some(("ready", _)) => Ok(StartOutcome::Ready),
            Some(("held", _)) => {
                child.wait().await.map_err(spawn_error)?;
                Ok(StartOutcome::HomeInUse)
            }
            Some(("error", why)) => Err(DaemonConnectionError::Start(why.to_owned())),
            _ => Err(DaemonConnectionError::Ended {
                log: home_paths::log_file(&self.home),
            }),
        }
    }
}

/// Connects to a running daemon; the returned task drives the connection and ends with it.
#[expect(
    clippy::disallowed_methods,
    reason = "the handle goes to the caller, who owns the connection"
)]
pub async fn connect_running(
    socket: &Path,
    service: Arc<dyn Service>,
) -> io::Result<(Peer, JoinHandle<CloseReason>)> {
    let stream = connect_socket(socket).await?;
    let (peer, driving) = connect(stream, service, Limits::default());
    Ok((peer, tokio::spawn(driving)))
}

/// Connects to the socket of a daemon.
///
/// A plain Unix stream can be closed in one direction: the daemon notices at once that its client
/// has ended, and can still send its last messages.
#[cfg(unix)]
pub async fn connect_socket(path: &Path) -> io::Result<tokio::net::UnixStream> {
    tokio::net::UnixStream::connect(path).await
}

/// Connects to the pipe of a daemon, which is named like the socket would be.
#[cfg(windows)]
#[expect(clippy::unused_async, reason = "connecting waits on other systems")]
pub async fn connect_socket(
    path: &Path,
) -> io::Result<tokio::net::windows::named_pipe::NamedPipeClient> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    tokio::net::windows::named_pipe::ClientOptions::new().open(format!(r"\\.\pipe\{name}"))
}
