//! Background tasks: start, end and notification of the model.
//!
//! The event that puts a notification into the conversation also marks it as delivered. So the end
//! of a task is delivered at most once, even if the daemon crashes in between.

use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::hook::ContextAdded;
use loopd_proto::event::session::{Empty, Warning};
use loopd_proto::event::task::{
    NotificationKind, SystemNotification, TaskAnswered, TaskContinued, TaskEnded, TaskNoted,
    TaskOutcome, TaskProcess, TaskPromoted, TaskStarted, TaskWork, TasksDelivered, TasksRemoved,
};
use loopd_proto::event::tool::{ToolComplete, ToolError, ToolStart};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{MessageId, TaskId, ToolCallId};
use serde_json::Value;

use super::abort::INTERRUPT_CODE;
use super::{agents, autopilot, tell_idle};
use crate::apply::runs;
use crate::command::{
    Answer, CallOutcome, CallStatusReport, CompletionRef, DecideEnv, Decision, Effect,
    RecoveredOutcome, Refusal, Step, TaskAnswer, TaskEnd, TaskStart,
};
use crate::state::{Phase, State};
use crate::tasks::{Task, Told, WAKE_LIMIT};
use crate::texts;

/// How many tasks are listed. Ended tasks that the model knows of make room for new ones.
const TASK_LIMIT: usize = 256;

/// Records a background task that starts.
pub(super) fn started(
    state: &State,
    start: TaskStart,
    env: &DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    let mut decision = Decision::answering(Answer::Accepted(true));
    if matches!(state.phase, Phase::Rewinding(_)) {
        return Err(Refusal::Rewinding);
    }
    if let Some(known) = state.tasks.get(start.id.as_str())
        && (known.shell().is_none() || start.work.is_agent())
    {
        return Err(Refusal::TaskExists(start.id));
    }
    if state.tasks.get(start.id.as_str()).is_none() && state.tasks.len() >= TASK_LIMIT {
        // Tasks that the model has not been notified of are kept.
        let told = |task: &&Task| !task.is_running() && !task.is_undelivered();
        let ended = state.tasks.iter().filter(told);
        let Some(oldest) = ended.min_by_key(|task| task.started_at) else {
            return Err(Refusal::TooManyTasks { limit: TASK_LIMIT });
        };
        decision.store(Durable::TasksRemoved(TasksRemoved {
            ids: vec![oldest.id.clone()],
        }));
    }
    let started = TaskStarted {
        id: start.id,
        tool_call_id: start.call,
        description: start.description,
        started_at: start.started_at.unwrap_or(env.now),
        work: start.work,
    };
    let told = agents::started(state, &started);
    decision.store(Durable::TaskStarted(started));
    if let Some(told) = told {
        decision.store(told);
    }
    decision.tell(changed());
    Ok(decision)
}

/// Records the process of a task that was announced without one.
pub(super) fn process(state: &State, id: TaskId, pid: u32) -> Decision {
    let mut decision = Decision::default();
    if state
        .tasks
        .get(id.as_str())
        .and_then(Task::shell)
        .is_some_and(|shell| shell.pid != Some(pid))
    {
        decision
            .store(Durable::TaskProcess(TaskProcess { id, pid }))
            .tell(changed());
    }
    decision
}

/// Records the end of a task. An idle session with a client attached wakes to notify the model.
pub(super) fn ended(state: &State, id: &TaskId, end: TaskEnd, env: &DecideEnv<'_>) -> Decision {
    let Some(task) = state
        .tasks
        .get(id.as_str())
        .filter(|t| t.ending().is_none())
    else {
        return Decision::answering(Answer::Accepted(false));
    };
    let mut decision = Decision::answering(Answer::Accepted(true));
    let is_stopped_command = task.shell().is_some() && end.outcome == TaskOutcome::Cancelled;
    let telling = if end.delivered || task.told == Told::Yes || task.todo().is_some() {
        Telling::Known
    } else if is_stopped_command {
        Telling::WithNextMessage
    } else {
        Telling::Now
    };
    store_end(&mut decision, task, end, env);
    come_to_rest(state, task, &mut decision, telling, env);
    decision
}

