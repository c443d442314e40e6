//! What the daemon does when its home is emptied, deleted or moved while clients are connected.
//!
//! The daemon answers every open request with a typed error. Its sessions end and tell their
//! clients why. Each relay gets what the next daemon has to know, so that its clients stay
//! connected. Each wait is bounded; nothing in the home is touched.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use loopd_proto::error::HOME_EMPTIED as HOME_EMPTIED_CODE;
use loopd_proto::params::launch::{HOME_EMPTIED, HomeEmptiedParams};
use loopd_proto::wire::{CloseReason, ErrorObject, RefuseUntil};
use tokio::time::timeout;

use super::server::Server;
use crate::front::connection::Connection;
use crate::launch::Launch;

/// How long sessions may take to tell their clients that they end.
const SESSIONS_WAIT: Duration = Duration::from_secs(1);
/// How long a relay may take to answer `loopd.homeEmptied`.
const RELAY_WAIT: Duration = Duration::from_secs(2);
/// How long the links of relays may take to end; their clients first finish the frame they began.
const LINKS_WAIT: Duration = Duration::from_secs(3);
/// How long the last replies may take to be written.
const FLUSH_WAIT: Duration = Duration::from_secs(3);

/// The reason that clients read.
const WHY: &str = "the home of the daemon was emptied, deleted or moved, or its database was; what \
                   was in it is gone, create a new session";

impl Server {
    /// Ends every session and connection, because the home is lost.
    pub async fn hand_over(&self) {
        let (connections, relays) = self.close_doors();
        let error = ErrorObject::new(
            HOME_EMPTIED_CODE.into(),
            format!("the request was not carried out, or what it did is lost: {WHY}"),
        );
        for connection in &connections {
            let goes_on = relays.iter().any(|relay| relay.has(connection));
            let until = if goes_on {
                RefuseUntil::EndOfStream
            } else {
                RefuseUntil::Answered
            };
            connection.peer.refuse_requests(error.clone(), until);
        }
        let sessions = self.sessions.ids();
        let sessions = sessions.iter().filter_map(|id| self.sessions.get(id));
        let abandoned = join_all(sessions.map(|session| session.abandon(WHY)));
        if timeout(SESSIONS_WAIT, abandoned).await.is_err() {
            tracing::warn!("a session took too long to tell that the home is lost");
        }
        join_all(relays.iter().map(Relay::tell)).await;
        let links = relays.iter().flat_map(|relay| &relay.links);
        let ended = join_all(links.map(|(_, link)| link.peer.closed()));
        if timeout(LINKS_WAIT, ended).await.is_err() {
            tracing::warn!("a client took too long to finish its request");
        }
        for connection in &connections {
            connection.peer.close(CloseReason::Done);
        }
        self.connections.close();
        if timeout(FLUSH_WAIT, self.connections.wait()).await.is_err() {
            tracing::warn!("a client took too long to read its last replies");
        }
    }

    /// Refuses new connections from now on; returns the open ones, and the relays that go on with
    /// the next daemon.
    fn close_doors(&self) -> (Vec<Arc<Connection>>, Vec<Relay>) {
        let mut visitors = self.visitors();
        visitors.closed = true;
        let connections = visitors.connections.iter().filter_map(Weak::upgrade);
        let launches = visitors.launches.values();
        let relays = launches.filter(|known| known.outlives_home);
        let relays = relays.filter_map(|known| {
            let launch = known.launch.upgrade()?;
            let joined = visitors.connections_of(&launch).into_iter();
            let links = joined.filter_map(|link| Some((link.link()?, link)));
            Some(Relay {
                control: known.control.upgrade()?,
                links: links.collect(),
                launch,
            })
        });
        (connections.collect(), relays.collect())
    }
}

/// A relay that keeps its clients and goes on with the next daemon.
struct Relay {
    control: Arc<Connection>,
    launch: Arc<Launch>,
    links: Vec<(u64, Arc<Connection>)>,
}

impl Relay {
    fn has(&self, connection: &Arc<Connection>) -> bool {
        let mut own = self.links.iter().map(|(_, link)| link);
        Arc::ptr_eq(&self.control, connection) || own.any(|link| Arc::ptr_eq(link, connection))
    }

    /// Sends `loopd.homeEmptied` to the relay and waits for its answer.
    async fn tell(&self) {
        let links = self.links.iter();
        let params = HomeEmptiedParams {
            launch: self.launch.state(),
            links: links
                .map(|(number, link)| (*number, link.link_state()))
                .collect(),
        };
        let asked = self.control.peer.request::<_, ()>(HOME_EMPTIED, &params);
        match timeout(RELAY_WAIT, asked).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a relay did not hear that the home is lost"),
            Err(_) => tracing::warn!("a relay took too long to hear that the home is lost"),
        }
    }
}
