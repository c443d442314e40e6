//! Commands about what goes on in the background.

use loopd_kernel::command::{Command, TaskAnswer, TaskEnd, TaskStart};
use loopd_proto::event::session::ModelMetrics;
use loopd_proto::event::task::{
    AgentWork, Execution, ExternalWork, ShellAttachment, ShellWork, TaskOutcome, TaskWork,
    WorkUsage,
};
use loopd_proto::id::TaskId;
use loopd_proto::run_scope::ToolLimits;

use crate::properties::action::{Delivery, Ownership, Shell, Start, Subagent, Task};

impl From<Shell> for TaskId {
    fn from(shell: Shell) -> Self {
        format!("shell-{}", shell.0).into()
    }
}

impl From<Subagent> for TaskId {
    fn from(agent: Subagent) -> Self {
        format!("agent-{}", agent.0).into()
    }
}

impl From<Task> for TaskId {
    fn from(task: Task) -> Self {
        match task {
            Task::Shell(number) => Shell(number).into(),
            Task::Subagent(number) => Subagent(number).into(),
        }
    }
}

fn started(id: TaskId, call: Option<&str>, work: TaskWork) -> Command {
    Command::TaskStarted(Box::new(TaskStart {
        id,
        call: call.map(Into::into),
        description: String::new(),
        started_at: None,
        work,
    }))
}

pub(in crate::properties) fn shell_started(shell: Shell, ownership: Ownership) -> Command {
    let id = TaskId::from(shell);
    let detached = matches!(ownership, Ownership::Detached);
    let work = TaskWork::Shell(ShellWork {
        shell_id: id.as_str().into(),
        command: "sleep".to_owned(),
        attachment: match ownership {
            Ownership::Attached => ShellAttachment::Attached,
            Ownership::Detached => ShellAttachment::Detached,
        },
        pid: None,
        log_path: detached.then(|| "log".to_owned()),
        agent: None,
    });
    started(id, None, work)
}

pub(in crate::properties) fn shell_ended(shell: Shell) -> Command {
    Command::TaskEnded {
        id: shell.into(),
        end: TaskEnd {
            exit_code: Some(0),
            ..TaskEnd::new(TaskOutcome::Completed)
        },
    }
}

pub(in crate::properties) fn agent_started(agent: Subagent, start: Start) -> Command {
    let id = TaskId::from(agent);
    let name = id.to_string();
    let execution = match start {
        Start::InBackground => Execution::Background,
        Start::ByCall => Execution::Sync,
        Start::ByClient => {
            let work = TaskWork::External(ExternalWork {
                agent_type: "client-task".to_owned(),
                prompt: String::new(),
                mcp: None,
            });
            return started(id, None, work);
        }
    };
    let call = matches!(start, Start::ByCall).then_some("call-0");
    let work = TaskWork::Agent(Box::new(AgentWork {
        agent_type: "explore".to_owned(),
        session_id: format!("session-{name}").into(),
        name,
        prompt: "look".to_owned(),
        execution,
        model: Some("model".to_owned()),
        requested_model: None,
        output_file: None,
        worktree: None,
        todo: None,
        command: None,
        limits: ToolLimits::default(),
    }));
    started(id, call, work)
}

/// The answer is another one each time.
pub(in crate::properties) fn agent_answered(
    agent: Subagent,
    number: usize,
    delivery: Delivery,
) -> Command {
    Command::TaskAnswered {
        id: agent.into(),
        answer: TaskAnswer {
            response: format!("answer {number}"),
            usage: usage(number),
            delivered: matches!(delivery, Delivery::ByOtherMeans),
        },
    }
}

pub(in crate::properties) fn agent_ended(
    agent: Subagent,
    number: usize,
    outcome: TaskOutcome,
    delivery: Delivery,
) -> Command {
    let told = !number.is_multiple_of(2);
    Command::TaskEnded {
        id: agent.into(),
        end: TaskEnd {
            result: told.then(|| format!("answer {number}")),
            usage: told.then(|| usage(number)),
            delivered: matches!(delivery, Delivery::ByOtherMeans),
            ..TaskEnd::new(outcome)
        },
    }
}

/// What an agent took so far.
fn usage(number: usize) -> WorkUsage {
    let taken = number as u64;
    let mut usage = WorkUsage {
        tool_calls: taken,
        api_duration_ms: taken,
        nano_credits: taken,
        ..WorkUsage::default()
    };
    let metrics = ModelMetrics::default();
    usage
        .models
        .insert(format!("model-{}", number % 2), metrics);
    usage
}
