//! Work that a session wants done outside of it, and when each effect may start.

use loopd_proto::event::ask::ElicitationAction;
use loopd_proto::event::fact::{Asked, PendingCommand, PendingMessage};
use loopd_proto::id::{RequestId, Seq, TaskId, ToolCallId};
use loopd_proto::permission::Approval;
use loopd_proto::time::Timestamp;
use serde_json::Value;

use super::command::{LastingApproval, WorkerOrder};
use super::hook::{HookPermission, HookVerdict};
use super::model::ToolCall;
use super::policy::grant::Grant;
use super::state::{Rewinding, TurnKey};
use super::tool_call::ToolOrigin;

/// Slow work that the actor starts. Its result comes back as a command.
#[derive(Debug)]
pub enum Effect {
    /// Prepare messages: attachments, model and system message. Without messages, prepare only the
    /// latter two.
    Prepare { messages: Vec<PendingMessage> },
    /// Call the model with the context that the state gives when the call starts.
    CallModel(TurnKey),
    /// Ask the hooks about a call before it starts.
    Guard { turn: TurnKey, call: ToolCall },
    /// Find out what a tool call needs. The hooks have given this verdict.
    Assess {
        turn: TurnKey,
        call: ToolCall,
        hooks: HookVerdict,
    },
    /// Ask the hooks before a person is asked.
    AskHooks(HookPermission),
    /// Tell the hooks that the loop is about to end.
    AskStop(TurnKey),
    /// Open an empty shell for a call that may run soon.
    OpenShellAhead,
    /// Run a permitted call.
    Run {
        turn: TurnKey,
        call: ToolCall,
        origin: ToolOrigin,
        grant: Grant,
    },
    /// Save the whole texts of these results to files; then they can be shortened.
    KeepOutputs { turn: TurnKey, results: Vec<Seq> },
    /// Ask the model for a summary of the conversation; the running compaction says of what.
    Summarise(RequestId),
    /// Let a model make a title of the message that gave the session its name.
    MakeTitle { name: String, message: String },
    /// Stop the model call for a summary.
    CancelSummary,
    /// Report `WaitOver` when the provider may take requests again.
    AwaitProvider { turn: TurnKey, until: Timestamp },
    /// Stop everything that runs for the current turn.
    CancelTurn,
    /// Report `GraceOver` when the grace time has passed.
    StartGrace(TurnKey),
    /// Send the question to the clients that answer such questions by request.
    AskClients(Asked),
    /// Tell the clients that were asked that the question is closed.
    Withdraw(RequestId),
    /// Pass the answer of an elicitation to the caller that waits for it.
    Resolve {
        request: RequestId,
        action: ElicitationAction,
        content: Option<Value>,
    },
    /// Tell the caller that wants to run a part of a slash command whether it may, or why not.
    PartDecided {
        request: RequestId,
        decided: Result<Grant, String>,
    },
    /// Store an approval that holds beyond this session.
    Remember(Approval, RememberScope),
    /// Give a lasting approval to the top-level session. This session is an agent below it.
    GrantAbove(LastingApproval),
    /// Open the session of an agent again, which waits for an answer, and go on with its run.
    RejoinAgent {
        task: TaskId,
        /// The call that waits for the agent.
        waits: Option<(TurnKey, ToolCallId)>,
    },
    /// Stop all agents of the session.
    CancelAgents,
    /// Start a worker of the fleet.
    StartWorker(WorkerOrder),
    /// Let a worker go on that was interrupted.
    ContinueWorker {
        todo: String,
        task: TaskId,
        message: String,
    },
    /// Stop these workers.
    CancelWorkers(Vec<TaskId>),
    /// Run a slash command of the queue, or let a client run it.
    RunCommand(PendingCommand),
    /// Restore the files of a rewind and report `FilesRestored`.
    RestoreFiles(Box<Rewinding>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RememberScope {
    Location(String),
    Always,
}

/// When an effect starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectStart {
    /// The effect changes nothing, and asks nobody unless it has to. If it completes without
    /// waiting, its report is decided in the same transaction.
    WithinTransaction,
    /// The effect does no harm if the commit fails, so it need not wait for the disk.
    BeforeCommit,
    /// The effect changes the outside world, so the events that announce it are committed first.
    AfterCommit,
}

impl Effect {
    /// Returns the turn whose work this begins or goes on with; `None` if it does other things.
    pub fn turn(&self) -> Option<&TurnKey> {
        match self {
            Self::CallModel(turn)
            | Self::Guard { turn, .. }
            | Self::Assess { turn, .. }
            | Self::AskHooks(HookPermission { turn, .. })
            | Self::AskStop(turn)
            | Self::AwaitProvider { turn, .. }
            | Self::KeepOutputs { turn, .. }
            | Self::Run { turn, .. } => Some(turn),
            Self::Prepare { .. }
            | Self::Summarise(_)
            | Self::MakeTitle { .. }
            | Self::CancelSummary
            | Self::OpenShellAhead
            | Self::CancelTurn
            | Self::StartGrace(_)
            | Self::AskClients(_)
            | Self::Withdraw(_)
            | Self::Resolve { .. }
            | Self::PartDecided { .. }
            | Self::Remember(..)
            | Self::GrantAbove(_)
            | Self::RejoinAgent { .. }
            | Self::StartWorker(_)
            | Self::ContinueWorker { .. }
            | Self::CancelWorkers(_)
            | Self::RunCommand(_)
            | Self::RestoreFiles(_)
            | Self::CancelAgents => None,
        }
    }

    pub fn starts(&self) -> EffectStart {
        match self {
            Self::Prepare { .. } | Self::Assess { .. } => EffectStart::WithinTransaction,
            // A model request only reads. A shell that is opened ahead runs no command yet.
            Self::CallModel(_) | Self::OpenShellAhead => EffectStart::BeforeCommit,
            Self::Run { .. }
            | Self::Guard { .. }
            | Self::AskHooks(_)
            | Self::AskStop(_)
            | Self::AwaitProvider { .. }
            | Self::KeepOutputs { .. }
            | Self::Summarise(_)
            | Self::MakeTitle { .. }
            | Self::CancelSummary
            | Self::CancelTurn
            | Self::StartGrace(_)
            | Self::AskClients(_)
            | Self::Withdraw(_)
            | Self::Resolve { .. }
            | Self::PartDecided { .. }
            | Self::Remember(..)
            | Self::GrantAbove(_)
            | Self::RejoinAgent { .. }
            | Self::StartWorker(_)
            | Self::ContinueWorker { .. }
            | Self::CancelWorkers(_)
            | Self::RunCommand(_)
            | Self::RestoreFiles(_)
            | Self::CancelAgents => EffectStart::AfterCommit,
        }
    }
}
