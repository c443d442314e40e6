//! The daemon behind a relay, and the next daemon when the home was emptied.
//!
//! The control connection registers the launch, ends it, and shows whether the daemon lives. If
//! the daemon goes without having sent `loopd.homeEmptied`, the relay ends.

use loopd_proto::parse_error::plain;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::daemon_connection::{CreateHome, DaemonTarget, LaunchedConnection};
use loopd_proto::home_paths::{self, FileId};
use loopd_proto::params::launch::{
    HOME_EMPTIED, HomeEmptiedParams, LINK_CLOSED, LaunchParams, LinkClosed,
};
use loopd_proto::params::server::NoParams;
use loopd_proto::wire::{
    CloseReason, ErrorObject, INVALID_PARAMS, NoMethods, Notification, Peer, Reply, Request,
    Service,
};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

/// How long the daemon may take to end a launch.
const END_WAIT: Duration = Duration::from_secs(8);
/// How long a daemon may take to notice that its home was emptied.
const NOTICE_WAIT: Duration = Duration::from_secs(10);

/// The error when the daemon ended without notice, for example because it was killed.
pub(super) const GONE: &str = "the daemon is gone; sessions are kept, start again to resume them";

/// The relay's control connection to one daemon.
pub(super) struct Daemon {
    reached: LaunchedConnection,
    target: DaemonTarget,
    lock: Option<FileId>,
    emptied: watch::Receiver<Option<Arc<HomeEmptiedParams>>>,
    closed_links: watch::Receiver<BTreeMap<u64, String>>,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.reached.driving.abort();
    }
}

impl Daemon {
    async fn reach(target: &DaemonTarget, params: &LaunchParams) -> anyhow::Result<Self> {
        let (sender, emptied) = watch::channel(None);
        let (closing, closed_links) = watch::channel(BTreeMap::new());
        let listening = Listening {
            emptied: sender,
            closed_links: closing,
        };
        let reached = target.connect_or_start(params, Arc::new(listening)).await?;
        Ok(Self {
            lock: reached.launched.lock,
            reached,
            target: target.clone(),
            emptied,
            closed_links,
        })
    }

    pub(super) fn launch_id(&self) -> &str {
        &self.reached.launched.launch_id
    }

    pub(super) fn socket(&self) -> &Path {
        &self.target.socket
    }

    /// Returns whether this daemon still serves the home, by comparing the lock file.
    ///
    /// What a client sends after it emptied the home must not reach a daemon that has not noticed
    /// yet.
    pub(super) fn serves_home(&self) -> bool {
        let in_place = self.lock.is_none() || home_paths::lock_id(&self.target.home) == self.lock;
        in_place && self.emptied.borrow().is_none()
    }

    /// Waits for the reason why the daemon has ended a link.
    pub(super) async fn reason_of(&self, link: u64) -> String {
        let mut closed = self.closed_links.clone();
        let reason = match closed.wait_for(|known| known.contains_key(&link)).await {
            Ok(known) => known.get(&link).cloned(),
            Err(_) => None,
        };
        match reason {
            Some(reason) => reason,
            // The control connection has ended; whoever asks waits for that, too.
            None => std::future::pending().await,
        }
    }

    /// Waits until the daemon leaves; returns `None` if it sent no `loopd.homeEmptied`.
    pub(super) async fn left(&self) -> Option<Arc<HomeEmptiedParams>> {
        let mut emptied = self.emptied.clone();
        tokio::select! {
            notice = emptied.wait_for(Option::is_some) => {
                // An error means that the connection has ended and its service was dropped.
                notice.ok().and_then(|notice| notice.clone())
            }
            _ = self.reached.peer.closed() => self.emptied.borrow().clone(),
        }
    }
}

/// How many reasons of closed links are kept. Each link looks for its own at once.
const MOST_REASONS: usize = 1024;

/// Answers the requests that the daemon sends to its relay.
struct Listening {
    emptied: watch::Sender<Option<Arc<HomeEmptiedParams>>>,
    closed_links: watch::Sender<BTreeMap<u64, String>>,
}

