//! Maps our errors to codes on the wire. No other place does.

use loopd_proto::error as code;
use loopd_proto::id::{EventId, SessionId};
use loopd_proto::params::session::CompletionFailure;
use loopd_store::StoreError;
use serde::Serialize;

use crate::session::SessionError;
use crate::session::waits::WaitError;
use loopd_kernel::command::ModelFailure;

/// Why a request was not answered with a result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RpcError {
    /// The parameters are invalid; the message names the field.
    #[error("{0}")]
    InvalidParams(String),
    #[error("AUTHENTICATION_FAILED")]
    AuthenticationFailed,
    #[error("{0}")]
    Overloaded(String),
    /// The disk or the database failed, and nothing was changed; the message names it.
    #[error("{0}")]
    Storage(String),
    /// The disk or the database failed, and what was said takes effect when it works again.
    #[error("{0}")]
    StoredLater(String),
    /// The session is not live, or the client is not attached to it.
    #[error("{}", SessionError::NotFound(.0.clone()))]
    NoSession(SessionId),
    /// The session is stored, but the client is not attached to it.
    #[error("{}; it is stored, but not open on this connection: call session.resume first", SessionError::NotFound(.0.clone()))]
    NotResumed(SessionId),
    #[error("{0}")]
    Failed(String),
    /// A limit of the session or of the run ended what was asked for.
    #[error("{0}")]
    LimitReached(String),
    /// The run that a message started has failed; `event` records the failure.
    #[error("{message}")]
    RunFailed { message: String, event: EventId },
}

impl RpcError {
    /// Returns the code and the message for the wire.
    pub(super) fn code_and_message(&self, method: &str) -> (i32, String) {
        match self {
            Self::InvalidParams(why) => (
                code::INVALID_PARAMS,
                format!("Invalid parameters for {method}: {why}"),
            ),
            Self::AuthenticationFailed => (code::AUTHENTICATION_FAILED, self.to_string()),
            Self::Overloaded(why) => (code::OVERLOADED, why.clone()),
            Self::Storage(why) => (
                code::STORAGE,
                format!("Request {method} failed with message: {why}"),
            ),
            Self::StoredLater(why) => (
                code::STORAGE,
                format!("Request {method} is not stored yet: {why}"),
            ),
            Self::NoSession(_) | Self::NotResumed(_) => (
                code::FAILED,
                format!("Request {method} failed with message: {self}"),
            ),
            Self::LimitReached(why) => (
                code::LIMIT_REACHED,
                format!("Request {method} failed with message: {why}"),
            ),
            Self::Failed(why) | Self::RunFailed { message: why, .. } => (
                code::FAILED,
                format!("Request {method} failed with message: {why}"),
            ),
        }
    }

    /// Returns the error's data, which programs read.
    pub(super) fn data(&self) -> Option<ErrorData> {
        match self {
            Self::RunFailed { event, .. } => Some(ErrorData::Run(CompletionFailure {
                completion_event_id: event.clone(),
            })),
            Self::StoredLater(_) => Some(ErrorData::Stored { kept: true }),
            Self::InvalidParams(_)
            | Self::AuthenticationFailed
            | Self::Overloaded(_)
            | Self::Storage(_)
            | Self::NoSession(_)
            | Self::NotResumed(_)
            | Self::LimitReached(_)
            | Self::Failed(_) => None,
        }
    }
}

/// What programs read of an error.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ErrorData {
    Run(CompletionFailure),
    Stored {
        /// Whether what the request said takes effect later.
        kept: bool,
    },
}

impl From<WaitError> for RpcError {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::Session(error) => error.into(),
            WaitError::Failed {
                message,
                event: Some(event),
            } => Self::RunFailed { message, event },
            WaitError::Failed {
                message,
                event: None,
            } => Self::Failed(message),
        }
    }
}

impl From<SessionError> for RpcError {
    fn from(error: SessionError) -> Self {
        match &error {
            SessionError::Overloaded(_) => Self::Overloaded(error.to_string()),
            SessionError::Invalid(why) => Self::InvalidParams(why.clone()),
            SessionError::NotFound(id) => Self::NoSession(id.clone()),
            SessionError::FileNotChanged(_)
            | SessionError::Ended(_)
            | SessionError::Left(_)
            | SessionError::Refused(_)
            | SessionError::Faulted(_) => Self::Failed(error.to_string()),
            SessionError::NotYetStored(_) => Self::StoredLater(error.to_string()),
            SessionError::Store(_) | SessionError::Unreadable(_) => {
                Self::Storage(error.to_string())
            }
        }
    }
}

impl From<StoreError> for RpcError {
    fn from(error: StoreError) -> Self {
        Self::Storage(error.to_string())
    }
}

impl From<ModelFailure> for RpcError {
    fn from(failure: ModelFailure) -> Self {
        Self::Failed(failure.message)
    }
}
