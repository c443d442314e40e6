//! The tool that lists the shells of the session.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{names, words};
use crate::gate::Grant;
use crate::jobs::{Found, Place};
use crate::tool::{Need, Outcome, Tool, ToolContext};

/// The tool `list_bash`.
#[derive(Debug, Clone, Copy)]
pub(in crate::tool) struct List;

/// The arguments of `list_bash`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct ListArgs {}

impl Tool for List {
    type Args = ListArgs;
    const NAME: &'static str = names::LIST;
    const DESCRIPTION: &'static str = "Lists the shells of this session: their shellIds, what they run, whether it still runs, and whether there is unread output.";

    async fn need(&self, _args: &ListArgs, _context: &ToolContext) -> Need {
        Need::Nothing
    }

    async fn run(&self, _grant: &Grant, _args: ListArgs, context: &ToolContext) -> Outcome {
        let shells = context.jobs.list();
        if shells.is_empty() {
            return Outcome::success(format!(
                "No shells are open. Start one with {}.",
                names::RUN
            ));
        }
        let lines: Vec<String> = shells.iter().map(describe).collect();
        Outcome::success(lines.join("\n"))
    }
}

fn describe(shell: &Found) -> String {
    let process = |pid: Option<u32>| pid.map_or(String::new(), |pid| format!(", process {pid}"));
    match shell {
        Found::Attached(job) => {
            let place = match job.place() {
                Place::Front => "sync",
                Place::Back => "background",
            };
            let unread = if job.run.has_unread() {
                ", unread output"
            } else {
                ""
            };
            format!(
                "{} `{}` ({place}{}{unread})",
                words::state(&job.id, job.ending()),
                job.command,
                process(job.pid)
            )
        }
        Found::Detached(job) => format!(
            "{} `{}` (detached{}, log {})",
            words::state(&job.id, job.ending()),
            job.command,
            process(job.pid),
            job.log.display()
        ),
    }
}
