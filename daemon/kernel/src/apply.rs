//! Folds one stored event into the state. `apply` cannot fail, whatever the log holds.

mod clear;
pub(crate) mod queue;
mod rewind;
pub(crate) mod runs;
mod skills;
mod turn;
mod usage;

use loopd_proto::event::agent::Stance;
use loopd_proto::event::fact::{LoopOutcome, NamedBy};
use loopd_proto::event::session::WorkContext;
use loopd_proto::event::{Durable, Head, Visibility};
use loopd_proto::id::{RequestId, TaskId, ToolCallId};
use loopd_proto::session::LimitKind;

use self::turn::{finished, guard_answered, intended, parts, said, turn_call};
use super::answer_cut::AnswerCut;
use super::autopilot::Autopilot;
use super::budget::{Spend, WorkedTime};
use super::fleet::Fleet;
use super::guards::ClientGuards;
use super::history::Entry;
use super::hook::{PROMPT_BLOCKED, STOP_LIMIT};
use super::model::{FALLBACK, Part};
use super::questions::Asks;
use super::run_limits;
use super::state::{
    Name, Phase, Preparing, Run, Stage, State, Totals, Turn, TurnKey, UnansweredPermission, Wakes,
};
use super::tasks::{Task, WAKE_LIMIT};
use super::tool_call::CallEvent;
use super::usage::ESTIMATED;

/// How many permission requests that nobody answered are kept.
const UNANSWERED_KEPT: usize = 32;

