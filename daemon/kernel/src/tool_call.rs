//! One tool call on its way from the model's wish to its one result.
//!
//! The stages, and what the log says of each:
//!
//! | stage | what happens | in the log |
//! |---|---|---|
//! | requested | the model wants it | `assistant.message`, with the arguments of the model |
//! | guarded | hooks may change the arguments, deny or ask (to come) | nothing |
//! | intended | nothing outside starts before this is committed | `tool.execution_start`, with the arguments that run |
//! | permitted | every judge is heard, the strictest verdict wins | `permission.requested` and `permission.completed`, if a person is asked |
//! | running | here, in a client, or as a question to the user | `external_tool.requested` or `loopd.asked`, if not here |
//! | finished, reviewed | hooks may change the result (to come) | nothing |
//! | recorded | the result is there | `tool.execution_complete` |
//!
//! A stage with nothing to do stores nothing. So a call that runs by the rules looks in the log like
//! one that is still judged: both are [`CallStage::Intended`].

use loopd_proto::id::RequestId;
use loopd_proto::permission::PermissionRequest;

use crate::model::ToolCall;

/// One tool call and how far it got.
#[derive(Debug, Clone, PartialEq)]
pub struct CallState {
    /// The call with the arguments that run.
    pub call: ToolCall,
    pub stage: CallStage,
}

/// How far a call got, by the log.
#[derive(Debug, Clone, PartialEq)]
pub enum CallStage {
    /// The model wants it; nothing has started.
    Requested,
    /// The intent is stored. The call is judged or, if the rules allow it, runs.
    Intended,
    /// A person has to permit it first.
    Asking { request: RequestId },
    /// A person has decided. The call runs; a no is recorded together with the decision.
    Decided,
    /// A client runs it.
    External { request: RequestId },
    /// It is a question, and the user has to answer it.
    UserInput { request: RequestId },
    /// The result is recorded.
    Recorded {
        /// A person said no; the loop ends with this turn.
        rejected: bool,
    },
}

/// What the log says next of a call.
#[derive(Debug)]
pub(crate) enum CallEvent {
    Intended,
    PermissionRequested { request: RequestId },
    PermissionCompleted,
    ClientAsked { request: RequestId },
    UserAsked { request: RequestId },
    Recorded { rejected: bool },
}

/// What somebody reports about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallReport {
    /// What it needs is known.
    Assessed,
    PermissionDecided,
    ClientAnswered,
    UserAnswered,
    /// It ran here, or crashed on the way.
    Finished,
}

impl CallStage {
    /// The stage after an event. An event that does not fit changes nothing: old logs must load.
    #[must_use]
    pub(crate) fn after(self, event: CallEvent) -> Self {
        use CallEvent as E;
        match (self, event) {
            (Self::Requested, E::Intended) => Self::Intended,
            (Self::Requested | Self::Intended, E::PermissionRequested { request }) => {
                Self::Asking { request }
            }
            (Self::Asking { .. }, E::PermissionCompleted) => Self::Decided,
            (Self::Requested | Self::Intended | Self::Decided, E::ClientAsked { request }) => {
                Self::External { request }
            }
            (Self::Requested | Self::Intended | Self::Decided, E::UserAsked { request }) => {
                Self::UserInput { request }
            }
            (
                Self::Requested
                | Self::Intended
                | Self::Asking { .. }
                | Self::Decided
                | Self::External { .. }
                | Self::UserInput { .. }
                | Self::Recorded { .. },
                E::Recorded { rejected },
            ) => Self::Recorded { rejected },
            (
                stage @ (Self::Intended
                | Self::Asking { .. }
                | Self::Decided
                | Self::External { .. }
                | Self::UserInput { .. }
                | Self::Recorded { .. }),
                E::Intended,
            )
            | (
                stage @ (Self::Asking { .. }
                | Self::Decided
                | Self::External { .. }
                | Self::UserInput { .. }
                | Self::Recorded { .. }),
                E::PermissionRequested { .. },
            )
            | (
                stage @ (Self::Requested
                | Self::Intended
                | Self::Decided
                | Self::External { .. }
                | Self::UserInput { .. }
                | Self::Recorded { .. }),
                E::PermissionCompleted,
            )
            | (
                stage @ (Self::Asking { .. }
                | Self::External { .. }
                | Self::UserInput { .. }
                | Self::Recorded { .. }),
                E::ClientAsked { .. } | E::UserAsked { .. },
            ) => stage,
        }
    }

