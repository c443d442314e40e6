//! The process that an SDK starts: brings its launch to the daemon, then moves bytes both ways.
//!
//! It owns stdin, stdout, the TCP listener and its sockets, so that its death closes them. It
//! parses nothing but the first byte, which says how its client frames messages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use loopd_proto::params::launch::{JOIN, JoinNotification, JoinTransport, LaunchParams};
use loopd_proto::params::server::NoParams;
use loopd_proto::reach::{self, Reached, Target};
use loopd_proto::wire::{CloseReason, Framing, NoMethods, notification};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::task::TaskTracker;

use crate::transport::{local_socket, stdio, tcp};
use crate::{build_id, shutdown};

/// What the relay was started with.
pub struct RelayOptions {
    pub home: PathBuf,
    pub socket: PathBuf,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    pub auth_token_env: Option<String>,
    pub connection_token: Option<String>,
    pub yolo: bool,
    pub session_idle_timeout: Option<u64>,
    pub transport: RelayTransport,
}

/// How the client speaks to the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayTransport {
    Stdio,
    Tcp { port: u16 },
}

/// Runs until the client or the daemon is gone, or a signal says stop.
pub async fn run(options: RelayOptions) -> anyhow::Result<()> {
    // Installed first: a signal during the start means stop, too.
    let stopped = shutdown::signal();
    let params = LaunchParams {
        build: build_id::current().to_owned(),
        cwd: options.cwd.to_string_lossy().into_owned(),
        env: options.env,
        auth_token_env: options.auth_token_env,
        connection_token: options.connection_token,
        yolo: options.yolo,
        session_idle_timeout: options.session_idle_timeout,
    };
    let program = std::env::current_exe().context("the daemon's program cannot be found")?;
    let target = Target {
        home: options.home,
        socket: options.socket.clone(),
        user: local_socket::user(),
        program,
    };
    let control = Control(target.reach(&params, Arc::new(NoMethods)).await?);
    let end = match options.transport {
        RelayTransport::Stdio => {
            let (input, output) = stdio::open().context("stdin and stdout cannot be used")?;
            let transport = JoinTransport::Pipe;
            let link = link(
                &options.socket,
                control.launch_id(),
                transport,
                input,
                output,
            );
            watch(&control, stopped, link).await?
        }
        RelayTransport::Tcp { port } => {
            let listener = tcp::Tcp::bind(port)
                .await
                .context("the TCP port cannot be opened")?;
            crate::transport::announce(&format!("loopd listening on port {}", listener.port()))?;
            let links = accept_all(listener, &options.socket, control.launch_id());
            watch(&control, stopped, links).await?
        }
    };
    control.0.peer.close(CloseReason::Done);
    match end {
        End::Client => Ok(()),
        End::Daemon => {
            bail!("the daemon is gone; sessions are kept, start again to resume them")
        }
    }
}

/// Drives the links until they end, the daemon is lost or a signal says stop; after a signal the
/// sessions of the launch are ended while their client still listens.
async fn watch(
    control: &Control,
    stopped: impl Future<Output = ()>,
    links: impl Future<Output = anyhow::Result<End>>,
) -> anyhow::Result<End> {
    tokio::pin!(links);
    tokio::select! {
        end = &mut links => return end,
        _ = control.0.peer.closed() => return Ok(End::Daemon),
        () = stopped => {}
    }
    tokio::select! {
        () = control.end_launch() => Ok(End::Client),
        end = links => end,
    }
}

/// How long the daemon may take to end a launch.
const END_WAIT: Duration = Duration::from_secs(8);

/// The relay's own connection: brought the launch, ends it, and shows whether the daemon lives.
struct Control(Reached);

impl Drop for Control {
    fn drop(&mut self) {
        self.0.driving.abort();
    }
}

impl Control {
    fn launch_id(&self) -> &str {
        &self.0.launched.launch_id
    }

    /// Ends the sessions of the launch; a daemon that hangs does not hold up the goodbye.
    async fn end_launch(&self) {
        let ended = self
            .0
            .peer
            .request::<_, ()>("loopd.launchEnd", &NoParams {});
        if tokio::time::timeout(END_WAIT, ended).await.is_err() {
            tracing::warn!("the daemon took too long to end this launch");
        }
    }
}

/// Who ended a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Client,
    Daemon,
}

async fn accept_all(listener: tcp::Tcp, socket: &Path, launch_id: &str) -> anyhow::Result<End> {
    let links = TaskTracker::new();
    let launch_id: Arc<str> = launch_id.into();
    loop {
        let Some(stream) = listener.next().await else {
            continue;
        };
        let (socket, launch_id) = (socket.to_path_buf(), launch_id.clone());
        links.spawn(async move {
            let (input, output) = stream.into_split();
            let transport = JoinTransport::Tcp;
            if let Err(error) = link(&socket, &launch_id, transport, input, output).await {
                tracing::warn!(%error, "a TCP client could not be linked to the daemon");
            }
        });
    }
}

/// Connects one client to the daemon and moves bytes until one of them is gone.
async fn link(
    socket: &Path,
    launch_id: &str,
    transport: JoinTransport,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> anyhow::Result<End> {
    let mut first = vec![0_u8; 16 * 1024];
    let read = input.read(&mut first).await?;
    first.truncate(read);
    if first.is_empty() {
        return Ok(End::Client);
    }
    let daemon = reach::connect_socket(socket)
        .await
        .context("the daemon cannot be reached")?;
    let (mut from_daemon, mut to_daemon) = tokio::io::split(daemon);
    let join = JoinNotification {
        launch_id: launch_id.to_owned(),
        transport,
    };
    let mut hello = Vec::new();
    framing_of(&first).encode(&notification(JOIN, &join), &mut hello);
    hello.extend_from_slice(&first);
    to_daemon.write_all(&hello).await?;
    let outward = async {
        let copied = tokio::io::copy(&mut input, &mut to_daemon).await;
        // The daemon hears that nothing more will come.
        to_daemon.shutdown().await.ok();
        copied
    };
    let inward = tokio::io::copy(&mut from_daemon, &mut output);
    tokio::pin!(outward, inward);
    tokio::select! {
        _ = &mut outward => {
            // What the daemon still has to say is bounded by its own flush time.
            inward.await.ok();
            Ok(End::Client)
        }
        copied = &mut inward => {
            Ok(if copied.is_ok() { End::Daemon } else { End::Client })
        }
    }
}

/// How the client frames its messages, by the rule that the daemon uses.
fn framing_of(first: &[u8]) -> Framing {
    let begins = first.iter().find(|byte| !byte.is_ascii_whitespace());
    match begins {
        Some(b'{' | b'[') => Framing::Lines,
        _ => Framing::ContentLength,
    }
}
