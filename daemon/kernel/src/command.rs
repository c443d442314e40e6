//! The commands that a session accepts, and the decisions that follow from them.

mod calls;
mod compaction;
mod decision;
mod fleet;
mod life;
mod messages;
mod refusal;
mod report;
mod rewind;
mod room;
mod settings;
mod slash;
mod tasks;

use std::borrow::Cow;

use ulid::Ulid;

use loopd_proto::event::agent::Stance;
use loopd_proto::event::ask::{AutoModeSwitch, ElicitationAction, ElicitationRequested};
use loopd_proto::event::budget::AgentSpent;
use loopd_proto::event::fact::{CallPurpose, ClientRef, NamedBy};
use loopd_proto::event::hook::{GuardFolder, HookEnd};
use loopd_proto::event::session::{FileChanged, FileOperation, WorkContext};
use loopd_proto::event::skill::{SkillSwitched, SkillsLoaded};
use loopd_proto::event::task::ShellWaiting;
use loopd_proto::event::todo::TodoList;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{
    InteractionId, MessageId, RequestId, RewindId, SessionId, TaskId, ToolCallId,
};
use loopd_proto::params::options::OptionsPatch;
use loopd_proto::params::pending::{ExitPlanMode, LimitsExhausted};
use loopd_proto::params::permission::ApprovalMode;
use loopd_proto::params::tool::SubagentSettings;
use loopd_proto::permission::{PermissionDecision, PermissionRequest, PermissionRule, Permissions};
use loopd_proto::session::Mode;
use loopd_proto::time::Timestamp;
use serde_json::Value;

use super::decide::provider_wait::ProviderWaits;
pub use super::effect::{Effect, EffectStart, RememberScope};
use super::guards::{ClientGuards, GuardJoined, GuardLeft, LiftScope, LiftedGuards};
use super::hook::{Guarded, HookDenial, HookNeeds, HookPermission, HookVerdict, StopAnswered};
use super::policy::Whereabouts;
use super::policy::copies::{RepositoryCopy, hold_in_copies};
use super::policy::planning::{Planning, ToolClaim};
use super::policy::restrict::keep_to_looking;
use super::policy::settings::SettingsRules;
use super::state::{State, TurnKey};
use super::texts::instructions::InstructionText;
use super::todos::TodoInput;
use super::tool_call::{Ahead, McpToolRef, PlanProposal, ToolOrigin, UserQuestion};

pub use calls::{AssessAgain, CallOutcome, CallStatusReport, CompletionRef, GrantCheck};
pub use compaction::{
    ClearOrder, CompactOrder, CompactionFailure, SideUsage, StoppedCompactions, Summarised, Summary,
};
pub use fleet::{FleetOrder, WorkerOrder};
pub use life::{AdoptAsSubagent, Create, Resume, Shutdown};
pub use messages::{
    AbortRequest, AbortWaiting, BlockedMessage, LostCall, ModelFailure, ModelReplied, Prepared,
    PreparedMessage, Send, SendPlace,
};
pub use refusal::Refusal;
pub use rewind::{RestoreOutcome, RewindOrder, SeenHistory};
pub use room::{KeptOutput, RequestFacts, RoomNeed};
pub use settings::{
    AgentChoice, AgentPick, AgentSources, LastingApproval, LogLevel, McpSwitch, ModelChoice,
    PermissionChange, PermissionsPatch, RuleRemoval, RuleSet,
};
pub use slash::{CommandOutcome, CommandRunner, QueuedLine};
pub use tasks::{RecoveredOutcome, TaskAnswer, TaskEnd, TaskStart};

