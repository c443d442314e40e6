//! The events about sub-agents for clients, and the command that turns a session into a sub-agent.

use loopd_proto::event::Durable;
use loopd_proto::event::agent::{
    SubagentCompleted, SubagentFailed, SubagentIdentity, SubagentStarted,
};
use loopd_proto::event::fact::{Configured, LoopEnded, LoopOutcome, Unqueued};
use loopd_proto::event::task::{
    AgentRunFacts, AgentWork, NotificationKind, TaskOutcome, TaskStarted, TaskWork, TasksRemoved,
    WorkUsage,
};
use loopd_proto::event::turn::TurnEnd;
use loopd_proto::id::{AgentId, ToolCallId};
use loopd_proto::time::Timestamp;

use super::tools::complete;
use crate::command::{AdoptAsSubagent, CallOutcome, Decision, TaskAnswer, TaskEnd};
use crate::state::State;
use crate::tasks::Task;
use crate::texts;

/// Returns the event for the start of an agent.
pub(super) fn started(state: &State, started: &TaskStarted) -> Option<Durable> {
    let TaskWork::Agent(work) = &started.work else {
        return None;
    };
    let parent = state.subagent.as_deref();
    Some(Durable::SubagentStarted(SubagentStarted {
        tool_call_id: call(started.tool_call_id.as_ref(), started.id.as_str()),
        agent_name: work.agent_type.clone(),
        agent_display_name: work.name.clone(),
        agent_description: started.description.clone(),
        model: work.model.clone(),
        parent_id: parent.map(SubagentIdentity::agent_id),
        agent_type: Some(work.agent_type.clone()),
        execution_mode: Some(work.execution),
        agent_id: Some(AgentId::new(started.id.as_str())),
        session_id: Some(work.session_id.clone()),
    }))
}

/// Returns the call that started an agent. An agent without such a call goes by its own id.
fn call(call: Option<&ToolCallId>, id: &str) -> ToolCallId {
    call.cloned().unwrap_or_else(|| ToolCallId::new(id))
}

/// Returns the event for the end of an agent.
pub(super) fn ended(task: &Task, end: &TaskEnd, now: Timestamp) -> Option<Durable> {
    let work = task.agent()?;
    let usage = end.usage.as_ref().unwrap_or(&task.usage);
    if end.outcome == TaskOutcome::Failed {
        let error = end.reason.clone().unwrap_or_default();
        return Some(failed(task, work, usage, error, now));
    }
    let status = match end.outcome {
        TaskOutcome::Completed => "completed",
        TaskOutcome::Cancelled => "cancelled",
        TaskOutcome::Failed => "failed",
    };
    Some(completed(task, work, usage, status, now))
}

/// Returns the event for an answer of an agent.
pub(super) fn answered(task: &Task, answer: &TaskAnswer, now: Timestamp) -> Option<Durable> {
    let work = task.agent()?;
    Some(completed(task, work, &answer.usage, "idle", now))
}

fn completed(
    task: &Task,
    work: &AgentWork,
    usage: &WorkUsage,
    status: &str,
    now: Timestamp,
) -> Durable {
    Durable::SubagentCompleted(SubagentCompleted {
        tool_call_id: call(task.call.as_ref(), task.id.as_str()),
        agent_name: work.agent_type.clone(),
        agent_display_name: work.name.clone(),
        model: work.model.clone(),
        explicit_model_override: work.requested_model.clone(),
        total_tool_calls: Some(usage.tool_calls),
        total_tokens: Some(usage.tokens()),
        duration_ms: Some(task.worked_ms(now)),
        cancelled: (status == "cancelled").then_some(true),
        agent_id: Some(AgentId::new(task.id.as_str())),
        session_id: Some(work.session_id.clone()),
        status: Some(status.to_owned()),
    })
}

