//! What can be asked of a session, and what it wants done in return.

mod calls;
mod life;
mod messages;
mod settings;
mod tasks;

use ulid::Ulid;

use loopd_proto::event::ask::ElicitationAction;
use loopd_proto::event::fact::NamedBy;
use loopd_proto::event::session::{FileChanged, FileOperation, WorkContext};
use loopd_proto::event::task::ShellWaiting;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{InteractionId, MessageId, RequestId, SessionId, TaskId, ToolCallId};
use loopd_proto::params::options::OptionsPatch;
use loopd_proto::params::permission::ApprovalMode;
use loopd_proto::params::tool::SubagentSettings;
use loopd_proto::permission::{PermissionDecision, PermissionRequest, Permissions};
use loopd_proto::session::Mode;
use loopd_proto::time::Timestamp;
use serde_json::Value;

pub use super::effect::{Effect, EffectStart, RememberScope};
use super::state::TurnKey;
use super::tool_call::{Ahead, ToolOrigin, UserQuestion};

pub use calls::{CallOutcome, CallStatusReport, CompletionRef};
pub use life::{AdoptAsSubagent, Create, Resume};
pub use messages::{ModelFailure, ModelReplied, Prepared, PreparedMessage, Send, SendPlace};
pub use settings::{
    AgentChoice, AgentPick, AgentSources, LastingApproval, LogLevel, ModelChoice, PermissionChange,
    PermissionsPatch, RuleRemoval, RuleSet,
};
pub use tasks::{RecoveredOutcome, TaskAnswer, TaskEnd, TaskStart};

/// The outside world as values: the time, and ids that were not used before.
pub struct DecideEnv<'a> {
    pub now: Timestamp,
    /// Whether somebody is attached; without anybody no new turn begins.
    pub attended: bool,
    /// Whether the launch was started with everything allowed.
    pub bypass: bool,
    /// Whether a client that is attached runs the tool of this name.
    pub has_client_tool: &'a dyn Fn(&str) -> bool,
    pub ids: &'a mut dyn FnMut() -> Ulid,
}

impl DecideEnv<'_> {
    pub fn message(&mut self) -> MessageId {
        (self.ids)().into()
    }

    pub fn request(&mut self) -> RequestId {
        (self.ids)().into()
    }

    pub fn interaction(&mut self) -> InteractionId {
        (self.ids)().into()
    }
}

/// Something that happened to a session or is asked of it.
#[derive(Debug)]
pub enum Command {
    Create(Create),
    Resume(Resume),
    /// Take what waits, if nothing runs: the queue, then notifications.
    TakeUp,
    /// The log was loaded; close what was in flight. Agents may have got further than this log says.
    Recover(Vec<RecoveredOutcome>),
    /// The log is a copy of another session's, and becomes an agent of that one.
    AdoptAsSubagent(Box<AdoptAsSubagent>),
    Send(Send),
    Abort,
    Suspend,
    /// The session ends for now, because of an error if one is named.
    Shutdown {
        error: Option<String>,
    },
    EnqueueCommand(String),
    CommandHandled {
        request: RequestId,
        stop: bool,
    },
    ClearQueue,
    RemoveLastQueued,

    Prepared(Prepared),
    PrepareFailed {
        messages: Vec<MessageId>,
        failure: ModelFailure,
    },
    ModelReplied(Box<ModelReplied>),
    ModelFailed {
        turn: TurnKey,
        failure: ModelFailure,
    },
    Assessed(Assessed),
    ToolFinished {
        turn: TurnKey,
        call: ToolCallId,
        outcome: CallOutcome,
    },
    /// The time that an abort gives to running tools is over.
    GraceOver {
        turn: TurnKey,
    },

    AnswerPermission {
        request: RequestId,
        decision: PermissionDecision,
    },
    AnswerTool {
        request: RequestId,
        outcome: CallOutcome,
    },
    AnswerUserInput {
        request: RequestId,
        answer: String,
        freeform: bool,
    },
    Elicit {
        request: RequestId,
        message: String,
        schema: Value,
    },
    AnswerElicitation {
        request: RequestId,
        action: ElicitationAction,
        content: Option<Value>,
    },

