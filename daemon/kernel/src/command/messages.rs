//! Messages to the model, and the model's replies and failures.

use std::collections::BTreeMap;

use loopd_proto::attachment::Attachment;
use loopd_proto::event::fact::{ClientRef, CountedTokens};
use loopd_proto::event::hook::HookEnd;
use loopd_proto::event::skill::SkillInvoked;
use loopd_proto::id::MessageId;
use loopd_proto::params::session::AbortReason;
use loopd_proto::run_scope::RunScope;

use crate::model::{ModelReply, Usage};
use crate::state::TurnKey;

#[derive(Debug)]
pub struct Send {
    pub id: Option<MessageId>,
    pub prompt: String,
    pub display_prompt: Option<String>,
    pub attachments: Vec<Attachment>,
    pub agent_mode: Option<String>,
    /// The tool without which the message is not given to a model.
    pub required_tool: Option<String>,
    /// HTTP headers for the model requests of this message only. They may hold secrets, so the
    /// actor keeps them in memory and they never enter the log.
    pub request_headers: BTreeMap<String, String>,
    pub source: Option<String>,
    pub place: SendPlace,
    /// The client that sends the message; `None` if the daemon does.
    pub sender: Option<ClientRef>,
    /// What the message sets for its run only.
    pub scope: Option<Box<RunScope>>,
}

/// Where a message goes in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendPlace {
    Enqueue,
    Prepend,
    Immediate,
    /// At this position of the queue, or at the end of a shorter queue.
    At(u32),
}

/// A request to stop the running turn.
#[derive(Debug)]
pub struct AbortRequest {
    pub reason: AbortReason,
    /// The client that asks; `None` if the daemon does.
    pub by: Option<ClientRef>,
    pub waiting: AbortWaiting,
    /// Nothing happens unless the running turn belongs to this message.
    pub only: Option<MessageId>,
}

impl AbortRequest {
    /// A request of the daemon itself, which removes everything that waits.
    pub const OF_DAEMON: Self = Self {
        reason: AbortReason::UserInitiated,
        by: None,
        waiting: AbortWaiting::RemoveAll,
        only: None,
    };
}

/// What an abort does with the items that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortWaiting {
    /// Those of the caller are removed, and those that nobody is known to have sent.
    RemoveOwn,
    RemoveAll,
    Keep,
}

/// Prepared messages, and everything else that the next model call needs.
#[derive(Debug)]
pub struct Prepared {
    pub messages: Vec<PreparedMessage>,
    /// The messages beside them that hooks do not let through.
    pub blocked: Vec<BlockedMessage>,
    pub model: String,
    pub reasoning_effort: Option<String>,
    pub system: String,
    /// What hooks tell the model before the messages.
    pub context: Vec<String>,
    /// The hooks that changed something.
    pub ended: Vec<HookEnd>,
    /// The skills that the messages load.
    pub skills: Vec<SkillInvoked>,
    /// The skills that the system message has.
    pub preloaded: Vec<SkillInvoked>,
}

impl Prepared {
    /// Returns the text that the model reads of a message.
    pub(crate) fn text_of(&self, id: &MessageId) -> Option<&str> {
        let ready = self.messages.iter().find(|ready| ready.id == *id);
        ready.map(|ready| ready.text.as_str())
    }
}

/// A message that hooks do not let through.
#[derive(Debug)]
pub struct BlockedMessage {
    pub id: MessageId,
    pub failure: ModelFailure,
}

#[derive(Debug)]
pub struct PreparedMessage {
    pub id: MessageId,
    /// The text that the model reads.
    pub text: String,
    /// The attachments, if they had to be changed for the model.
    pub attachments: Option<Vec<Attachment>>,
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
    /// The cost in billionths of a US dollar; 0 if the model has no price.
    pub nano_usd: u64,
    /// What the request had by our own count.
    pub counted: CountedTokens,
    /// What the provider reported, if the usage in the reply is an estimate instead.
    pub reported: Option<Usage>,
}

/// What a model call used that gave no reply, as an estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostCall {
    pub model: String,
    pub usage: Usage,
    pub nano_usd: u64,
    pub duration_ms: u64,
}

/// A model call that could not start or did not complete.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFailure {
    pub kind: String,
    pub code: Option<String>,
    pub message: String,
    pub status: Option<u16>,
    pub provider_call_id: Option<String>,
    pub model: Option<String>,
    /// How long a rate limit lasts, if the provider says so.
    pub retry_after_seconds: Option<u64>,
}
