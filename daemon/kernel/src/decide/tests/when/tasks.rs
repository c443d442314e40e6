//! Reports about background tasks.

use loopd_proto::event::task::{ShellWaiting, TaskOutcome, WorkUsage};
use loopd_proto::id::ToolCallId;
use serde_json::{Value, json};

use super::data;
use crate::command::{CallOutcome, Command, TaskAnswer, TaskEnd, TaskStart};

pub(crate) fn start_task(id: &str, work: Value) -> Command {
    start_task_of(Some(&format!("call-{id}")), id, work)
}

pub(crate) fn start_task_of(call: Option<&str>, id: &str, work: Value) -> Command {
    Command::TaskStarted(Box::new(TaskStart {
        id: id.into(),
        call: call.map(ToolCallId::new),
        description: "work".to_owned(),
        started_at: None,
        work: data(work),
    }))
}

pub(crate) fn task_process(id: &str, pid: u32) -> Command {
    Command::TaskProcess { id: id.into(), pid }
}

pub(crate) fn end_task(id: &str, outcome: TaskOutcome) -> Command {
    Command::TaskEnded {
        id: id.into(),
        end: TaskEnd::new(outcome).because("so it is"),
    }
}

/// A task ended, and the model learns of it in another way.
pub(crate) fn end_known_task(id: &str) -> Command {
    Command::TaskEnded {
        id: id.into(),
        end: TaskEnd {
            exit_code: Some(0),
            delivered: true,
            ..TaskEnd::new(TaskOutcome::Completed)
        },
    }
}

pub(super) fn answer() -> TaskAnswer {
    TaskAnswer {
        response: "done".to_owned(),
        usage: WorkUsage::default(),
        delivered: false,
    }
}

pub(crate) fn task_answers(id: &str) -> Command {
    Command::TaskAnswered {
        id: id.into(),
        answer: answer(),
    }
}

/// A sub-agent answered, and the model learns of it in another way.
pub(crate) fn task_answers_known(id: &str) -> Command {
    Command::TaskAnswered {
        id: id.into(),
        answer: TaskAnswer {
            delivered: true,
            ..answer()
        },
    }
}

pub(crate) fn promote(id: &str) -> Command {
    Command::TaskPromoted(id.into())
}

pub(crate) fn continue_task(id: &str) -> Command {
    Command::TaskContinued {
        id: id.into(),
        message: "more".to_owned(),
    }
}

pub(crate) fn note(id: &str) -> Command {
    Command::TaskNoted {
        id: id.into(),
        note: "half".to_owned(),
    }
}

pub(crate) fn deliver(ids: &[&str]) -> Command {
    Command::TasksDelivered(ids.iter().map(|id| (*id).into()).collect())
}

pub(crate) fn remove_task(id: &str) -> Command {
    Command::RemoveTask(id.into())
}

pub(crate) fn start_user_command(call: &str) -> Command {
    Command::UserCommandStarted {
        call: call.into(),
        tool: "bash".to_owned(),
        arguments: json!({ "command": "ls" }),
    }
}

pub(crate) fn end_user_command(call: &str, outcome: CallOutcome) -> Command {
    Command::UserCommandEnded {
        call: call.into(),
        outcome,
    }
}

pub(crate) fn shell_waits() -> Command {
    Command::ShellWaits(ShellWaiting {
        shell_id: "sh".into(),
        command: "make".to_owned(),
        shown: "Name:".to_owned(),
    })
}
