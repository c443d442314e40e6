//! A child session as its parent's agents see it, and who brings one about. `session` implements
//! both; a test may, too.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use loopd_proto::event::agent::Profile;
use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::task::{AgentWork, Execution, WorkUsage, WorktreeWork};
use loopd_proto::id::{SessionId, TaskId, ToolCallId};

use super::SubagentOrder;
use super::slots::{SlotLease, Slots};
use super::watcher::Watcher;
use loopd_kernel::tasks::Task;

/// How an agent is kept apart from its parent's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    Worktree,
}

/// What an order comes to, once everything it names is known to be there.
#[derive(Debug, Clone)]
pub struct SubagentPlan {
    pub profile: Profile,
    pub execution: Execution,
    pub model: Option<String>,
    pub reasoning_effort: Option<String>,
    pub isolation: Option<Isolation>,
    pub cwd: PathBuf,
    /// Said before the prompt.
    pub preface: Option<String>,
    /// The way down to the parent, which every id below begins with.
    pub prefix: Option<TaskId>,
    /// The ids that the session's registry knows, those of removed agents among them.
    pub taken: BTreeSet<TaskId>,
    pub note: Option<String>,
}

/// A child session to be made.
#[derive(Debug, Clone)]
pub struct SpawnSpec {
    pub task: TaskId,
    /// The call that asked for it; none when a client did.
    pub call: Option<ToolCallId>,
    pub session: SessionId,
    pub plan: SubagentPlan,
    pub worktree: Option<WorktreeWork>,
}

/// What ties a child to the run that drives it.
#[derive(Debug, Clone)]
pub struct RunLink {
    pub watcher: Arc<Watcher>,
    pub lease: Arc<SlotLease>,
}

/// What the parent's session can do for its agents.
pub trait ChildSpawner: Send + Sync + 'static {
    /// Finds everything that an order names, or says in words for the model what is wrong with it.
    fn plan(&self, order: SubagentOrder) -> BoxFuture<'static, Result<SubagentPlan, String>>;

    /// The tasks that the session's log knows.
    fn tasks(&self) -> BoxFuture<'static, Result<Vec<Task>, String>>;

    /// Makes a copy of the repository for an agent.
    fn make_worktree(
        &self,
        session: &SessionId,
        plan: &SubagentPlan,
    ) -> BoxFuture<'static, Result<WorktreeWork, String>>;

    /// Makes the child's session.
    fn spawn(
        &self,
        spec: SpawnSpec,
        run_link: RunLink,
    ) -> BoxFuture<'static, Result<Arc<dyn Child>, String>>;

    /// Opens a child's session again from its log.
    fn reopen(
        &self,
        work: &AgentWork,
        run_link: RunLink,
    ) -> BoxFuture<'static, Result<Arc<dyn Child>, String>>;

    /// The slots of the tree, and whether agents take more than one message.
    fn terms(&self) -> BoxFuture<'static, Result<(Slots, bool), String>>;

    /// The agent has come to rest: removes a copy that was not changed.
    fn settle_worktree(&self, worktree: &WorktreeWork) -> BoxFuture<'static, WorktreeEnd>;
}

/// What became of a copy of a repository, in words for the model; empty when there is nothing to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeEnd {
    Removed,
    Kept(String),
    Failed(String),
}

/// A live child session.
pub trait Child: Send + Sync + 'static {
    /// Whether nobody had spoken to it when it was made or opened.
    fn is_new(&self) -> bool;

    /// Gives it a message: at once when it rests, else before its next model call.
    fn say(&self, message: String) -> BoxFuture<'static, Result<(), String>>;

    /// Interrupts what it does.
    fn abort(&self) -> BoxFuture<'static, ()>;

    /// How it stands; `None` when it is gone.
    fn status(&self) -> BoxFuture<'static, Option<ChildStatus>>;

    /// Ends it; its log stays.
    fn stop(&self) -> BoxFuture<'static, ()>;
}

/// How a child stands.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildStatus {
    AtWork,
    Rests(Box<ChildResult>),
}

/// How a child came to rest, and what it said since it was first spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildResult {
    pub outcome: Option<LoopOutcome>,
    pub response: Option<String>,
    pub error: Option<String>,
    pub usage: WorkUsage,
}