fn failed(
    task: &Task,
    work: &AgentWork,
    usage: &WorkUsage,
    error: String,
    now: Timestamp,
) -> Durable {
    Durable::SubagentFailed(SubagentFailed {
        tool_call_id: call(task.call.as_ref(), task.id.as_str()),
        agent_name: work.agent_type.clone(),
        agent_display_name: work.name.clone(),
        error,
        model: work.model.clone(),
        explicit_model_override: work.requested_model.clone(),
        total_tool_calls: Some(usage.tool_calls),
        total_tokens: Some(usage.tokens()),
        duration_ms: Some(task.worked_ms(now)),
        agent_id: Some(AgentId::new(task.id.as_str())),
        session_id: Some(work.session_id.clone()),
        status: Some("failed".to_owned()),
    })
}

/// Returns the kind of notification for an agent that is idle or has ended.
pub(super) fn notification(task: &Task, description: Option<String>) -> NotificationKind {
    let agent_type = match &task.work {
        TaskWork::Agent(work) => work.agent_type.clone(),
        TaskWork::External(work) => work.agent_type.clone(),
        TaskWork::Shell(_) => String::new(),
    };
    let display_name = task.agent().map(|work| work.name.clone());
    let Some(ending) = task.ending() else {
        return NotificationKind::AgentIdle {
            agent_id: task.id.clone(),
            display_name,
            agent_type,
            description,
            status: Some("idle".to_owned()),
            run: run_facts(task),
        };
    };
    let status = match ending.outcome {
        TaskOutcome::Completed => "completed",
        TaskOutcome::Failed | TaskOutcome::Cancelled => "failed",
    };
    NotificationKind::AgentCompleted {
        agent_id: task.id.clone(),
        display_name,
        agent_type,
        status: status.to_owned(),
        description,
        prompt: task.agent().map(|work| work.prompt.clone()),
        run: run_facts(task),
    }
}

/// Returns where an agent that rests has worked and what it used.
fn run_facts(task: &Task) -> AgentRunFacts {
    let Some(work) = task.agent() else {
        return AgentRunFacts::default();
    };
    let ending = task.ending();
    let cancelled = ending.is_some_and(|ending| ending.outcome == TaskOutcome::Cancelled);
    AgentRunFacts {
        session_id: Some(work.session_id.clone()),
        cancelled: cancelled.then_some(true),
        total_tool_calls: Some(task.usage.tool_calls),
        total_tokens: Some(task.usage.tokens()),
        duration_ms: Some(task.active_ms),
    }
}

/// Turns a session with a copied log into an agent of the session that it was copied from. The work
/// that was open continues only in the original. Here every open call of the last message gets the
/// same short result, the queue is emptied and no task is listed.
pub(super) fn enlist(state: &State, enlist: AdoptAsSubagent) -> Decision {
    let mut decision = Decision::default();
    if let Some(cwd) = enlist.cwd {
        decision.store(Durable::Configured(Box::new(Configured {
            options: state.options.clone(),
            working_directory: cwd,
        })));
    }
    if let Some(turn) = state.turn() {
        for call in turn.calls().iter().filter(|call| call.is_open()) {
            let outcome = CallOutcome::success(texts::FORKED);
            complete(&mut decision, turn, &call.call.id, outcome);
        }
        decision.store(Durable::TurnEnd(TurnEnd {
            turn_id: turn.key.turn_id(),
        }));
    }
    decision.store(Durable::LoopEnded(LoopEnded::with(LoopOutcome::Done)));
    let waiting = state.queue.iter().map(|item| item.id().clone());
    let steering = state.steering.iter().map(|message| message.id.clone());
    let ids: Vec<_> = waiting.chain(steering).collect();
    if !ids.is_empty() {
        decision.store(Durable::Unqueued(Unqueued { ids }));
    }
    let ids: Vec<_> = state.tasks.iter().map(|task| task.id.clone()).collect();
    if !ids.is_empty() {
        decision.store(Durable::TasksRemoved(TasksRemoved { ids }));
    }
    // This event comes last, because the events before it do not belong to the agent's own work.
    decision.store(Durable::SubagentIdentity(Box::new(enlist.subagent)));
    decision
}

#[cfg(test)]
mod tests;
