//! Our own events, for which the public schema has none: stored and folded, never sent to SDK
//! connections. Fields may be added, never renamed.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::attachment::Attachment;
use crate::event::ask::{
    AutoModeSwitchRequested, ElicitationRequested, ExitPlanModeRequested, UserInputRequested,
};
use crate::event::session::TokenMetrics;
use crate::event::turn::Delivered;
use crate::id::{MessageId, RequestId, ToolCallId};
use crate::permission::{ConfirmedRequest, PermissionRule, Permissions};
use crate::run_scope::RunScope;
use crate::session::{Mode, SessionOptions};

/// The session's configuration, without secrets, as of now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Configured {
    pub options: SessionOptions,
    pub working_directory: String,
}

/// The session's name and who gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Named {
    pub name: String,
    pub by: NamedBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NamedBy {
    User,
    Auto,
}

/// The permission rules as of now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionsSet {
    pub permissions: Permissions,
}

/// The approved permission rules changed. The event has the change only, because there may be many
/// rules.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RulesChanged {
    /// All rules were removed before others were added.
    pub removed_all: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<PermissionRule>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<PermissionRule>,
    /// What a person approved although rules ask about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<ConfirmedRequest>,
}

/// An item entered the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    pub item: QueueItem,
    pub place: QueuePlace,
}

/// A client, as the log names it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRef {
    /// Tells this client from all others, also from those of earlier daemons.
    pub id: String,
    /// The name that the client gave itself.
    pub name: Option<String>,
}

/// Where in the queue an item goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueuePlace {
    Last,
    First,
    /// At this position, counted from 0, or at the end of a shorter queue.
    At(u32),
    /// Before the next model call of the running turn.
    Steering,
}

/// A queued item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum QueueItem {
    Message(PendingMessage),
    Command(PendingCommand),
}

/// A user message that waits for its turn.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingMessage {
    pub id: MessageId,
    pub prompt: String,
    pub display_prompt: Option<String>,
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    pub agent_mode: Option<String>,
    /// The mode that the session switches to when the message begins its turn.
    pub switches_to: Option<Mode>,
    pub source: Option<String>,
    pub delivery: Delivered,
    /// The client that sent the message.
    pub sender: Option<ClientRef>,
    /// The permission request that the message answers after its turn was over.
    pub answers: Option<RequestId>,
    /// What the message sets for its run only.
    pub scope: Option<Box<RunScope>>,
    /// The tool without which the message is not given to a model.
    pub required_tool: Option<String>,
    /// The message whose work this one goes on with.
    pub origin: Option<MessageId>,
}

impl PendingMessage {
    /// Returns about how many bytes the message has.
    pub fn size(&self) -> usize {
        let shown = self.display_prompt.as_ref().map_or(0, String::len);
        let attached: usize = self.attachments.iter().map(Attachment::size).sum();
        self.prompt.len() + shown + attached
    }

    /// Returns a message of the daemon itself.
    pub fn new(id: MessageId, prompt: String, delivery: Delivered) -> Self {
        Self {
            id,
            prompt,
            display_prompt: None,
            attachments: Vec::new(),
            agent_mode: None,
            switches_to: None,
            source: None,
            delivery,
            sender: None,
            answers: None,
            scope: None,
            required_tool: None,
            origin: None,
        }
    }
}

/// A slash command that waits for its turn.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCommand {
    pub id: MessageId,
    pub command: String,
    pub request: RequestId,
    /// The client that queued the command.
    pub sender: Option<ClientRef>,
    /// Whether a client had said that it runs this command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub registered: bool,
    /// Whether the daemon runs the command: it is one of its own, or one of a file.
    #[serde(
        rename = "byDaemon",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub by_daemon: bool,
    /// The text that people see instead of the command.
    #[serde(rename = "displayText")]
    pub display_text: Option<String>,
}

impl PendingCommand {
    /// Returns the command's name, without its slash and arguments.
    pub fn name(&self) -> &str {
        slash_name(&self.command)
    }

    /// Returns the text that people see.
    pub fn shown(&self) -> &str {
        self.display_text.as_deref().unwrap_or(&self.command)
    }
}

/// Returns the name of a slash command, without its slash and arguments.
pub fn slash_name(command: &str) -> &str {
    let mut words = command.trim_start_matches('/').split_whitespace();
    words.next().unwrap_or_default()
}

