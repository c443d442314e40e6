//! Creating, resuming, recovering, suspending and shutting down a session.

mod waited_for;

use loopd_proto::event::ask::PermissionCompleted;
use loopd_proto::event::fact::{
    Answered, Configured, LoopEnded, LoopOutcome, Named, NamedBy, PermissionUnanswered,
    PermissionsSet,
};
use loopd_proto::event::session::{
    Empty, Resume as Resumed, Shutdown as ShutDown, ShutdownType, Start,
};
use loopd_proto::event::task::TasksDelivered;
use loopd_proto::event::turn::{AssistantIdle, TurnEnd};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::permission::PermissionOutcome;

use super::abort::{INTERRUPT_CODE, close_waiting};
use super::tools::{complete, tell_external_done};
use super::{
    autopilot, compaction, fleet, guard_folders, limits, part, provider_wait, queue, rewind,
    settings, tasks, tell_idle, vouched_hooks,
};

use waited_for::{WaitOutcome, WaitedFor, waited_for};

use crate::command::{
    CallOutcome, Create, DecideEnv, Decision, Effect, RecoveredOutcome, Refusal, Resume, Shutdown,
};
use crate::state::{Phase, State, Turn};
use crate::texts;
use crate::tool_call::{CallStage, CallState};

/// The version of the log format, as the public schema counts it.
const LOG_VERSION: u32 = 1;

pub(super) fn create(state: &State, create: Create, env: &mut DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    let mut options = create.options.without_secrets();
    let names_model = options.model.is_some();
    if let Some(choice) = &create.agent
        && options.reasoning_effort.is_none()
    {
        options.reasoning_effort.clone_from(&choice.effort);
    }
    let effort = options.reasoning_effort.clone();
    decision.store(Durable::SessionStart(Start {
        session_id: state.id.clone(),
        version: LOG_VERSION,
        producer: "loopd".to_owned(),
        copilot_version: create.version,
        start_time: env.now,
        selected_model: options.model.clone(),
        reasoning_effort: options.reasoning_effort.clone(),
        session_limits: options.session_limits,
        context: Some(create.context.clone()),
        already_in_use: Some(false),
        remote_steerable: Some(false),
    }));
    decision.store(Durable::Configured(Box::new(Configured {
        options,
        working_directory: create.context.cwd,
    })));
    if let Some(subagent) = create.subagent {
        decision.store(Durable::SubagentIdentity(subagent));
    }
    if let Some(mut choice) = create.agent {
        choice.effort = effort;
        if !names_model {
            settings::agent_model(state, &mut decision, &choice);
        }
        decision.store(Durable::AgentSelected(choice.into()));
    }
    if create.permissions != state.permissions {
        decision.store(Durable::Permissions(PermissionsSet {
            permissions: create.permissions,
        }));
    }
    vouched_hooks::vouch(state, Some(create.vouched_hooks), &mut decision);
    if let Some(name) = create.name {
        decision.store(Durable::Named(Named {
            name,
            by: NamedBy::User,
        }));
    }
    decision
}

/// Resumes a session for a client that attached. Open work is closed as interrupted, unless the
/// session is live or the client wants pending work to continue. No model is called.
pub(super) fn resume(
    state: &State,
    resume: Resume,
    env: &mut DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    let mut decision = Decision::default();
    guard_folders::check_move(state, resume.working_directory.as_ref())?;
    settings::inherited::keeps_tools(state, &resume.options, env)?;
    if env.top.is_some() {
        // Who joins a working sub-agent watches it. Its parent decides what it does and how.
        return Ok(decision);
    }
    let agent = resume.agent.map(|pick| pick.decided(state)).transpose()?;
    if !resume.was_active && !resume.continue_pending_work {
        decision.run(Effect::CancelTurn);
        interrupt(state, &mut decision, &Why::Resumed);
    }
    let mut options = state
        .options
        .clone()
        .updated_by(resume.options.clone())
        .without_secrets();
    // Later it would miss what was changed before.
    let tracks = resume.options.enable_file_change_tracking == Some(true);
    if tracks && state.totals.user_requests == 0 {
        options.enable_file_change_tracking = Some(true);
    }
    let cwd = resume
        .working_directory
        .unwrap_or_else(|| state.cwd.clone());
    guard_folders::tell_kept(state, &cwd, &mut decision);
    if options != state.options || cwd != state.cwd {
        decision.store(Durable::Configured(Box::new(Configured {
            options: options.clone(),
            working_directory: cwd.clone(),
        })));
    }
    vouched_hooks::vouch(state, resume.vouched_hooks, &mut decision);
    settings::tell_hooks_off(state, &options, &mut decision);
    let model = settings::named_model(state, &mut decision, &resume.options);
    if let Some(managed) = resume.managed {
        let mut permissions = state.permissions.clone();
        let known = permissions.managed.take().unwrap_or_default();
        permissions.managed = Some(Box::new(known.and(*managed)));
        if permissions != state.permissions {
            decision.store(Durable::Permissions(PermissionsSet { permissions }));
        }
    }
    if let Some(mut choice) = agent
        && state.agent.as_ref() != Some(&choice.name)
    {
        choice.effort = choice
            .effort
            .filter(|_| resume.options.reasoning_effort.is_none());
        if resume.options.model.is_none() {
            settings::agent_model(state, &mut decision, &choice);
        }
        decision.store(Durable::AgentSelected(choice.into()));
    }
    if resume.announce {
        let mut context = resume.context;
        context.cwd = cwd;
        decision.store(Durable::SessionResume(Resumed {
            resume_time: env.now,
            event_count: state.visible,
            selected_model: model.or(options.model),
            session_limits: options.session_limits,
            context: Some(context),
            already_in_use: Some(resume.already_in_use),
            session_was_active: Some(resume.was_active),
            remote_steerable: Some(false),
            continue_pending_work: Some(resume.continue_pending_work),
        }));
    }
    Ok(decision)
}