/// The inputs of `decide` from outside, as values: the time and fresh ids, for example.
pub struct DecideEnv<'a> {
    pub now: Timestamp,
    /// Whether a client is attached. No new turn begins without one.
    pub attended: bool,
    /// Whether the launch of this session allows everything without asking.
    pub bypass: bool,
    /// The rules of settings on disk.
    pub settings: Option<&'a SettingsRules>,
    /// The home of the daemon.
    pub home: &'a str,
    /// Returns where the tool of this name runs; `None` if the model is not offered it.
    pub tool_origin: &'a dyn Fn(&str) -> Option<ToolOrigin>,
    /// Returns whether a call of the tool of this name that succeeds ends the turn.
    pub ends_turn: &'a dyn Fn(&str) -> bool,
    /// Returns the tool of an MCP server that models know by this name.
    pub mcp_tool: &'a dyn Fn(&str) -> Option<McpToolRef>,
    /// Returns what a sub-agent may do by its parent's permissions; `None` in any other session.
    pub inherited: &'a dyn Fn() -> Option<Permissions>,
    /// Whether the sessions above this one let it only look and plan.
    pub planning: Planning,
    /// Returns the path of the session's plan, as requests to write it name it.
    pub plan_file: &'a dyn Fn() -> String,
    /// Whether a client can be asked if another model may answer after a rate limit.
    pub can_switch_model: bool,
    /// Returns whether an attached client runs the slash command of this name.
    pub runs_command: &'a dyn Fn(&str) -> bool,
    /// The session at the top, while this session is a live sub-agent of it.
    pub top: Option<&'a SessionId>,
    /// The models that answer when the provider of the model cannot, if the session names none.
    pub fallback_models: &'a [String],
    pub provider_waits: ProviderWaits,
    /// How many workers a fleet has unless its order says so.
    pub fleet_workers: u32,
    /// How many todos a fleet carries out.
    pub fleet_todos: u32,
    /// How many runs notifications start between two messages.
    pub most_wakes: u32,
    /// Whether a model makes titles of first messages.
    pub makes_titles: bool,
    pub hooks: HookNeeds<'a>,
    /// Returns the size of the next model request.
    pub next_request: &'a dyn Fn() -> RequestFacts,
    pub ids: &'a mut dyn FnMut() -> Ulid,
}

impl DecideEnv<'_> {
    /// Returns the permissions in force: those of its parents for a sub-agent; otherwise the
    /// session's own, with what the launch allows. The files of active skills may be read.
    pub(crate) fn permissions<'s>(&self, state: &'s State) -> Cow<'s, Permissions> {
        let mut permissions = match (self.inherited)() {
            Some(inherited) => Cow::Owned(inherited),
            None => self.own_permissions(state),
        };
        for folder in state.skill_folders() {
            permissions.to_mut().approved.push(PermissionRule {
                kind: "read".to_owned(),
                argument: Some(folder),
            });
        }
        permissions
    }

    fn own_permissions<'s>(&self, state: &'s State) -> Cow<'s, Permissions> {
        let mut own = Cow::Borrowed(&state.permissions);
        if self.bypass && !own.approve_all {
            own.to_mut().approve_all = true;
        }
        if let Some(rules) = self.settings {
            rules.add_to(own.to_mut());
        }
        if state.stance_in_force() == Stance::Plan {
            keep_to_looking(own.to_mut());
        }
        let copies: Vec<RepositoryCopy> = state.tasks.copies().collect();
        if !copies.is_empty() {
            hold_in_copies(own.to_mut(), &copies);
        }
        own
    }

    /// Returns where the session works, for the rules about files.
    pub(crate) fn whereabouts<'s>(&'s self, state: &'s State) -> Whereabouts<'s> {
        Whereabouts {
            cwd: &state.cwd,
            home: Some(self.home),
        }
    }

    /// Returns whether the session only looks and plans.
    pub(crate) fn planning(&self, state: &State) -> Planning {
        Planning::of(state).below(self.planning)
    }

    pub fn message(&mut self) -> MessageId {
        (self.ids)().into()
    }

    pub fn request(&mut self) -> RequestId {
        (self.ids)().into()
    }

    pub fn interaction(&mut self) -> InteractionId {
        (self.ids)().into()
    }
}

