//! The steps of the autopilot: it takes the model's word that the task is complete, tells the model
//! to go on, and says why it stops. What it does is judged in `crate::autopilot`.

use loopd_proto::event::autopilot::{
    AutopilotPaused, AutopilotStopped, CompletionOutcome, Nudged, StopReason, TaskComplete,
};
use loopd_proto::event::fact::{LoopOutcome, Reminded};
use loopd_proto::event::session::Warning;
use loopd_proto::event::turn::UserMessage;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{MessageId, ToolCallId};
use loopd_proto::session::Mode;
use serde_json::Value;

use super::{research, settings};
use crate::autopilot::{
    Autopilot, Continuation, Judgement, RunEnd, Situation, StopDetail, TASK_COMPLETE,
};
use crate::command::{Answer, CallOutcome, CallStatusReport, DecideEnv, Decision, Effect, Step};
use crate::state::{Phase, State, Turn};
use crate::texts;
use crate::tool_call::{CallStage, CallState, ToolOrigin};

/// The kind of the warning about a session that does not let the model have `task_complete`.
const NO_TOOL: &str = "autopilot_without_task_complete";

/// Judges the session after the steps that are decided already.
fn judge(state: &State, decision: &Decision, run: RunEnd, env: &DecideEnv<'_>) -> Judgement {
    let progress = progress(state, decision);
    let mode = settings::mode_after(state, decision);
    Judgement::of(&Situation {
        mode,
        progress: &progress,
        run,
        has_tool: mode == Mode::Autopilot && has_tool(env),
        attended: env.attended,
        ..Situation::of(state)
    })
}

/// Returns what the log will say about the autopilot after the steps that are decided already.
fn progress(state: &State, decision: &Decision) -> Autopilot {
    let mut progress = state.autopilot.clone();
    for step in &decision.steps {
        note(state, &mut progress, step);
    }
    progress
}

/// Applies what a decided step says about the autopilot.
fn note(state: &State, progress: &mut Autopilot, step: &Step) {
    match step {
        Step::Store(Durable::ToolComplete(complete)) if !complete.success => {
            let turn = state.turn();
            if let Some(call) = turn.and_then(|turn| turn.call(&complete.tool_call_id)) {
                progress.failed(&call.call.name);
            }
        }
        Step::Store(Durable::TaskComplete(complete)) => progress.completed(complete),
        Step::Store(Durable::AutopilotPaused(pause)) => progress.paused = pause.paused,
        Step::Store(Durable::AutopilotStopped(stopped)) => progress.stop(stopped),
        Step::Store(_) | Step::Tell(_) | Step::Do(_) => {}
    }
}

/// Whether the session lets the model have the built-in tool.
fn has_tool(env: &DecideEnv<'_>) -> bool {
    (env.tool_origin)(TASK_COMPLETE) == Some(ToolOrigin::BuiltIn)
}

/// Returns whether new turns may begin: a client is attached, or the session goes on alone.
pub(super) fn may_begin(state: &State, decision: &Decision, env: &DecideEnv<'_>) -> bool {
    let options = state.options.autopilot.unwrap_or_default();
    env.attended
        || options.goes_on_alone() && settings::mode_after(state, decision) == Mode::Autopilot
}

/// Tells the model to go on if that is due now that the run has ended like this. Otherwise stores
/// why the autopilot stops, if it does, before the step at `place`. Returns whether the model was
/// told to go on.
pub(super) fn after_run(
    state: &State,
    decision: &mut Decision,
    run: RunEnd,
    place: usize,
    env: &DecideEnv<'_>,
) -> bool {
    if settings::mode_after(state, decision) != Mode::Autopilot {
        return false;
    }
    let Some(request) = state.autopilot.request.clone() else {
        if let Some(stopped) = stopped_again(state, decision, run) {
            decision
                .steps
                .insert(place, Step::Store(Durable::AutopilotStopped(stopped)));
        }
        return false;
    };
    let event = match judge(state, decision, run, env).next {
        Continuation::Nothing => return false,
        // It was told when the run ended.
        Continuation::NoTool if !state.is_busy() => return false,
        Continuation::Nudge => {
            nudge(state, decision, request);
            return true;
        }
        Continuation::Stop(reason, detail) => {
            Durable::AutopilotStopped(stopped(reason, detail, request))
        }
        Continuation::NoTool => Durable::SessionWarning(Warning {
            warning_type: NO_TOOL.to_owned(),
            message: texts::AUTOPILOT_WITHOUT_TOOL.to_owned(),
            url: None,
        }),
    };
    decision.steps.insert(place, Step::Store(event));
    false
}

