//! The state of a session, which is folded from its log and from nothing else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use loopd_proto::event::agent::{Stance, SubagentIdentity};
use loopd_proto::event::fact::{ClientRef, LoopOutcome, PendingCommand, PendingMessage, QueueItem};
use loopd_proto::event::fleet::FleetProgress;
use loopd_proto::event::hook::{GuardFolder, VouchedFolder};
use loopd_proto::event::research::ResearchStarted;
use loopd_proto::event::rewind::RewindStarted;
use loopd_proto::event::session::{CodeChanges, ModelMetrics, TokenMetrics, WorkContext};
use loopd_proto::event::task::WorkUsage;
use loopd_proto::id::{EventId, InteractionId, MessageId, RequestId, Seq, SessionId, ToolCallId};
use loopd_proto::permission::{AskedBecause, PermissionRequest, Permissions};
use loopd_proto::run_scope::RunScope;
use loopd_proto::session::{Mode, SessionOptions};
use loopd_proto::time::Timestamp;

use super::answer_cut::AnswerCut;
use super::autopilot::Autopilot;
use super::budget::{Spend, WorkedTime};
use super::changed_shells::ChangedShells;
use super::compaction::Compaction;
use super::context_size::ContextSize;
use super::fleet::Fleet;
use super::guards::ClientGuards;
use super::history::{Entry, History};
use super::kept_scopes::KeptScopes;
use super::questions::Questions;
use super::rewind::Rewinds;
use super::run_limits::LimitedRun;
use super::skills::{RunSkill, Skills};
use super::tasks::Tasks;
use super::todos::Todos;
use super::tool_call::{CallStage, CallState};

/// Everything the daemon knows about a session that survives a restart.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub id: SessionId,
    pub created: Timestamp,
    pub options: SessionOptions,
    pub cwd: String,
    /// The last known facts about the directory, such as its repository and branch.
    pub context: WorkContext,
    pub name: Option<Name>,
    pub mode: Mode,
    pub autopilot: Autopilot,
    pub model: Option<String>,
    /// The models that failed since the last answer, whose place another one took. None of them is
    /// called for the same answer again.
    pub failed_models: BTreeSet<String>,
    /// The limits of the last run that had some.
    pub limited_run: Option<LimitedRun>,
    /// Whether people were told that usage is estimated.
    pub told_estimated: bool,
    pub wakes: Wakes,
    pub reasoning_effort: Option<String>,
    /// The custom agent that answers instead of the default one.
    pub agent: Option<String>,
    /// The tools that this agent had when it was selected. `None` means all tools.
    pub agent_tools: Option<Vec<String>>,
    /// How this agent treats calls that need a permission.
    pub agent_stance: Stance,
    pub permissions: Permissions,
    /// The apps whose hooks guard the session. No call runs that they were not asked about.
    pub guards: ClientGuards,
    /// The folders whose guards are in force, wherever the session works.
    pub guard_folders: Vec<GuardFolder>,
    /// The folders of hooks that an app named, with what it vouches for in them.
    pub vouched_hooks: Vec<VouchedFolder>,
    /// What hooks tell the model after the results of the turn.
    pub added_context: Vec<String>,
    /// The system message that the model got last.
    pub system: Option<String>,
    pub history: History,
    /// What reports of providers say about the size of requests.
    pub context_size: ContextSize,
    pub compaction: Compaction,
    /// First in, first out. Steering messages wait in a list of their own, for the next model call.
    pub queue: Vec<QueueItem>,
    pub steering: Vec<PendingMessage>,
    /// The most recently accepted messages, oldest first.
    pub accepted: VecDeque<Accepted>,
    /// How the messages that left the loop most recently ended, oldest first.
    pub ended: VecDeque<EndedMessage>,
    pub phase: Phase,
    /// The run that the end of a daemon interrupted, until it goes on or something else is done.
    pub unfinished: Option<Run>,
    /// How many times in a row hooks have kept the last run from ending, if it ended although they
    /// wanted it to go on. What continues that run goes on with this count.
    pub stop_blocks: u32,
    /// How the last run of the loop ended, and its error if it failed.
    pub last_outcome: Option<LoopOutcome>,
    pub last_error: Option<String>,
    /// Whether that error says that a limit is reached.
    pub last_error_is_limit: bool,
    /// Why the last message of the model is not complete; `None` if it is.
    pub answer_cut: Option<AnswerCut>,
    /// The open questions to clients.
    pub questions: Questions,
    /// The permission requests that were closed with their turn before anybody answered, oldest
    /// first. An answer that comes late takes the queue.
    pub unanswered: VecDeque<UnansweredPermission>,
    /// How many messages people had sent when notes for later sessions were made.
    pub consolidated: u64,
    /// Set when the session is an agent of another one.
    pub subagent: Option<Box<SubagentIdentity>>,
    /// The background tasks, running and ended.
    pub tasks: Tasks,
    /// The commands that people run themselves and that have not ended.
    pub user_calls: BTreeSet<ToolCallId>,
    /// The shells in which names may mean something else than in a fresh one.
    pub changed_shells: ChangedShells,
    pub plan_exists: bool,
    pub todos: Todos,
    /// The workers that carry out the todos, while they do.
    pub fleet: Option<Fleet>,
    /// How the last fleet ended.
    pub fleet_result: Option<FleetProgress>,
    /// The last research of an earlier build, which named its message in an event.
    pub researches: Option<ResearchStarted>,
    /// The report of a research that was written last.
    pub written_report: Option<String>,
    /// The skills that were loaded.
    pub skills: Skills,
    /// What messages set for their runs.
    pub kept_scopes: KeptScopes,
    pub totals: Totals,
    /// How long the session has worked, while it has a limit of time.
    pub worked: WorkedTime,
    /// Which events no longer count for the conversation.
    pub rewinds: Rewinds,
    /// The last visible durable event that counts: the parent of the next one.
    pub tip: Option<EventId>,
    pub seq: Seq,
    /// How many visible durable events count.
    pub visible: u64,
    pub closed: bool,
}

