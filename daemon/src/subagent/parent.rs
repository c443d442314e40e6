//! The session that agents belong to, as they see it. `session` implements the traits; a test may, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use loopd_proto::event::agent::SubagentIdentity;
use loopd_proto::event::task::AgentWork;
use loopd_proto::id::TaskId;
use loopd_proto::params::tool::SubagentSettings;
use loopd_proto::permission::PermissionRule;

use super::child::{Child, RunLink};
use super::definitions::{AgentSettings, AskedBy, Roster};
use super::error::{ChildError, ParentEnded};
use super::order::SpawnSpec;
use super::slots::Slots;
use loopd_kernel::command::ModelFailure;
use loopd_kernel::model::ModelInfo;
use loopd_kernel::tasks::Task;

/// The session that agents belong to.
pub trait ParentSession: Send + Sync + 'static {
    /// Looks at the session, once for each start or reopening of an agent. For a person the agents
    /// that can be started are looked up anew: a model chooses among those it was told of.
    fn look(&self, asked_by: AskedBy) -> BoxFuture<'_, Result<Arc<dyn ChildSpawner>, ParentEnded>>;

    /// The tasks that the session's log knows.
    fn tasks(&self) -> BoxFuture<'_, Result<Vec<Task>, ParentEnded>>;
}

/// Makes child sessions from the parent as it was at one moment.
pub trait ChildSpawner: Send + Sync + 'static {
    fn parent(&self) -> &ParentSnapshot;

    /// The models that the parent can reach.
    fn models(&self) -> &dyn ReachableModels;

    /// What programs that are started for an agent may see of the environment.
    fn environment(&self) -> BTreeMap<String, String>;

    /// Makes the child's session.
    fn spawn(
        &self,
        spec: SpawnSpec,
        run_link: RunLink,
    ) -> BoxFuture<'_, Result<Arc<dyn Child>, ChildError>>;

    /// Opens a child's session again from its log.
    fn reopen(
        &self,
        work: &AgentWork,
        run_link: RunLink,
    ) -> BoxFuture<'_, Result<Arc<dyn Child>, ChildError>>;
}

/// The models that a session can reach.
pub trait ReachableModels: Send + Sync {
    /// The model that answers when nobody chose one.
    fn default_model(&self) -> BoxFuture<'_, Result<String, ModelFailure>>;

    /// All of them; none when there is no list.
    fn list(&self) -> BoxFuture<'_, Vec<ModelInfo>>;
}

/// A session at one moment: everything that an order for an agent is judged by.
#[derive(Debug, Clone)]
pub struct ParentSnapshot {
    /// Set when the session is an agent itself.
    pub identity: Option<SubagentIdentity>,
    pub cwd: String,
    /// The model that was chosen for the session; none when nobody chose.
    pub model: Option<String>,
    pub reasoning_effort: Option<String>,
    /// The ids of tasks that are or were in use.
    pub taken: BTreeSet<TaskId>,
    /// What the session may not do.
    pub denied: Vec<PermissionRule>,
    /// What its clients say about single agents.
    pub subagents: Option<SubagentSettings>,
    /// How agents are run, by the file, the launch and the clients.
    pub settings: AgentSettings,
    /// The agents that can be started.
    pub roster: Arc<Roster>,
    /// The slots of the tree of agents that the session is part of.
    pub slots: Slots,
}

impl ParentSnapshot {
    /// How deep an agent of this session is.
    pub fn child_depth(&self) -> u32 {
        self.identity.as_ref().map_or(0, |own| own.depth) + 1
    }
}
