//! Servers that several sessions share, because their configuration asks for it.
//!
//! Sessions share a server if everything about it is the same: program, arguments, environment, working
//! directory, limits, and on whose word it is started. A shared server cannot tell its sessions apart, so
//! that it can ask none of them: its questions are declined, it uses no model and learns no directories.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;

use crate::config::ServerConfig;
use crate::port::{CallRef, Elicitation, ElicitationAnswer, HostSession, Launcher, ServerNews};
use crate::server::Server;

/// The shared servers of all sessions.
#[derive(Clone)]
pub struct SharedServers {
    /// Starts servers that belong to no single session.
    pub(crate) launcher: Arc<dyn Launcher>,
    running: Arc<Mutex<Vec<Shared>>>,
}

struct Shared {
    config: ServerConfig,
    server: Arc<Server>,
    audience: Arc<Audience>,
}

/// The sessions that share a server.
#[derive(Default)]
struct Audience(Mutex<Members>);

#[derive(Default)]
struct Members {
    sessions: Vec<(u64, Arc<dyn HostSession>)>,
    next: u64,
}

/// The part of one session in a shared server.
pub(crate) struct Membership {
    of: SharedServers,
    audience: Arc<Audience>,
    number: u64,
}

/// Whether a server was started for whoever joined it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joined {
    New,
    Known,
}

impl SharedServers {
    pub fn new(launcher: Arc<dyn Launcher>) -> Self {
        Self {
            launcher,
            running: Arc::default(),
        }
    }

    /// Lets a session share a server; it is made if no session has it.
    pub(crate) fn join(
        &self,
        config: &ServerConfig,
        session: Arc<dyn HostSession>,
        make: impl FnOnce(Arc<dyn HostSession>) -> Arc<Server>,
    ) -> (Arc<Server>, Membership, Joined) {
        let mut running = self.running.lock();
        let known = running.iter().find(|shared| shared.config == *config);
        let (server, audience, joined) = if let Some(shared) = known {
            (
                shared.server.clone(),
                shared.audience.clone(),
                Joined::Known,
            )
        } else {
            let audience = Arc::new(Audience::default());
            let server = make(audience.clone());
            running.push(Shared {
                config: config.clone(),
                server: server.clone(),
                audience: audience.clone(),
            });
            (server, audience, Joined::New)
        };
        let number = audience.add(session);
        let membership = Membership {
            of: self.clone(),
            audience,
            number,
        };
        (server, membership, joined)
    }
}

impl Membership {
    /// Takes the session out. The last one ends the server.
    pub(crate) async fn leave(self) {
        let last = {
            let mut running = self.of.running.lock();
            if self.audience.remove(self.number) {
                let at = running
                    .iter()
                    .position(|shared| Arc::ptr_eq(&shared.audience, &self.audience));
                at.map(|at| running.swap_remove(at))
            } else {
                None
            }
        };
        if let Some(shared) = last {
            shared.server.close().await;
        }
    }
}

impl Audience {
    fn add(&self, session: Arc<dyn HostSession>) -> u64 {
        let mut members = self.0.lock();
        members.next += 1;
        let number = members.next;
        members.sessions.push((number, session));
        number
    }

    /// Removes a session; returns whether none is left.
    fn remove(&self, number: u64) -> bool {
        let mut members = self.0.lock();
        members.sessions.retain(|(it, _)| *it != number);
        members.sessions.is_empty()
    }

    fn sessions(&self) -> Vec<Arc<dyn HostSession>> {
        let members = self.0.lock();
        let sessions = members.sessions.iter();
        sessions.map(|(_, session)| session.clone()).collect()
    }
}

impl HostSession for Audience {
    fn elicit(&self, _: &str, _: CallRef, _: Elicitation) -> BoxFuture<'_, ElicitationAnswer> {
        async { ElicitationAnswer::Declined }.boxed()
    }

    fn sample(&self, _: &str, _: CallRef, _: Value) -> BoxFuture<'_, Result<Value, String>> {
        async { Err("a server that several sessions share can use the model of none".to_owned()) }
            .boxed()
    }

    fn now_ms(&self) -> u64 {
        let sessions = self.sessions();
        sessions.first().map_or(0, |session| session.now_ms())
    }

    fn roots(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn servers_changed(&self) {
        for session in self.sessions() {
            session.servers_changed();
        }
    }

    fn news(&self, server: &str, news: ServerNews) {
        for session in self.sessions() {
            session.news(server, news.clone());
        }
    }
}
