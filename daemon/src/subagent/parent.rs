//! The interface of the parent for its sub-agents. `session` implements the traits; tests may, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use loopd_proto::event::agent::SubagentIdentity;
use loopd_proto::event::task::AgentWork;
use loopd_proto::id::TaskId;
use loopd_proto::params::tool::SubagentSettings;
use loopd_proto::permission::PermissionRule;
use loopd_proto::run_scope::ToolLimits;

use super::child::{Child, RunLink};
use super::definitions::{AgentSettings, AskedBy, Roster};
use super::error::{ChildError, ParentEnded};
use super::order::SpawnSpec;
use super::slots::Slots;
use loopd_kernel::command::ModelFailure;
use loopd_kernel::model::ModelInfo;
use loopd_kernel::policy::planning::Planning;
use loopd_kernel::tasks::Task;

/// The parent session of sub-agents.
pub trait ParentSession: Send + Sync + 'static {
    /// Takes a snapshot of the session, once for each start or reopening of a sub-agent. For a user
    /// the definitions are looked up again. A model chooses among those that it was told about.
    fn look(&self, asked_by: AskedBy) -> BoxFuture<'_, Result<Arc<dyn ChildSpawner>, ParentEnded>>;

    /// Lists the tasks that are in the session's log.
    fn tasks(&self) -> BoxFuture<'_, Result<Vec<Task>, ParentEnded>>;
}

/// Makes child sessions from one snapshot of the parent.
pub trait ChildSpawner: Send + Sync + 'static {
    fn parent(&self) -> &ParentSnapshot;

    /// Returns the models that the parent can reach.
    fn models(&self) -> &dyn ReachableModels;

    /// Returns the part of the environment that programs of a sub-agent may see.
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
    /// Returns the model to use when none was chosen.
    fn default_model(&self) -> BoxFuture<'_, Result<String, ModelFailure>>;

    /// Lists all models; empty if there is no list.
    fn list(&self) -> BoxFuture<'_, Vec<ModelInfo>>;
}

/// A snapshot of a session: everything that decides about an order for a sub-agent.
#[derive(Debug, Clone)]
pub struct ParentSnapshot {
    /// The identity of the session, if it is a sub-agent itself.
    pub identity: Option<SubagentIdentity>,
    pub cwd: String,
    /// The model that was chosen for the session; `None` if none was chosen.
    pub model: Option<String>,
    pub reasoning_effort: Option<String>,
    /// The ids of tasks that are or were in use.
    pub taken: BTreeSet<TaskId>,
    /// Whether the session only looks and plans.
    pub planning: Planning,
    /// The rules that deny a permission.
    pub denied: Vec<PermissionRule>,
    /// What every agent is limited to, and what one is that the current run starts.
    pub lasting_limits: ToolLimits,
    pub limits_of_run: ToolLimits,
    /// The clients' settings for single sub-agents.
    pub subagents: Option<SubagentSettings>,
    /// The settings for all sub-agents, from the file, the launch and the clients.
    pub settings: AgentSettings,
    /// The sub-agents that can be started.
    pub roster: Arc<Roster>,
    /// The slots of the tree of sub-agents that the session belongs to.
    pub slots: Slots,
    /// The home directory of the user, if the launch has one.
    pub user_home: Option<PathBuf>,
    /// Whether agents have memories that outlast the session.
    pub has_memory: bool,
}

impl ParentSnapshot {
    /// Returns the depth of a sub-agent of this session.
    pub fn child_depth(&self) -> u32 {
        self.identity.as_ref().map_or(0, |own| own.depth) + 1
    }
}
