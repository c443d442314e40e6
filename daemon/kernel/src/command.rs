//! What can be asked of a session, and what it wants done in return.

use std::collections::BTreeMap;

use ulid::Ulid;

use loopd_proto::attachment::Attachment;
use loopd_proto::event::agent::SubagentIdentity;
use loopd_proto::event::ask::ElicitationAction;
use loopd_proto::event::fact::NamedBy;
use loopd_proto::event::session::{AgentSelected, FileChanged, FileOperation, WorkContext};
use loopd_proto::event::task::{ShellWaiting, TaskOutcome, TaskWork, WorkUsage};
use loopd_proto::event::tool::ToolResult;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{InteractionId, MessageId, RequestId, SessionId, TaskId, ToolCallId};
use loopd_proto::params::options::OptionsPatch;
use loopd_proto::params::tool::SubagentSettings;
use loopd_proto::permission::{
    Approval, ManagedPermissions, PermissionDecision, PermissionRequest, Permissions,
};
use loopd_proto::session::{Mode, SessionOptions};
use loopd_proto::time::Timestamp;
use serde_json::Value;

pub use super::effect::{Effect, EffectStart, RememberScope};
use super::model::ModelReply;
use super::state::TurnKey;
use super::tool_call::{Ahead, ToolOrigin, UserQuestion};

/// The outside world as values: the time, and ids that were not used before.
pub struct DecideEnv<'a> {
    pub now: Timestamp,
    /// Whether somebody is attached; without anybody no new turn begins.
    pub attended: bool,
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
    SetModel {
        model: String,
        reasoning_effort: Option<String>,
    },
    UpdateOptions(Box<OptionsPatch>),
    SetPermissions(Box<Permissions>),
    /// A client allowed something for good when an agent of this session asked.
    Grant(LastingApproval),
    SelectAgent(Option<AgentChoice>),
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
pub struct Create {
    pub options: SessionOptions,
    pub context: WorkContext,
    pub permissions: Permissions,
    /// The agent that answers instead of the default one.
    pub agent: Option<AgentChoice>,
    pub version: String,
    /// Set when the session is an agent of another one.
    pub subagent: Option<Box<SubagentIdentity>>,
}

/// A copy of a log that becomes an agent.
#[derive(Debug)]
pub struct AdoptAsSubagent {
    pub subagent: SubagentIdentity,
    /// Where it works, if not where its parent does.
    pub cwd: Option<String>,
}

/// What is allowed from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastingApproval {
    pub approval: Option<Approval>,
    pub domain: Option<String>,
}

/// Something that goes on in the background from now on.
#[derive(Debug)]
pub struct TaskStart {
    pub id: TaskId,
    pub call: Option<ToolCallId>,
    pub description: String,
    /// When it began, if that was earlier.
    pub started_at: Option<Timestamp>,
    pub work: TaskWork,
}

/// How something in the background ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEnd {
    pub outcome: TaskOutcome,
    pub exit_code: Option<i32>,
    pub reason: Option<String>,
    /// What it came to, or how far it got.
    pub result: Option<String>,
    pub usage: Option<WorkUsage>,
    /// Whether the model learns of it by other means.
    pub delivered: bool,
}

impl TaskEnd {
    pub fn new(outcome: TaskOutcome) -> Self {
        Self {
            outcome,
            exit_code: None,
            reason: None,
            result: None,
            usage: None,
            delivered: false,
        }
    }

    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// What an agent answered before it came to rest.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskAnswer {
    pub response: String,
    pub usage: WorkUsage,
    /// Whether the model learns of it by other means.
    pub delivered: bool,
}

/// What became of an agent, by its own log, when the daemon stopped before its parent was told.
#[derive(Debug, Clone, PartialEq)]
pub enum RecoveredOutcome {
    Answered(TaskId, TaskAnswer),
    Ended(TaskId, TaskEnd),
}

impl RecoveredOutcome {
    pub fn task(&self) -> &TaskId {
        match self {
            Self::Answered(id, _) | Self::Ended(id, _) => id,
        }
    }
}

#[derive(Debug)]
pub struct Resume {
    pub options: SessionOptions,
    pub working_directory: Option<String>,
    pub context: WorkContext,
    /// The agent that answers from now on.
    pub agent: Option<AgentChoice>,
    /// What an app decides for its users, besides what was decided before.
    pub managed: Option<Box<ManagedPermissions>>,
    pub was_active: bool,
    pub already_in_use: bool,
    pub continue_pending_work: bool,
    pub announce: bool,
}

#[derive(Debug)]
pub struct Send {
    pub id: Option<MessageId>,
    pub prompt: String,
    pub display_prompt: Option<String>,
    pub attachments: Vec<Attachment>,
    pub agent_mode: Option<String>,
    /// For the model requests of this message only; may hold secrets, so the actor keeps them in
    /// memory and the log never sees them.
    pub request_headers: BTreeMap<String, String>,
    pub source: Option<String>,
    pub place: SendPlace,
}

/// When a message wants to be heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendPlace {
    Enqueue,
    Prepend,
    Immediate,
}

/// Messages made ready, and everything else the next model call needs.
#[derive(Debug)]
pub struct Prepared {
    pub messages: Vec<PreparedMessage>,
    pub model: String,
    pub reasoning_effort: Option<String>,
    pub system: String,
}

#[derive(Debug)]
pub struct PreparedMessage {
    pub id: MessageId,
    /// What the model reads.
    pub text: String,
}

#[derive(Debug)]
pub struct ModelReplied {
    pub turn: TurnKey,
    pub message: MessageId,
    pub model: String,
    pub reply: ModelReply,
    pub duration_ms: u64,
    pub first_token_ms: Option<f64>,
    pub endpoint: Option<String>,
    pub tool_count: u64,
    pub initiator: &'static str,
}

/// A model call that could not be made or did not come to an end.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFailure {
    pub kind: String,
    pub code: Option<String>,
    pub message: String,
    pub status: Option<u16>,
    pub provider_call_id: Option<String>,
    pub model: Option<String>,
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

/// How a tool call ended, in the words of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct CallOutcome {
    pub status: CallStatusReport,
    /// What the model reads, and on success what people read.
    pub result: ToolResult,
    pub telemetry: Option<serde_json::Map<String, Value>>,
    /// The tasks whose rest the model learns from this result.
    pub delivered: Vec<CompletionRef>,
}

/// A task's rest: which task, and when it came to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRef {
    pub task: TaskId,
    pub at: Timestamp,
}

/// Success, or a failure with its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStatusReport {
    Success,
    Failure { code: String },
}

impl CallOutcome {
    pub fn success(text: impl Into<String>) -> Self {
        Self {
            status: CallStatusReport::Success,
            result: ToolResult {
                content: text.into(),
                ..ToolResult::default()
            },
            telemetry: None,
            delivered: Vec::new(),
        }
    }

    pub fn failure(code: &str, text: impl Into<String>) -> Self {
        Self {
            status: CallStatusReport::Failure {
                code: code.to_owned(),
            },
            result: ToolResult {
                content: text.into(),
                ..ToolResult::default()
            },
            telemetry: None,
            delivered: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChoice {
    pub name: String,
    pub display_name: String,
    pub tools: Option<Vec<String>>,
}

impl From<AgentChoice> for AgentSelected {
    fn from(choice: AgentChoice) -> Self {
        Self {
            agent_name: choice.name,
            agent_display_name: choice.display_name,
            tools: choice.tools,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Info,
    Warning,
    Error,
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
