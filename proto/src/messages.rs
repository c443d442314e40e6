//! A session as messages with parts, for user interfaces: a projection of its events.
//!
//! [`Messages`] folds events. The daemon folds the log with it for `loopd.messages`; a client lists
//! with that method once and folds each event that comes. Both have the same messages then, apart
//! from what is transient: text that is still streaming, output of a running tool, retries. An
//! implementation in another language needs no more than this file; `docs/messages.md` explains it.

use std::collections::{HashSet, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

mod fold;

/// Who a message is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageRole {
    User,
    /// One call of the model, with the tools that it asked for.
    Assistant,
    /// What the daemon tells: notifications, errors, compactions.
    Notice,
}

/// A message. Its id is that of the event that began it, so that `session.history.rewind` takes the id
/// of a user message.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub id: String,
    pub role: MessageRole,
    /// The id from `session.send`, or the one that streamed text names.
    pub message_id: Option<String>,
    pub created_at: String,
    /// When it was complete; absent while work goes on.
    pub completed_at: Option<String>,
    pub model: Option<String>,
    /// Whether it was stopped before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
    pub parts: Vec<Part>,
}

/// A part of a message. Ids are unique in the session and never change.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    pub id: String,
    /// Whether only clients know it that were there; `loopd.messages` does not list it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transient: bool,
    #[serde(flatten)]
    pub content: PartContent,
}

/// What a part is.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum PartContent {
    Text {
        text: String,
    },
    Reasoning {
        text: String,
    },
    Tool(ToolPart),
    File {
        name: String,
        path: Option<String>,
        mime_type: Option<String>,
    },
    Compaction {
        status: WorkStatus,
        summary: Option<String>,
    },
    /// The model reads nothing any more of what came before.
    Cleared {
        messages: u64,
    },
    Subtask(SubtaskPart),
    Retry {
        reason: Option<String>,
    },
    Step {
        phase: StepPhase,
    },
    Error {
        message: String,
        error_type: Option<String>,
    },
}

/// How far work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkStatus {
    /// The model asked for it, and it has not begun.
    Pending,
    Running,
    Completed,
    Failed,
    Cancelled,
}

/// A call of a tool.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolPart {
    pub call_id: String,
    pub tool: String,
    pub arguments: Value,
    pub status: WorkStatus,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    /// What the model reads.
    pub output: Option<String>,
    /// What people read, if it says more.
    pub detail: Option<String>,
    /// The output so far of a running call; transient.
    pub partial: Option<String>,
}

/// Work that was handed to a sub-agent.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubtaskPart {
    pub call_id: String,
    /// The `agentId` of its events.
    pub agent_id: Option<String>,
    pub agent: String,
    pub description: Option<String>,
    pub status: WorkStatus,
    /// The session that has its messages.
    pub session_id: Option<String>,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepPhase {
    Start,
    Finish,
}

/// What an event changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    Nothing,
    /// The message with this id is new or has changed.
    Message(String),
    /// This message and all after it are gone.
    TakenBack(String),
    /// The history changed in a way that the events do not tell: list the messages again.
    ListAgain,
}

/// The messages of a session, folded from its events.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    /// Set if the session is that of a sub-agent: its own events have this id.
    agent: Option<String>,
    all: VecDeque<Message>,
    /// The message of the running turn.
    open: Option<String>,
    /// A compaction that has begun.
    compacting: Option<String>,
    /// The running calls of messages that are left out.
    calls_elsewhere: HashSet<String>,
    /// Whether further messages are left out.
    is_closed: bool,
    /// Whether messages were left out at the beginning, and at the end.
    is_shortened: bool,
    has_more: bool,
}

impl Messages {
    /// Starts without messages. `agent` is the id of the sub-agent whose session it is, if it is one.
    pub fn new(agent: Option<String>) -> Self {
        Self {
            agent,
            ..Self::default()
        }
    }

    /// Starts with messages that were listed, the last of which may be at work.
    pub fn listed(agent: Option<String>, messages: impl IntoIterator<Item = Message>) -> Self {
        let messages: VecDeque<Message> = messages.into_iter().collect();
        let open = messages.iter().rev().find(|message| {
            message.role == MessageRole::Assistant
                && message.completed_at.is_none()
                && !message.aborted
        });
        let compacting = messages.iter().rev().find(|message| {
            let mut parts = message.parts.iter();
            parts.any(|part| {
                matches!(
                    part.content,
                    PartContent::Compaction {
                        status: WorkStatus::Running,
                        ..
                    }
                )
            })
        });
        Self {
            agent,
            open: open.map(|message| message.id.clone()),
            compacting: compacting.map(|message| message.id.clone()),
            all: messages,
            ..Self::default()
        }
    }

    /// Returns the messages, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> + ExactSizeIterator {
        self.all.iter()
    }

    /// Returns the messages as `loopd.messages` would list them.
    pub fn stored(&self) -> Vec<Message> {
        let stored = self.all.iter().cloned().map(|mut message| {
            message.parts.retain(|part| !part.transient);
            for part in &mut message.parts {
                if let PartContent::Tool(tool) = &mut part.content {
                    tool.partial = None;
                }
            }
            message
        });
        stored.collect()
    }

    /// Forgets the oldest messages until so many are left.
    pub fn keep_newest(&mut self, count: usize) {
        while self.all.len() > count {
            let left_out = self.all.pop_front();
            self.left_out(left_out);
            self.is_shortened = true;
        }
    }

    /// Forgets the newest message.
    pub fn drop_newest(&mut self) {
        let left_out = self.all.pop_back();
        self.left_out(left_out);
        self.has_more = true;
    }

    /// Remembers the running calls of a message that is left out.
    fn left_out(&mut self, message: Option<Message>) {
        let parts = message.into_iter().flat_map(|message| message.parts);
        let calls = parts.filter_map(|part| match part.content {
            PartContent::Tool(tool) if tool.ended_at.is_none() => Some(tool.call_id),
            _ => None,
        });
        self.calls_elsewhere.extend(calls);
    }

    /// Keeps no message that begins from now on. Those that are kept still change.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns whether messages were forgotten at the beginning.
    pub fn is_shortened(&self) -> bool {
        self.is_shortened
    }

    /// Returns whether messages were left out at the end.
    pub fn has_more(&self) -> bool {
        self.has_more
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step fails the test"
)]
mod tests;
