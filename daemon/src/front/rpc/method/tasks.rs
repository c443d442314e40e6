//! Tasks: the registry that is folded from the log, and the commands and sub-agents that a turn
//! waits for. `task_agents` has the methods that only sub-agents have.

use std::sync::Arc;

use loopd_proto::id::{SessionId, ShellId};
use loopd_proto::params::server::NoResult;
use loopd_proto::params::session::Of;
use loopd_proto::params::task::{
    Cancelled, Execution, MaybeTask, Progress, ProgressResult, Promoted, Removed, ShellInfo,
    ShellProgress, TaskInfo, TaskList, TaskOf,
};

use super::task_info::{of_job, of_task, steps};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use crate::subagent::{CancelledBy, Subagents};
use loopd_exec::shells::{AttachedCommand, CloseReason, FoundShell};
use loopd_exec::terminal::{CommandOutput, OutputBody};
use loopd_kernel::command::{Answer, Command};
use loopd_kernel::state::State;
use loopd_kernel::tasks::Task;

/// How many characters of a command's output count as recent.
const RECENT: usize = 2_000;

pub(super) async fn list(context: Context, params: Of) -> Result<TaskList, RpcError> {
    let session = context.session(&params.session_id)?;
    let now = context.app.services.clock.now();
    let tasks = session.view(move |view| {
        let in_front = view.shells.foreground().into_iter();
        let waited_for = in_front.map(|command| TaskInfo::Shell(of_job(&command)));
        let others = view.state.tasks.iter().map(|task| of_task(task, now));
        waited_for.chain(others).collect()
    });
    Ok(TaskList {
        tasks: tasks.await?,
    })
}

/// Refreshes nothing: the daemon watches detached commands, so the registry is up to date.
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
    let (found, task, run, agents) = session
        .view(move |view| {
            let task = view.state.tasks.get(wanted.as_str()).cloned();
            let run = task.as_ref().and_then(|task| view.agents.run(&task.id));
            let agents = view.agents.clone();
            (view.shells.find(&wanted).ok(), task, run, agents)
        })
        .await?;
    if let Some(task) = task.as_ref().filter(|task| task.shell().is_none()) {
        let mut progress = run.map(|run| run.progress()).unwrap_or_default();
        let known = progress.latest_intent.take();
        progress.latest_intent = known.or_else(|| task.note.clone());
        return Ok(ProgressResult {
            progress: Some(Progress::Agent(steps(progress))),
        });
    }
    let progress = match (found, task) {
        (Some(FoundShell::Attached(command)), _) => Some(ShellProgress {
            recent_output: recent(command.run.output()),
            pid: command.pid,
        }),
        (Some(FoundShell::Detached(command)), _) => Some(ShellProgress {
            // A log that does not exist yet counts as empty.
            recent_output: command.tail().await.unwrap_or_default(),
            pid: command.pid,
        }),
        // The command of a sub-agent runs in that one's session; an ended one has its output in the log.
        (None, Some(task)) => {
            let output = agents.command_output(&task.id).await;
            let output = output.or_else(|| task.latest_response().map(str::to_owned));
            Some(ShellProgress {
                recent_output: last_chars(&output.unwrap_or_default()),
                pid: task.shell().and_then(|shell| shell.pid),
            })
        }
        (None, None) => None,
    };
    Ok(ProgressResult {
        progress: progress.map(Progress::Shell),
    })
}

fn recent(shown: CommandOutput) -> String {
    let text = match shown.body {
        OutputBody::Whole(text) | OutputBody::Preview { tail: text, .. } => text,
    };
    last_chars(&text)
}

fn last_chars(text: &str) -> String {
    let start = text.char_indices().rev().nth(RECENT - 1);
    let start = start.map_or(0, |(start, _)| start);
    text.get(start..).unwrap_or(text).to_owned()
}

/// Returns what a turn waits for and could stop waiting for: commands, then sub-agents.
async fn waited_for(
    context: &Context,
    session: &SessionId,
) -> Result<(Vec<Arc<AttachedCommand>>, Vec<Task>, Subagents), RpcError> {
    let session = context.session(session)?;
    let seen = session.view(|view| {
        let tasks = view.state.tasks.iter();
        let tasks: Vec<Task> = tasks.filter(|task| task.is_waited_for()).cloned().collect();
        (view.shells.foreground(), tasks, view.agents.clone())
    });
    Ok(seen.await?)
}

