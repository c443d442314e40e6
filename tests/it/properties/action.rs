//! What can happen to a session. An action whose subject does not exist, such as a reply when no
//! model was called, does nothing.
//!
//! The printed form of an action is the Rust that makes it, so that a story can become a test.

use loopd_kernel::command::{CommandRunner, SendPlace};
use loopd_proto::event::task::TaskOutcome;

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Send(SendPlace, SentId),
    EnqueueSlashCommand(CommandRunner),
    ClearQueue,
    RemoveLastQueued,
    /// A person clears the conversation of a session that rests.
    Clear,
    /// A tool of a client clears it from inside of a call.
    ClearFromCall,
    ChangeQueue(Nth, QueueChange),
    Abort,
    /// One of the clients aborts; the messages of the others stay.
    ClientAborts,
    /// One of the clients stops the turn of the last message only.
    ClientInterruptsLast,
    Set(Setting),

    PreparationEnds(Pick, Preparation),
    ModelReplies(Pick, Reply),
    CallIsAssessed(Pick, Assessment),
    ToolFinishes(Pick, Outcome),
    GraceEnds(Pick),

    ClientDecidesPermission(Nth, Permit),
    ClientFinishesCall(Nth, Outcome),
    UserAnswers(Nth),
    FormIsShown,
    FormIsFilledIn(Nth),
    SlashCommandIsHandled(AfterCommand),
    ClientAnswersUnknownRequest,
    ClientAnswersLate(Nth),

    ClientsLeave,
    ClientAttaches,
    ClientResumes(PendingWork),
    Suspend,
    ShutdownAndResume(PendingWork),
    /// The process dies and another one loads the log.
    Kill,

    ShellStarts(Shell, Ownership),
    ShellEnds(Shell),
    SubagentStarts(Subagent, Start),
    SubagentGoesToBackground(Subagent),
    SubagentAnswers(Subagent, Delivery),
    SubagentIsContinued(Subagent),
    SubagentNotes(Subagent),
    SubagentEnds(Subagent, TaskOutcome, Delivery),
    TaskIsDelivered(Task),
    TaskIsRemoved(Task),
}

/// Which of the work that is under way reports.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pick {
    /// The one that was started last.
    Newest,
    /// Any that has not reported; what was cancelled may still report.
    Earlier(u8),
    /// One that reported before.
    Again(u8),
}

/// The how-manieth of the open questions of a kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nth(pub(super) u8);

/// The id that a client gives to a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum SentId {
    None,
    Own,
    /// The same id and text as other messages have.
    Repeated,
}

/// What a client does with a queued item.
#[derive(Debug, Clone, Copy)]
pub(super) enum QueueChange {
    Move,
    Edit,
    Remove,
    SendNow,
    Withdraw,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Setting {
    PlanMode,
    InteractiveMode,
    Model(u8),
    Name,
    ApproveAll,
    AskAgain,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Preparation {
    Ready,
    Fails,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Reply {
    Says,
    SaysNothing,
    Calls(Calls),
    Fails,
}

/// The tools that a reply calls; ids repeat across turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    pub(super) count: u8,
    pub(super) ids: CallIds,
    pub(super) arguments: Arguments,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum CallIds {
    Distinct,
    OtherDistinct,
    /// All calls of the reply have one id.
    AllTheSame,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Arguments {
    Object,
    Null,
    Text,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Assessment {
    NoSuchTool,
    NeedsNothing,
    RunsInAClient,
    AsksTheUser,
    NeedsPermission,
    NeedsPermissionAndRunsInAClient,
    NeedsPermissionAndNobodyAnswers,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    Text,
    Nothing,
    Picture,
    Failure,
    PersonSaysNo,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Permit {
    Once,
    ForSession,
    Reject,
    UserNotAvailable,
    Cancelled,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum AfterCommand {
    GoOn,
    Stop,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum PendingWork {
    Continue,
    Close,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Shell(pub(super) u8);

#[derive(Debug, Clone, Copy)]
pub(super) enum Ownership {
    Attached,
    Detached,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Subagent(pub(super) u8);

#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    InBackground,
    /// The call waits for it.
    ByCall,
    ByClient,
}

/// Whether the model learns of the answer or end by other means.
#[derive(Debug, Clone, Copy)]
pub(super) enum Delivery {
    ByNotification,
    ByOtherMeans,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Task {
    Shell(u8),
    Subagent(u8),
}
