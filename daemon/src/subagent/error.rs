//! Why a sub-agent could not be planned, started, reached or run to its end.

use std::path::PathBuf;
use std::sync::Arc;

use loopd_exec::shells::TaskLogError;
use loopd_exec::worktree::WorktreeError;
use loopd_kernel::command::{ModelFailure, Refusal};
use loopd_proto::id::TaskId;
use loopd_store::StoreError;

use super::definitions::model::ModelRefusal;
use super::definitions::start::StartRefusal;

/// Why a sub-agent could not be started or reached, with what the caller can do about it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SubagentError {
    #[error(transparent)]
    Refused(#[from] PlanRefusal),
    #[error("The agent has no worktree to work in: {0}")]
    NoWorktree(#[source] Arc<WorktreeError>),
    #[error("There is no agent \"{wanted}\" in this session. {known}")]
    Unknown { wanted: String, known: String },
    #[error(
        "\"{0}\" is a shell command and not an agent; the shell tools read, write and stop it."
    )]
    NotAnAgent(TaskId),
    #[error("The agent {0} works by itself and takes no messages; start a new task instead.")]
    TakesNoMessages(TaskId),
    #[error("The message is empty.")]
    EmptyMessage,
    #[error(
        "This run may use only some tools, and the agent {0} was started with others. Start another agent for it, or \
         do it yourself."
    )]
    Wider(TaskId),
    #[error("{limit} messages wait for the agent {id} already; wait until it has read some.")]
    InboxFull { id: TaskId, limit: usize },
    #[error(
        "{limit} agents of this session are at work already; wait for some of them or stop them."
    )]
    TooMany { limit: usize },
    #[error("The session has ended.")]
    SessionEnded,
    #[error("The agent could not be recorded, so it was not started: {0}")]
    NotStored(#[source] TaskLogError),
}

impl From<ParentEnded> for SubagentError {
    fn from(ParentEnded: ParentEnded) -> Self {
        Self::SessionEnded
    }
}

/// The parent session has ended and no longer replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session has ended")]
pub struct ParentEnded;

/// Why an order for a sub-agent is refused; the text is for the caller.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PlanRefusal {
    #[error(
        "The prompt is empty. Say in it everything that the agent has to know: it does not see this conversation."
    )]
    EmptyPrompt,
    #[error(
        "Agents may be {limit} deep here, and this one would be the {depth}th. Do the work yourself."
    )]
    TooDeep { limit: u32, depth: u32 },
    #[error(transparent)]
    Start(#[from] StartRefusal),
    #[error("The rules of this session deny the agent {0}. Do the work without it.")]
    Denied(String),
    #[error("cwd: there is no folder {}.", .0.display())]
    NoFolder(PathBuf),
    #[error("cwd and isolation exclude each other: a worktree has a folder of its own.")]
    FolderAndWorktree,
    #[error("No agent was started: its worktree would be written. {0} Leave `isolation` out.")]
    WorktreeWhilePlanning(&'static str),
    #[error(transparent)]
    Model(#[from] ModelRefusal),
    #[error("{}", .0.message)]
    NoDefaultModel(Box<ModelFailure>),
    #[error("A fork cannot fork again: do the work that you were forked for yourself.")]
    ForkOfFork,
    #[error(
        "A fork has the model of the conversation it continues; leave `model` out or name an agent_type."
    )]
    ForkWithModel,
    #[error("A fork works where its conversation does; leave `cwd` out.")]
    ForkElsewhere,
}

/// Why a child session could not be made, opened or sent a message, or why it ended early.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ChildError {
    #[error(transparent)]
    Parent(#[from] ParentEnded),
    #[error("its session exists already")]
    Exists,
    #[error("{}", loopd_kernel::texts::AGENT_LOG_GONE)]
    NoLog,
    #[error("its parent has no log")]
    NoParentLog,
    #[error("its parent's log has no such call")]
    NoSuchCall,
    #[error("The agent has no worktree to work in: {0}")]
    NoWorktree(#[source] Arc<WorktreeError>),
    #[error("The worktree {0} that it worked in is gone.")]
    WorktreeGone(String),
    /// An event of the child could not be stored, or its log could not be read.
    #[error("the session's log could not be read or written: {0}")]
    Log(#[source] Arc<StoreError>),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("its session has more requests waiting than it can take; try again")]
    Overloaded,
    /// The child's session was closed from outside.
    #[error("its session ended unexpectedly")]
    Ended,
    #[error("its session failed inside the daemon and was closed; this is a bug of loopd")]
    Crashed,
}

/// Why a run ended without an answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RunFailure {
    #[error(transparent)]
    Child(#[from] ChildError),
    /// The error in the sub-agent's own log.
    #[error("{0}")]
    Loop(String),
    /// A limit of the session or of the run ended it.
    #[error("{0}")]
    Limit(String),
    /// It came to its end, and its answer is not what was asked for.
    #[error("{0}")]
    Unfinished(String),
    #[error("it was interrupted")]
    Interrupted,
    #[error("it failed")]
    Unexplained,
}