/// Starts on waiting work for a client that wants it to continue. A run that a crash interrupted
/// goes on with another call of the model, which only reads.
pub(super) fn take_up(state: &State, env: &DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    let limits = state.options.session_limits;
    let run = state.unfinished.as_ref().filter(|_| !state.is_busy());
    if provider_wait::go_on(state, &mut decision) {
        return decision;
    }
    if run.is_some_and(|run| !run.limited || limits::goes_on(state, limits, env)) {
        tasks::begin(&mut decision);
    } else if matches!(state.phase, Phase::Idle)
        && !queue::take_next(state, &mut decision, env)
        && !tasks::wake(state, &mut decision, env)
        && !state.tasks.has_agents_at_work()
        && !state.has_fleet_at_work()
    {
        autopilot::go_on(state, &mut decision, env);
    }
    decision
}

/// Closes the work of an earlier process after its log was loaded. What ran in that process is
/// gone, and the log records that.
pub(super) fn recover(
    state: &State,
    recovered: Vec<RecoveredOutcome>,
    env: &DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    stop_clock(state, &mut decision, env);
    let waited_for = waited_for(state, &recovered, texts::AGENT_LOST, env);
    rejoin(state, &mut decision, &recovered);
    fleet::interrupted(state, &recovered, &mut decision);
    tasks::close_lost(state, &mut decision, recovered, env);
    close_found(state, &mut decision, &Why::Crashed(waited_for));
    decision
}

/// Goes on with the agents that wait for an answer, and with the calls that wait for these agents.
fn rejoin(state: &State, decision: &mut Decision, recovered: &[RecoveredOutcome]) {
    for outcome in recovered {
        let RecoveredOutcome::Waits(id) = outcome else {
            continue;
        };
        let Some(task) = state.tasks.get(id.as_str()) else {
            continue;
        };
        let turn = state.turn().filter(|turn| !turn.aborting);
        let waits = turn.zip(task.call.as_ref()).filter(|(turn, call)| {
            task.is_waited_for() && turn.call(call).is_some_and(CallState::may_run)
        });
        decision.run(Effect::RejoinAgent {
            task: task.id.clone(),
            waits: waits.map(|(turn, call)| (turn.key.clone(), call.clone())),
        });
    }
}

/// Closes what is in flight in the session whose log was copied. It goes on there, not here.
pub(super) fn close_copied(state: &State, env: &DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    stop_clock(state, &mut decision, env);
    tasks::close_copied(state, &mut decision, env);
    fleet::close_copied(state, &mut decision);
    close_found(state, &mut decision, &Why::Copied);
    decision
}

/// Records that nobody worked since the last event. It comes first, because every event has a time.
fn stop_clock(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) {
    if state.worked.running_ms(env.now).is_some() {
        decision.store(Durable::ClockStopped(Empty {}));
    }
}

