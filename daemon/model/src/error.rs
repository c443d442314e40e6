//! What can go wrong in a model call, and which kind of trouble each case is for the public.
//!
//! `retry` asks an error whether to try again; the daemon turns it into a `session.error` event. An
//! error never holds a secret: texts from outside are cleaned before they get into one.

use std::fmt;
use std::time::Duration;

/// The public category of a failed call, as clients branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    Authentication,
    Quota,
    RateLimit,
    ContextLimit,
    ModelNotFound,
    Query,
    Network,
    Server,
    Truncated,
    Timeout,
    Cancelled,
}

impl ErrorKind {
    /// Gives the word that stands in `errorType` on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::Quota => "quota",
            Self::RateLimit => "rate_limit",
            Self::ContextLimit => "context_limit",
            Self::ModelNotFound => "model_not_found",
            Self::Query => "query",
            Self::Network => "network",
            Self::Server => "server",
            Self::Truncated => "truncated",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a model call gave no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The provider answered, and the answer is an error.
    #[error("{0}")]
    Rejected(Box<Rejection>),
    /// The provider could not be reached or the exchange broke before a reply began.
    #[error("the model provider could not be reached: {detail}")]
    Network { detail: String },
    /// The reply began and broke off.
    #[error("the model's reply broke off before its end: {detail}")]
    Truncated { detail: String },
    /// The provider stayed silent for too long.
    #[error("{phase} within {} s", .limit.as_secs_f64())]
    Timeout {
        phase: TimeoutPhase,
        limit: Duration,
    },
    /// The reply is larger than we are willing to hold.
    #[error("the model provider sent more than {limit} bytes in one reply")]
    TooLarge { limit: u64 },
    /// The provider answered something that is not its protocol.
    #[error("the model provider's answer could not be understood: {detail}")]
    Malformed { detail: String },
    /// The call cannot be made as configured; nothing was sent.
    #[error("{detail}")]
    Misconfigured { detail: String },
    /// The client that carries the request gave it up.
    #[error("the model call was cancelled")]
    Cancelled,
}

/// What a call was waiting for when its time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutPhase {
    Token,
    Connect,
    FirstByte,
    BetweenChunks,
    WholeCall,
}

impl fmt::Display for TimeoutPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token => "no token for the model provider was handed out",
            Self::Connect => "no connection to the model provider was made",
            Self::FirstByte => "the model provider sent no byte of its reply",
            Self::BetweenChunks => "the model's reply stalled: nothing more came",
            Self::WholeCall => "the model call did not end",
        })
    }
}

/// An error that a provider answered with, in its own (cleaned) words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub kind: ErrorKind,
    /// The HTTP status; none for an error inside a stream that names no status.
    pub status: Option<u16>,
    pub message: String,
    /// The provider's own name for the error.
    pub code: Option<String>,
    /// How long the provider asks us to wait.
    pub retry_after: Option<Duration>,
    /// The tracing id of the request, from the response headers.
    pub provider_call_id: Option<String>,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "the model provider answered {status}: {}", self.message)?,
            None => write!(f, "the model provider reported an error: {}", self.message)?,
        }
        if let Some(wait) = self.retry_after {
            write!(f, " (it asks to wait {} s)", wait.as_secs_f64().ceil())?;
        }
        Ok(())
    }
}

impl Rejection {
    fn is_retryable(&self) -> bool {
        match self.kind {
            // A limit that lifts in days is not worth a second request.
            ErrorKind::RateLimit => !self
                .code
                .as_deref()
                .is_some_and(|code| code.contains("weekly")),
            ErrorKind::Server => !matches!(self.status, Some(501 | 505)),
            ErrorKind::Query => matches!(self.status, Some(408 | 409 | 425)),
            ErrorKind::Timeout | ErrorKind::Network | ErrorKind::Truncated => true,
            ErrorKind::Authentication
            | ErrorKind::Quota
            | ErrorKind::ContextLimit
            | ErrorKind::ModelNotFound
            | ErrorKind::Cancelled => false,
        }
    }
}

impl ProviderError {
    pub(super) fn misconfigured(detail: impl Into<String>) -> Self {
        Self::Misconfigured {
            detail: detail.into(),
        }
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::Malformed {
            detail: detail.into(),
        }
    }

    pub(super) fn truncated(detail: impl Into<String>) -> Self {
        Self::Truncated {
            detail: detail.into(),
        }
    }

    pub(super) fn network(detail: impl Into<String>) -> Self {
        Self::Network {
            detail: detail.into(),
        }
    }

    /// Names the public category.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Rejected(rejection) => rejection.kind,
            Self::Network { .. } => ErrorKind::Network,
            Self::Truncated { .. } => ErrorKind::Truncated,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::TooLarge { .. } | Self::Malformed { .. } => ErrorKind::Server,
            Self::Misconfigured { .. } => ErrorKind::Query,
            Self::Cancelled => ErrorKind::Cancelled,
        }
    }

    /// Tells whether the same call may succeed a little later.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::Rejected(rejection) => rejection.is_retryable(),
            Self::Network { .. } | Self::Truncated { .. } => true,
            Self::Timeout { phase, .. } => *phase != TimeoutPhase::WholeCall,
            Self::TooLarge { .. }
            | Self::Malformed { .. }
            | Self::Misconfigured { .. }
            | Self::Cancelled => false,
        }
    }

    /// Gives the HTTP status, where one was answered.
    pub fn status(&self) -> Option<u16> {
        self.rejection().and_then(|rejection| rejection.status)
    }

    /// Gives the provider's own name for the error.
    pub fn error_code(&self) -> Option<&str> {
        self.rejection()
            .and_then(|rejection| rejection.code.as_deref())
    }

    /// Gives the wait that the provider asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        self.rejection().and_then(|rejection| rejection.retry_after)
    }

    /// Gives the tracing id of the failed request.
    pub fn provider_call_id(&self) -> Option<&str> {
        self.rejection()
            .and_then(|rejection| rejection.provider_call_id.as_deref())
    }

    /// Gives the provider's own words, where it said any.
    #[cfg(test)]
    pub(super) fn provider_message(&self) -> Option<&str> {
        self.rejection().map(|rejection| rejection.message.as_str())
    }

    fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Network { .. }
            | Self::Truncated { .. }
            | Self::Timeout { .. }
            | Self::TooLarge { .. }
            | Self::Malformed { .. }
            | Self::Misconfigured { .. }
            | Self::Cancelled => None,
        }
    }
}