/// Records an answer of an agent, which is idle from now on.
pub(super) fn answered(
    state: &State,
    id: &TaskId,
    answer: TaskAnswer,
    env: &DecideEnv<'_>,
) -> Decision {
    let Some(task) = state.tasks.get(id.as_str()).filter(|t| t.is_running()) else {
        return Decision::answering(Answer::Accepted(false));
    };
    let mut decision = Decision::answering(Answer::Accepted(true));
    let telling = if answer.delivered || task.todo().is_some() {
        Telling::Known
    } else {
        Telling::Now
    };
    store_answer(&mut decision, task, answer, env);
    come_to_rest(state, task, &mut decision, telling, env);
    decision
}

/// When the model is told how a task ended or what it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Telling {
    /// It knows already.
    Known,
    Now,
    /// The user has stopped a command and knows it, so no run is started for it.
    WithNextMessage,
}

/// Handles a task that ended or became idle. The model is notified unless it already knows. If this
/// was the last working agent, the session reports itself idle only now.
fn come_to_rest(
    state: &State,
    task: &Task,
    decision: &mut Decision,
    telling: Telling,
    env: &DecideEnv<'_>,
) {
    if telling == Telling::Known {
        decision.store(Durable::TasksDelivered(TasksDelivered {
            ids: vec![task.id.clone()],
        }));
    }
    if state.is_busy() {
        return;
    }
    let mut others = state.tasks.running().filter(|other| other.id != task.id);
    // After an abort, clients already know that the session is idle. A parent is told in any case.
    let aborted = state.last_outcome == Some(LoopOutcome::Aborted);
    let known = aborted && task.is_waited_for() && state.subagent.is_none();
    if telling == Telling::Now
        && autopilot::may_begin(state, decision, env)
        && may_wake(state, decision, env)
    {
        begin(decision);
    } else if task.agent().is_some()
        && task.is_running()
        && !known
        && !state.has_fleet_at_work()
        && !others.any(|other| other.agent().is_some())
        && !autopilot::go_on(state, decision, env)
    {
        tell_idle(state, decision, None);
    }
}

fn store_end(decision: &mut Decision, task: &Task, end: TaskEnd, env: &DecideEnv<'_>) {
    let told = agents::ended(task, &end, env.now);
    let noted = task.answers_person().then(|| {
        texts::command_ended(
            task,
            end.outcome,
            end.reason.as_deref(),
            end.result.as_deref(),
        )
    });
    decision
        .store(Durable::TaskEnded(TaskEnded {
            id: task.id.clone(),
            outcome: end.outcome,
            exit_code: end.exit_code,
            reason: end.reason,
            result: end.result,
            usage: end.usage,
            ended_at: env.now,
        }))
        .tell(changed());
    if let Some(told) = told {
        decision.store(told);
    }
    note(decision, noted);
}

/// Puts what a slash command came to into the conversation, in one with its end, so that no crash
/// loses it.
fn note(decision: &mut Decision, noted: Option<String>) {
    if let Some(text) = noted {
        decision.store(Durable::ContextAdded(ContextAdded {
            text,
            tool_call_id: None,
        }));
    }
}

fn store_answer(decision: &mut Decision, task: &Task, answer: TaskAnswer, env: &DecideEnv<'_>) {
    let told = agents::answered(task, &answer, env.now);
    let noted = task
        .answers_person()
        .then(|| texts::command_ended(task, TaskOutcome::Completed, None, Some(&answer.response)));
    decision
        .store(Durable::TaskAnswered(TaskAnswered {
            id: task.id.clone(),
            response: answer.response,
            usage: answer.usage,
            answered_at: env.now,
        }))
        .tell(changed());
    if let Some(told) = told {
        decision.store(told);
    }
    note(decision, noted);
}

/// Moves an agent to the background: no call waits for it any more.
pub(super) fn promoted(state: &State, id: TaskId) -> Decision {
    let waited = state
        .tasks
        .get(id.as_str())
        .is_some_and(Task::is_waited_for);
    let mut decision = Decision::answering(Answer::Accepted(waited));
    if waited {
        decision
            .store(Durable::TaskPromoted(TaskPromoted { id }))
            .tell(changed());
    }
    decision
}

/// Records that an idle agent got more to do.
pub(super) fn continued(
    state: &State,
    id: TaskId,
    message: String,
    env: &DecideEnv<'_>,
) -> Decision {
    let rests = state.tasks.get(id.as_str()).is_some_and(|task| {
        !task.is_running() && (task.agent().is_some() || task.external().is_some())
    });
    let mut decision = Decision::answering(Answer::Accepted(rests));
    if rests {
        decision
            .store(Durable::TaskContinued(TaskContinued {
                id,
                message,
                continued_at: env.now,
            }))
            .tell(changed());
    }
    decision
}