/// Closes the work that a log was found with.
fn close_found(state: &State, decision: &mut Decision, why: &Why<'_>) {
    tasks::close_user_commands(state, decision, why.unknown_outcome());
    // Who asked for a form was a connection, which is gone.
    for form in state.questions.forms() {
        decision.store(Durable::Answered(Answered {
            request_id: form.request_id.clone(),
        }));
    }
    part::close(state, decision);
    let lost = if why.is_copy() {
        texts::compaction::COPIED
    } else {
        texts::compaction::INTERRUPTED
    };
    compaction::close(state, decision, lost);
    match &state.phase {
        // The wait goes on when a client is there, or the session that this one is a part of.
        Phase::Turn(turn) if turn.waits_until().is_some() && !why.is_copy() => {}
        Phase::Turn(turn) if turn.waits_for_clients() || why.goes_on(turn) => {
            // Open questions survive a restart. What ran beside them is closed, and the turn
            // continues when they are answered.
            let ran = turn.calls().iter().filter(|call| call.may_run());
            let ran = ran.filter(|call| !why.keeps(turn, call));
            ran.for_each(|call| close_found_call(decision, turn, call, why));
        }
        Phase::Idle => {}
        Phase::Rewinding(rewinding) if why.is_copy() => rewind::copied(rewinding, decision),
        Phase::Rewinding(rewinding) => rewind::found(rewinding, decision),
        Phase::Preparing(_) | Phase::Commanding(_) | Phase::Turn(_) => {
            interrupt(state, decision, why);
        }
    }
}

/// Stops work but keeps everything for a later resume.
pub(super) fn suspend(
    state: &State,
    agents: Vec<RecoveredOutcome>,
    env: &DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    decision.run(Effect::CancelTurn);
    let waited_for = waited_for(state, &agents, texts::AGENT_CLOSED, env);
    compaction::close(state, &mut decision, texts::compaction::INTERRUPTED);
    interrupt(state, &mut decision, &Why::Suspended(waited_for));
    tasks::close_user_commands(state, &mut decision, texts::INTERRUPTED);
    fleet::pause(state, &mut decision);
    tasks::close_attached(state, &mut decision, agents, env);
    decision.run(Effect::CancelAgents);
    decision
}

/// Shuts the session down. Its log stays.
pub(super) fn shutdown(
    state: &State,
    Shutdown { error, agents }: Shutdown,
    env: &DecideEnv<'_>,
) -> Decision {
    let mut decision = suspend(state, agents, env);
    if state.closed {
        return decision;
    }
    let usage = state.usage();
    decision.store(Durable::SessionShutdown(ShutDown {
        shutdown_type: if error.is_some() {
            ShutdownType::Error
        } else {
            ShutdownType::Routine
        },
        error_reason: error,
        total_premium_requests: Some(state.totals.user_requests),
        total_api_duration_ms: usage.api_duration_ms,
        session_start_time: state.created.0,
        code_changes: state.totals.code_changes.clone(),
        model_metrics: usage.models,
        current_model: state.model.clone(),
    }));
    decision
}

/// Why work is closed before it ended.
enum Why<'a> {
    /// The daemon stopped while calls waited for these agents.
    Crashed(Vec<WaitedFor<'a>>),
    /// The log is a copy; the work goes on in its source.
    Copied,
    Resumed,
    /// The session is suspended or closed while calls wait for these agents.
    Suspended(Vec<WaitedFor<'a>>),
}

impl<'a> Why<'a> {
    /// Returns whether the work was found in a log: nothing of it runs for this session.
    fn is_found(&self) -> bool {
        match self {
            Self::Crashed(_) | Self::Copied => true,
            Self::Resumed | Self::Suspended(_) => false,
        }
    }

    fn is_copy(&self) -> bool {
        matches!(self, Self::Copied)
    }

    /// Returns the agents that calls waited for.
    fn waited_for(&self) -> &[WaitedFor<'a>] {
        match self {
            Self::Crashed(waited_for) | Self::Suspended(waited_for) => waited_for,
            Self::Copied | Self::Resumed => &[],
        }
    }

    /// Whether a call of the turn goes on waiting for its agent.
    fn goes_on(&self, turn: &Turn) -> bool {
        turn.calls().iter().any(|call| self.keeps(turn, call))
    }

    /// Whether this call goes on waiting for its agent.
    fn keeps(&self, turn: &Turn, call: &CallState) -> bool {
        let mut agents = self.waited_for().iter();
        !turn.aborting
            && call.may_run()
            && agents.any(|agent| {
                matches!(agent.outcome, WaitOutcome::GoesOn)
                    && agent.task.call.as_ref() == Some(&call.call.id)
            })
    }

    /// Returns what is said of a call that may have run.
    fn unknown_outcome(&self) -> &'static str {
        match self {
            Self::Crashed(_) => texts::OUTCOME_UNKNOWN,
            Self::Copied => texts::RUNS_IN_SOURCE,
            Self::Resumed | Self::Suspended(_) => texts::INTERRUPTED,
        }
    }
}

