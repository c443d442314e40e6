//! The tool that stops a command and closes its shell.

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::id::ShellId;

use super::{names, words};
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext};
use loopd_exec::shells::CloseReason;
use loopd_kernel::policy::grant::Grant;

/// The tool `stop_bash`.
#[derive(Debug, Clone, Copy)]
pub(in crate::tool) struct Stop;

/// The arguments of `stop_bash`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct StopArgs {
    /// The shell to stop.
    #[serde(rename = "shellId")]
    shell_id: ShellId,
}

impl Tool for Stop {
    type Args = StopArgs;
    const NAME: &'static str = names::STOP;
    const DESCRIPTION: &'static str = "Stops the command of a shell with everything it started, and closes the shell. Works for detached commands, too.";

    async fn need(&self, _args: &StopArgs, _context: &AssessContext) -> Need {
        Need::Nothing
    }

    async fn run(&self, _grant: &Grant, args: StopArgs, context: &ToolContext) -> Outcome {
        match context
            .shells
            .stop(&args.shell_id, CloseReason::Stopped)
            .await
        {
            Ok(ending) => Outcome::success(words::stopped(&args.shell_id, ending)),
            Err(error) => words::refused(&error),
        }
    }
}