/// A request to a session, or a report of something that happened to it.
#[derive(Debug)]
pub enum Command {
    /// The large commands are boxed: every command and every future that holds one is as large as the
    /// largest of them.
    Create(Box<Create>),
    Resume(Box<Resume>),
    /// If the loop is idle, start on the queue, and after that on undelivered notifications.
    TakeUp,
    /// The log was loaded: close the work that was in flight. The outcomes come from the logs of
    /// agents, which may be ahead of this log.
    Recover(Vec<RecoveredOutcome>),
    /// The log is a copy that a client made: close the work that is in flight in its source.
    CloseCopied,
    /// Gives a copy what narrows the rights of the session that it was copied from.
    NarrowLike(Box<State>),
    /// The log is a copy of another session's log. This session becomes an agent of that one.
    AdoptAsSubagent(Box<AdoptAsSubagent>),
    Send(Send),
    Abort(AbortRequest),
    /// Stop all work and keep everything. The session fills in how far its agents got.
    Suspend(Vec<RecoveredOutcome>),
    /// The session shuts down; its log stays.
    Shutdown(Shutdown),
    EnqueueCommand(QueuedLine),
    CommandHandled {
        request: RequestId,
        stop: bool,
        /// Why the client could not run the command.
        error: Option<String>,
    },
    /// The daemon has run a slash command of the queue, or could not.
    CommandRan {
        request: RequestId,
        outcome: Result<CommandOutcome, String>,
    },
    /// Clients were detached; nobody may be left for the slash commands that they ran.
    ClientsLeft,
    ClearQueue,
    RemoveLastQueued,
    MoveQueued {
        id: MessageId,
        to: u32,
    },
    EditQueued {
        id: MessageId,
        prompt: String,
        display_prompt: Option<String>,
    },
    RemoveQueued(MessageId),
    /// Lets a queued message join the running turn.
    SteerQueued(MessageId),
    /// Takes a message back if it still has this text.
    WithdrawMessage {
        id: MessageId,
        expected: String,
    },

    Prepared(Prepared),
    PrepareFailed {
        messages: Vec<MessageId>,
        failure: ModelFailure,
    },
    ModelReplied(Box<ModelReplied>),
    ModelFailed {
        lost: Option<Box<LostCall>>,
        turn: TurnKey,
        failure: ModelFailure,
    },
    /// Hooks have decided about a call.
    Guarded(Box<Guarded>),
    /// Not all clients whose hooks guard the session are there.
    GuardAbsent {
        turn: TurnKey,
        call: ToolCallId,
        missing: ClientGuards,
    },
    /// Not all clients are there whose hooks may answer what a person would be asked.
    HooksAbsent {
        asked: Box<HookPermission>,
        missing: ClientGuards,
    },
    /// The clients whose hooks guard the session have changed.
    GuardsChanged,
    /// A client came whose hooks guard the session.
    GuardJoined(GuardJoined),
    /// A client whose hooks guard the session leaves it by its own will.
    GuardLeft(GuardLeft),
    /// Guards of these folders are in force from now on.
    HoldGuardFolders(Vec<GuardFolder>),
    /// Lets the session go on without clients whose hooks guard it.
    LiftGuards(LiftScope),
    Assessed(Box<Assessed>),
    /// Asks whether a call that was permitted and had to wait may still begin.
    CheckGrant(Box<GrantCheck>),
    /// The tools of a call's MCP server have come.
    AssessAgain(Box<AssessAgain>),
    /// Hooks have answered, or declined to answer, what a person would be asked.
    HooksAnswered {
        asked: Box<HookPermission>,
        verdict: HookVerdict,
        ended: Vec<HookEnd>,
    },
    StopAnswered(StopAnswered),
    /// Hooks changed something, or have something to tell the model after the results of the turn.
    HooksNoted {
        context: Vec<String>,
        ended: Vec<HookEnd>,
    },
    /// There are instructions for files that a call used.
    InstructionsFound {
        call: ToolCallId,
        files: Vec<InstructionText>,
    },
    ToolFinished {
        turn: TurnKey,
        call: ToolCallId,
        outcome: CallOutcome,
    },
    /// The next model call of a turn is large.
    MakeRoom(Box<RoomNeed>),
    /// The whole texts of results were saved, so that these can be shortened.
    OutputsKept {
        turn: TurnKey,
        kept: Vec<KeptOutput>,
    },
    /// Compacts the conversation.
    Compact(CompactOrder),
    /// Clears the conversation.
    ClearContext(ClearOrder),
    /// Stops a compaction that is running.
    StopCompaction(StoppedCompactions),
    /// The model call for a summary has ended.
    Summarised(Box<Summarised>),
    /// The provider may take requests again.
    WaitOver {
        turn: TurnKey,
    },
    /// A model call of a sub-agent below this session has ended.
    AgentSpent(AgentSpent),
    /// A client answers whether more credits are granted.
    AnswerLimits {
        request: RequestId,
        response: LimitsExhausted,
    },
    /// The limit of time may be reached.
    TimeUp,
    /// The grace time that an abort gives to running tools has passed.
    GraceOver {
        turn: TurnKey,
    },