impl Service for Listening {
    fn call(&self, peer: &Peer, request: Request) -> BoxFuture<'static, Reply> {
        if request.method != HOME_EMPTIED {
            return NoMethods.call(peer, request);
        }
        let params = request.params.as_ref().map_or("{}", |raw| raw.get());
        let reply = match serde_json::from_str::<HomeEmptiedParams>(params) {
            Ok(params) => {
                self.emptied.send_replace(Some(Arc::new(params)));
                Reply::result(&request.id, &())
            }
            Err(error) => {
                Reply::error(&request.id, ErrorObject::new(INVALID_PARAMS, plain(&error)))
            }
        };
        futures::future::ready(reply).boxed()
    }

    fn notify(&self, peer: &Peer, notification: Notification) {
        let params = notification.params.as_ref().map_or("{}", |raw| raw.get());
        match serde_json::from_str::<LinkClosed>(params) {
            Ok(closed) if notification.method == LINK_CLOSED => {
                self.closed_links.send_modify(|known| {
                    known.insert(closed.link, closed.reason);
                    if known.len() > MOST_REASONS {
                        known.pop_first();
                    }
                });
            }
            Ok(_) | Err(_) => NoMethods.notify(peer, notification),
        }
    }
}

/// The daemon that all links of a relay use.
pub(super) struct Upstream {
    target: DaemonTarget,
    params: LaunchParams,
    current: watch::Sender<Arc<Daemon>>,
    /// Held while the next daemon is started, so that one start serves all links.
    starting: Mutex<()>,
    /// Why the next daemon could not be started.
    failed: watch::Sender<Option<Arc<anyhow::Error>>>,
}

impl Upstream {
    /// Registers the launch with the daemon of the home, and starts that daemon if none runs.
    pub(super) async fn open(target: DaemonTarget, params: LaunchParams) -> anyhow::Result<Self> {
        let first = Daemon::reach(&target, &params).await?;
        Ok(Self {
            target: DaemonTarget {
                create_home: CreateHome::HomeOnly,
                ..target
            },
            params,
            current: watch::Sender::new(Arc::new(first)),
            starting: Mutex::default(),
            failed: watch::Sender::new(None),
        })
    }

    fn current(&self) -> Arc<Daemon> {
        self.current.borrow().clone()
    }

    /// Returns the daemon that serves the home, and starts the next one if the home was emptied.
    pub(super) async fn daemon(&self) -> anyhow::Result<Arc<Daemon>> {
        let _starting = self.starting.lock().await;
        let current = self.current();
        if current.serves_home() {
            return Ok(current);
        }
        match self.next(&current).await {
            Ok(next) => {
                let next = Arc::new(next);
                self.current.send_replace(next.clone());
                Ok(next)
            }
            Err(error) => {
                let error = Arc::new(error);
                self.failed.send_replace(Some(error.clone()));
                Err(anyhow!("{error:#}"))
            }
        }
    }

    async fn next(&self, last: &Daemon) -> anyhow::Result<Daemon> {
        let left = timeout(NOTICE_WAIT, last.left()).await;
        let left = left.context("the daemon does not leave its home, which was emptied")?;
        let Some(emptied) = left else {
            bail!(GONE);
        };
        let home = &self.target.home;
        let above = home.parent().filter(|folder| !folder.is_dir());
        if let Some(folder) = above {
            bail!(
                "the home {} is gone and the folder {} above it, too; create that folder and start \
                 again",
                home.display(),
                folder.display()
            );
        }
        let params = LaunchParams {
            state: emptied.launch.clone(),
            ..self.params.clone()
        };
        Daemon::reach(&self.target, &params).await
    }

    /// Waits until another daemon has replaced `last`.
    pub(super) async fn after(&self, last: &Arc<Daemon>) {
        let mut current = self.current.subscribe();
        let is_next = |daemon: &Arc<Daemon>| !Arc::ptr_eq(daemon, last);
        // The sender lives as long as `self`, so waiting cannot fail.
        current.wait_for(is_next).await.ok();
    }

    /// Waits until the daemon is gone and no other one will replace it.
    pub(super) async fn lost(&self) -> anyhow::Error {
        let mut failed = self.failed.subscribe();
        let daemons = async {
            loop {
                let daemon = self.current();
                if daemon.left().await.is_none() {
                    return anyhow!(GONE);
                }
                self.after(&daemon).await;
            }
        };
        tokio::select! {
            error = daemons => error,
            Ok(failed) = failed.wait_for(Option::is_some) => match failed.as_ref() {
                Some(error) => anyhow!("{error:#}"),
                None => anyhow!(GONE),
            },
        }
    }

    /// Asks the daemon to end the sessions of the launch. The wait is bounded, in case it hangs.
    pub(super) async fn end_launch(&self) {
        let daemon = self.current();
        if daemon.emptied.borrow().is_some() {
            return;
        }
        let peer = &daemon.reached.peer;
        let ended = peer.request::<_, ()>("loopd.launchEnd", &NoParams {});
        if timeout(END_WAIT, ended).await.is_err() {
            tracing::warn!("the daemon took too long to end this launch");
        }
    }

    /// Closes the control connection.
    pub(super) fn close(&self) {
        self.current().reached.peer.close(CloseReason::Done);
    }
}