/// Applies an event to the state. An event that does not fit the phase changes nothing, because old
/// logs must load.
pub fn apply(state: &mut State, head: &Head, event: &Durable) {
    state.seq = state.seq.next();
    if event.visibility() == Visibility::Public {
        state.tip = Some(head.id.clone());
        state.visible += 1;
    }
    match event {
        Durable::SessionStart(start) => {
            state.created = start.start_time;
            state.model.clone_from(&start.selected_model);
            state.reasoning_effort.clone_from(&start.reasoning_effort);
            if let Some(context) = &start.context {
                state.cwd.clone_from(&context.cwd);
                state.context = context.clone();
            }
        }
        Durable::SessionResume(resume) => {
            state.closed = false;
            let joins = resume.session_was_active == Some(true);
            if !joins && resume.continue_pending_work != Some(true) {
                runs::abandon_unfinished(state);
                state.autopilot.abandon();
            }
            if let Some(fleet) = state.fleet.as_mut().filter(|_| !joins) {
                fleet.paused = resume.continue_pending_work != Some(true);
            }
        }
        Durable::ContextChanged(context) => state.context = context.clone(),
        Durable::SessionShutdown(_) => state.closed = true,
        // These events change no state. Some are only for people. The others repeat what the events
        // around them say: a call is known from the message that asked for it, and the end of a
        // turn from the event that follows.
        Durable::SessionInfo(_)
        | Durable::LimitsChanged(_)
        | Durable::HookEnd(_)
        | Durable::SubagentStarted(_)
        | Durable::SubagentCompleted(_)
        | Durable::SubagentFailed(_)
        | Durable::FileChanged(_)
        | Durable::CompactionStart(_)
        | Durable::TurnEnd(_) => {}
        Durable::SessionWarning(warning) => {
            state.told_estimated |= warning.warning_type == ESTIMATED;
            state.wakes.told |= warning.warning_type == WAKE_LIMIT;
            let cut = AnswerCut::of_warning(&warning.warning_type);
            state.answer_cut = cut.or(state.answer_cut);
            if warning.warning_type == STOP_LIMIT
                && let Some(run) = runs::current(state)
            {
                run.ends_at_stop_limit = true;
            }
        }
        Durable::SessionError(failure) => {
            state.last_error = Some(failure.message.clone());
            let code = failure.error_code.as_deref();
            state.last_error_is_limit = LimitKind::of_error(&failure.error_type, code).is_some();
            if let Some(run) = runs::current(state)
                && run.origin == failure.originating_message_id
            {
                run.error = Some(head.id.clone());
            } else if let Some(id) = &failure.originating_message_id
                && failure.error_type == PROMPT_BLOCKED
            {
                runs::blocked(state, id, &head.id);
            }
        }
        Durable::ToolStart(start) => {
            if let Some(call) = turn_call(state, &start.tool_call_id) {
                call.advance(CallEvent::Intended);
                intended(state, start);
            } else {
                // A call that no message of the model asked for is a command of a person.
                state.user_calls.insert(start.tool_call_id.clone());
            }
        }
        Durable::Abort(_) => {
            if let Phase::Turn(turn) = &mut state.phase {
                turn.aborting = true;
            }
        }
        Durable::ModelChange(change) => {
            match &change.previous_model {
                Some(failed) if change.cause.as_deref() == Some(FALLBACK) => {
                    state.failed_models.insert(failed.clone());
                }
                Some(_) | None => state.failed_models.clear(),
            }
            state.model = Some(change.new_model.clone());
            state.reasoning_effort.clone_from(&change.reasoning_effort);
        }
        Durable::ModeChanged(change) => {
            state.mode = change.new_mode;
            let busy = state.is_busy();
            state.autopilot.mode_changed(change.new_mode, busy);
        }
        Durable::AutopilotPaused(pause) => state.autopilot.paused = pause.paused,
        Durable::TaskComplete(complete) => state.autopilot.completed(complete),
        Durable::AutopilotStopped(stopped) => state.autopilot.stop(stopped),
        Durable::Nudged(nudged) => {
            state.autopilot.nudged();
            runs::go_on(state, &nudged.request_id);
        }
        Durable::PlanChanged(change) => {
            use loopd_proto::event::session::FileOperation;
            state.plan_exists = !matches!(change.operation, FileOperation::Delete);
        }
        Durable::TodosUpdated(list) => state.todos.updated(list),
        Durable::SkillInvoked(invoked) => skills::invoked(state, invoked),
        Durable::SkillsPreloaded(preloaded) => state.skills.preloaded(preloaded),
        Durable::SkillSwitched(switched) => state.skills.switched(switched),
        Durable::ResearchStarted(research) => state.researches = Some(research.clone()),
        Durable::FleetStarted(started) => {
            state.fleet = Some(Fleet::started(state.fleet.take(), started));
            run_limits::begin_fleet(state, started, head.timestamp);
        }
        Durable::FleetAssigned(assigned) => {
            if let Some(fleet) = &mut state.fleet {
                fleet.assigned(assigned);
            }
        }
        Durable::FleetInterrupted(interrupted) => {
            if let Some(fleet) = &mut state.fleet {
                fleet.interrupted(&interrupted.todo);
            }
        }
        Durable::FleetSettled(settled) => {
            if let Some(fleet) = &mut state.fleet {
                fleet.settled(settled);
            }
        }
        Durable::FleetPaused(_) => {
            if let Some(fleet) = &mut state.fleet {
                fleet.paused = true;
            }
        }
        Durable::FleetEnded(ended) => {
            if let Some(fleet) = state.fleet.take() {
                state.fleet_result = Some(fleet.result(ended.reason, &state.todos.list));
            }
        }
        Durable::AgentSelected(selected) => {
            state.agent = Some(selected.agent_name.clone());
            state.agent_tools.clone_from(&selected.tools);
            state.agent_stance = selected.stance.unwrap_or_default();
        }
        Durable::AgentDeselected(_) => {
            (state.agent, state.agent_tools) = (None, None);
            state.agent_stance = Stance::default();
        }
        Durable::UserMessage(message) => {
            let by_autopilot = message.is_autopilot_continuation == Some(true);
            state.totals.user_requests += u64::from(!by_autopilot);
            if !by_autopilot {
                state.wakes = Wakes::default();
                state.compaction.prompted(state.seq, message);
            }
            state.remember(Entry::User(parts(message)));
        }
        Durable::SystemNotification(notification) => {
            let text = Part::Text(notification.content.clone());
            state.remember(Entry::User(vec![text]));
            runs::told(state, &notification.kind.task());
            state.tasks.delivered(&notification.kind.task());
        }
        Durable::Woken(_) => {
            if state.unfinished.as_ref().is_some_and(|run| run.limited) {
                state.autopilot.limit_lifted();
            }
            // A run that goes on was started by a message.
            if state.unfinished.is_none() {
                state.wakes.runs = state.wakes.runs.saturating_add(1);
            }
            state.phase = Phase::Preparing(Preparing {
                messages: Vec::new(),
                joins: None,
                run: Run {
                    woken: true,
                    continues: state.unfinished.is_some(),
                    limited: false,
                    limit_request: None,
                    ..runs::unfinished(state)
                },
            });
        }
        Durable::TaskStarted(started) => {
            runs::started(state, started, head.timestamp);
            works_on_todo(state, &started.id);
        }
        Durable::TaskProcess(process) => state.tasks.has_process(&process.id, process.pid),
        Durable::TaskPromoted(promoted) => state.tasks.promoted(&promoted.id),
        Durable::TaskAnswered(answered) => state.tasks.answered(answered),
        Durable::TaskContinued(continued) => {
            let origin = runs::origin_of(
                state,
                state.tasks.get(continued.id.as_str()).and_then(Task::todo),
            );
            state.tasks.continued(continued, origin, state.seq);
            works_on_todo(state, &continued.id);
        }
        Durable::TaskNoted(noted) => state.tasks.noted(&noted.id, &noted.note),
        Durable::TaskEnded(ended) => state.tasks.ended(ended),
        Durable::TasksDelivered(known) => {
            for id in &known.ids {
                state.tasks.delivered(id);
            }
        }
        Durable::TasksRemoved(removed) => {
            for id in &removed.ids {
                // The totals keep what a removed task used.
                if let Some(task) = state.tasks.removed(id) {
                    state.totals.add(&task.usage);
                    let reported = Spend::from(&task.usage);
                    let more = task.spent.beyond(reported);
                    state.totals.unreported = state.totals.unreported.plus(more);
                }
            }
        }
        Durable::SystemMessage(message) => state.system = Some(message.content.clone()),
        Durable::ClientGuard(guard) => state.guards = ClientGuards::of_event(guard),
        Durable::GuardFolders(found) => {
            for folder in &found.folders {
                if !state.guard_folders.contains(folder) {
                    state.guard_folders.push(folder.clone());
                }
            }
        }
        Durable::VouchedHooks(vouched) => state.vouched_hooks.clone_from(&vouched.folders),
        Durable::ContextAdded(added) => state.added_context.push(added.text.clone()),
        Durable::HookStopped(stopped) => {
            if let Some(call) = turn_call(state, &stopped.tool_call_id) {
                call.stops = true;
            }
        }
        Durable::StopBlocked(blocked) => {
            if let Some(run) = runs::current(state) {
                run.stop_blocks = blocked.count;
            }
        }
        Durable::TurnStart(start) => {
            // All results of the turn before are in the history by now.
            for text in std::mem::take(&mut state.added_context) {
                state.remember(Entry::User(vec![Part::Text(text)]));
            }
            state.context_size.call_begins();
            let interaction = start.interaction_id.clone().unwrap_or_else(|| "".into());
            let run = runs::current(state).map(std::mem::take).unwrap_or_default();
            state.phase = Phase::Turn(Turn {
                key: TurnKey {
                    interaction,
                    number: start.turn_id.parse().unwrap_or(0),
                },
                stage: Stage::Calling,
                aborting: false,
                run,
            });
        }
        Durable::AssistantMessage(message) => {
            state.failed_models.clear();
            let at = state.seq;
            if let Some(run) = runs::current(state) {
                run.answer = Some(at);
            }
            let tools = message.tool_requests.iter();
            state
                .autopilot
                .called(tools.map(|request| request.name.as_str()));
            said(state, message);
        }
        Durable::ExternalToolRequested(asked) => {
            if let Some(call) = turn_call(state, &asked.tool_call_id) {
                let request = asked.request_id.clone();
                call.advance(CallEvent::ClientAsked { request });
            }
            let asks = Asks::ClientTool(asked.tool_name.clone());
            state.questions.open(&asked.request_id, state.seq, asks);
        }
        Durable::PermissionRequested(asked) => {
            if let Some(call) = call_of(&asked.permission_request)
                && let Some(call) = turn_call(state, &call)
            {
                let request = asked.request_id.clone();
                call.advance(CallEvent::PermissionRequested { request });
            }
            let asks = Asks::Permission(Box::new(asked.permission_request.clone()));
            let because = asked.asked_because.clone();
            state.questions.open(&asked.request_id, state.seq, asks);
            state.questions.give_reason(&asked.request_id, because);
        }
        Durable::PermissionCompleted(completed) => {
            if let Some(call) = &completed.tool_call_id
                && let Some(call) = turn_call(state, call)
            {
                call.advance(CallEvent::PermissionCompleted);
            }
            if completed.tool_call_id.is_none() {
                state.questions.close(&completed.request_id);
            }
        }
        Durable::PermissionUnanswered(closed) => unanswered(state, &closed.request_id),
        Durable::ToolComplete(complete) => finished(state, complete),
        Durable::Configured(configured) => {
            if state.options.disabled_skills != configured.options.disabled_skills {
                state.skills.forget_switches();
            }
            state.options = configured.options.clone();
            if state.cwd != configured.working_directory {
                state.cwd.clone_from(&configured.working_directory);
                state.context = WorkContext {
                    cwd: configured.working_directory.clone(),
                    ..WorkContext::default()
                };
            }
        }
        Durable::SubagentIdentity(subagent) => {
            // A fork starts with a copy of its parent's log. The usage, the open forms and the
            // autopilot in it belong to the parent.
            state.totals = Totals::default();
            state.worked = WorkedTime::default();
            state.questions.close_forms();
            state.unanswered.clear();
            state.autopilot = Autopilot::default();
            state.limited_run = None;
            state.stop_blocks = 0;
            state.fleet = None;
            state.subagent = Some(subagent.clone());
        }
        Durable::Named(named) => {
            let by_user = named.by == NamedBy::User;
            if by_user || !state.name.as_ref().is_some_and(|name| name.by_user) {
                state.name = Some(Name {
                    text: named.name.clone(),
                    by_user,
                });
            }
        }
        Durable::Permissions(set) => state.permissions = set.permissions.clone(),
        Durable::RulesChanged(change) => {
            let approved = &mut state.permissions.approved;
            if change.removed_all == Some(true) {
                approved.clear();
            }
            approved.retain(|rule| !change.removed.contains(rule));
            approved.extend(change.added.iter().cloned());
            let confirmed = change.confirmed.iter().cloned();
            state.permissions.confirmed.extend(confirmed);
        }
        Durable::Queued(queued) => queue::enter(state, queued),
        Durable::QueueItemMoved(moved) => queue::move_to(state, moved),
        Durable::QueueItemEdited(edited) => queue::edit(state, edited),
        Durable::Taken(taken) => {
            runs::take(state, &taken.ids);
            run_limits::begin(state, head.timestamp);
        }
        Durable::Unqueued(unqueued) => runs::remove(state, &unqueued.ids),
        Durable::Asked(asked) => {
            use loopd_proto::event::fact::Asked;
            let request = asked.request_id().clone();
            let step = match asked {
                Asked::UserInput(question) => question
                    .tool_call_id
                    .as_ref()
                    .map(|call| (call, CallEvent::UserAsked { request })),
                Asked::Guard(wanted) => {
                    Some((&wanted.tool_call_id, CallEvent::GuardWanted { request }))
                }
                Asked::ExitPlanMode(plan) => {
                    Some((&plan.tool_call_id, CallEvent::UserAsked { request }))
                }
                Asked::Elicitation(_) | Asked::AutoModeSwitch(_) => None,
            };
            if let Some((call, event)) = step
                && let Some(call) = turn_call(state, call)
            {
                call.advance(event);
            }
            let asks = Asks::from(asked);
            state.questions.open(asked.request_id(), state.seq, asks);
        }
        Durable::Answered(answered) => {
            state.questions.close(&answered.request_id);
            guard_answered(state, &answered.request_id);
        }
        Durable::Reminded(reminded) => {
            let part = Part::Text(reminded.text.clone());
            state.remember(Entry::User(vec![part]));
        }
        Durable::LoopEnded(ended) => {
            state.last_outcome = Some(ended.outcome);
            if ended.outcome != LoopOutcome::Failed {
                state.last_error = None;
            }
            state.failed_models.clear();
            state.autopilot.run_ended(ended, state.mode);
            runs::end(state, ended);
        }
        Durable::RewindStarted(started) => rewind::started(state, started),
        Durable::Rewound(rewound) => rewind::rewound(state, rewound),
        Durable::RewindFailed(_) => rewind::ended(state),
        Durable::AgentSpent(spent) => {
            state.totals.estimated_calls += u64::from(spent.estimated);
            let task = state.tasks.get(spent.id.as_str());
            let origin = task.and_then(|task| task.origin.clone());
            run_limits::agent_called(state, origin.as_ref());
            state.tasks.spent(&spent.id, spent.into());
        }
        Durable::TimeUp(_) => {
            state.worked.stopping = true;
            if let Phase::Turn(turn) = &mut state.phase {
                turn.aborting = true;
            }
            if let Some(run) = runs::current(state) {
                run.limited = true;
            }
        }
        Durable::ClockStopped(_) => state.worked.was_cut(),
        Durable::ProviderWait(wait) => {
            state.failed_models.clear();
            if let Phase::Turn(turn) = &mut state.phase {
                turn.stage = Stage::Waiting { until: wait.until };
            }
        }
        Durable::MakingRoom(making) => {
            state.compaction.turn_waits = making.saving.is_empty();
            if let Phase::Turn(turn) = &mut state.phase {
                turn.stage = Stage::MakingRoom;
            }
        }
        Durable::Pruned(pruned) => {
            for result in &pruned.results {
                state.history.shorten(result.at, result.text.clone());
            }
            state.context_size.conversation_changed();
            room_made(state);
        }
        Durable::FilesRefused(refused) => {
            for at in &refused.at {
                state.history.leave_out_files(*at);
            }
            state.context_size.conversation_changed();
            // The request is made anew, from what the conversation is now.
            state.context_size.call_begins();
        }
        Durable::Compacting(began) => state.compaction.began(began),
        Durable::Compacted(compacted) => {
            let text = Part::Text(compacted.text.clone());
            let summary = Entry::User(vec![text]);
            state.history.replace_through(compacted.through, summary);
            state.context_size.conversation_changed();
        }
        Durable::ContextCleared(_) => clear::cleared(state),
        Durable::CompactionComplete(complete) => {
            let waits = state.compaction.turn_waits;
            let tokens = state.conversation_tokens();
            state.compaction.ended(state.seq, tokens, complete);
            if waits {
                room_made(state);
            }
        }
        Durable::UsageRecorded(usage) => usage::recorded(state, usage),
    }
    let limits = state.options.session_limits.as_ref();
    let has_time = limits.is_some_and(|limits| limits.timeout_seconds.is_some());
    if has_time {
        let works = state.is_busy() || state.tasks.has_agents_at_work();
        state.worked.note(head.timestamp, works);
    } else if state.worked.stopping && !state.is_busy() && !state.tasks.has_agents_at_work() {
        // The limit of time of a run has stopped it.
        state.worked.stopping = false;
    }
    // A call knows the request that it waits for. Once the call waits no more, its question closes.
    if !state.questions.is_empty() {
        let turn = match &state.phase {
            Phase::Turn(turn) => Some(turn),
            Phase::Idle | Phase::Preparing(_) | Phase::Commanding(_) | Phase::Rewinding(_) => None,
        };
        state.questions.keep_awaited_by(turn);
    }
}

