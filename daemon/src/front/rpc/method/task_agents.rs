//! Sub-agents in the background, for clients: start, message, read and stop them. Also the tasks that
//! clients do themselves. `task_tree` shows the tree.

use std::time::Duration;

use loopd_proto::event::task::{Execution, ExternalWork, TaskOutcome, TaskWork};
use loopd_proto::id::{SessionId, TaskId};
use loopd_proto::params::session::Of;
use loopd_proto::params::task::{
    AgentStarted, AnswerRead, MessageParams, MessageSent, ReadParams, RegisterParams, Registered,
    StartAgentParams, TaskOf, TaskRead, TaskSummary, Update, UpdateParams, Updated,
};

use super::task_info::node;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::beside::BesideQuestion;
use crate::subagent::{CancelledBy, Delivered, SubagentError, SubagentOrder, Subagents};
use loopd_kernel::command::{Answer, Command, TaskEnd, TaskStart};

/// The longest wait for an answer.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// The type under which tasks of clients are listed.
const CLIENT_TASK: &str = "client-task";
/// The longest id of a task that a client registers.
const LONGEST_ID: usize = 128;

async fn agents(context: &Context, session: &SessionId) -> Result<Subagents, RpcError> {
    let session = context.session(session)?;
    Ok(session.view(|view| view.agents.clone()).await?)
}

pub(super) async fn start_agent(
    context: Context,
    params: StartAgentParams,
) -> Result<AgentStarted, RpcError> {
    let agents = agents(&context, &params.session_id).await?;
    let started = agents
        .start(SubagentOrder {
            agent_type: Some(params.agent_type),
            description: params.description.unwrap_or_else(|| params.name.clone()),
            name: Some(params.name),
            prompt: params.prompt,
            model: params.model,
            execution: Some(Execution::Background),
            isolation: None,
            cwd: None,
            call: None,
            todo: None,
            tools: None,
            answers_person: false,
            command: None,
            skill: None,
        })
        .await
        .map_err(|error| RpcError::Failed(error.to_string()))?;
    Ok(AgentStarted {
        agent_id: started.id,
    })
}

pub(super) async fn send_message(
    context: Context,
    params: MessageParams,
) -> Result<MessageSent, RpcError> {
    let agents = agents(&context, &params.session_id).await?;
    let sent = async {
        if params.message.trim().is_empty() {
            return Err(SubagentError::EmptyMessage);
        }
        let task = agents.find(params.id.as_str()).await?;
        let Some(work) = task.agent() else {
            return Err(SubagentError::TakesNoMessages(task.id.clone()));
        };
        let (Delivered::AtWork | Delivered::Resumed) =
            agents.write(&task.id, work, params.message).await?;
        Ok(())
    };
    Ok(match sent.await {
        Ok(()) => MessageSent {
            sent: true,
            error: None,
        },
        Err(error) => MessageSent {
            sent: false,
            error: Some(error.to_string()),
        },
    })
}

pub(super) async fn cancel_all(context: Context, params: Of) -> Result<u64, RpcError> {
    let session = context.session(&params.session_id)?;
    let seen = session.view(|view| (view.agents.clone(), view.mcp_tasks.clone()));
    let (agents, mcp) = seen.await?;
    let cancelled = agents.cancel_background(CancelledBy::Client).await;
    Ok((cancelled + mcp.cancel_all().await) as u64)
}