    /// Whether such a report can come now; another one is late and changes nothing.
    pub(crate) fn expects(&self, report: CallReport) -> bool {
        use CallReport as R;
        match (self, report) {
            (Self::Requested | Self::Intended, R::Assessed | R::Finished)
            | (Self::Asking { .. }, R::PermissionDecided)
            | (Self::Decided, R::Finished)
            | (Self::External { .. }, R::ClientAnswered)
            | (Self::UserInput { .. }, R::UserAnswered) => true,
            (
                Self::Requested | Self::Intended,
                R::PermissionDecided | R::ClientAnswered | R::UserAnswered,
            )
            | (
                Self::Asking { .. },
                R::Assessed | R::ClientAnswered | R::UserAnswered | R::Finished,
            )
            | (
                Self::Decided,
                R::Assessed | R::PermissionDecided | R::ClientAnswered | R::UserAnswered,
            )
            | (
                Self::External { .. },
                R::Assessed | R::PermissionDecided | R::UserAnswered | R::Finished,
            )
            | (
                Self::UserInput { .. },
                R::Assessed | R::PermissionDecided | R::ClientAnswered | R::Finished,
            )
            | (
                Self::Recorded { .. },
                R::Assessed
                | R::PermissionDecided
                | R::ClientAnswered
                | R::UserAnswered
                | R::Finished,
            ) => false,
        }
    }

    /// The question that is open because of the call.
    pub fn request(&self) -> Option<&RequestId> {
        match self {
            Self::Asking { request, .. }
            | Self::External { request }
            | Self::UserInput { request } => Some(request),
            Self::Requested | Self::Intended | Self::Decided | Self::Recorded { .. } => None,
        }
    }
}

impl CallState {
    pub(crate) fn requested(call: ToolCall) -> Self {
        Self {
            call,
            stage: CallStage::Requested,
        }
    }

    /// Takes in what the log says of the call.
    pub(crate) fn advance(&mut self, event: CallEvent) {
        let stage = std::mem::replace(&mut self.stage, CallStage::Requested);
        self.stage = stage.after(event);
    }

    /// Whether this answer is what the call waits for.
    pub fn waits_for(&self, request: &RequestId) -> bool {
        self.stage.request() == Some(request)
    }

    /// Whether it has no result yet.
    pub fn is_open(&self) -> bool {
        !matches!(self.stage, CallStage::Recorded { .. })
    }

    /// Whether a client or a person is what an open call waits for.
    pub fn waits_for_somebody(&self) -> bool {
        self.stage.request().is_some()
    }

    /// Whether it may be running here.
    pub fn may_run(&self) -> bool {
        matches!(
            self.stage,
            CallStage::Requested | CallStage::Intended | CallStage::Decided
        )
    }
}

/// Where a tool comes from; resolved once, when the call is assessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOrigin {
    BuiltIn,
    /// A client brought it, and runs it.
    Client,
}

impl ToolOrigin {
    /// The origin of a tool that a person was asked about: only tools of clients ask this way.
    pub(crate) fn of(permission: &PermissionRequest) -> Self {
        match permission {
            PermissionRequest::CustomTool { .. } => Self::Client,
            PermissionRequest::Shell { .. }
            | PermissionRequest::Write { .. }
            | PermissionRequest::Read { .. }
            | PermissionRequest::Url { .. }
            | PermissionRequest::Mcp { .. } => Self::BuiltIn,
        }
    }
}

/// A question that the model has for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserQuestion {
    pub text: String,
    pub choices: Option<Vec<String>>,
    pub allow_freeform: bool,
}

/// What may be made ready for a call while its intent is stored or a person thinks about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ahead {
    #[default]
    Nothing,
    /// An empty shell.
    Shell,
}

#[cfg(test)]
mod tests;