/// Returns the end of a task that was marked once more: the model was woken after its end, for example
/// by a sub-agent that had gone on.
fn stopped_again(state: &State, decision: &Decision, run: RunEnd) -> Option<AutopilotStopped> {
    if run != RunEnd::Busy {
        return None;
    }
    let marks = |step: &Step| matches!(step, Step::Store(Durable::TaskComplete(_)));
    let reason = progress(state, decision)
        .task_end()
        .filter(|_| decision.steps.iter().any(marks))?;
    let request = state.autopilot.stopped.as_ref()?.request_id.clone()?;
    Some(stopped(reason, StopDetail::None, request))
}

/// Goes on with a session that rests, if the autopilot has to. Returns whether the model was told
/// to go on.
pub(super) fn go_on(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) -> bool {
    let rests = matches!(state.phase, Phase::Idle)
        && state.last_outcome == Some(LoopOutcome::Done)
        && state.queue.is_empty();
    let place = decision.steps.len();
    rests && after_run(state, decision, RunEnd::Quiet, place, env)
}

fn stopped(reason: StopReason, detail: StopDetail, request: MessageId) -> AutopilotStopped {
    AutopilotStopped {
        reason,
        request_id: Some(request),
        message: match detail {
            StopDetail::None => None,
            StopDetail::Continues(times) => Some(texts::continued_too_often(times)),
            StopDetail::Empty(times) => Some(texts::continued_in_vain(times)),
            StopDetail::Refused(times) => Some(texts::completed_in_vain(times)),
            StopDetail::Limit => Some(texts::STOPPED_BY_LIMIT.to_owned()),
        },
    }
}

/// Tells the model to go on. The message enters the conversation together with the mark that it was
/// sent, so that no crash repeats or loses it. People do not see it.
fn nudge(state: &State, decision: &mut Decision, request: MessageId) {
    let number = state.autopilot.all.saturating_add(1);
    decision
        .store(Durable::UserMessage(UserMessage {
            message_id: Some(MessageId::new(format!("{request}-continue-{number}"))),
            content: String::new(),
            transformed_content: Some(texts::GO_ON.to_owned()),
            attachments: None,
            source: Some("autopilot".to_owned()),
            delivery: None,
            agent_mode: Some("autopilot".to_owned()),
            is_autopilot_continuation: Some(true),
            interaction_id: None,
            turn_id: None,
        }))
        .store(Durable::Nudged(Nudged {
            request_id: request,
            required_tool: TASK_COMPLETE.to_owned(),
        }))
        .run(Effect::Prepare {
            messages: Vec::new(),
        });
}

/// Pauses the autopilot or lets it go on. A session that waited because of the pause goes on now.
pub(super) fn pause(state: &State, paused: bool, env: &DecideEnv<'_>) -> Decision {
    let is_on = Judgement::of(&Situation::of(state)).takes_completion;
    let changes = is_on && state.autopilot.paused != paused;
    let mut decision = Decision::answering(Answer::Accepted(changes));
    if changes {
        decision
            .store(Durable::AutopilotPaused(AutopilotPaused { paused }))
            .tell(Ephemeral::AutopilotChanged(AutopilotPaused { paused }));
        if !paused && !state.tasks.has_agents_at_work() {
            go_on(state, &mut decision, env);
        }
    }
    decision
}

/// Returns the result of a call of `task_complete`, which fails if the session does not take it any
/// more: the mode may have changed since the call began.
pub(super) fn checked(
    state: &State,
    call: &CallState,
    outcome: CallOutcome,
    env: &DecideEnv<'_>,
) -> CallOutcome {
    if call.call.name != TASK_COMPLETE
        || outcome.status != CallStatusReport::Success
        || (env.tool_origin)(TASK_COMPLETE) == Some(ToolOrigin::Client)
    {
        return outcome;
    }
    if Judgement::of(&Situation::of(state)).takes_completion {
        if state.has_fleet_at_work() && word(call, "blocked").is_none() {
            return CallOutcome::failure("failure", texts::FLEET_AT_WORK);
        }
        let refused = research::not_complete(state).filter(|_| word(call, "blocked").is_none());
        return refused.unwrap_or(outcome);
    }
    let text = match &state.subagent {
        Some(_) => texts::COMPLETED_BY_SUBAGENT,
        None => texts::NO_TASK_TO_COMPLETE,
    };
    CallOutcome::failure("failure", text)
}