    /// A part of a slash command wants to run before the command's message is sent.
    AskForPart(Box<PartAsked>),
    /// Nobody waits any more for what a part, or an MCP server, asked a permission for.
    WithdrawPart(RequestId),
    /// A model answered beside the conversation.
    CalledBeside(Box<SideUsage>, CallPurpose),
    /// A model has made a title of the message that gave the session this name.
    Titled {
        was: String,
        title: String,
    },
    AnswerPermission {
        request: RequestId,
        decision: PermissionDecision,
    },
    /// A guard that joined while a person was asked denies the call.
    GuardDenied(RequestId, HookDenial),
    /// Everything is approved: a question that this covers needs no answer.
    SettlePermission(RequestId),
    AnswerTool {
        request: RequestId,
        outcome: CallOutcome,
    },
    AnswerUserInput {
        request: RequestId,
        answer: String,
        freeform: bool,
    },
    AnswerExitPlanMode {
        request: RequestId,
        answer: ExitPlanMode,
        /// The plan as it is now, if it is another one than was asked about.
        edited: Option<String>,
    },
    /// A client answered about a plan in a way that cannot be used.
    ExitPlanModeFailed {
        request: RequestId,
        why: String,
    },
    AnswerAutoModeSwitch {
        request: RequestId,
        response: AutoModeSwitch,
    },
    Elicit(Box<ElicitationRequested>),
    AnswerElicitation {
        request: RequestId,
        action: ElicitationAction,
        content: Option<Value>,
    },

    SetName {
        name: String,
        by: NamedBy,
    },
    /// Switches the mode; if another mode is expected, only when it is the current one.
    SetMode {
        mode: Mode,
        expected: Option<Mode>,
    },
    /// Pauses the autopilot, or lets it go on.
    PauseAutopilot(bool),
    SetModel(Box<ModelChoice>),
    SetReasoningEffort {
        effort: String,
        /// The model in use if none was chosen.
        default_model: String,
    },
    UpdateOptions(Box<OptionsPatch>),
    /// Lets the session use an MCP server or do without it.
    SwitchMcpServer(String, McpSwitch),
    ChangePermissions(PermissionChange),
    /// A client gave a lasting approval when an agent of this session asked.
    Grant(LastingApproval),
    SelectAgent(Option<Box<AgentPick>>),
    /// Replaces the todo list by what a model wrote.
    WriteTodos(Vec<TodoInput>),
    /// Stores a todo list that was made from the list of this revision.
    StoreTodos {
        /// The sub-agent that changed it; `None` for the agent that owns the list.
        by: Option<TaskId>,
        base: u64,
        list: TodoList,
    },
    StartFleet(FleetOrder),
    /// Carries out the next step of the fleet, if there is one.
    AdvanceFleet,
    /// Puts a skill into use or out of use.
    SwitchSkill(SkillSwitched),
    /// The session has other skills than before.
    SkillsLoaded(SkillsLoaded),
    WorkerNotStarted {
        todo: String,
        why: String,
    },
    StopFleet,
    PlanChanged(FileOperation),
    FileChanged(FileChanged),
    SetWorkingDirectory(String),
    /// The facts about the working directory were read again.
    RecordContext(WorkContext),
    SetSubagents(Option<SubagentSettings>),
    TaskStarted(Box<TaskStart>),
    TaskProcess {
        id: TaskId,
        pid: u32,
    },
    TaskEnded {
        id: TaskId,
        end: TaskEnd,
    },
    TaskPromoted(TaskId),
    TaskAnswered {
        id: TaskId,
        answer: TaskAnswer,
    },
    TaskContinued {
        id: TaskId,
        message: String,
    },
    TaskNoted {
        id: TaskId,
        note: String,
    },
    /// The model learnt in another way how these tasks ended.
    TasksDelivered(Vec<TaskId>),
    RemoveTask(TaskId),
    UserCommandStarted {
        call: ToolCallId,
        tool: String,
        arguments: Value,
    },
    UserCommandEnded {
        call: ToolCallId,
        outcome: CallOutcome,
    },
    /// A command in a shell waits for input.
    ShellWaits(ShellWaiting),
    /// Takes the session back to an earlier point.
    Rewind(Box<RewindOrder>),
    /// The files of a rewind were restored, or could not be; `later` by another daemon than began.
    FilesRestored {
        rewind: RewindId,
        outcome: RestoreOutcome,
        later: bool,
    },
    Log {
        level: LogLevel,
        kind: String,
        message: String,
        url: Option<String>,
        tip: Option<String>,
        stored: bool,
    },
}

