//! Work beside the loop: its beginning, its end, and who is told.
//!
//! The event that puts a notification into the conversation is also the one that marks it as told,
//! so that a task's end is told at most once, whatever crashes in between.

use loopd_proto::event::session::Empty;
use loopd_proto::event::task::{
    NotificationKind, SystemNotification, TaskEnded, TaskOutcome, TaskProcess, TaskStarted,
    TasksHeard, TasksRemoved,
};
use loopd_proto::event::tool::{ToolComplete, ToolError, ToolStart};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{TaskId, ToolCallId};
use serde_json::json;

use super::abort::INTERRUPT_CODE;
use crate::kernel::command::{
    Answer, CallOutcome, CallStatusReport, Decision, Effect, Mint, Refusal, TaskEnd, TaskStart,
};
use crate::kernel::state::State;
use crate::kernel::tasks::Task;
use crate::kernel::texts;

/// How many tasks are listed; ended ones make room.
const TASK_LIMIT: usize = 256;

/// Something goes on in the background from now on.
pub(super) fn started(
    state: &State,
    start: TaskStart,
    mint: &Mint<'_>,
) -> Result<Decision, Refusal> {
    let mut decision = Decision::answering(Answer::Accepted(true));
    if state.tasks.get(start.id.as_str()).is_none() && state.tasks.len() >= TASK_LIMIT {
        let mut ended: Vec<&Task> = state.tasks.iter().filter(|t| !t.is_running()).collect();
        ended.sort_by_key(|task| (task.is_untold(), task.started_at));
        let Some(oldest) = ended.first() else {
            return Err(Refusal::TooManyTasks { limit: TASK_LIMIT });
        };
        decision.store(Durable::TasksRemoved(TasksRemoved {
            ids: vec![oldest.id.clone()],
        }));
    }
    decision
        .store(Durable::TaskStarted(TaskStarted {
            id: start.id,
            tool_call_id: start.call,
            description: start.description,
            started_at: start.started_at.unwrap_or(mint.now),
            work: start.work,
        }))
        .tell(changed());
    Ok(decision)
}

/// A task that was announced has its process now.
pub(super) fn process(state: &State, id: TaskId, pid: u32) -> Decision {
    let mut decision = Decision::default();
    if state
        .tasks
        .get(id.as_str())
        .is_some_and(|task| task.shell().pid != Some(pid))
    {
        decision
            .store(Durable::TaskProcess(TaskProcess { id, pid }))
            .tell(changed());
    }
    decision
}

/// A task ended; a session that rests and is attended wakes to tell the model.
pub(super) fn ended(state: &State, id: &TaskId, end: TaskEnd, mint: &Mint<'_>) -> Decision {
    let Some(task) = state.tasks.get(id.as_str()).filter(|t| t.is_running()) else {
        return Decision::answering(Answer::Accepted(false));
    };
    let mut decision = Decision::answering(Answer::Accepted(true));
    store_end(&mut decision, task, end, mint);
    let told = task.told == crate::kernel::tasks::Told::Yes;
    if !told && mint.attended && !state.is_busy() {
        begin(&mut decision);
    }
    decision
}

fn store_end(decision: &mut Decision, task: &Task, end: TaskEnd, mint: &Mint<'_>) {
    decision
        .store(Durable::TaskEnded(TaskEnded {
            id: task.id.clone(),
            outcome: end.outcome,
            exit_code: end.exit_code,
            reason: end.reason,
            ended_at: mint.now,
        }))
        .tell(changed());
}

/// The model knows how these tasks ended, or will not want to.
pub(super) fn heard(state: &State, ids: Vec<TaskId>) -> Decision {
    let untold = |id: &TaskId| {
        let task = state.tasks.get(id.as_str());
        task.is_some_and(|task| task.told == crate::kernel::tasks::Told::NotYet)
    };
    let ids: Vec<TaskId> = ids.into_iter().filter(untold).collect();
    let mut decision = Decision::default();
    if !ids.is_empty() {
        decision.store(Durable::TasksHeard(TasksHeard { ids }));
    }
    decision
}