/// Closes all work in flight with its true outcome and ends the run of the loop.
fn interrupt(state: &State, decision: &mut Decision, why: &Why<'_>) {
    for form in state.questions.forms().filter(|_| !why.is_found()) {
        decision
            .store(Durable::Answered(Answered {
                request_id: form.request_id.clone(),
            }))
            .run(Effect::Withdraw(form.request_id.clone()));
    }
    if !why.is_found() {
        part::close(state, decision);
    }
    match &state.phase {
        // A rewind goes on until its files are restored, if need be with the next daemon.
        Phase::Idle | Phase::Rewinding(_) => return,
        Phase::Preparing(_) => {}
        Phase::Commanding(command) => {
            queue::slash::warn(decision, command, texts::COMMAND_INTERRUPTED);
            if !matches!(why, Why::Crashed(_)) {
                queue::slash::completed(decision, command);
            }
        }
        Phase::Turn(turn) => {
            if why.is_found() {
                for call in turn.calls() {
                    close_found_call(decision, turn, call, why);
                }
            } else {
                keep_answerable(decision, turn);
                close_waiting(decision, turn, INTERRUPT_CODE, texts::INTERRUPTED);
                for call in turn.calls() {
                    if call.may_run() && !close_waiting_for_agent(decision, turn, call, why) {
                        let outcome = CallOutcome::failure(INTERRUPT_CODE, texts::INTERRUPTED);
                        complete(decision, turn, &call.call.id, outcome);
                    }
                }
            }
            decision.store(Durable::TurnEnd(TurnEnd {
                turn_id: turn.key.turn_id(),
            }));
        }
    }
    // The parent of a sub-agent decides whether that goes on; a client decides it for the others.
    let resumable = matches!(why, Why::Crashed(_))
        && state.subagent.is_none()
        && match &state.phase {
            Phase::Turn(turn) => !turn.aborting,
            // The conversation has all that the run goes on with.
            Phase::Preparing(preparing) => preparing.run.continues && preparing.messages.is_empty(),
            Phase::Idle | Phase::Commanding(_) | Phase::Rewinding(_) => false,
        };
    decision.store(Durable::LoopEnded(LoopEnded {
        resumable,
        ..LoopEnded::with(LoopOutcome::Interrupted)
    }));
    if !why.is_found() {
        decision.tell(Ephemeral::AssistantIdle(AssistantIdle {
            aborted: Some(true),
        }));
        tell_idle(state, decision, Some(true));
    }
}

/// Records which permission requests are closed without an answer, so that one may still come.
fn keep_answerable(decision: &mut Decision, turn: &Turn) {
    for call in turn.calls() {
        if let CallStage::Asking { request } = &call.stage {
            decision.store(Durable::PermissionUnanswered(PermissionUnanswered {
                request_id: request.clone(),
            }));
        }
    }
}

/// Closes a call that waited for an agent. Its result tells how far the agent got, so that no
/// notification repeats it. Returns false if the call did not wait for one.
fn close_waiting_for_agent(
    decision: &mut Decision,
    turn: &Turn,
    call: &CallState,
    why: &Why<'_>,
) -> bool {
    let id = &call.call.id;
    let mut agents = why.waited_for().iter();
    let agent = agents.find(|agent| agent.task.call.as_ref() == Some(id));
    if let Some(agent) = agent
        && let WaitOutcome::Ends(outcome) = &agent.outcome
        && call.may_run()
    {
        complete(decision, turn, id, outcome.clone());
        decision.store(Durable::TasksDelivered(TasksDelivered {
            ids: vec![agent.task.id.clone()],
        }));
        return true;
    }
    false
}

/// Closes a call that a log was found with, unless it has its result. A call that waited for an
/// answer never ran; a call that had started may have run.
fn close_found_call(decision: &mut Decision, turn: &Turn, call: &CallState, why: &Why<'_>) {
    let id = &call.call.id;
    if close_waiting_for_agent(decision, turn, call, why) {
        return;
    }
    let text = match &call.stage {
        CallStage::Recorded { .. } => return,
        CallStage::Requested => texts::INTERRUPTED,
        CallStage::Intended | CallStage::Decided => why.unknown_outcome(),
        CallStage::Asking { request } => {
            decision.store(Durable::PermissionCompleted(PermissionCompleted {
                request_id: request.clone(),
                tool_call_id: Some(id.clone()),
                result: PermissionOutcome::Cancelled { reason: None },
                decision_source: None,
            }));
            texts::INTERRUPTED
        }
        CallStage::External { request } => {
            tell_external_done(decision, request);
            why.unknown_outcome()
        }
        CallStage::UserInput { request } | CallStage::Guarding { request, .. } => {
            decision.store(Durable::Answered(Answered {
                request_id: request.clone(),
            }));
            texts::INTERRUPTED
        }
    };
    let outcome = CallOutcome::failure(INTERRUPT_CODE, text);
    complete(decision, turn, id, outcome);
}

#[cfg(test)]
mod tests;