    SetName {
        name: String,
        by: NamedBy,
    },
    SetMode(Mode),
    SetModel(Box<ModelChoice>),
    SetReasoningEffort {
        effort: String,
        /// The model that answers if none was chosen.
        default_model: String,
    },
    UpdateOptions(Box<OptionsPatch>),
    ChangePermissions(PermissionChange),
    /// A client allowed something for good when an agent of this session asked.
    Grant(LastingApproval),
    SelectAgent(Option<Box<AgentPick>>),
    PlanChanged(FileOperation),
    FileChanged(FileChanged),
    SetWorkingDirectory(String),
    /// Somebody looked at where the session works.
    RecordContext(WorkContext),
    SetSubagents(Option<SubagentSettings>),
    TaskStarted(Box<TaskStart>),
    TaskProcess {
        id: TaskId,
        pid: u32,
    },
    TaskEnded {
        id: TaskId,
        end: TaskEnd,
    },
    TaskPromoted(TaskId),
    TaskAnswered {
        id: TaskId,
        answer: TaskAnswer,
    },
    TaskContinued {
        id: TaskId,
        message: String,
    },
    TaskNoted {
        id: TaskId,
        note: String,
    },
    /// The model learnt by other means how tasks ended.
    TasksDelivered(Vec<TaskId>),
    RemoveTask(TaskId),
    UserCommandStarted {
        call: ToolCallId,
        tool: String,
        command: String,
    },
    UserCommandEnded {
        call: ToolCallId,
        outcome: CallOutcome,
    },
    /// A command in a shell waits for somebody to type.
    ShellWaits(ShellWaiting),
    Log {
        level: LogLevel,
        kind: String,
        message: String,
        url: Option<String>,
        tip: Option<String>,
        stored: bool,
    },
}

#[derive(Debug)]
pub struct Assessed {
    pub turn: TurnKey,
    pub call: ToolCallId,
    /// Where the tool comes from, and so who carries the call out once it is permitted.
    pub origin: ToolOrigin,
    pub need: CallNeed,
    /// What may be made ready unless the call is refused.
    pub ahead: Ahead,
    /// Whether somebody who is attached answers permission questions, or nobody is attached at all.
    pub can_ask: bool,
    /// Whether the launch was started with everything allowed.
    pub bypass: bool,
    /// What an agent may do by its parents' leave; its own session has no say.
    pub inherited: Option<Box<Permissions>>,
}

#[derive(Debug)]
pub enum CallNeed {
    Nothing,
    Permission(PermissionRequest),
    /// The call is this question, and the answer its result.
    Answer(UserQuestion),
    Refused(CallOutcome),
}

/// What follows from a command, in order.
#[derive(Debug, Default)]
pub struct Decision {
    pub steps: Vec<Step>,
    pub answer: Answer,
}

#[derive(Debug)]
pub enum Step {
    Store(Durable),
    Tell(Ephemeral),
    Do(Effect),
}

/// What the asker is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Answer {
    #[default]
    Done,
    Message(MessageId),
    /// Whether the command found what it was for.
    Accepted(bool),
    /// Whether a change of permissions changed anything, and whether people are asked now.
    Permissions {
        changed: bool,
        mode: ApprovalMode,
    },
}

/// Why a command was refused; nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("Session not found: {0}")]
    Closed(SessionId),
    #[error("the queue of this session is full ({limit} items); wait for it to drain or clear it")]
    QueueFull { limit: usize },
    #[error("{limit} tasks run in the background already; stop some of them first")]
    TooManyTasks { limit: usize },
    #[error("there is a task {0} already; choose another id")]
    TaskExists(TaskId),
    #[error("the messageId {0} was used for another message; give each message an id of its own")]
    MessageIdUsed(MessageId),
    #[error("attachments: {0} may not be read, by the managed settings of this session")]
    AttachmentDenied(String),
    #[error("the agents of this session changed while one was chosen; try again")]
    AgentsChanged,
    #[error("the managed settings of this session do not let anybody approve everything at once")]
    NoApproveAll,
}

impl Decision {
    pub fn store(&mut self, event: Durable) -> &mut Self {
        self.steps.push(Step::Store(event));
        self
    }

    pub fn tell(&mut self, event: Ephemeral) -> &mut Self {
        self.steps.push(Step::Tell(event));
        self
    }

    pub fn run(&mut self, effect: Effect) -> &mut Self {
        self.steps.push(Step::Do(effect));
        self
    }

    pub fn answering(answer: Answer) -> Self {
        Self {
            steps: Vec::new(),
            answer,
        }
    }
}