pub(super) async fn read(context: Context, params: ReadParams) -> Result<TaskRead, RpcError> {
    let agents = agents(&context, &params.session_id).await?;
    let failed = |error: SubagentError| RpcError::Failed(error.to_string());
    let mut task = agents.find(params.id.as_str()).await.map_err(failed)?;
    if let Some(seconds) = params.wait {
        let wait = Duration::try_from_secs_f64(seconds).map_err(|_| {
            RpcError::InvalidParams(format!("wait: {seconds} is no number of seconds"))
        })?;
        if let Some(run) = agents.run(&task.id) {
            // Answered or not, the registry of tasks knows.
            tokio::time::timeout(wait.min(LONGEST_WAIT), run.end())
                .await
                .ok();
        }
        // Also without a run: it may have ended since the task was found.
        task = agents.find(task.id.as_str()).await.map_err(failed)?;
    }
    let progress = agents.run(&task.id).map(|run| run.progress());
    let now = context.app.services.clock.now();
    let turns = task.turns.iter().map(|turn| AnswerRead {
        response: turn.response.clone(),
        at: turn.at,
    });
    Ok(TaskRead {
        turns: turns.collect(),
        node: node(&task, progress.as_ref(), now),
    })
}

/// Asks an agent how far it is. It is asked beside its work, which goes on and knows nothing of it.
pub(super) async fn summary(context: Context, params: TaskOf) -> Result<TaskSummary, RpcError> {
    let agents = agents(&context, &params.session_id).await?;
    let found = agents.find(params.id.as_str()).await;
    let task = found.map_err(|error| RpcError::Failed(error.to_string()))?;
    let Some(work) = task.agent() else {
        return Err(RpcError::Failed(format!(
            "the task {} is no agent; session.tasks.getProgress says how far it is",
            task.id
        )));
    };
    let works = agents.run(&task.id).is_some();
    let session = context.app.sessions.get(&work.session_id);
    let Some(session) = session.filter(|_| works) else {
        return Err(RpcError::Failed(format!(
            "the agent {} does not work at the moment; loopd.taskRead has what it answered",
            task.id
        )));
    };
    let asked = session.ask_beside(BesideQuestion::AgentSummary).await?;
    match asked {
        Ok(summary) => Ok(TaskSummary { summary }),
        Err(why) => Err(RpcError::Failed(format!(
            "the agent {} could not be asked: {why}",
            task.id
        ))),
    }
}

pub(super) async fn register(
    context: Context,
    params: RegisterParams,
) -> Result<Registered, RpcError> {
    let session = context.session(&params.session_id)?;
    let id = checked(params.id)?;
    let start = TaskStart {
        id,
        call: None,
        description: params.description,
        started_at: None,
        work: TaskWork::External(ExternalWork {
            agent_type: CLIENT_TASK.to_owned(),
            prompt: params.prompt.unwrap_or_default(),
            mcp: None,
        }),
    };
    session
        .command(Command::TaskStarted(Box::new(start)))
        .await?;
    Ok(Registered { registered: true })
}

fn checked(id: TaskId) -> Result<TaskId, RpcError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let text = id.as_str();
    if text.is_empty() || text.len() > LONGEST_ID || !text.chars().all(plain) {
        return Err(RpcError::InvalidParams(format!(
            "id: use 1 to {LONGEST_ID} letters, digits, `-`, `_`, `.` or `:`"
        )));
    }
    Ok(id)
}

pub(super) async fn update(context: Context, params: UpdateParams) -> Result<Updated, RpcError> {
    let session = context.session(&params.session_id)?;
    let id = params.id;
    let wanted = id.clone();
    let external = session.state(move |state| {
        let task = state.tasks.get(wanted.as_str());
        task.is_some_and(|task| task.external().is_some())
    });
    if !external.await? {
        return Ok(Updated { updated: false });
    }
    let command = match params.update {
        Update::Running { note } => Command::TaskNoted { id, note },
        Update::Completed { result } => Command::TaskEnded {
            id,
            end: TaskEnd {
                result: Some(result),
                ..TaskEnd::new(TaskOutcome::Completed)
            },
        },
        Update::Failed { error } => Command::TaskEnded {
            id,
            end: TaskEnd::new(TaskOutcome::Failed).because(error),
        },
        Update::Cancelled {} => Command::TaskEnded {
            id,
            end: TaskEnd::new(TaskOutcome::Cancelled).because("it was cancelled"),
        },
    };
    let done = session.command(command).await?;
    Ok(Updated {
        updated: done.answer == Answer::Accepted(true),
    })
}
