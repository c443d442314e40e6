//! What a session wants done beside it, and when each such thing may start.

use loopd_proto::event::ask::ElicitationAction;
use loopd_proto::event::fact::{Asked, PendingMessage};
use loopd_proto::id::RequestId;
use loopd_proto::permission::Approval;
use serde_json::Value;

use super::command::LastingApproval;
use super::model::ToolCall;
use super::policy::grant::Grant;
use super::state::TurnKey;
use super::tool_call::ToolOrigin;

/// Slow work that the actor starts; its end comes back as a command.
#[derive(Debug)]
pub enum Effect {
    /// Make messages ready: attachments, model, system message; without any, only the latter two.
    Prepare { messages: Vec<PendingMessage> },
    /// Call the model with the context of the state as it is then.
    CallModel(TurnKey),
    /// Find out what a call needs.
    Assess { turn: TurnKey, call: ToolCall },
    /// Open an empty shell for a call that may be about to run.
    OpenShellAhead,
    /// Run a call that is permitted.
    Run {
        turn: TurnKey,
        call: ToolCall,
        origin: ToolOrigin,
        grant: Grant,
    },
    /// Stop everything that runs for the current turn.
    CancelTurn,
    /// Report `GraceOver` when the grace time has passed.
    StartGrace(TurnKey),
    /// Put the question to the clients that answer such questions by request.
    AskClients(Asked),
    /// The question is closed; whoever was asked need not answer.
    Withdraw(RequestId),
    /// Hand the answer of an elicitation to the one that waits for it.
    Resolve {
        request: RequestId,
        action: ElicitationAction,
        content: Option<Value>,
    },
    /// Remember an approval beyond this session.
    Remember(Approval, RememberScope),
    /// Allow something in the session at the top, whose agent this one is.
    GrantAbove(LastingApproval),
    /// Stop all agents of the session.
    CancelAgents,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RememberScope {
    Location(String),
    Always,
}

/// When an effect starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectStart {
    /// It changes nothing and asks nobody unless it has to. If it is over without waiting, what it
    /// reports is decided in the same transaction.
    WithinTransaction,
    /// It harms nobody, so it need not wait for the disk.
    BeforeCommit,
    /// It touches the world, so the events that intend it are committed first.
    AfterCommit,
}

impl Effect {
    pub fn starts(&self) -> EffectStart {
        match self {
            Self::Prepare { .. } | Self::Assess { .. } => EffectStart::WithinTransaction,
            // A model request only reads; a shell opened ahead runs nothing that anybody asked for.
            Self::CallModel(_) | Self::OpenShellAhead => EffectStart::BeforeCommit,
            Self::Run { .. }
            | Self::CancelTurn
            | Self::StartGrace(_)
            | Self::AskClients(_)
            | Self::Withdraw(_)
            | Self::Resolve { .. }
            | Self::Remember(..)
            | Self::GrantAbove(_)
            | Self::CancelAgents => EffectStart::AfterCommit,
        }
    }
}
