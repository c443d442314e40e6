//! The client: one connection to the daemon of a home, and the sessions opened on it.

use std::sync::Arc;
use std::time::Duration;

use loopd_proto::home_paths;
use loopd_proto::id::SessionId;
use loopd_proto::method::{self, Method};
use loopd_proto::params::config::ConfigShown;
use loopd_proto::params::daemon::{DaemonStatus, DatabaseCheck};
use loopd_proto::params::discovery::{
    FileProblem, FolderAgents, FolderAgentsParams, ProblemsParams,
};
use loopd_proto::params::hook_list::{
    HookList, HookListParams, HookTestParams, HookTested, HooksAccepted,
};
use loopd_proto::params::model::{Choice, ChoiceParams, Model, ModelSource, SourcesParams};
use loopd_proto::params::process::Process;
use loopd_proto::params::server::NoParams;
use loopd_proto::params::session::{ListFilter, ListParams, Metadata};
use loopd_proto::params::skill::{FolderSkills, FolderSkillsParams};
use loopd_proto::params::trust::{TrustChanged, TrustSetParams, TrustShowParams, TrustShown};
use loopd_proto::params::worktree::{Worktree, WorktreeRemoveParams};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connect_options::ConnectPlan;
use crate::connection::Shared;
use crate::session::{Opening, Session};
use crate::{ConnectOptions, Error, SessionConfig};

/// How long a stopped daemon may take to release its home.
const STOP_WAIT: Duration = Duration::from_secs(20);

/// A connection to a daemon.
///
/// Clones share the connection. It closes when the last clone and the last [`Session`] are dropped.
/// The daemon keeps the sessions: a running turn goes on until it ends or needs a client.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    // Closes the connection with the last client. The supervising task must not own this.
    _close_on_drop: Arc<CloseOnDrop>,
}

struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.closing.cancel();
    }
}

impl Client {
    /// Connects to the daemon of the home, and starts one if none is running.
    pub async fn connect(options: ConnectOptions) -> Result<Self, Error> {
        let shared = Shared::connect(ConnectPlan::new(options)?).await?;
        Ok(Self {
            _close_on_drop: Arc::new(CloseOnDrop(shared.clone())),
            shared,
        })
    }

    /// Returns the home of the daemon.
    pub fn home(&self) -> &std::path::Path {
        &self.shared.plan.target.home
    }

    /// Creates a session.
    pub async fn create(&self, config: SessionConfig) -> Result<Session, Error> {
        Box::pin(Session::open(self.clone(), Opening::Create, config)).await
    }

    /// Joins a session, and loads it if it is not in memory. Its open questions stay open.
    pub async fn resume(
        &self,
        id: impl Into<SessionId>,
        config: SessionConfig,
    ) -> Result<Session, Error> {
        Box::pin(Session::open(
            self.clone(),
            Opening::Resume(id.into()),
            config,
        ))
        .await
    }

    /// Joins a session as an observer: the session's log does not record it.
    pub async fn watch(
        &self,
        id: impl Into<SessionId>,
        config: SessionConfig,
    ) -> Result<Session, Error> {
        Box::pin(Session::open(
            self.clone(),
            Opening::Watch(id.into()),
            config,
        ))
        .await
    }

    /// Lists the stored sessions, the most recently changed first.
    pub async fn sessions(&self) -> Result<Vec<Metadata>, Error> {
        self.sessions_where(ListFilter::default()).await
    }

    /// Lists the stored sessions that match a filter, the most recently changed first.
    pub async fn sessions_where(&self, filter: ListFilter) -> Result<Vec<Metadata>, Error> {
        let params = ListParams {
            filter: Some(filter),
        };
        let listed = self.call::<method::SessionList>(&params).await?;
        Ok(listed.sessions)
    }

    /// Lists the models that a new session of this client can use.
    pub async fn models(&self) -> Result<Vec<Model>, Error> {
        let models = self.call::<method::ModelsList>(&NoParams {}).await?;
        Ok(models.models)
    }

    /// Returns the provider and model that a new session would use if it named `model`.
    pub async fn model_choice(&self, model: Option<String>) -> Result<Choice, Error> {
        self.call::<method::LoopdModelChoice>(&ChoiceParams { model })
            .await
    }

    /// Lists the files for agents in this client's directory and in the user's folders that cannot
    /// be used.
    pub async fn discovery_problems(&self) -> Result<Vec<FileProblem>, Error> {
        let params = ProblemsParams::default();
        let found = self.call::<method::LoopdDiscoveryProblems>(&params).await?;
        Ok(found.problems)
    }

    /// Returns the daemon's version, process and live sessions.
    pub async fn daemon_status(&self) -> Result<DaemonStatus, Error> {
        self.call::<method::LoopdDaemonStatus>(&NoParams {}).await
    }

    /// Looks for damage in the daemon's database; takes up to half a minute.
    pub async fn check_database(&self) -> Result<DatabaseCheck, Error> {
        self.call::<method::LoopdDatabaseCheck>(&NoParams {}).await
    }

    /// Lists the processes that the daemon runs for commands, the oldest first.
    pub async fn processes(&self) -> Result<Vec<Process>, Error> {
        let list = self.call::<method::LoopdProcessList>(&NoParams {}).await?;
        Ok(list.processes)
    }