#[derive(Debug)]
pub struct Assessed {
    pub turn: TurnKey,
    pub call: ToolCallId,
    /// Where the tool comes from. The origin says who runs the call once it is permitted.
    pub origin: ToolOrigin,
    pub need: CallNeed,
    /// What the tool says about itself.
    pub claim: ToolClaim,
    /// What may be prepared early, unless the call is refused.
    pub ahead: Ahead,
    /// Whether an attached client answers permission questions, or no client is attached at all.
    pub can_ask: bool,
    /// What the hooks said about the call.
    pub hooks: HookVerdict,
}

/// A part of a slash command: a shell command in its text, or a file that the text includes.
#[derive(Debug)]
pub struct PartAsked {
    pub request: RequestId,
    /// The tool that runs the part.
    pub tool: String,
    pub permission: PermissionRequest,
    pub claim: ToolClaim,
    /// Whether an attached client answers permission questions.
    pub can_ask: bool,
    /// What the hooks said about it.
    pub hooks: HookVerdict,
}

#[derive(Debug)]
pub enum CallNeed {
    Nothing,
    Permission(PermissionRequest),
    /// The call is a question to the user. The answer is its result.
    Answer(UserQuestion),
    /// The call asks to leave plan mode. The answer is its result.
    Approval(PlanProposal),
    Refused(CallOutcome),
}

/// The steps that follow from a command, in order, and the answer to its sender.
#[derive(Debug, Default)]
pub struct Decision {
    pub steps: Vec<Step>,
    pub answer: Answer,
}

#[derive(Debug)]
pub enum Step {
    Store(Durable),
    Tell(Ephemeral),
    Do(Effect),
}

/// The answer to the sender of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Answer {
    #[default]
    Done,
    Message(MessageId),
    /// Whether the command applied to something, such as an open question or a running task.
    Accepted(bool),
    /// How an abort went.
    Aborted(AbortOutcome),
    /// Whether a message was taken back, and whether a turn was stopped for that.
    Withdrawn {
        removed: bool,
        interrupted: bool,
    },
    GuardsLifted(LiftedGuards),
    /// How many entries of the conversation were cleared.
    Cleared(u64),
    /// Whether a change of permissions changed anything, and whether people are asked now.
    Permissions {
        changed: bool,
        mode: ApprovalMode,
    },
}

/// How an abort went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbortOutcome {
    /// Whether a turn is being stopped.
    pub interrupted: bool,
    /// The items that left the queue.
    pub removed: Vec<MessageId>,
    /// The message that the running turn belongs to, and its sender, if that turn was spared.
    pub spared: Option<(MessageId, Option<ClientRef>)>,
}
