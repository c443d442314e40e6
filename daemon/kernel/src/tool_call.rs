//! One tool call, from the model's request to its only result.
//!
//! These are the stages and the events that record them:
//!
//! | stage | what happens | in the log |
//! |---|---|---|
//! | requested | the model asks for the call | `assistant.message`, with the model's arguments |
//! | guarded | hooks may change the arguments, deny or ask | `loopd.asked`, if the client whose hooks they are is not there |
//! | intended | nothing starts outside the kernel before this is committed | `tool.execution_start`, with the arguments that run |
//! | permitted | every judge gives a verdict, the strictest one wins | `permission.requested` and `permission.completed`, if a person is asked |
//! | running | in the daemon, in a client, or as a question to the user | `external_tool.requested` or `loopd.asked`, if not in the daemon |
//! | finished, reviewed | hooks may change the result | nothing |
//! | recorded | the result is stored | `tool.execution_complete` |
//!
//! A stage with nothing to do stores nothing. So a call that runs because the rules allow it looks
//! in the log like a call that is still being judged: both are [`CallStage::Intended`].

use loopd_proto::event::ask::PlanAction;
use loopd_proto::id::RequestId;
use loopd_proto::permission::PermissionRequest;

use crate::model::ToolCall;

/// One tool call and its stage.
#[derive(Debug, Clone, PartialEq)]
pub struct CallState {
    /// The call, with the arguments that run.
    pub call: ToolCall,
    pub stage: CallStage,
    /// A hook that saw the result stops the agent.
    pub stops: bool,
}

/// The stage of a call, as far as the log tells.
#[derive(Debug, Clone, PartialEq)]
pub enum CallStage {
    /// The model asked for the call. Nothing has started.
    Requested,
    /// Clients whose hooks guard the session have to decide about the call, and are not there.
    Guarding {
        request: RequestId,
        /// Whether the intent is stored: only the permission is left to decide.
        started: bool,
    },
    /// The intent is stored. The call is being judged, or it runs because the rules allow it.
    Intended,
    /// A person has to permit the call first.
    Asking { request: RequestId },
    /// A person has decided, and the call runs. A rejected call does not stay in this stage: its
    /// result is recorded together with the decision.
    Decided,
    /// A client runs the call.
    External { request: RequestId },
    /// The call is a question, and the user has to answer it.
    UserInput { request: RequestId },
    /// The result is recorded.
    Recorded {
        /// A person rejected the call. The loop ends with this turn.
        rejected: bool,
        /// The call did not do what the model asked for.
        failed: bool,
    },
}

/// The next event in the log about a call.
#[derive(Debug)]
pub(crate) enum CallEvent {
    GuardWanted {
        request: RequestId,
    },
    /// The clients that were missed have decided, or are not missed any more.
    GuardAnswered,
    Intended,
    PermissionRequested {
        request: RequestId,
    },
    PermissionCompleted,
    ClientAsked {
        request: RequestId,
    },
    UserAsked {
        request: RequestId,
    },
    Recorded {
        rejected: bool,
        failed: bool,
    },
}

/// A report about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallReport {
    /// Hooks have decided about the call, or cannot decide now.
    Guarded,
    /// It is known what the call needs.
    Assessed,
    PermissionDecided,
    ClientAnswered,
    UserAnswered,
    /// The call ran in the daemon, or crashed before its end.
    Finished,
}