/// Records a progress note about external work.
pub(super) fn noted(state: &State, id: TaskId, note: String) -> Decision {
    let open = state.tasks.get(id.as_str());
    let open = open.is_some_and(|task| task.is_running() && task.external().is_some());
    let mut decision = Decision::answering(Answer::Accepted(open));
    if open {
        decision
            .store(Durable::TaskNoted(TaskNoted { id, note }))
            .tell(changed());
    }
    decision
}

/// Marks tasks as delivered: the model knows how they ended, or need not know.
pub(super) fn delivered(state: &State, ids: Vec<TaskId>) -> Decision {
    let undelivered = |id: &TaskId| {
        let task = state.tasks.get(id.as_str());
        task.is_some_and(|task| task.told == Told::NotYet)
    };
    let ids: Vec<TaskId> = ids.into_iter().filter(undelivered).collect();
    let mut decision = Decision::default();
    if !ids.is_empty() {
        decision.store(Durable::TasksDelivered(TasksDelivered { ids }));
    }
    decision
}

/// Returns the event that marks tasks as delivered by a tool result. Tasks that work again since
/// then are left out.
pub(super) fn delivered_by_result(state: &State, rests: &[CompletionRef]) -> Option<Durable> {
    let news = rests.iter().filter(|rest| {
        let task = state.tasks.get(rest.task.as_str());
        task.is_some_and(|task| task.is_undelivered() && task.rested_at() == Some(rest.at))
    });
    let ids: Vec<TaskId> = news.map(|rest| rest.task.clone()).collect();
    (!ids.is_empty()).then_some(Durable::TasksDelivered(TasksDelivered { ids }))
}

/// Removes a task that does not run from the list.
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

/// Ends the tasks that do not outlive the session. Agents end with what their own logs say. Detached
/// commands continue.
pub(super) fn close_attached(
    state: &State,
    decision: &mut Decision,
    mut agents: Vec<RecoveredOutcome>,
    env: &DecideEnv<'_>,
) {
    for task in state.tasks.running().filter(|task| !task.is_detached()) {
        let known = agents.iter().position(|known| *known.task() == task.id);
        match known.map(|index| agents.swap_remove(index)) {
            Some(RecoveredOutcome::Answered(_, answer)) => {
                store_answer(decision, task, answer, env);
            }
            Some(RecoveredOutcome::Ended(_, end)) => store_end(decision, task, end, env),
            Some(RecoveredOutcome::Waits(_)) | None => {
                let reason = match task.shell() {
                    Some(_) => texts::SHELL_CLOSED,
                    None => texts::AGENT_CLOSED,
                };
                let end = TaskEnd::new(TaskOutcome::Cancelled).because(reason);
                store_end(decision, task, end, env);
            }
        }
    }
}

/// Closes the tasks that an earlier daemon left running. Agents end as their own logs say, other
/// tasks are lost. Detached commands continue.
pub(super) fn close_lost(
    state: &State,
    decision: &mut Decision,
    mut recovered: Vec<RecoveredOutcome>,
    env: &DecideEnv<'_>,
) {
    for task in state.tasks.running().filter(|task| !task.is_detached()) {
        if task.external().is_some() {
            // The daemon only lists external work. It may still be going on elsewhere.
            continue;
        }
        let known = recovered
            .iter()
            .position(|recovered_outcome| *recovered_outcome.task() == task.id);
        match known.map(|index| recovered.swap_remove(index)) {
            Some(RecoveredOutcome::Answered(_, answer)) => {
                store_answer(decision, task, answer, env);
            }
            Some(RecoveredOutcome::Ended(_, end)) => store_end(decision, task, end, env),
            Some(RecoveredOutcome::Waits(_)) => {}
            None => {
                let reason = match task.shell() {
                    Some(_) => texts::SHELL_LOST,
                    None => texts::AGENT_LOST,
                };
                let end = TaskEnd::new(TaskOutcome::Failed).because(reason);
                store_end(decision, task, end, env);
            }
        }
    }
}

