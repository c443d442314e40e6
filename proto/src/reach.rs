//! Reaches the daemon of a home: connects, or starts it first; exactly one serves, however many
//! start at once. Called by relays and clients with their launch; what they say then is theirs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinHandle;

use crate::params::launch::{LaunchParams, Launched};
use crate::wire::{CallError, CloseReason, Limits, Peer, Service, connect};
use crate::{error, home_paths};

/// How long a daemon may take to be there.
const START_WAIT: Duration = Duration::from_secs(20);
/// How long to wait before looking for the socket again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The variable that says after how many seconds alone a daemon leaves.
const IDLE_TIMEOUT: &str = "LOOPD_IDLE_TIMEOUT";

/// Why no daemon could be reached.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    #[error("no daemon answered within {} s on {}; look into {}", START_WAIT.as_secs(), socket.display(), log.display())]
    Late { socket: PathBuf, log: PathBuf },
    #[error("the daemon refused this launch: {0}")]
    Refused(#[source] CallError),
    #[error("the home {} cannot be used: {source}", home.display())]
    Home { home: PathBuf, source: io::Error },
    #[error(transparent)]
    Place(#[from] home_paths::HomePathError),
    #[error("{} cannot be started: {source}", program.display())]
    Spawn { program: PathBuf, source: io::Error },
    #[error("the daemon could not start: {0}")]
    Start(String),
    #[error("the daemon ended before it was ready; look into {}", log.display())]
    Ended { log: PathBuf },
}

/// Which daemon, and how to start it.
#[derive(Debug, Clone)]
pub struct Target {
    pub home: PathBuf,
    pub socket: PathBuf,
    /// Whose folders they are.
    pub user: u32,
    /// The daemon's executable.
    pub program: PathBuf,
    /// What may be created when the home is missing.
    pub creates: Creates,
}

/// What is created for a daemon that is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creates {
    /// The home and the folders above it.
    WithParents,
    /// The home alone: who deleted the folder above it does not want it back.
    HomeOnly,
}

/// A connection whose launch the daemon knows.
pub struct Reached {
    pub peer: Peer,
    pub launched: Launched,
    /// Ends with the connection; aborting it cuts the connection.
    pub driving: JoinHandle<CloseReason>,
}

/// What became of a daemon that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Started {
    /// It serves the socket.
    Ready,
    /// Somebody else was faster and may not serve yet: theirs is as good.
    Held,
}

impl Target {
    /// Connects and brings the launch, starting the daemon when none answers.
    pub async fn reach(
        &self,
        launch: &LaunchParams,
        service: Arc<dyn Service>,
    ) -> Result<Reached, ReachError> {
        let idle_timeout = launch.env.get(IDLE_TIMEOUT).map(String::as_str);
        let reaching = async {
            loop {
                if let Some(reached) = self.try_reach(launch, service.clone()).await? {
                    return Ok(reached);
                }
                match self.start(idle_timeout).await? {
                    Started::Ready => {}
                    Started::Held => tokio::time::sleep(LOOK_AGAIN).await,
                }
            }
        };
        match tokio::time::timeout(START_WAIT, reaching).await {
            Ok(reached) => reached,
            Err(_) => Err(ReachError::Late {
                socket: self.socket.clone(),
                log: home_paths::log_file(&self.home),
            }),
        }
    }

    /// `None` when nobody serves the socket, or who does is about to leave.
    async fn try_reach(
        &self,
        launch: &LaunchParams,
        service: Arc<dyn Service>,
    ) -> Result<Option<Reached>, ReachError> {
        let Ok((peer, driving)) = open(&self.socket, service).await else {
            return Ok(None);
        };
        let launched = peer.request::<_, Launched>("loopd.launch", launch).await;
        let launched = match launched {
            Ok(launched) => launched,
            Err(CallError::Closed) => return Ok(None),
            // It has lost its home and leaves.
            Err(CallError::Remote(refusal)) if refusal.code == i64::from(error::HOME_EMPTIED) => {
                peer.closed().await;
                return Ok(None);
            }
            Err(error) => {
                peer.close(CloseReason::Done);
                return Err(ReachError::Refused(error));
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
        Ok(Some(Reached {
            peer,
            launched,
            driving,
        }))
    }

    /// Starts a daemon and waits until it serves or says why not.
    async fn start(&self, idle_timeout: Option<&str>) -> Result<Started, ReachError> {
        let unusable = |source| ReachError::Home {
            home: self.home.clone(),
            source,
        };
        let unstarted = |source| ReachError::Spawn {
            program: self.program.clone(),
            source,
        };
        match self.creates {
            Creates::WithParents => home_paths::create_private(&self.home),
            Creates::HomeOnly => home_paths::create_private_alone(&self.home),
        }
        .map_err(unusable)?;
        home_paths::prepare_socket(&self.socket, self.user)?;
        let log = home_paths::open_log(&self.home).map_err(unusable)?;
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
        if let Some(seconds) = idle_timeout {
            command.arg("--idle-timeout").arg(seconds);
        }
        let mut child = command.spawn().map_err(unstarted)?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let mut stdout = BufReader::new(stdout);
            stdout.read_line(&mut line).await.map_err(unstarted)?;
        }
        match line.trim().split_once(": ") {
            Some(("ready", _)) => Ok(Started::Ready),
            Some(("held", _)) => {
                child.wait().await.map_err(unstarted)?;
                Ok(Started::Held)
            }
            Some(("error", why)) => Err(ReachError::Start(why.to_owned())),
            _ => Err(ReachError::Ended {
                log: home_paths::log_file(&self.home),
            }),
        }
    }
}

/// Connects to a daemon that runs; the task it is driven by ends with the connection.
#[expect(
    clippy::disallowed_methods,
    reason = "the handle goes to the caller, who owns the connection"
)]
pub async fn open(
    socket: &Path,
    service: Arc<dyn Service>,
) -> io::Result<(Peer, JoinHandle<CloseReason>)> {
    let stream = connect_socket(socket).await?;
    let (peer, driving) = connect(stream, service, Limits::default());
    Ok((peer, tokio::spawn(driving)))
}

/// Connects to the socket of a daemon.
///
/// The plain Unix stream can be closed in one direction, so that the daemon hears the end of its
/// client at once and its last words still arrive.
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
