//! The errors of this crate.

use std::path::PathBuf;

use loopd_proto::daemon_connection::DaemonConnectionError;
use loopd_proto::error as code;
use loopd_proto::event::session::Failure;
use loopd_proto::home_paths::HomePathError;
use loopd_proto::id::SessionId;
use loopd_proto::session::LimitKind;
use loopd_proto::wire::{CallError, ErrorObject};

/// An error of the client or of the daemon.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    HomePath(#[from] HomePathError),
    #[error(
        "the daemon's program `loopd` was not found; put it beside this program or on PATH, or name it with LOOPD_BIN"
    )]
    NoProgram,
    #[error("no daemon runs for the home {}", home.display())]
    NotRunning { home: PathBuf },
    #[error(transparent)]
    Connect(#[from] DaemonConnectionError),
    #[error(
        "the daemon speaks version {theirs} of the protocol and this client version {ours}; use builds that belong together"
    )]
    Protocol { theirs: u32, ours: u32 },
    /// The daemon answered with an error.
    #[error("{message}")]
    Refused { code: i64, message: String },
    /// The connection broke and could not be restored.
    #[error("the connection to the daemon was lost: {0}")]
    Lost(String),
    #[error("this client was closed")]
    Closed,
    #[error("the session {0} is open on this client already")]
    AlreadyOpen(SessionId),
    /// The request could not be sent, or its reply not be parsed.
    #[error(transparent)]
    Call(CallError),
    /// The turn failed with this `session.error`.
    #[error("{}", .0.message)]
    Failed(Box<Failure>),
    /// A client aborted the turn, or the end of the daemon cut it short.
    #[error("the turn was aborted before it was done")]
    Aborted,
    #[error("the events of the session came faster than they were read")]
    TooSlow,
    /// A file of the caller could not be read or written, or is no text.
    #[error(transparent)]
    File(#[from] std::io::Error),
}

impl Error {
    /// Returns the limit of the session that ended the turn, if one did. The run goes on when a client
    /// grants more.
    pub fn limit_reached(&self) -> Option<LimitKind> {
        let Self::Failed(failure) = self else {
            return None;
        };
        LimitKind::of_error(&failure.error_type, failure.error_code.as_deref())
    }

    /// Returns whether a limit of the session or of the run ended what was asked for.
    pub fn is_limit(&self) -> bool {
        let limit = i64::from(code::LIMIT_REACHED);
        matches!(self, Self::Refused { code, .. } if *code == limit)
            || self.limit_reached().is_some()
    }

    /// Returns whether the daemon does not know the session.
    pub fn is_session_not_found(&self) -> bool {
        matches!(self, Self::Refused { message, .. } if message.starts_with("Session not found"))
    }
}

/// Ends the prefix of the daemon's error messages. The prefix is cut off: it only names the method,
/// which the caller knows.
const REQUEST_FAILED: &str = " failed with message: ";

impl From<ErrorObject> for Error {
    fn from(error: ErrorObject) -> Self {
        let message = match error.message.split_once(REQUEST_FAILED) {
            Some((_, why)) if error.code == i64::from(code::FAILED) => why.to_owned(),
            _ => error.message,
        };
        Self::Refused {
            code: error.code,
            message,
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Remote(error) => error.into(),
            CallError::Closed => Self::Lost("it closed before the answer came".to_owned()),
            error => Self::Call(error),
        }
    }
}
