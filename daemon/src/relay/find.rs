//! Finds the daemon of a home, or starts it; exactly one serves, however many start at once.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use loopd_proto::params::launch::{LaunchParams, Launched};
use loopd_proto::wire::{Limits, NoMethods, Peer, connect};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinHandle;

use crate::transport::local_socket;

/// How long a daemon may take to be there.
const START_WAIT: Duration = Duration::from_secs(20);
/// How long to wait before looking for the socket again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long the daemon may take to end a launch.
const END_WAIT: Duration = Duration::from_secs(8);

/// The variable that says after how many seconds alone a daemon leaves.
const IDLE_TIMEOUT: &str = "LOOPD_IDLE_TIMEOUT";

/// The relay's own connection: brings the launch, ends it, and shows whether the daemon lives.
pub struct Control {
    pub peer: Peer,
    pub launch_id: String,
    driving: JoinHandle<()>,
}

impl Drop for Control {
    fn drop(&mut self) {
        self.driving.abort();
    }
}

impl Control {
    /// Connects to the daemon, starting it when none answers.
    pub async fn open(home: &Path, socket: &Path, params: &LaunchParams) -> anyhow::Result<Self> {
        let idle_timeout = params.env.get(IDLE_TIMEOUT).map(String::as_str);
        let finding = async {
            loop {
                if let Some(control) = Self::try_open(socket, params).await? {
                    return Ok(control);
                }
                start(home, socket, idle_timeout).await?;
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        match tokio::time::timeout(START_WAIT, finding).await {
            Ok(found) => found,
            Err(_) => bail!(
                "no daemon answered within {} s on {}; look into {}",
                START_WAIT.as_secs(),
                socket.display(),
                crate::home::log_file(home).display()
            ),
        }
    }

    /// `None` when nobody serves the socket, or who does is about to leave.
    #[expect(
        clippy::disallowed_methods,
        reason = "the handle is kept and aborted on drop"
    )]
    async fn try_open(socket: &Path, params: &LaunchParams) -> anyhow::Result<Option<Self>> {
        let Ok(stream) = local_socket::connect(socket).await else {
            return Ok(None);
        };
        let (peer, driving) = connect(stream, Arc::new(NoMethods), Limits::default());
        let driving = tokio::spawn(async move {
            let reason = driving.await;
            tracing::debug!(%reason, "the connection to the daemon ended");
        });
        let launched = peer.request::<_, Launched>("loopd.launch", params).await;
        let launched = match launched {
            Ok(launched) => launched,
            Err(loopd_proto::wire::CallError::Closed) => return Ok(None),
            Err(error) => return Err(error).context("the daemon refused this launch"),
        };
        if launched.leaving {
            peer.closed().await;
            return Ok(None);
        }
        if launched.build != params.build {
            tracing::warn!(
                daemon = launched.build,
                own = params.build,
                "a daemon of another build is at work and is used"
            );
        }
        Ok(Some(Self {
            peer,
            launch_id: launched.launch_id,
            driving,
        }))
    }

    /// Resolves when the daemon is gone.
    pub fn lost(&self) -> impl Future<Output = ()> + use<> {
        super::closed(self.peer.clone())
    }

    /// Ends the sessions of the launch; a daemon that hangs does not hold up the goodbye.
    pub async fn end_launch(&self) {
        #[derive(serde::Serialize)]
        struct Nothing {}
        let ended = self.peer.request::<_, ()>("loopd.launchEnd", &Nothing {});
        if tokio::time::timeout(END_WAIT, ended).await.is_err() {
            tracing::warn!("the daemon took too long to end this launch");
        }
    }
}

/// Starts a daemon and waits until it serves or says why not.
async fn start(home: &Path, socket: &Path, idle_timeout: Option<&str>) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("the daemon's program cannot be found")?;
    crate::home::create_private(home)
        .await
        .with_context(|| format!("the home {} cannot be created", home.display()))?;
    let log = crate::home::open_log(home)
        .with_context(|| format!("the log in {} cannot be opened", home.display()))?;
    let mut command = tokio::process::Command::new(program);
    command
        .arg("serve")
        .arg("--background")
        .arg("--socket")
        .arg(socket)
        .current_dir("/")
        .env_clear()
        .env("LOOPD_HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    if let Some(seconds) = idle_timeout {
        command.arg("--idle-timeout").arg(seconds);
    }
    let mut child = command.spawn().context("the daemon cannot be started")?;
    let Some(stdout) = child.stdout.take() else {
        bail!("the daemon was started without a pipe");
    };
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await?;
    match line.trim().split_once(": ") {
        Some(("ready", _)) => Ok(()),
        // Somebody else was faster: theirs is as good.
        Some(("held", _)) => {
            child.wait().await?;
            Ok(())
        }
        Some(("error", why)) => bail!("the daemon could not start: {why}"),
        _ => bail!(
            "the daemon ended before it was ready; look into {}",
            crate::home::log_file(home).display()
        ),
    }
}
