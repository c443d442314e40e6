//! Describes tasks for clients.

use loopd_proto::event::task::{ShellAttachment, TaskOutcome, TaskWork};
use loopd_proto::id::{TaskId, ToolCallId};
use loopd_proto::params::task::{
    AgentInfo, AgentProgress, Execution, ShellInfo, Status, Step, TaskInfo, TaskNode,
};
use loopd_proto::time::Timestamp;

use crate::subagent::RunProgress;
use loopd_exec::shells::AttachedCommand;
use loopd_kernel::tasks::{Task, TaskStatus};

/// Describes a command that a turn waits for.
pub(super) fn of_job(command: &AttachedCommand) -> ShellInfo {
    ShellInfo {
        id: TaskId::new(command.id.as_str()),
        description: described(&command.description, &command.command),
        status: Status::Running,
        started_at: command.started_at,
        completed_at: None,
        command: command.command.clone(),
        attachment_mode: ShellAttachment::Attached,
        execution_mode: Some(Execution::Sync),
        can_promote_to_background: Some(true),
        log_path: None,
        pid: command.pid,
    }
}

pub(super) fn of_task(task: &Task, now: Timestamp) -> TaskInfo {
    match &task.work {
        TaskWork::Shell(shell) => TaskInfo::Shell(ShellInfo {
            id: task.id.clone(),
            description: described(&task.description, &shell.command),
            status: status(task),
            started_at: task.started_at,
            completed_at: task.ending().map(|ending| ending.at),
            command: shell.command.clone(),
            attachment_mode: shell.attachment,
            execution_mode: Some(Execution::Background),
            can_promote_to_background: Some(false),
            log_path: shell.log_path.clone(),
            pid: shell.pid,
        }),
        TaskWork::Agent(_) | TaskWork::External(_) => TaskInfo::Agent(Box::new(agent(task, now))),
    }
}

fn agent(task: &Task, now: Timestamp) -> AgentInfo {
    let work = task.agent();
    let external = task.external();
    let call = task.call.as_ref().map(ToolCallId::as_str);
    let completed = task
        .ending()
        .filter(|ending| ending.outcome == TaskOutcome::Completed);
    let failed = task
        .ending()
        .filter(|ending| ending.outcome != TaskOutcome::Completed);
    AgentInfo {
        id: task.id.clone(),
        tool_call_id: call.unwrap_or(task.id.as_str()).to_owned(),
        display_name: work.map(|work| work.name.clone()),
        description: task.description.clone(),
        status: status(task),
        started_at: task.started_at,
        completed_at: task.ending().map(|ending| ending.at),
        active_time_ms: Some(task.worked_ms(now)),
        active_started_at: task.active_since,
        error: failed.and_then(|ending| ending.reason.clone()),
        agent_type: match (work, external) {
            (Some(work), _) => work.agent_type.clone(),
            (None, Some(external)) => external.agent_type.clone(),
            (None, None) => String::new(),
        },
        prompt: match (work, external) {
            (Some(work), _) => work.prompt.clone(),
            (None, Some(external)) => external.prompt.clone(),
            (None, None) => String::new(),
        },
        result: completed.and_then(|_| task.latest_response().map(str::to_owned)),
        model: work.and_then(|work| work.requested_model.clone()),
        resolved_model: work.and_then(|work| work.model.clone()),
        execution_mode: Some(work.map_or(Execution::Background, |work| work.execution)),
        can_promote_to_background: Some(task.is_waited_for()),
        latest_response: task.latest_response().map(str::to_owned),
        idle_since: match &task.status {
            TaskStatus::Idle { since } => Some(*since),
            TaskStatus::Running | TaskStatus::Ended(_) => None,
        },
    }
}

fn status(task: &Task) -> Status {
    match &task.status {
        TaskStatus::Running => Status::Running,
        TaskStatus::Idle { .. } => Status::Idle,
        TaskStatus::Ended(ending) => match ending.outcome {
            TaskOutcome::Completed => Status::Completed,
            TaskOutcome::Failed => Status::Failed,
            TaskOutcome::Cancelled => Status::Cancelled,
        },
    }
}

fn described(description: &str, command: &str) -> String {
    let text = if description.is_empty() {
        command
    } else {
        description
    };
    text.to_owned()
}

/// Describes a task as a node of a tree, without its children.
pub(super) fn node(task: &Task, progress: Option<&RunProgress>, now: Timestamp) -> TaskNode {
    let work = task.agent();
    let known = progress.filter(|_| task.is_running());
    TaskNode {
        task: of_task(task, now),
        latest_intent: known
            .and_then(|progress| progress.latest_intent.clone())
            .or_else(|| task.note.clone()),
        tool_calls: task.usage.tool_calls + known.map_or(0, |progress| progress.tool_calls),
        tokens: task.usage.tokens() + known.map_or(0, |progress| progress.tokens),
        session_id: work.map(|work| work.session_id.clone()),
        output_file: work.and_then(|work| work.output_file.clone()),
        worktree: work.and_then(|work| Some(work.worktree.as_ref()?.path.clone())),
        children: Vec::new(),
    }
}

pub(super) fn steps(progress: RunProgress) -> AgentProgress {
    let steps = progress.recent.into_iter().map(|step| Step {
        message: step.message,
        timestamp: step.at,
    });
    AgentProgress {
        recent_activity: steps.collect(),
        latest_intent: progress.latest_intent,
    }
}