/// Lets the turn call its model that waited for room.
fn room_made(state: &mut State) {
    if let Phase::Turn(turn) = &mut state.phase
        && turn.stage == Stage::MakingRoom
    {
        turn.stage = Stage::Calling;
        // The request is made anew, from what the conversation is now.
        state.context_size.call_begins();
    }
}

/// Tells the fleet that a worker begins or goes on.
fn works_on_todo(state: &mut State, task: &TaskId) {
    let worker = state.tasks.get(task.as_str());
    if let Some(todo) = worker.and_then(Task::todo)
        && let Some(fleet) = &mut state.fleet
    {
        fleet.has_worker(todo, task);
    }
}

/// Remembers an open permission request, which is about to be closed without an answer.
fn unanswered(state: &mut State, request: &RequestId) {
    let question = state.questions.get(request);
    let Some(permission) = question.and_then(|question| question.asks.permission()) else {
        return;
    };
    let permission = Box::new(permission.clone());
    let because = question.and_then(|question| question.because.clone());
    let call = call_of(&permission).and_then(|call| turn_call(state, &call));
    let tool = call.map(|call| call.call.name.clone()).unwrap_or_default();
    state.unanswered.push_back(UnansweredPermission {
        request: request.clone(),
        tool,
        permission,
        because,
    });
    while state.unanswered.len() > UNANSWERED_KEPT {
        state.unanswered.pop_front();
    }
}

/// Returns the tool call that a permission is asked for; `None` for a part of a slash command.
pub(crate) fn call_of(request: &loopd_proto::permission::PermissionRequest) -> Option<ToolCallId> {
    use loopd_proto::permission::PermissionRequest as P;
    match request {
        P::Shell { tool_call_id, .. }
        | P::Write { tool_call_id, .. }
        | P::Read { tool_call_id, .. }
        | P::Url { tool_call_id, .. }
        | P::Mcp { tool_call_id, .. }
        | P::CustomTool { tool_call_id, .. }
        | P::Hook { tool_call_id, .. } => tool_call_id.clone(),
    }
}