/// Takes a task that has ended off the list.
pub(super) fn remove(state: &State, id: TaskId) -> Decision {
    let ended = state.tasks.get(id.as_str()).filter(|t| !t.is_running());
    let mut decision = Decision::answering(Answer::Accepted(ended.is_some()));
    if ended.is_some() {
        decision
            .store(Durable::TasksRemoved(TasksRemoved { ids: vec![id] }))
            .tell(changed());
    }
    decision
}

/// Ends what died with the daemon or dies with the session; detached commands go on.
pub(super) fn close_attached(
    state: &State,
    decision: &mut Decision,
    outcome: TaskOutcome,
    reason: &str,
    mint: &Mint<'_>,
) {
    for task in state.tasks.running().filter(|task| !task.is_detached()) {
        let end = TaskEnd {
            outcome,
            exit_code: None,
            reason: Some(reason.to_owned()),
        };
        store_end(decision, task, end, mint);
    }
}

/// Starts a loop of its own for notifications that wait; says whether there are any.
pub(super) fn wake(state: &State, decision: &mut Decision) -> bool {
    if state.tasks.untold().is_empty() {
        return false;
    }
    begin(decision);
    true
}

fn begin(decision: &mut Decision) {
    decision
        .store(Durable::Woken(Empty {}))
        .run(Effect::Prepare {
            messages: Vec::new(),
        });
}

/// Puts the ends that the model has not heard of into the conversation; says how many there were.
pub(super) fn deliver(state: &State, decision: &mut Decision) -> usize {
    let untold = state.tasks.untold();
    for task in &untold {
        let shell = task.shell();
        let description = Some(task.description.clone()).filter(|text| !text.is_empty());
        let exit_code = task.ending().and_then(|ending| ending.exit_code);
        let kind = if task.is_detached() {
            NotificationKind::ShellDetachedCompleted {
                shell_id: shell.shell_id.clone(),
                description,
            }
        } else {
            NotificationKind::ShellCompleted {
                shell_id: shell.shell_id.clone(),
                exit_code,
                description,
            }
        };
        decision.store(Durable::SystemNotification(SystemNotification {
            content: texts::task_ended(task),
            kind,
        }));
    }
    untold.len()
}

/// A person runs a command themselves; it is no call of the model.
pub(super) fn user_command_started(call: ToolCallId, tool: String, command: &str) -> Decision {
    let mut decision = Decision::answering(Answer::Accepted(true));
    decision.store(Durable::ToolStart(ToolStart {
        tool_call_id: call,
        tool_name: tool,
        arguments: Some(json!({ "command": command })),
        model: None,
        turn_id: None,
    }));
    decision
}

/// Such a command ended.
pub(super) fn user_command_ended(
    state: &State,
    call: &ToolCallId,
    outcome: CallOutcome,
) -> Decision {
    let mut decision = Decision::answering(Answer::Accepted(state.user_calls.contains(call)));
    if state.user_calls.contains(call) {
        complete_user_command(&mut decision, call, outcome);
    }
    decision
}

fn complete_user_command(decision: &mut Decision, call: &ToolCallId, outcome: CallOutcome) {
    let (success, result, error) = match outcome.status {
        CallStatusReport::Success => (true, Some(outcome.result), None),
        CallStatusReport::Failure { code } => {
            let error = ToolError {
                message: outcome.result.content,
                code: Some(code),
            };
            (false, None, Some(error))
        }
    };
    decision.store(Durable::ToolComplete(ToolComplete {
        tool_call_id: call.clone(),
        success,
        model: None,
        interaction_id: None,
        is_user_requested: Some(true),
        result,
        error,
        tool_telemetry: outcome.telemetry,
        turn_id: None,
    }));
}

/// Closes commands of people that ran when the daemon or the session ended.
pub(super) fn close_user_commands(state: &State, decision: &mut Decision, text: &str) {
    for call in &state.user_calls {
        complete_user_command(decision, call, CallOutcome::failure(INTERRUPT_CODE, text));
    }
}

fn changed() -> Ephemeral {
    Ephemeral::BackgroundTasksChanged(Empty {})
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