/// A session's name and whether a person gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub by_user: bool,
}

/// Sums over the whole life of the session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    pub user_requests: u64,
    pub api_duration_ms: u64,
    pub tool_calls: u64,
    /// What the providers charged, in billionths of a credit.
    pub nano_credits: u64,
    /// The cost in billionths of a US dollar, as far as the models have prices.
    pub nano_usd: u64,
    pub models: BTreeMap<String, ModelMetrics>,
    /// How many model calls count with an estimate, those of sub-agents under limits included.
    pub estimated_calls: u64,
    /// What the last model call used; nothing if that was estimated.
    pub last_call: TokenMetrics,
    /// What the last model call was charged, in billionths of a credit.
    pub last_credits: u64,
    pub code_changes: CodeChanges,
    /// What removed tasks used beyond what they reported when they ended.
    pub unreported: Spend,
}

impl Totals {
    /// Adds what agents used.
    pub(super) fn add(&mut self, usage: &WorkUsage) {
        self.tool_calls += usage.tool_calls;
        self.api_duration_ms += usage.api_duration_ms;
        self.nano_credits = self.nano_credits.saturating_add(usage.nano_credits);
        self.nano_usd = self.nano_usd.saturating_add(usage.nano_usd);
        for (model, metrics) in &usage.models {
            self.models.entry(model.clone()).or_default().add(metrics);
        }
    }
}

/// What the loop is doing.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    Idle,
    /// Messages, or notifications that woke the session, are being prepared for the model.
    Preparing(Preparing),
    /// A slash command was handed to the clients.
    Commanding(PendingCommand),
    /// A model call or its tools are under way.
    Turn(Turn),
    /// Files are being restored.
    Rewinding(Box<Rewinding>),
}

/// A rewind that restores files now.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewinding {
    pub started: RewindStarted,
    /// The position of its start in the log.
    pub began: Seq,
}

/// The runs that notifications started since the last message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wakes {
    pub runs: u32,
    /// Whether people were told that no more are started.
    pub told: bool,
}

/// Messages that are being prepared for the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Preparing {
    pub messages: Vec<PendingMessage>,
    /// Set when the messages join a loop that is already running.
    pub joins: Option<TurnKey>,
    pub run: Run,
}

/// One run of the loop, from the message that started it to the loop's end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Whether a notification, and not a message, started the run.
    pub woken: bool,
    /// Whether the run goes on with earlier work: the end of a daemon interrupted it, or the autopilot
    /// told the model to go on.
    pub continues: bool,
    /// The message that started the run, or the one message whose work the run continues, if any.
    pub origin: Option<MessageId>,
    /// The messages that the run works on: the one that started it and those that joined it.
    pub messages: Vec<MessageId>,
    /// The position in the log of the last thing that the model said in this run.
    pub answer: Option<Seq>,
    /// The error event of a failed run.
    pub error: Option<EventId>,
    /// How many times in a row hooks have kept the run from ending, those of the run that it continues
    /// included.
    pub stop_blocks: u32,
    /// Whether the run ends although hooks want it to go on.
    pub ends_at_stop_limit: bool,
    /// Whether a limit of the session ends or ended the run. It goes on when a client grants more.
    pub limited: bool,
    /// The question whether more credits are granted.
    pub limit_request: Option<RequestId>,
    /// What the messages of the run set for it.
    pub scopes: Vec<RunScope>,
    /// The skills that were loaded in the run.
    pub skills: Vec<RunSkill>,
}

