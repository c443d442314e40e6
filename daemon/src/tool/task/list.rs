//! `list_agents`: lists the sub-agents of the session and their status.

use schemars::JsonSchema;
use serde::Deserialize;

use super::words;
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext};
use loopd_exec::clock::Clock;
use loopd_kernel::policy::grant::Grant;

/// The tool `list_agents`.
#[derive(Debug, Default)]
pub(in crate::tool) struct List {
    clock: Clock,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct ListArgs {}

impl Tool for List {
    type Args = ListArgs;
    const NAME: &'static str = "list_agents";
    const DESCRIPTION: &'static str =
        "Lists the agents you started, those at work and those that are done, with what they do.";

    async fn need(&self, _args: &ListArgs, _context: &AssessContext) -> Need {
        Need::Nothing
    }

    async fn run(&self, _grant: &Grant, _args: ListArgs, context: &ToolContext) -> Outcome {
        let tasks = match context.agents.tasks().await {
            Ok(tasks) => tasks,
            Err(error) => return Outcome::failure(error.to_string()),
        };
        let now = self.clock.now();
        let mut agents: Vec<_> = tasks.iter().filter(|task| task.shell().is_none()).collect();
        agents.sort_by_key(|task| task.started_at);
        let lines: Vec<String> = agents
            .into_iter()
            .map(|task| {
                let progress = context.agents.run(&task.id).map(|run| run.progress());
                words::line(task, progress.as_ref(), now)
            })
            .collect();
        if lines.is_empty() {
            return Outcome::success("There are no agents; start one with the tool task.");
        }
        Outcome::success(lines.join("\n"))
    }
}
