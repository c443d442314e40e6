//! Calls that waited for agents when the daemon stopped or the session was closed: what their results
//! say.

use loopd_proto::event::task::TaskOutcome;

use crate::command::{CallOutcome, DecideEnv, RecoveredOutcome, TaskEnd};
use crate::decide::abort::INTERRUPT_CODE;
use crate::state::State;
use crate::tasks::Task;
use crate::texts;

/// An agent that a call waited for when the daemon stopped or the session was closed.
pub(super) struct WaitedFor<'a> {
    pub(super) task: &'a Task,
    pub(super) outcome: WaitOutcome,
}

/// What becomes of a call that waited for an agent.
pub(super) enum WaitOutcome {
    Ends(CallOutcome),
    /// The agent waits for an answer, and the call for the agent.
    GoesOn,
}

/// Returns the agents that calls waited for, and what the results of these calls say. `lost` is why
/// an agent did not finish that has left no outcome.
pub(super) fn waited_for<'a>(
    state: &'a State,
    recovered: &[RecoveredOutcome],
    lost: &str,
    env: &DecideEnv<'_>,
) -> Vec<WaitedFor<'a>> {
    let waited = state.tasks.running().filter(|task| task.is_waited_for());
    let known = |task: &Task| recovered.iter().find(|outcome| *outcome.task() == task.id);
    let outcome = |task: &Task| {
        let nothing = TaskEnd::new(TaskOutcome::Failed);
        WaitOutcome::Ends(match known(task) {
            Some(RecoveredOutcome::Waits(_)) => return WaitOutcome::GoesOn,
            Some(RecoveredOutcome::Answered(_, answer)) => CallOutcome::success(&*answer.response),
            Some(RecoveredOutcome::Ended(_, end)) => agent_outcome(task, end, lost, env),
            None => agent_outcome(task, &nothing, lost, env),
        })
    };
    waited
        .map(|task| WaitedFor {
            task,
            outcome: outcome(task),
        })
        .collect()
}

/// Returns the result of a call whose agent has ended.
fn agent_outcome(task: &Task, end: &TaskEnd, lost: &str, env: &DecideEnv<'_>) -> CallOutcome {
    let run = task.agent().map(|work| texts::AgentRun {
        id: &task.id,
        work,
        status: texts::status_of(end.outcome),
        usage: end.usage.as_ref().unwrap_or(&task.usage),
        duration_ms: task.worked_ms(env.now),
    });
    let mut outcome = if end.outcome == TaskOutcome::Completed {
        CallOutcome::success(end.result.as_deref().unwrap_or_default())
    } else {
        let why = end.reason.as_deref().unwrap_or(lost);
        let mut text = texts::agent_lost(task, why, end.result.as_deref());
        if let Some(run) = &run {
            text = format!("{text}\n\n{}", run.line());
        }
        CallOutcome::failure(INTERRUPT_CODE, text)
    };
    outcome.telemetry = run.map(|run| run.facts());
    outcome
}
