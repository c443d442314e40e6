//! What goes on beside the loop: the registry of the log, and the commands that the loop waits for.

use std::sync::Arc;

use loopd_proto::event::task::{ShellAttachment, TaskOutcome};
use loopd_proto::id::{ShellId, TaskId};
use loopd_proto::params::server::NoResult;
use loopd_proto::params::session::Of;
use loopd_proto::params::task::{
    AgentStarted, Cancelled, Execution, MaybeTask, MessageParams, MessageSent, Progress,
    ProgressResult, Promoted, Removed, ShellInfo, ShellProgress, StartAgentParams, Status,
    TaskInfo, TaskList, TaskOf,
};

use crate::jobs::{Closed, Found, Job, Jobs};
use crate::kernel::command::{Answer, Command};
use crate::kernel::state::State;
use crate::kernel::tasks::Task;
use crate::rpc::context::Context;
use crate::rpc::error::RpcError;
use crate::shell::{Body, Shown};

/// How much of a command's output counts as recent.
const RECENT: usize = 2_000;

pub(super) async fn list(context: Context, params: Of) -> Result<TaskList, RpcError> {
    let session = context.session(&params.session_id)?;
    let tasks = session.view(|view| {
        let in_front = view.jobs.in_front().into_iter();
        let waited_for = in_front.map(|job| TaskInfo::Shell(of_job(&job)));
        let background = view.state.tasks.iter().map(of_task);
        waited_for.chain(background).collect()
    });
    Ok(TaskList {
        tasks: tasks.await?,
    })
}

/// A command that the loop waits for.
fn of_job(job: &Job) -> ShellInfo {
    ShellInfo {
        id: TaskId::new(job.id.as_str()),
        description: described(&job.description, &job.command),
        status: Status::Running,
        started_at: job.started_at,
        completed_at: None,
        command: job.command.clone(),
        attachment_mode: ShellAttachment::Attached,
        execution_mode: Some(Execution::Sync),
        can_promote_to_background: Some(true),
        log_path: None,
        pid: job.pid,
    }
}

fn of_task(task: &Task) -> TaskInfo {
    let shell = task.shell();
    TaskInfo::Shell(ShellInfo {
        id: task.id.clone(),
        description: described(&task.description, &shell.command),
        status: match task.ending().map(|ending| ending.outcome) {
            None => Status::Running,
            Some(TaskOutcome::Completed) => Status::Completed,
            Some(TaskOutcome::Failed) => Status::Failed,
            Some(TaskOutcome::Cancelled) => Status::Cancelled,
        },
        started_at: task.started_at,
        completed_at: task.ending().map(|ending| ending.at),
        command: shell.command.clone(),
        attachment_mode: shell.attachment,
        execution_mode: Some(Execution::Background),
        can_promote_to_background: Some(false),
        log_path: shell.log_path.clone(),
        pid: shell.pid,
    })
}

fn described(description: &str, command: &str) -> String {
    let text = if description.is_empty() {
        command
    } else {
        description
    };
    text.to_owned()
}

/// Detached commands are watched, so that what is known is up to date without looking.
pub(super) async fn refresh(context: Context, params: Of) -> Result<NoResult, RpcError> {
    context
        .session(&params.session_id)?
        .state(|_: &State| ())
        .await?;
    Ok(NoResult {})
}

pub(super) async fn progress(context: Context, params: TaskOf) -> Result<ProgressResult, RpcError> {
    let session = context.session(&params.session_id)?;
    let wanted = ShellId::from(params.id.as_str());
    let (found, task) = session
        .view(move |view| {
            let task = view.state.tasks.get(wanted.as_str()).cloned();
            (view.jobs.find(&wanted).ok(), task)
        })
        .await?;
    let progress = match (found, task) {
        (Some(Found::Attached(job)), _) => Some(ShellProgress {
            recent_output: recent(job.run.output()),
            pid: job.pid,
        }),
        (Some(Found::Detached(job)), _) => Some(ShellProgress {
            // A log that is not there yet is an empty one.
            recent_output: job.tail().await.unwrap_or_default(),
            pid: job.pid,
        }),
        (None, Some(task)) => Some(ShellProgress {
            recent_output: String::new(),
            pid: task.shell().pid,
        }),
        (None, None) => None,
    };
    Ok(ProgressResult {
        progress: progress.map(Progress::Shell),
    })
}

fn recent(shown: Shown) -> String {
    let text = match shown.body {
        Body::Whole(text) | Body::Preview { tail: text, .. } => text,
    };
    let start = text.char_indices().rev().nth(RECENT - 1);
    let start = start.map_or(0, |(start, _)| start);
    text.get(start..).unwrap_or(&text).to_owned()
}

