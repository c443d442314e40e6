//! The session as messages with parts.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{AgentId, SessionId};
use crate::messages::Message;

/// From which end the messages are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageOrder {
    /// The first page has the oldest messages, and the next page follows them.
    Oldest,
    /// The first page has the newest messages, and the next page is before them.
    #[default]
    Newest,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessagesParams {
    pub session_id: SessionId,
    #[serde(default)]
    pub order: MessageOrder,
    /// How many messages at most; 50 when absent, and never more than 200.
    pub limit: Option<usize>,
    /// The `next` of the page before.
    pub cursor: Option<String>,
    /// Lists only what the model does not read any more, because a summary has taken its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

/// A page of messages.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessagePage {
    /// In the order in which they began, whatever the order of the pages is.
    pub messages: Vec<Message>,
    /// Names the next page; absent if there is none.
    pub next: Option<String>,
    /// The sub-agent whose session it is: its own events have this `agentId`.
    pub agent_id: Option<AgentId>,
    /// Where `session.eventLog.read` goes on with the events that are not in these messages.
    pub event_cursor: String,
}