impl CallStage {
    /// Returns the stage after an event. An event that does not fit changes nothing, because old
    /// logs must load.
    #[must_use]
    pub(crate) fn after(self, event: CallEvent) -> Self {
        use CallEvent as E;
        match (self, event) {
            (Self::Requested, E::GuardWanted { request }) => Self::Guarding {
                request,
                started: false,
            },
            (Self::Intended, E::GuardWanted { request }) => Self::Guarding {
                request,
                started: true,
            },
            (Self::Guarding { started: true, .. }, E::GuardAnswered)
            | (Self::Requested | Self::Guarding { .. }, E::Intended) => Self::Intended,
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
                | Self::Guarding { .. }
                | Self::Intended
                | Self::Asking { .. }
                | Self::Decided
                | Self::External { .. }
                | Self::UserInput { .. }
                | Self::Recorded { .. },
                E::Recorded { rejected, failed },
            ) => Self::Recorded { rejected, failed },
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
                stage @ (Self::Guarding { .. }
                | Self::Asking { .. }
                | Self::Decided
                | Self::External { .. }
                | Self::UserInput { .. }
                | Self::Recorded { .. }),
                E::GuardWanted { .. },
            )
            | (stage, E::GuardAnswered)
            | (
                stage @ (Self::Guarding { .. }
                | Self::Asking { .. }
                | Self::Decided
                | Self::External { .. }
                | Self::UserInput { .. }
                | Self::Recorded { .. }),
                E::PermissionRequested { .. },
            )
            | (
                stage @ (Self::Requested
                | Self::Guarding { .. }
                | Self::Intended
                | Self::Decided
                | Self::External { .. }
                | Self::UserInput { .. }
                | Self::Recorded { .. }),
                E::PermissionCompleted,
            )
            | (
                stage @ (Self::Guarding { .. }
                | Self::Asking { .. }
                | Self::External { .. }
                | Self::UserInput { .. }
                | Self::Recorded { .. }),
                E::ClientAsked { .. } | E::UserAsked { .. },
            ) => stage,
        }
    }

    /// Whether this stage expects such a report. A report that it does not expect is late and
    /// changes nothing.
    pub(crate) fn expects(&self, report: CallReport) -> bool {
        use CallReport as R;
        match (self, report) {
            (Self::Requested | Self::Guarding { .. }, R::Guarded)
            | (Self::Requested | Self::Intended, R::Assessed | R::Finished)
            | (Self::Asking { .. }, R::PermissionDecided)
            | (Self::Decided, R::Finished)
            | (Self::External { .. }, R::ClientAnswered)
            | (Self::UserInput { .. }, R::UserAnswered) => true,
            (
                Self::Guarding { .. } | Self::Recorded { .. },
                R::Assessed
                | R::PermissionDecided
                | R::ClientAnswered
                | R::UserAnswered
                | R::Finished,
            )
            | (
                Self::Intended
                | Self::Asking { .. }
                | Self::Decided
                | Self::External { .. }
                | Self::UserInput { .. }
                | Self::Recorded { .. },
                R::Guarded,
            )
            | (
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
            ) => false,
        }
    }

    /// Whether the call waits for the client whose hooks guard the session.
    pub fn is_guarding(&self) -> bool {
        matches!(self, Self::Guarding { .. })
    }

    /// Returns the open question that the call waits for.
    pub fn request(&self) -> Option<&RequestId> {
        match self {
            Self::Asking { request, .. }
            | Self::Guarding { request, .. }
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
            stops: false,
        }
    }

    /// Moves the call to the stage that follows from an event.
    pub(crate) fn advance(&mut self, event: CallEvent) {
        let stage = std::mem::replace(&mut self.stage, CallStage::Requested);
        self.stage = stage.after(event);
    }

    /// Whether the call waits for the answer to this request.
    pub fn waits_for(&self, request: &RequestId) -> bool {
        self.stage.request() == Some(request)
    }

    /// Whether the call has no result yet.
    pub fn is_open(&self) -> bool {
        !matches!(self.stage, CallStage::Recorded { .. })
    }

    /// Whether the call waits for a client or a person.
    pub fn waits_for_somebody(&self) -> bool {
        self.stage.request().is_some()
    }

    /// Whether the call may be running in the daemon.
    pub fn may_run(&self) -> bool {
        matches!(
            self.stage,
            CallStage::Requested | CallStage::Intended | CallStage::Decided
        )
    }
}

/// Where a tool comes from. It is resolved once, when the call is assessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOrigin {
    BuiltIn,
    /// A client registered the tool and runs it.
    Client,
    /// An MCP server offers the tool and runs it. The permission names both.
    Mcp,
}

/// A tool of an MCP server, by its name there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpToolRef {
    pub server: String,
    pub tool: String,
}

impl ToolOrigin {
    /// Returns the origin of a tool from its permission request. Only tools of clients make
    /// `CustomTool` requests, only tools of MCP servers `Mcp` requests.
    pub(crate) fn of(permission: &PermissionRequest) -> Self {
        match permission {
            PermissionRequest::CustomTool { .. } => Self::Client,
            PermissionRequest::Mcp { .. } => Self::Mcp,
            PermissionRequest::Shell { .. }
            | PermissionRequest::Write { .. }
            | PermissionRequest::Read { .. }
            | PermissionRequest::Url { .. }
            | PermissionRequest::Hook { .. } => Self::BuiltIn,
        }
    }
}

/// A question of the model to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserQuestion {
    pub text: String,
    pub choices: Option<Vec<String>>,
    pub allow_freeform: bool,
}

/// A plan for which the model wants to leave plan mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanProposal {
    pub summary: String,
    /// The plan in full.
    pub content: String,
    /// Whether the plan came with the call and becomes the session's plan.
    pub is_new: bool,
    /// What the model wants people to choose from; empty for everything that is possible.
    pub actions: Vec<PlanAction>,
    pub recommended: Option<PlanAction>,
}

/// What may be prepared for a call while its intent is being stored or a person decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ahead {
    #[default]
    Nothing,
    /// An empty shell.
    Shell,
}

#[cfg(test)]
mod tests;