    /// Lists the worktrees of agents, each with the changes that its removal would lose.
    pub async fn worktrees(&self) -> Result<Vec<Worktree>, Error> {
        let list = self.call::<method::LoopdWorktreeList>(&NoParams {}).await?;
        Ok(list.worktrees)
    }

    /// Removes a worktree that no agent uses. Fails if changes would be lost.
    pub async fn remove_worktree(&self, id: impl Into<String>) -> Result<(), Error> {
        let (id, force) = (id.into(), false);
        self.call::<method::LoopdWorktreeRemove>(&WorktreeRemoveParams { id, force })
            .await
    }

    /// Removes a worktree that no agent uses, together with its changes.
    pub async fn remove_worktree_with_changes(&self, id: impl Into<String>) -> Result<(), Error> {
        let (id, force) = (id.into(), true);
        self.call::<method::LoopdWorktreeRemove>(&WorktreeRemoveParams { id, force })
            .await
    }

    /// Lists the hooks of files for sessions in a directory; this client's when `None`.
    pub async fn hooks(&self, cwd: Option<String>) -> Result<HookList, Error> {
        self.call::<method::LoopdHooksList>(&HookListParams { cwd })
            .await
    }

    /// Lists the skills for sessions in a directory; this client's when `None`.
    pub async fn skills(&self, directory: Option<String>) -> Result<FolderSkills, Error> {
        let params = FolderSkillsParams {
            working_directory: directory,
        };
        self.call::<method::LoopdSkills>(&params).await
    }

    /// Lists the agents for sessions in a directory, the built-in ones included; this client's directory when
    /// `None`.
    pub async fn agents(&self, directory: Option<String>) -> Result<FolderAgents, Error> {
        let params = FolderAgentsParams {
            working_directory: directory,
        };
        self.call::<method::LoopdAgents>(&params).await
    }

    /// Lists the providers that could be used: those whose keys are in variables, and servers on this machine.
    /// The models of a vendor are listed only for the source that is named.
    pub async fn model_sources(
        &self,
        models_of: Option<String>,
    ) -> Result<Vec<ModelSource>, Error> {
        let params = SourcesParams { models_of };
        let found = self.call::<method::LoopdModelSources>(&params).await?;
        Ok(found.sources)
    }

    /// Shows the daemon's file of settings, what it sets and what can be set.
    pub async fn config(&self) -> Result<ConfigShown, Error> {
        self.call::<method::LoopdConfig>(&NoParams {}).await
    }

    /// Runs the hooks of a file for an event once, with payloads of made-up values.
    pub async fn test_hooks(&self, params: HookTestParams) -> Result<HookTested, Error> {
        self.call::<method::LoopdHooksTest>(&params).await
    }

    /// Accepts the user's own files of hooks as they are now.
    pub async fn accept_hooks(&self, cwd: Option<String>) -> Result<HooksAccepted, Error> {
        self.call::<method::LoopdHooksAccept>(&HookListParams { cwd })
            .await
    }

    /// Shows what the project around a folder would bring; this client's directory when `None`.
    pub async fn trust_show(&self, path: Option<String>) -> Result<TrustShown, Error> {
        self.call::<method::LoopdTrustShow>(&TrustShowParams { path })
            .await
    }

    /// Trusts a project with what was shown. Fails if it brings something else by now.
    pub async fn trust(&self, shown: &TrustShown) -> Result<TrustChanged, Error> {
        let params = TrustSetParams {
            path: shown.path.clone(),
            hash: shown.hash.clone(),
        };
        self.call::<method::LoopdTrustSet>(&params).await
    }

    /// Stops the daemon and closes this client. Running turns are cut short; sessions stay stored.
    pub async fn stop_daemon(self) -> Result<(), Error> {
        // First, so that the end of the connection does not start a new daemon.
        self.shared.disable_reconnect();
        let stopping = self
            .shared
            .call_once::<method::LoopdDaemonStop>(&NoParams {});
        match stopping.await {
            // The daemon may end before its reply is read.
            Ok(()) | Err(Error::Lost(_)) => {}
            Err(error) => return Err(error),
        }
        self.shared.disconnected().await;
        // The caller may start another daemon next, so wait until this one has released the home.
        let home = self.home().to_owned();
        let free = tokio::task::spawn_blocking(move || home_paths::wait_until_free(&home));
        match tokio::time::timeout(STOP_WAIT, free).await {
            // The daemon took the request: a lock that cannot be read does not make it a failure.
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Lost(
                "the daemon does not come to its end".to_owned(),
            )),
        }
    }

    /// Calls a method of the protocol. The request is sent again if the connection breaks.
    pub async fn call<M>(&self, params: &M::Params) -> Result<M::Result, Error>
    where
        M: Method,
        M::Params: Serialize,
        M::Result: DeserializeOwned,
    {
        self.shared.call::<M>(params).await
    }

    /// Closes the connection after everything queued has been sent.
    ///
    /// Questions that this client has not answered stay open in their sessions.
    pub async fn close(self) {
        self.shared.cancel_handlers();
        self.shared.closing.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}
