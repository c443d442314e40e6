//! `stop_agent`: stops a sub-agent that is at work or idle.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::subagent::{CancelledBy, RunEnd};
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext};
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::tasks::Task;

/// The tool `stop_agent`.
#[derive(Debug, Clone, Copy)]
pub(in crate::tool) struct Stop;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct StopArgs {
    /// The id or the name of the agent.
    agent_id: String,
}

impl Tool for Stop {
    type Args = StopArgs;
    const NAME: &'static str = "stop_agent";
    const DESCRIPTION: &'static str = "Stops an agent that is at work or idle, and everything it started. You get the last it said.";

    async fn need(&self, _args: &StopArgs, _context: &AssessContext) -> Need {
        Need::Nothing
    }

    async fn run(&self, _grant: &Grant, args: StopArgs, context: &ToolContext) -> Outcome {
        let task = match context.agents.find(&args.agent_id).await {
            Ok(task) => task,
            Err(error) => return Outcome::failure(error.to_string()),
        };
        if context.mcp_tasks.has(&task.id) {
            return stop_mcp_task(&task, context).await;
        }
        let Some(run) = context.agents.run(&task.id) else {
            return stop_idle(&task, context).await;
        };
        context.agents.cancel(&task.id, CancelledBy::Model).await;
        let ending = run.end().await;
        let said = ending
            .response
            .as_deref()
            .unwrap_or("It had not said anything yet.");
        let outcome = Outcome::success(match ending.end {
            RunEnd::Cancelled => format!(
                "The agent {} was stopped. The last it said:\n\n{said}",
                task.id
            ),
            RunEnd::Answered => format!(
                "The agent {} was done before it could be stopped:\n\n{said}",
                task.id
            ),
            RunEnd::Failed(why) => {
                format!("The agent {} had failed already: {why}.\n\n{said}", task.id)
            }
        });
        // Whichever way the sub-agent ended, the model learns it from this outcome.
        match context.agents.find(task.id.as_str()).await {
            Ok(task) => outcome.marking_delivered(&task),
            // The session has ended, so nobody reads the outcome.
            Err(_) => outcome,
        }
    }
}

/// Cancels a task on an MCP server.
async fn stop_mcp_task(task: &Task, context: &ToolContext) -> Outcome {
    context.mcp_tasks.cancel(&task.id).await;
    let outcome = Outcome::success(format!(
        "The task {} is stopped, and its server was told.",
        task.id
    ));
    match context.agents.find(task.id.as_str()).await {
        Ok(task) => outcome.marking_delivered(&task),
        // The session has ended, so nobody reads the outcome.
        Err(_) => outcome,
    }
}

async fn stop_idle(task: &Task, context: &ToolContext) -> Outcome {
    if !context.agents.cancel(&task.id, CancelledBy::Model).await {
        return Outcome::failure(format!(
            "The agent {} is not at work; there is nothing to stop.",
            task.id
        ));
    }
    let said = task.latest_response().unwrap_or_default();
    let what = if task.is_idle() {
        "was idle and is stopped"
    } else {
        "had ended; the commands that it had left running are stopped"
    };
    let outcome = Outcome::success(format!(
        "The agent {} {what}. The last it said:\n\n{said}",
        task.id
    ));
    match context.agents.find(task.id.as_str()).await {
        Ok(task) => outcome.marking_delivered(&task),
        // The session has ended, so nobody reads the outcome.
        Err(_) => outcome,
    }
}