/// A message that was accepted. Its fingerprint shows whether a second send repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub id: MessageId,
    /// Tells the text of this message from other texts.
    pub fingerprint: u64,
    /// The client that sent the message.
    pub sender: Option<ClientRef>,
}

/// Returns a number that tells one text from others (FNV-1a). It is the same in every build.
pub fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A permission request whose turn is over and that nobody answered.
#[derive(Debug, Clone, PartialEq)]
pub struct UnansweredPermission {
    pub request: RequestId,
    /// The tool that was called.
    pub tool: String,
    pub permission: Box<PermissionRequest>,
    /// Why a person has to decide, if approving everything does not cover it.
    pub because: Option<AskedBecause>,
}

/// A message that the loop has finished with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedMessage {
    pub id: MessageId,
    pub end: MessageEnd,
}

/// How a message ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageEnd {
    /// The message left the queue before the loop worked on it.
    Removed,
    /// The loop worked on the message.
    Ran {
        outcome: LoopOutcome,
        answer: Option<Seq>,
        error: Option<EventId>,
    },
}

/// Names one turn of one interaction. The key keeps a late report out of another turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnKey {
    pub interaction: InteractionId,
    pub number: u32,
}

impl TurnKey {
    pub fn turn_id(&self) -> String {
        self.number.to_string()
    }

    #[must_use]
    pub fn next(&self) -> Self {
        Self {
            interaction: self.interaction.clone(),
            number: self.number + 1,
        }
    }
}

/// One model call and the tool calls that it asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub key: TurnKey,
    pub stage: Stage,
    pub aborting: bool,
    pub run: Run,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// The model has not answered yet.
    Calling,
    /// The provider of the model takes no requests until then; the model is called again afterwards.
    Waiting { until: Timestamp },
    /// The request would be too large; room is made before the model is called.
    MakingRoom,
    /// The model asked for tools.
    Tools(Vec<CallState>),
}