pub(super) async fn promotable(context: Context, params: Of) -> Result<MaybeTask, RpcError> {
    let (shells, agents, _) = waited_for(&context, &params.session_id).await?;
    let now = context.app.services.clock.now();
    let command = shells
        .first()
        .map(|command| TaskInfo::Shell(of_job(command)));
    Ok(MaybeTask {
        task: command.or_else(|| agents.first().map(|task| of_task(task, now))),
    })
}

pub(super) async fn promote(context: Context, params: TaskOf) -> Result<Promoted, RpcError> {
    let (shells, _, agents) = waited_for(&context, &params.session_id).await?;
    let command = shells
        .iter()
        .find(|command| command.id.as_str() == params.id.as_str());
    let promoted = match command {
        Some(command) => command.promote(),
        None => agents.promote(&params.id).await,
    };
    Ok(Promoted { promoted })
}

pub(super) async fn promote_current(context: Context, params: Of) -> Result<MaybeTask, RpcError> {
    let (shells, tasks, agents) = waited_for(&context, &params.session_id).await?;
    if let Some(command) = shells.into_iter().find(|command| command.promote()) {
        return Ok(MaybeTask {
            task: Some(TaskInfo::Shell(ShellInfo {
                execution_mode: Some(Execution::Background),
                can_promote_to_background: Some(false),
                ..of_job(&command)
            })),
        });
    }
    let now = context.app.services.clock.now();
    for task in tasks {
        if agents.promote(&task.id).await {
            let mut info = of_task(&task, now);
            if let TaskInfo::Agent(agent) = &mut info {
                agent.execution_mode = Some(Execution::Background);
                agent.can_promote_to_background = Some(false);
            }
            return Ok(MaybeTask { task: Some(info) });
        }
    }
    Ok(MaybeTask { task: None })
}

pub(super) async fn cancel(context: Context, params: TaskOf) -> Result<Cancelled, RpcError> {
    let session = context.session(&params.session_id)?;
    let id = ShellId::from(params.id.as_str());
    let wanted = id.clone();
    let (shells, found, agents, mcp, is_agent) = session
        .view(move |view| {
            let found = view.shells.find(&wanted).ok();
            let task = view.state.tasks.get(wanted.as_str());
            let is_agent = task.is_some_and(|task| task.agent().is_some());
            let mcp = view.mcp_tasks.clone();
            (
                view.shells.clone(),
                found,
                view.agents.clone(),
                mcp,
                is_agent,
            )
        })
        .await?;
    if is_agent {
        return Ok(Cancelled {
            cancelled: agents.cancel(&params.id, CancelledBy::Client).await,
        });
    }
    if mcp.has(&params.id) {
        return Ok(Cancelled {
            cancelled: mcp.cancel(&params.id).await,
        });
    }
    let left = agents.is_left(&params.id);
    let runs = match found {
        Some(FoundShell::Attached(command)) => command.is_running(),
        Some(FoundShell::Detached(command)) => command.is_running(),
        None => false,
    };
    let cancelled = if left {
        agents.stop_command(&params.id).await
    } else {
        runs && shells.stop(&id, CloseReason::Cancelled).await.is_ok()
    };
    if cancelled {
        // The answer waits until the task has ended, because the caller relies on that.
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

/// Waits until the session is idle and its tasks have ended. Detached commands may run for ever and
/// are not waited for.
pub(super) async fn wait_for_pending(context: Context, params: Of) -> Result<NoResult, RpcError> {
    let session = context.session(&params.session_id)?;
    until(&session, |state| {
        !state.is_at_work() && state.tasks.running().all(Task::is_detached)
    })
    .await?;
    Ok(NoResult {})
}

pub(super) async fn wait_idle(context: Context, params: Of) -> Result<NoResult, RpcError> {
    until_idle(&context.session(&params.session_id)?).await?;
    Ok(NoResult {})
}

/// Waits until the session is idle.
pub(super) async fn until_idle(session: &SessionHandle) -> Result<(), RpcError> {
    until(session, |state| !state.is_at_work()).await
}

/// Waits until the state is as it should be, or the session has ended.
async fn until(session: &SessionHandle, is_so: fn(&State) -> bool) -> Result<(), RpcError> {
    loop {
        let (reached, mut ticks) = session
            .view(move |view| (is_so(view.state), view.ticks.subscribe()))
            .await?;
        if reached || ticks.changed().await.is_err() {
            return Ok(());
        }
    }
}