/// Closes the tasks of a copied log. They go on for the session whose log was copied.
pub(super) fn close_copied(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) {
    for task in state.tasks.running() {
        // What a client does is not tied to a log. A task on an MCP server is followed by one session.
        if task.external().is_none_or(|work| work.mcp.is_some()) {
            let end = TaskEnd::new(TaskOutcome::Failed).because(texts::TASK_IN_SOURCE);
            store_end(decision, task, end, env);
        }
    }
}

/// Starts a run of the loop for undelivered notifications. Returns whether there are any that cannot
/// wait. That the user stopped a command is told with the next message: the user knows it.
pub(super) fn wake(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) -> bool {
    let undelivered = state.tasks.undelivered();
    if undelivered.iter().all(|task| task.is_stopped_command()) || !may_wake(state, decision, env) {
        return false;
    }
    begin(decision);
    true
}

/// Returns whether notifications may start one more run. If they may not, people are told so once;
/// what has happened is told to the model with the next message.
fn may_wake(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) -> bool {
    if state.wakes.runs < env.most_wakes {
        return true;
    }
    if !state.wakes.told {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: WAKE_LIMIT.to_owned(),
            message: texts::woken_too_often(state.wakes.runs),
            url: None,
        }));
    }
    false
}

/// Starts a run of the loop without a new message.
pub(super) fn begin(decision: &mut Decision) {
    decision
        .store(Durable::Woken(Empty {}))
        .run(Effect::Prepare {
            messages: Vec::new(),
        });
}

/// Puts undelivered notifications into the conversation. Returns how many there were.
pub(super) fn deliver(state: &State, decision: &mut Decision) -> usize {
    deliver_these(state, state.tasks.undelivered(), decision)
}

/// Returns the message whose work a woken run goes on with once its notifications are delivered.
pub(super) fn origin_of_undelivered(state: &State) -> Option<MessageId> {
    let mut messages = state.run()?.messages.clone();
    for task in state.tasks.undelivered() {
        messages.extend(task.origin.clone().filter(|it| !messages.contains(it)));
    }
    runs::origin_among(&messages)
}

/// Puts the notifications of commands that the user stopped before the next message of the user.
pub(super) fn deliver_stopped(state: &State, decision: &mut Decision) {
    let mut stopped = state.tasks.undelivered();
    stopped.retain(|task| task.is_stopped_command());
    deliver_these(state, stopped, decision);
}

fn deliver_these(state: &State, mut undelivered: Vec<&Task>, decision: &mut Decision) -> usize {
    // Steps that were decided before are not in the state yet.
    undelivered.retain(|task| !decision.steps.iter().any(|step| tells(step, &task.id)));
    for task in &undelivered {
        decision.store(Durable::SystemNotification(SystemNotification {
            content: texts::task_rested(task, &state.tasks),
            kind: notification(task),
        }));
    }
    undelivered.len()
}

/// Whether this step tells the model how a task ended or became idle.
fn tells(step: &Step, task: &TaskId) -> bool {
    matches!(step, Step::Store(Durable::TasksDelivered(delivered)) if delivered.ids.contains(task))
}

fn notification(task: &Task) -> NotificationKind {
    let description = Some(task.description.clone()).filter(|text| !text.is_empty());
    match &task.work {
        TaskWork::Shell(shell) if task.is_detached() => NotificationKind::ShellDetachedCompleted {
            shell_id: shell.shell_id.clone(),
            description,
            agent_id: shell.agent.clone(),
        },
        TaskWork::Shell(shell) => NotificationKind::ShellCompleted {
            shell_id: shell.shell_id.clone(),
            exit_code: task.ending().and_then(|ending| ending.exit_code),
            description,
            agent_id: shell.agent.clone(),
        },
        TaskWork::Agent(_) | TaskWork::External(_) => agents::notification(task, description),
    }
}

/// Records a command that a person runs. It is not a tool call of the model.
pub(super) fn user_command_started(call: ToolCallId, tool: String, arguments: Value) -> Decision {
    let mut decision = Decision::answering(Answer::Accepted(true));
    decision.store(Durable::ToolStart(ToolStart {
        tool_call_id: call,
        tool_name: tool,
        arguments: Some(arguments),
        model: None,
        turn_id: None,
        mcp_server_name: None,
        mcp_tool_name: None,
    }));
    decision
}

/// Records the end of a command that a person ran.
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

/// Closes the commands of people that were running when the daemon or the session ended.
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
