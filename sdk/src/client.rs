//! The client: one connection to the daemon of a home, and the sessions opened over it.

use std::sync::Arc;
use std::time::Duration;

use loopd_proto::home_paths;
use loopd_proto::id::SessionId;
use loopd_proto::method::{self, Method};
use loopd_proto::params::daemon::DaemonStatus;
use loopd_proto::params::model::Model;
use loopd_proto::params::model::{Choice, ChoiceParams};
use loopd_proto::params::process::Process;
use loopd_proto::params::server::NoParams;
use loopd_proto::params::session::{ListFilter, ListParams, Metadata};
use loopd_proto::params::worktree::{Worktree, WorktreeRemoveParams};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connection::Shared;
use crate::session::{Opening, Session};
use crate::spawn::Spawn;
use crate::{ConnectOptions, Error, SessionConfig};

/// How long a daemon may take to end.
const STOP_WAIT: Duration = Duration::from_secs(20);

/// A connection to a daemon; clones share it, and it ends with the last of them and their sessions.
///
/// Sessions outlive it: their turns go on until they end or need a client.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    // Ends the connection with its last owner; the task that keeps it must not own it.
    _last: Arc<Last>,
}

struct Last(Arc<Shared>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.closing.cancel();
    }
}

impl Client {
    /// Connects to the daemon of the home, starting it when none runs.
    pub async fn connect(options: ConnectOptions) -> Result<Self, Error> {
        let shared = Shared::connect(Spawn::new(options)?).await?;
        Ok(Self {
            _last: Arc::new(Last(shared.clone())),
            shared,
        })
    }

    /// The home whose daemon this is.
    pub fn home(&self) -> &std::path::Path {
        &self.shared.spawn.target.home
    }

    /// Creates a session.
    pub async fn create(&self, config: SessionConfig) -> Result<Session, Error> {
        Session::open(self.clone(), Opening::Create, config).await
    }

    /// Joins a session, loading it when it is not in memory; what it waits for goes on waiting.
    pub async fn resume(
        &self,
        id: impl Into<SessionId>,
        config: SessionConfig,
    ) -> Result<Session, Error> {
        Session::open(self.clone(), Opening::Resume(id.into()), config).await
    }

    /// Joins a session without leaving a trace of it in its log.
    pub async fn watch(
        &self,
        id: impl Into<SessionId>,
        config: SessionConfig,
    ) -> Result<Session, Error> {
        Session::open(self.clone(), Opening::Watch(id.into()), config).await
    }

    /// The stored sessions, the one changed last first.
    pub async fn sessions(&self) -> Result<Vec<Metadata>, Error> {
        self.sessions_where(ListFilter::default()).await
    }

    /// The stored sessions that fit, the one changed last first.
    pub async fn sessions_where(&self, filter: ListFilter) -> Result<Vec<Metadata>, Error> {
        let params = ListParams {
            filter: Some(filter),
        };
        let listed = self.call::<method::SessionList>(&params).await?;
        Ok(listed.sessions)
    }

    /// The models that a new session of this client could use.
    pub async fn models(&self) -> Result<Vec<Model>, Error> {
        let models = self.call::<method::ModelsList>(&NoParams {}).await?;
        Ok(models.models)
    }

    /// Who would answer a new session that names this model, or none.
    pub async fn model_choice(&self, model: Option<String>) -> Result<Choice, Error> {
        self.call::<method::LoopdModelChoice>(&ChoiceParams { model })
            .await
    }

    /// What the daemon is and does at this moment.
    pub async fn daemon_status(&self) -> Result<DaemonStatus, Error> {
        self.call::<method::LoopdDaemonStatus>(&NoParams {}).await
    }

    /// The commands that the daemon runs as processes, the oldest first.
    pub async fn processes(&self) -> Result<Vec<Process>, Error> {
        let list = self.call::<method::LoopdProcessList>(&NoParams {}).await?;
        Ok(list.processes)
    }

    /// The worktrees that were made for agents, with what would be lost with each.
    pub async fn worktrees(&self) -> Result<Vec<Worktree>, Error> {
        let list = self.call::<method::LoopdWorktreeList>(&NoParams {}).await?;
        Ok(list.worktrees)
    }

    /// Removes a worktree that no agent uses, unless something would be lost with it.
    pub async fn remove_worktree(&self, id: impl Into<String>) -> Result<(), Error> {
        let (id, force) = (id.into(), false);
        self.call::<method::LoopdWorktreeRemove>(&WorktreeRemoveParams { id, force })
            .await
    }

    /// Removes a worktree that no agent uses, with all that is in it.
    pub async fn remove_worktree_with_changes(&self, id: impl Into<String>) -> Result<(), Error> {
        let (id, force) = (id.into(), true);
        self.call::<method::LoopdWorktreeRemove>(&WorktreeRemoveParams { id, force })
            .await
    }

    /// Ends the daemon; sessions are kept, turns that run are cut short. Ends this client, too.
    pub async fn stop_daemon(self) -> Result<(), Error> {
        // Said first, so that nothing is started anew when the connection ends.
        self.shared.stay_down();
        let stopping = self
            .shared
            .call_once::<method::LoopdDaemonStop>(&NoParams {});
        match stopping.await {
            // Its answer may be overtaken by its end.
            Ok(()) | Err(Error::Lost(_)) => {}
            Err(error) => return Err(error),
        }
        self.shared.disconnected().await;
        // Gone is only who has given up the home: what comes next may want it.
        let home = self.home().to_owned();
        let free = tokio::task::spawn_blocking(move || home_paths::wait_until_free(&home));
        match tokio::time::timeout(STOP_WAIT, free).await {
            // A lock that cannot be looked at is not worth failing a stop that was heard.
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Lost(
                "the daemon does not come to its end".to_owned(),
            )),
        }
    }

    /// Calls any method of the table; it may be called again when the connection breaks.
    pub async fn call<M>(&self, params: &M::Params) -> Result<M::Result, Error>
    where
        M: Method,
        M::Params: Serialize,
        M::Result: DeserializeOwned,
    {
        self.shared.call::<M>(params).await
    }

    /// Ends the connection and waits until what was said has been sent; questions that are not
    /// answered yet stay open in their sessions.
    pub async fn close(self) {
        self.shared.withdraw();
        self.shared.closing.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}
