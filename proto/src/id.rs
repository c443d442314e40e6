//! The identifiers that cross the wire, each its own type so that none is taken for another.
//!
//! Our own ids are ULIDs printed as UUIDs: they sort by time and satisfy schemas that ask for
//! `format: uuid`. A client may name its own session, so ids are strings, never parsed again.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

macro_rules! string_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes an id that somebody else made.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns the text, shared with this id.
            pub fn shared(&self) -> Arc<str> {
                self.0.clone()
            }
        }

        impl From<Ulid> for $name {
            fn from(id: Ulid) -> Self {
                Self(as_uuid(id).into())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    )*};
}

string_id! {
    /// Names one session for as long as its log exists.
    SessionId;
    /// Names one event of one session's log.
    EventId;
    /// Names one user message, as answered by `session.send`.
    MessageId;
    /// Names one open question to the clients: a permission, a client tool call, user input.
    RequestId;
    /// Names one tool call, as chosen by the model.
    ToolCallId;
    /// Ties everything that one user message caused together.
    InteractionId;
    /// Names a background task.
    TaskId;
    /// Names a shell.
    ShellId;
    /// Names a command that the daemon started as a process.
    ProcessId;
    /// Names a (sub-)agent whose events appear in its parent's stream.
    AgentId;
    /// Names one rewind of a session.
    RewindId;
}

/// Prints a ULID in the 8-4-4-4-12 form of a UUID.
pub fn as_uuid(id: Ulid) -> String {
    let hex = format!("{:032x}", id.0);
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
    format!(
        "{}-{}-{}-{}-{}",
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32)
    )
}

/// The position of an event in its session's log; the first event has 1.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position before the first event.
    pub const START: Self = Self(0);

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
