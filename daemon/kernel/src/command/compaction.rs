//! Compacting the conversation.

use loopd_proto::event::compaction::CompactionTrigger;
use loopd_proto::event::fact::ClientRef;
use loopd_proto::event::hook::HookEnd;
use loopd_proto::id::RequestId;

use crate::model::Usage;
use crate::texts::compaction::Surviving;

/// A person or a client wants the conversation to be compacted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactOrder {
    /// What the summary should dwell on.
    pub instructions: Option<String>,
}

/// How the conversation is cleared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClearOrder {
    /// While the session rests.
    AtRest,
    /// From inside of a tool call: the conversation begins anew with this message.
    InCall { prompt: String, sender: ClientRef },
}

/// Which compactions a caller wants stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedCompactions {
    /// Those that began by themselves.
    Automatic,
    /// Those that somebody asked for.
    Manual,
}

impl StoppedCompactions {
    pub(crate) fn covers(self, trigger: CompactionTrigger) -> bool {
        match trigger {
            CompactionTrigger::Manual => self == Self::Manual,
            CompactionTrigger::Threshold | CompactionTrigger::ContextLimitRetry => {
                self == Self::Automatic
            }
        }
    }
}

/// The model call for a summary has ended, or could not begin.
#[derive(Debug)]
pub struct Summarised {
    pub id: RequestId,
    pub outcome: Result<Summary, CompactionFailure>,
    /// What the calls used, those that failed included.
    pub spent: Vec<SideUsage>,
    /// The hooks that changed something.
    pub ended: Vec<HookEnd>,
}

/// What takes the place of a part of the conversation.
#[derive(Debug)]
pub struct Summary {
    pub text: String,
    /// How many messages did not fit into the request for it.
    pub left_out: u64,
    /// The provider's tracing id.
    pub provider_call_id: Option<String>,
    pub disk: Surviving,
    /// The system message with the instructions as they are on disk now; `None` if it stays.
    pub system: Option<String>,
}

/// Why a compaction failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionFailure {
    pub message: String,
    pub status: Option<u16>,
}

impl CompactionFailure {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            status: None,
        }
    }
}

/// What one model call beside the conversation used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideUsage {
    pub model: String,
    pub usage: Usage,
    /// Whether the provider did not report it.
    pub estimated: bool,
    pub duration_ms: u64,
    pub nano_usd: u64,
}
