//! Why a command is refused.

use loopd_proto::id::{MessageId, SessionId, TaskId};

use crate::todos::TodoProblem;

/// Why a command was refused. A refused command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("Session not found: {0}")]
    Closed(SessionId),
    #[error("the queue of this session is full ({limit} items); wait for it to drain or clear it")]
    QueueFull { limit: usize },
    #[error(
        "{waiting} bytes wait in the queue of this session already, and it holds at most {limit}; wait for it to drain or clear it"
    )]
    QueueBytes { waiting: usize, limit: usize },
    #[error("{limit} tasks run in the background already; stop some of them first")]
    TooManyTasks { limit: usize },
    #[error("there is a task {0} already; choose another id")]
    TaskExists(TaskId),
    #[error("the messageId {0} was used for another message; give each message an id of its own")]
    MessageIdUsed(MessageId),
    #[error(
        "{0} does not wait in the queue: a turn has taken it or it was removed; session.queue.pendingItems lists what waits"
    )]
    NotQueued(MessageId),
    #[error("{0} is a slash command, not a message; remove it and queue another command instead")]
    NotAMessage(MessageId),
    #[error(
        "{0} is the message of a slash command or the answer to a question, and its text belongs to that; remove it and send another message instead"
    )]
    TextBelongs(MessageId),
    #[error("attachments: {0} may not be read, by the managed settings of this session")]
    AttachmentDenied(String),
    #[error("the agents of this session changed while one was chosen; try again")]
    AgentsChanged,
    #[error("a session has at most {limit} permission rules of a kind; remove some first")]
    TooManyRules { limit: usize },
    #[error(
        "guards of {limit} folders are in force in this session; open a new session in that directory"
    )]
    TooManyGuards { limit: usize },
    #[error("the managed settings of this session do not let anybody approve everything at once")]
    NoApproveAll,
    #[error("the action {0} was not offered with this plan; choose one of its `actions`")]
    NotOffered(&'static str),
    /// A call that was permitted may not begin any more. The text is for the model.
    #[error("{0}")]
    GrantLost(String),
    #[error("{0}")]
    Todos(TodoProblem),
    #[error("the todo list was changed meanwhile; read it and try again")]
    TodosChanged,
    #[error(
        "a fleet is at work in this session already; wait for it or stop it with loopd.fleetStop"
    )]
    FleetAtWork,
    #[error("there are no todos to carry out; give a prompt, or write todos first")]
    NoTodos,
    #[error("no todo can be begun: {0}")]
    NoReadyTodo(String),
    #[error(
        "a fleet changes files, and this session is in plan mode; leave it first, or let the fleet carry out the plan"
    )]
    FleetWhilePlanning,
    #[error("these todos depend on each other in a circle: {0}; remove one of these dependencies")]
    TodoCircle(String),
    #[error("the session cannot go back while there is work: {work}; stop it first")]
    RewindBusy { work: String },
    #[error("this is the session of a sub-agent; rewind the session {0}, which it works for")]
    SubagentHistory(SessionId),
    #[error("files are being restored; try again when the rewind is done")]
    Rewinding,
    #[error("the history changed meanwhile; list the rewind points and try again")]
    HistoryChanged,
    #[error(
        "a compaction of this session is running already; wait for it, or stop it with session.history.cancelBackgroundCompaction or session.history.abortManualCompaction"
    )]
    CompactionRunning,
    #[error(
        "the conversation is cleared while the session rests; wait for the turn, abort it, or queue /clear"
    )]
    ClearWhileBusy,
    #[error(
        "no tool call is in flight: session.history.clearContext works only from inside of one; /clear clears the conversation of a session that rests"
    )]
    NoCallToClearFrom,
    #[error("there is nothing to compact: the model has said nothing since the last compaction")]
    NothingToCompact,
    #[error("the form was not filled in as it was asked for: {0}")]
    FormContent(String),
    #[error(
        "this is the session of a sub-agent, which has the {what} of its parent; change that in the session {session}"
    )]
    IsSubagent {
        what: &'static str,
        session: SessionId,
    },
}
