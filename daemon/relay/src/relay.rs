//! The relay, the process that an SDK starts: it registers its launch with the daemon, then moves
//! bytes both ways.
//!
//! The relay owns stdin, stdout, the TCP listener and its sockets, so that its death closes them.
//! It parses no message, but it tracks where frames end: when the home is emptied, the next daemon
//! replaces the current one between two frames, and the clients stay connected.

mod link;
mod upstream;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use loopd_proto::build_id;
use loopd_proto::daemon_connection::{CreateHome, DaemonTarget};
use loopd_proto::params::launch::{JoinTransport, LaunchParams, LaunchState};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use crate::{announce, shutdown, stdio, tcp};
use link::{End, Link};
use upstream::Upstream;

/// How many TCP clients may be connected that have sent nothing yet. One more takes the place of
/// the one that has been silent for longest, so that silent clients keep nobody out.
const MOST_SILENT: usize = 256;

/// The options that the relay was started with.
pub struct RelayOptions {
    pub home: PathBuf,
    pub socket: PathBuf,
    /// The user that this process acts for.
    pub user: u32,
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

/// Runs until the client or the daemon is gone, or a signal stops the relay. One thread is enough to
/// move bytes.
pub fn run(options: RelayOptions) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(options));
    // A blocking read of stdin may still hang; it must not keep the process alive.
    runtime.shutdown_background();
    outcome
}

async fn serve(options: RelayOptions) -> anyhow::Result<()> {
    // The signal handler comes first, so that a signal during the start stops the relay, too.
    let stopped = shutdown::signal();
    let params = LaunchParams {
        build: build_id::current().to_owned(),
        cwd: options.cwd.to_string_lossy().into_owned(),
        env: options.env,
        auth_token_env: options.auth_token_env,
        connection_token: options.connection_token,
        yolo: options.yolo,
        session_idle_timeout: options.session_idle_timeout,
        outlives_home: true,
        state: LaunchState::default(),
    };
    let program = std::env::current_exe().context("the daemon's program cannot be found")?;
    let target = DaemonTarget {
        home: options.home,
        socket: options.socket,
        user: options.user,
        program,
        create_home: CreateHome::WithParents,
    };
    let upstream = Arc::new(Upstream::open(target, params).await?);
    let end = match options.transport {
        RelayTransport::Stdio => {
            let (input, output) = stdio::open().context("stdin and stdout cannot be used")?;
            let link = Link::new(0, JoinTransport::Pipe, input, output);
            let serving = async {
                let opened = link.open().await;
                let link = opened.map_err(|why| anyhow!("the client is not served: {why}"))?;
                link.run(&upstream).await
            };
            watch(&upstream, stopped, serving).await?
        }
        RelayTransport::Tcp { port } => {
            let listener = tcp::Tcp::bind(port)
                .await
                .context("the TCP port cannot be opened")?;
            announce(&format!("loopd listening on port {}", listener.port()))?;
            watch(&upstream, stopped, accept_all(listener, &upstream)).await?
        }
    };
    upstream.close();
    match end {
        End::Client => Ok(()),
        End::Daemon => bail!(upstream::GONE),
        End::Refused(reason) => bail!("the daemon closed the connection: {reason}"),
    }
}

/// Drives the links until they end, the daemon is lost or a signal arrives. After a signal it ends
/// the sessions of the launch while the client can still read their last events.
async fn watch(
    upstream: &Upstream,
    stopped: impl Future<Output = ()>,
    links: impl Future<Output = anyhow::Result<End>>,
) -> anyhow::Result<End> {
    tokio::pin!(links);
    tokio::select! {
        end = &mut links => return end,
        error = upstream.lost() => return Err(error),
        () = stopped => {}
    }
    tokio::select! {
        () = upstream.end_launch() => Ok(End::Client),
        end = links => end,
    }
}

async fn accept_all(listener: tcp::Tcp, upstream: &Arc<Upstream>) -> anyhow::Result<End> {
    let links = TaskTracker::new();
    // A client drops its receiver when it sends something or leaves.
    let mut silent: VecDeque<oneshot::Sender<()>> = VecDeque::new();
    let mut number = 0;
    loop {
        let Some(stream) = listener.next().await else {
            continue;
        };
        silent.retain(|client| !client.is_closed());
        if silent.len() >= MOST_SILENT
            && let Some(oldest) = silent.pop_front()
        {
            // Fails if the client has just sent something.
            oldest.send(()).ok();
        }
        let (displace, displaced) = oneshot::channel();
        silent.push_back(displace);
        number += 1;
        let upstream = upstream.clone();
        links.spawn(async move {
            let (input, output) = stream.into_split();
            let link = Link::new(number, JoinTransport::Tcp, input, output);
            let opened = tokio::select! {
                biased;
                opened = link.open() => opened,
                _ = displaced => Err(format!("it sent nothing, and {MOST_SILENT} others came after it")),
            };
            let link = match opened {
                Ok(link) => link,
                Err(reason) => return tracing::info!(reason, "a TCP client was refused"),
            };
            match link.run(&upstream).await {
                Ok(End::Client | End::Daemon) => {}
                Ok(End::Refused(reason)) => tracing::info!(reason, "a TCP client was refused"),
                Err(error) => {
                    tracing::warn!(%error, "a TCP client could not be linked to the daemon");
                }
            }
        });
    }
}