/// Returns what the calls of a turn say about the task, once all of them have results. `last` is the
/// call whose result is being recorded, and whether it failed. Of several words the strictest counts. A
/// call of `task_complete` that failed says nothing: its result tells the model why.
pub(super) fn completion(
    state: &State,
    turn: &Turn,
    last: Option<(&ToolCallId, bool)>,
    env: &DecideEnv<'_>,
) -> Option<TaskComplete> {
    let calls = turn.calls().iter().rev();
    let mut said = calls.filter(|call| call.call.name == TASK_COMPLETE);
    let last_said = said.clone().next()?;
    let takes = Judgement::of(&Situation::of(state)).takes_completion;
    if turn.aborting || !takes || !has_tool(env) {
        return None;
    }
    let failed = |call: &CallState| match (last, &call.stage) {
        (Some((id, failed)), _) if *id == call.call.id => failed,
        (_, CallStage::Recorded { failed, .. }) => *failed,
        (
            _,
            CallStage::Requested
            | CallStage::Guarding { .. }
            | CallStage::Intended
            | CallStage::Asking { .. }
            | CallStage::Decided
            | CallStage::External { .. }
            | CallStage::UserInput { .. },
        ) => true,
    };
    let is_blocked = |call: &&CallState| !failed(call) && word(call, "blocked").is_some();
    let blocked = said.find(is_blocked);
    if blocked.is_none() && failed(last_said) {
        return None;
    }
    let (outcome, reason) = if let Some(blocked) = blocked {
        (CompletionOutcome::Blocked, word(blocked, "blocked"))
    } else if turn.calls().iter().any(failed) {
        (CompletionOutcome::Continue, Some(texts::OTHER_CALL_FAILED))
    } else {
        (CompletionOutcome::Completed, None)
    };
    Some(TaskComplete {
        summary: word(blocked.unwrap_or(last_said), "summary").map(str::to_owned),
        success: Some(outcome == CompletionOutcome::Completed),
        outcome: Some(outcome),
        reason: reason.map(str::to_owned),
    })
}

/// Returns an argument of a call, if it has words.
fn word<'a>(call: &'a CallState, name: &str) -> Option<&'a str> {
    let word = call.call.arguments.get(name).and_then(Value::as_str)?;
    Some(word.trim()).filter(|word| !word.is_empty())
}

/// Whether the loop ends because the model tries in vain to mark the task.
pub(super) fn gives_up(state: &State, decision: &Decision, env: &DecideEnv<'_>) -> bool {
    Judgement::of(&Situation::of(state)).takes_completion
        && has_tool(env)
        && progress(state, decision).cannot_complete()
}

/// Stores what the model said about the task. If that does not count although the call succeeded, the
/// model is told why.
pub(super) fn record(decision: &mut Decision, said: TaskComplete) {
    let untold = said.reason.as_deref() == Some(texts::OTHER_CALL_FAILED);
    decision.store(Durable::TaskComplete(said));
    if untold {
        decision.store(Durable::Reminded(Reminded {
            text: texts::OTHER_CALL_FAILED.to_owned(),
        }));
    }
}

/// Whether the loop ends because of what the model said about the task.
pub(super) fn ends_task(complete: &TaskComplete) -> bool {
    match complete.outcome {
        Some(CompletionOutcome::Completed | CompletionOutcome::Blocked) => true,
        Some(CompletionOutcome::Continue) | None => false,
    }
}

/// Returns a completion that a hook does not accept.
pub(super) fn kept_from_ending(complete: TaskComplete, why: &str) -> TaskComplete {
    TaskComplete {
        success: Some(false),
        outcome: Some(CompletionOutcome::Continue),
        reason: Some(why.to_owned()),
        ..complete
    }
}

#[cfg(test)]
mod tests;