impl State {
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            created: Timestamp::default(),
            options: SessionOptions::default(),
            cwd: String::new(),
            context: WorkContext::default(),
            name: None,
            mode: Mode::default(),
            autopilot: Autopilot::default(),
            model: None,
            failed_models: BTreeSet::new(),
            limited_run: None,
            told_estimated: false,
            wakes: Wakes::default(),
            reasoning_effort: None,
            agent: None,
            agent_tools: None,
            agent_stance: Stance::default(),
            permissions: Permissions::default(),
            guards: ClientGuards::default(),
            guard_folders: Vec::new(),
            vouched_hooks: Vec::new(),
            added_context: Vec::new(),
            system: None,
            history: History::default(),
            context_size: ContextSize::default(),
            compaction: Compaction::default(),
            queue: Vec::new(),
            steering: Vec::new(),
            accepted: VecDeque::new(),
            ended: VecDeque::new(),
            phase: Phase::Idle,
            unfinished: None,
            stop_blocks: 0,
            last_outcome: None,
            last_error: None,
            last_error_is_limit: false,
            answer_cut: None,
            questions: Questions::default(),
            unanswered: VecDeque::new(),
            consolidated: 0,
            subagent: None,
            tasks: Tasks::default(),
            user_calls: BTreeSet::new(),
            changed_shells: ChangedShells::default(),
            plan_exists: false,
            todos: Todos::default(),
            fleet: None,
            fleet_result: None,
            researches: None,
            written_report: None,
            skills: Skills::default(),
            kept_scopes: KeptScopes::default(),
            totals: Totals::default(),
            worked: WorkedTime::default(),
            rewinds: Rewinds::default(),
            tip: None,
            seq: Seq::START,
            visible: 0,
            closed: false,
        }
    }

    /// Adds an entry of the event that is being applied to the conversation.
    pub(crate) fn remember(&mut self, entry: Entry) {
        self.history.push(self.seq, entry);
    }

    pub fn turn(&self) -> Option<&Turn> {
        match &self.phase {
            Phase::Turn(turn) => Some(turn),
            Phase::Idle | Phase::Preparing(_) | Phase::Commanding(_) | Phase::Rewinding(_) => None,
        }
    }

    /// Returns the running turn if it has this key.
    pub fn turn_named(&self, key: &TurnKey) -> Option<&Turn> {
        self.turn().filter(|turn| turn.key == *key)
    }

    /// Returns the current run.
    pub fn run(&self) -> Option<&Run> {
        match &self.phase {
            Phase::Preparing(preparing) => Some(&preparing.run),
            Phase::Turn(turn) => Some(&turn.run),
            Phase::Idle | Phase::Commanding(_) | Phase::Rewinding(_) => None,
        }
    }

    /// Returns the message that started the current run.
    pub fn origin(&self) -> Option<MessageId> {
        self.run().and_then(|run| run.origin.clone())
    }

    /// Returns how a message ended, if the loop has finished with it.
    pub fn end_of(&self, id: &MessageId) -> Option<&MessageEnd> {
        let ended = self.ended.iter().rev().find(|ended| ended.id == *id);
        ended.map(|ended| &ended.end)
    }

    /// Whether the loop works, or waits for a client in the middle of a turn.
    pub fn is_busy(&self) -> bool {
        !matches!(self.phase, Phase::Idle)
    }

    /// Whether the session is not idle: its loop works, or agents or a fleet of it do.
    pub fn is_at_work(&self) -> bool {
        self.is_busy() || self.tasks.has_agents_at_work() || self.has_fleet_at_work()
    }

    /// Whether clients have slash commands to run, now or later.
    pub fn waits_for_commands(&self) -> bool {
        let is_command = |item: &QueueItem| matches!(item, QueueItem::Command(_));
        matches!(self.phase, Phase::Commanding(_)) || self.queue.iter().any(is_command)
    }

    /// Whether the loop does something now, instead of resting or waiting for people only.
    pub fn is_working(&self) -> bool {
        let mut open = self.calls().filter(|call| call.is_open()).peekable();
        let waits = open.peek().is_some() && open.all(CallState::waits_for_somebody);
        self.is_busy() && !waits
    }

    /// Returns what the session and all its agents used.
    pub fn usage(&self) -> WorkUsage {
        let mut usage = WorkUsage {
            tool_calls: self.totals.tool_calls,
            api_duration_ms: self.totals.api_duration_ms,
            nano_credits: self.totals.nano_credits,
            nano_usd: self.totals.nano_usd,
            models: self.totals.models.clone(),
        };
        for task in self.tasks.iter() {
            usage.add(&task.usage);
        }
        usage
    }

    /// Returns the message with this id, if it was accepted before.
    pub fn accepted(&self, id: &MessageId) -> Option<&Accepted> {
        self.accepted.iter().find(|accepted| accepted.id == *id)
    }

    /// Returns the client that sent a message, unless the message is too old to be remembered.
    pub fn sender_of(&self, id: &MessageId) -> Option<&ClientRef> {
        self.accepted(id)?.sender.as_ref()
    }

    /// Returns the message that is about to start a turn and can still be taken back: the
    /// conversation does not have it yet, and nothing waits behind it.
    pub fn withdrawable(&self) -> Option<&PendingMessage> {
        let Phase::Preparing(preparing) = &self.phase else {
            return None;
        };
        let is_last = self.queue.is_empty() && self.steering.is_empty();
        match preparing.messages.as_slice() {
            [message] if preparing.joins.is_none() && is_last => Some(message),
            _ => None,
        }
    }

    /// Returns the open permission questions, oldest first.
    pub fn open_permissions(&self) -> impl Iterator<Item = (&RequestId, &PermissionRequest)> {
        self.questions.iter().filter_map(|question| {
            let permission = question.asks.permission()?;
            Some((&question.request, permission))
        })
    }

    /// Returns the tool calls of the running turn.
    pub fn calls(&self) -> impl Iterator<Item = &CallState> {
        self.turn().map(Turn::calls).unwrap_or_default().iter()
    }
}

impl Turn {
    pub fn calls(&self) -> &[CallState] {
        match &self.stage {
            Stage::Tools(calls) => calls,
            Stage::Calling | Stage::Waiting { .. } | Stage::MakingRoom => &[],
        }
    }

    /// Whether the model has answered, and every tool call that it asked for has its result.
    pub fn has_answered(&self) -> bool {
        matches!(&self.stage, Stage::Tools(calls) if !calls.iter().any(CallState::is_open))
    }

    /// Returns until when the turn waits for the provider of its model.
    pub fn waits_until(&self) -> Option<Timestamp> {
        match self.stage {
            Stage::Waiting { until } if !self.aborting => Some(until),
            Stage::Waiting { .. } | Stage::Calling | Stage::MakingRoom | Stage::Tools(_) => None,
        }
    }

    /// Whether a call of the turn waits for an answer that can still come.
    pub fn waits_for_clients(&self) -> bool {
        !self.aborting && self.calls().iter().any(CallState::waits_for_somebody)
    }

    /// Whether a hook that saw the result of a call stops the agent.
    pub fn was_stopped(&self) -> bool {
        self.calls().iter().any(|call| call.stops)
    }

    /// Whether a person has rejected any of the calls so far.
    pub fn was_rejected(&self) -> bool {
        let rejected =
            |call: &CallState| matches!(call.stage, CallStage::Recorded { rejected: true, .. });
        self.calls().iter().any(rejected)
    }

    pub fn call(&self, id: &ToolCallId) -> Option<&CallState> {
        self.calls().iter().find(|call| call.call.id == *id)
    }
}