impl QueueItem {
    /// Returns about how many bytes the item has.
    pub fn size(&self) -> usize {
        match self {
            Self::Message(message) => message.size(),
            Self::Command(command) => {
                command.command.len() + command.display_text.as_ref().map_or(0, String::len)
            }
        }
    }

    pub fn id(&self) -> &MessageId {
        match self {
            Self::Message(message) => &message.id,
            Self::Command(command) => &command.id,
        }
    }

    /// Returns the client that queued the item.
    pub fn sender(&self) -> Option<&ClientRef> {
        match self {
            Self::Message(message) => message.sender.as_ref(),
            Self::Command(command) => command.sender.as_ref(),
        }
    }
}

/// An item of the queue has another place now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueItemMoved {
    pub id: MessageId,
    pub place: QueuePlace,
}

/// A message of the queue has another text now. Everything else about it stays.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueItemEdited {
    pub id: MessageId,
    pub prompt: String,
    pub display_prompt: Option<String>,
}

/// The loop began to work on these items.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    pub ids: Vec<MessageId>,
}

/// These items left the queue without being worked on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unqueued {
    pub ids: Vec<MessageId>,
}

/// A question to the clients is open; it survives restarts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Asked {
    UserInput(UserInputRequested),
    Elicitation(ElicitationRequested),
    /// The client whose hooks guard the session has to decide about a call; nobody answers its
    /// hooks now.
    Guard(GuardWanted),
    ExitPlanMode(PlanAsked),
    AutoModeSwitch(AutoModeSwitchRequested),
}

/// A tool call waits for the client whose hooks guard the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GuardWanted {
    pub request_id: RequestId,
    pub tool_call_id: ToolCallId,
}

/// The model asks to leave plan mode, and its call waits for the answer.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanAsked {
    #[serde(flatten)]
    pub asked: ExitPlanModeRequested,
    pub tool_call_id: ToolCallId,
    /// Whether the plan came with the call and becomes the session's plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
}

impl Asked {
    pub fn request_id(&self) -> &RequestId {
        match self {
            Self::UserInput(asked) => &asked.request_id,
            Self::Elicitation(asked) => &asked.request_id,
            Self::Guard(wanted) => &wanted.request_id,
            Self::ExitPlanMode(plan) => &plan.asked.request_id,
            Self::AutoModeSwitch(asked) => &asked.request_id,
        }
    }
}

/// A question is closed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    pub request_id: RequestId,
}

/// A permission request was closed with its turn before anybody answered it. An answer can still
/// come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionUnanswered {
    pub request_id: RequestId,
}

/// A text for the model that is not from a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reminded {
    pub text: String,
}

/// The loop has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopEnded {
    pub outcome: LoopOutcome,
    /// Whether a client may let the run go on: the daemon ended in the middle of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumable: bool,
    /// Whether a limit of the session ended the run. It goes on when a client grants more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limited: bool,
    /// The question whether more credits are granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_request: Option<RequestId>,
}

impl LoopEnded {
    /// The run has ended for good.
    pub fn with(outcome: LoopOutcome) -> Self {
        Self {
            outcome,
            resumable: false,
            limited: false,
            limit_request: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoopOutcome {
    Done,
    Aborted,
    Failed,
    /// The daemon ended while the loop was running; recorded on recovery.
    Interrupted,
}

/// The usage of one model call, for the totals after a resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageRecorded {
    pub model: String,
    pub tokens: TokenMetrics,
    pub duration_ms: u64,
    /// What the provider charged, in billionths of a credit.
    #[serde(default)]
    pub nano_credits: u64,
    /// The cost in billionths of a US dollar; 0 if the model has no price.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nano_usd: u64,
    /// What the request had by our own count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedTokens>,
    /// Whether the tokens are estimated: the provider did not report them, reported what cannot be, or a
    /// reply broke off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// What the call was for, if it was not a turn of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<CallPurpose>,
}

/// What the daemon itself asks a model for, beside the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPurpose {
    Compaction,
    Title,
    /// A summary for whoever takes over the session.
    Handoff,
    /// What a sub-agent is doing, in a sentence or two.
    AgentSummary,
    /// Notes for later sessions, after the end of this one.
    Consolidation,
    /// An MCP server asked for it.
    Sampling,
}

/// The tokens of a request by our own count, which differs from that of its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedTokens {
    pub system: u64,
    /// The definitions of the tools.
    pub tools: u64,
    pub conversation: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
