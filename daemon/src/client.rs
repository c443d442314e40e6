//! A client as the daemon sees it: who it is, tell it something, ask it something.
//!
//! `front` implements [`Client`] over a connection; sessions, turns and launches use it. Nothing
//! here knows what a message looks like on its way, nor which methods a front end calls.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::future::BoxFuture;
use loopd_proto::event::ask::UserInputRequested;
use loopd_proto::id::SessionId;
use loopd_proto::params::shell::{ShellExit, ShellOutput};
use loopd_proto::params::ui::UserInputResponse;
use loopd_proto::time::Timestamp;
use serde::Serialize;

use loopd_model::client_http::CarryingClient;

/// Tells clients of this process apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(u64);

impl ClientId {
    /// An id that no other client has.
    pub fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One client.
///
/// A question is sent by the call that asks it, so that questions keep their order; dropping the
/// future withdraws the question. Whether the client is there, and its part in model requests, are
/// in [`CarryingClient`].
pub trait Client: CarryingClient {
    fn id(&self) -> ClientId;

    /// Queues a notice. A client that is gone misses it: its connection's end takes it out of its
    /// sessions.
    fn tell(&self, class: Class, notice: &Notice<'_>);

    /// Asks the user something.
    fn ask_user(
        &self,
        session: &SessionId,
        question: &UserInputRequested,
    ) -> Asking<UserInputResponse>;

    /// Asks for a token of a provider that the client brought.
    fn ask_token(&self, session: &SessionId, provider: &str) -> Asking<String>;

    /// Asks for other words for sections of the system message.
    fn ask_sections(&self, session: &SessionId, sections: &SectionTexts) -> Asking<SectionTexts>;
}

/// Texts of a system message by the names of their sections.
pub type SectionTexts = BTreeMap<String, String>;

/// The wait for an answer; dropping it withdraws the question.
pub type Asking<T> = BoxFuture<'static, Result<T, AskError>>;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("the connection closed before the answer came")]
    Gone,
    #[error("{0}")]
    Failed(String),
}

/// What happens to a notice when its client reads slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A fact that must not be lost: a client that is too slow for it is cut off.
    Event,
    /// A fragment that a later event repeats: left out for a client that is too slow.
    Delta,
}

/// Something that clients are told. Its bytes are made once, for the first client that is told, and
/// shared by the others.
pub struct Notice<'a> {
    content: NoticeContent<'a>,
    bytes: OnceCell<Bytes>,
}

/// What a notice says.
#[derive(Clone, Copy)]
pub enum NoticeContent<'a> {
    /// An event of a session, as its line says it.
    Event {
        session: &'a SessionId,
        line: &'a str,
    },
    Lifecycle(&'a Lifecycle<'a>),
    ShellOutput(&'a ShellOutput),
    ShellExit(&'a ShellExit),
}

impl<'a> Notice<'a> {
    pub fn new(content: NoticeContent<'a>) -> Self {
        Self {
            content,
            bytes: OnceCell::new(),
        }
    }

    pub fn event(session: &'a SessionId, line: &'a str) -> Self {
        Self::new(NoticeContent::Event { session, line })
    }

    /// The bytes that carry the notice.
    pub fn bytes(&self, encode: impl FnOnce(NoticeContent<'a>) -> Bytes) -> Bytes {
        self.bytes.get_or_init(|| encode(self.content)).clone()
    }
}

/// A change in the set of sessions, as told to a launch.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle<'a> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub session_id: &'a SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<LifecycleMetadata>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleMetadata {
    pub start_time: Timestamp,
    pub modified_time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}
