//! The tool that lists the shells of the session.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{names, words};
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext};
use loopd_exec::shells::{FoundShell, RunIn};
use loopd_kernel::policy::grant::Grant;

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

    async fn need(&self, _args: &ListArgs, _context: &AssessContext) -> Need {
        Need::Nothing
    }

    async fn run(&self, _grant: &Grant, _args: ListArgs, context: &ToolContext) -> Outcome {
        let shells = context.shells.list();
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

fn describe(shell: &FoundShell) -> String {
    let process = |pid: Option<u32>| pid.map_or(String::new(), |pid| format!(", process {pid}"));
    match shell {
        FoundShell::Attached(command) => {
            let place = match command.run_in() {
                RunIn::Foreground => "sync",
                RunIn::Background => "background",
            };
            let unread = if command.run.has_unread() {
                ", unread output"
            } else {
                ""
            };
            format!(
                "{} `{}` ({place}{}{unread})",
                words::state(&command.id, command.status()),
                command.command,
                process(command.pid)
            )
        }
        FoundShell::Detached(command) => format!(
            "{} `{}` (detached{}, log {})",
            words::state(&command.id, command.status()),
            command.command,
            process(command.pid),
            command.log.display()
        ),
    }
}