async fn jobs(context: &Context, params: &Of) -> Result<Jobs, RpcError> {
    let session = context.session(&params.session_id)?;
    Ok(session.view(|view| view.jobs.clone()).await?)
}

pub(super) async fn promotable(context: Context, params: Of) -> Result<MaybeTask, RpcError> {
    let first = jobs(&context, &params).await?.in_front().into_iter().next();
    Ok(MaybeTask {
        task: first.map(|job| TaskInfo::Shell(of_job(&job))),
    })
}

pub(super) async fn promote(context: Context, params: TaskOf) -> Result<Promoted, RpcError> {
    let of = Of {
        session_id: params.session_id,
    };
    let waited_for = jobs(&context, &of).await?.in_front();
    let job = waited_for
        .iter()
        .find(|job| job.id.as_str() == params.id.as_str());
    Ok(Promoted {
        promoted: job.is_some_and(|job| job.promote()),
    })
}

pub(super) async fn promote_current(context: Context, params: Of) -> Result<MaybeTask, RpcError> {
    let waited_for = jobs(&context, &params).await?.in_front();
    let promoted = waited_for.into_iter().find(|job| job.promote());
    let info = |job: Arc<Job>| {
        TaskInfo::Shell(ShellInfo {
            execution_mode: Some(Execution::Background),
            can_promote_to_background: Some(false),
            ..of_job(&job)
        })
    };
    Ok(MaybeTask {
        task: promoted.map(info),
    })
}

pub(super) async fn cancel(context: Context, params: TaskOf) -> Result<Cancelled, RpcError> {
    let session = context.session(&params.session_id)?;
    let id = ShellId::from(params.id.as_str());
    let wanted = id.clone();
    let (jobs, found) = session
        .view(move |view| (view.jobs.clone(), view.jobs.find(&wanted).ok()))
        .await?;
    let runs = match found {
        Some(Found::Attached(job)) => job.is_running(),
        Some(Found::Detached(job)) => job.is_running(),
        None => false,
    };
    let cancelled = runs && jobs.stop(&id, Closed::Cancelled).await.is_ok();
    if cancelled {
        // Who cancels wants to find the task ended.
        let mut changed = true;
        while changed {
            let id = id.clone();
            let (running, mut ticks) = session
                .view(move |view| {
                    let task = view.state.tasks.get(id.as_str());
                    let running = task.is_some_and(Task::is_running);
                    (running, view.ticks.subscribe())
                })
                .await?;
            changed = running && ticks.changed().await.is_ok();
        }
    }
    Ok(Cancelled { cancelled })
}

pub(super) async fn remove(context: Context, params: TaskOf) -> Result<Removed, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session.command(Command::RemoveTask(params.id)).await?;
    Ok(Removed {
        removed: done.answer == Answer::Accepted(true),
    })
}

/// Commands that outlive the daemon may run for ever and are not waited for.
pub(super) async fn wait_for_pending(context: Context, params: Of) -> Result<NoResult, RpcError> {
    let session = context.session(&params.session_id)?;
    loop {
        let (settled, mut ticks) = session
            .view(|view| {
                let state = view.state;
                let mut running = state.tasks.running();
                let settled = !state.is_busy() && running.all(Task::is_detached);
                (settled, view.ticks.subscribe())
            })
            .await?;
        if settled || ticks.changed().await.is_err() {
            return Ok(NoResult {});
        }
    }
}

pub(super) async fn send_message(
    context: Context,
    params: MessageParams,
) -> Result<MessageSent, RpcError> {
    let session = context.session(&params.session_id)?;
    let id = params.id.clone();
    let known = session.state(move |state| state.tasks.get(id.as_str()).is_some());
    let error = if known.await? {
        format!(
            "The task {} is a shell command, which takes no messages; only agents do.",
            params.id
        )
    } else {
        format!("There is no task {}.", params.id)
    };
    Ok(MessageSent {
        sent: false,
        error: Some(error),
    })
}

pub(super) async fn start_agent(
    context: Context,
    params: StartAgentParams,
) -> Result<AgentStarted, RpcError> {
    let session = context.session(&params.session_id)?;
    // No kind of agent can be started in the background by this build.
    session.state(|_: &State| ()).await?;
    Err(RpcError::Failed(format!(
        "Unknown agent type: {}. Valid types: none; agents in the background are not available in this build.",
        params.agent_type
    )))
}
