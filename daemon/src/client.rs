//! The interface of a client: its id, notifications to it, and requests to it.
//!
//! `front` implements [`Client`] over a connection; sessions, turns and launches use it. This
//! module knows neither the encoding of messages nor the methods of a front end.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::future::BoxFuture;
use loopd_proto::event::ask::{
    AutoModeSwitch, AutoModeSwitchRequested, ExitPlanModeRequested, UserInputRequested,
};
use loopd_proto::id::{Seq, SessionId};
use loopd_proto::params::pending::ExitPlanMode;
use loopd_proto::params::shell::{ShellExit, ShellOutput};
use loopd_proto::params::skill::ProvidedSkill;
use loopd_proto::params::ui::UserInputResponse;
use loopd_proto::time::Timestamp;
use serde::Serialize;
use serde_json::Value;

use loopd_model::client_http::CarryingClient;

/// Identifies a client within this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(u64);

impl ClientId {
    /// Returns an id that no other client has.
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
/// The call itself sends a request, so that requests keep their order; dropping the future
/// withdraws the request. [`CarryingClient`] has whether the client is connected, and its part in
/// model requests.
pub trait Client: CarryingClient {
    fn id(&self) -> ClientId;

    /// Queues a notification. A disconnected client misses it; the end of its connection detaches
    /// it from its sessions.
    fn tell(&self, class: Class, notice: &Notice<'_>);

    /// Asks the user a question.
    fn ask_user(
        &self,
        session: &SessionId,
        question: &UserInputRequested,
    ) -> Asking<UserInputResponse>;

    /// Asks the user whether plan mode may end.
    fn ask_plan(&self, session: &SessionId, plan: &ExitPlanModeRequested) -> Asking<ExitPlanMode>;

    /// Asks the user whether another model may go on after a rate limit.
    fn ask_switch(
        &self,
        session: &SessionId,
        limit: &AutoModeSwitchRequested,
    ) -> Asking<AutoModeSwitch>;

    /// Asks for a token of a provider that the client defined.
    fn ask_token(&self, session: &SessionId, provider: &str) -> Asking<String>;

    /// Asks the client's hook of this kind; returns what it answers, if anything.
    fn invoke_hook(&self, session: &SessionId, kind: &str, input: &Value) -> Asking<Option<Value>>;

    /// Asks the client for the skills that it provides.
    fn ask_skills(&self, session: &SessionId) -> Asking<Vec<ProvidedSkill>>;

    /// Asks the client for the text of a skill that it provides.
    fn ask_skill(&self, session: &SessionId, name: &str) -> Asking<String>;

    /// Asks the client to rewrite sections of the system message.
    fn ask_sections(&self, session: &SessionId, sections: &SectionTexts) -> Asking<SectionTexts>;
}

/// Texts of a system message by the names of their sections.
pub type SectionTexts = BTreeMap<String, String>;

/// A pending answer; dropping it withdraws the request.
pub type Asking<T> = BoxFuture<'static, Result<T, AskError>>;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("the connection closed before the answer came")]
    Gone,
    /// An answer came, and it is larger than the daemon takes.
    #[error("{0}")]
    TooLarge(String),
    #[error("{0}")]
    Failed(String),
}

/// How a notification is treated when its client reads slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A fact that must not be lost: a client that is too slow for it is disconnected.
    Event,
    /// A fragment that a later event repeats: it is dropped for a client that is too slow.
    Delta,
}

/// A notification to clients. Its bytes are made once, for the first client, then shared.
pub struct Notice<'a> {
    content: NoticeContent<'a>,
    bytes: OnceCell<Bytes>,
}

/// The content of a notification.
#[derive(Clone, Copy)]
pub enum NoticeContent<'a> {
    /// An event of a session, as its log line.
    Event {
        session: &'a SessionId,
        line: &'a str,
        /// Its place in the session's log, if it is stored there.
        seq: Option<Seq>,
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
        Self::stored_event(session, line, None)
    }

    /// Returns the notice of an event that has a place in the session's log.
    pub fn stored_event(session: &'a SessionId, line: &'a str, seq: Option<Seq>) -> Self {
        Self::new(NoticeContent::Event { session, line, seq })
    }

    pub fn content(&self) -> NoticeContent<'a> {
        self.content
    }

    /// Returns the encoded notification.
    pub fn bytes(&self, encode: impl FnOnce(NoticeContent<'a>) -> Bytes) -> Bytes {
        self.bytes.get_or_init(|| encode(self.content)).clone()
    }
}

/// A change in the set of sessions, as sent to the clients of a launch.
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
