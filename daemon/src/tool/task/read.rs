//! `read_agent`: returns what a sub-agent answered, or its progress.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::words;
use crate::subagent::{RunWait, SubagentRun, first};
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext};
use loopd_exec::clock::Clock;
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::tasks::Task;

/// How long a call waits by default, and at most.
const WAIT: Duration = Duration::from_secs(30);
const MAX_WAIT: Duration = Duration::from_secs(600);

/// The tool `read_agent`.
#[derive(Debug, Default)]
pub(in crate::tool) struct Read {
    clock: Clock,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct ReadArgs {
    /// The id or the name of the agent.
    agent_id: String,
    /// Whether to wait until it has answered.
    #[serde(default)]
    wait: Option<bool>,
    /// With wait: how many seconds, 30 by default and 600 at most.
    #[serde(default)]
    timeout: Option<f64>,
    /// Only answers after this turn; 1 leaves out the first.
    #[serde(default)]
    since_turn: Option<u32>,
}

impl Tool for Read {
    type Args = ReadArgs;
    const NAME: &'static str = "read_agent";
    const DESCRIPTION: &'static str = "Reads what an agent has answered, or how far it is. You are told when an agent in the background \
        has answered; with wait you can wait for it when there is nothing else to do.";
    const WAITS_FOR_AGENTS: bool = true;

    async fn need(&self, args: &ReadArgs, _context: &AssessContext) -> Need {
        match patience(args) {
            Ok(_) => Need::Nothing,
            Err(outcome) => Need::Refused(outcome),
        }
    }

    async fn run(&self, _grant: &Grant, args: ReadArgs, context: &ToolContext) -> Outcome {
        let patience = match patience(&args) {
            Ok(patience) => patience,
            Err(outcome) => return outcome,
        };
        let task = match context.agents.find(&args.agent_id).await {
            Ok(task) => task,
            Err(error) => return Outcome::failure(error.to_string()),
        };
        let task = match patience {
            Some(patience) => wait(task, patience, context).await,
            None => task,
        };
        let run = context.agents.run(&task.id);
        let progress = run.map(|run| run.progress());
        let since = args.since_turn.map(|turn| turn as usize);
        Outcome::success(words::status(
            &task,
            progress.as_ref(),
            since,
            self.clock.now(),
        ))
        .marking_delivered(&task)
    }
}

fn patience(args: &ReadArgs) -> Result<Option<Duration>, Outcome> {
    if args.wait != Some(true) {
        return Ok(None);
    }
    let Some(seconds) = args.timeout else {
        return Ok(Some(WAIT));
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(wait) => Ok(Some(wait.min(MAX_WAIT))),
        Err(_) => Err(Outcome::failure(format!(
            "timeout: {seconds} is no number of seconds; give one from 0 to 600."
        ))),
    }
}

/// Waits for the answer and returns the task as it is then. The caller's slot is lent meanwhile.
async fn wait(task: Task, patience: Duration, context: &ToolContext) -> Task {
    if context.mcp_tasks.has(&task.id) {
        let end = context.mcp_tasks.end_of(&task.id);
        tokio::select! {
            _ = tokio::time::timeout(patience, end) => {}
            () = context.cancel.cancelled() => {}
        }
        return context.agents.find(task.id.as_str()).await.unwrap_or(task);
    }
    let Some(run) = context.agents.run(&task.id).filter(|_| task.is_running()) else {
        // The run may have ended since the task was found.
        return context.agents.find(task.id.as_str()).await.unwrap_or(task);
    };
    if let Some(lease) = &context.lease {
        lease.lend();
    }
    // After an answer or a timeout, the registry of tasks has the current status.
    tokio::time::timeout(patience, answered(context, &run))
        .await
        .ok();
    if let Some(lease) = &context.lease {
        tokio::select! {
            () = lease.resume() => {}
            () = context.cancel.cancelled() => {}
        }
    }
    context.agents.find(task.id.as_str()).await.unwrap_or(task)
}

/// Resolves when the sub-agent has answered or the call is cancelled. The wait goes on if the user
/// moves the sub-agent to the background.
async fn answered(context: &ToolContext, run: &SubagentRun) {
    if matches!(first(&context.cancel, run).await, RunWait::Promoted) {
        tokio::select! {
            _ = run.end() => {}
            () = context.cancel.cancelled() => {}
        }
    }
}
