//! The tool that reads the new output of a command in the background.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::id::ShellId;

use super::{names, words};
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext, shell_output};
use loopd_exec::shells::{
    AttachedCommand, CommandStatus, DetachedCommand, FoundShell, WaitOutcome,
};
use loopd_kernel::policy::grant::Grant;

/// How long a read waits by default.
const DELAY: Duration = Duration::from_secs(5);

/// The tool `read_bash`.
#[derive(Debug, Clone, Copy)]
pub(in crate::tool) struct Read;

/// The arguments of `read_bash`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct ReadArgs {
    /// The shell whose command to read.
    #[serde(rename = "shellId")]
    shell_id: ShellId,
    /// How many seconds to wait for more output, 5 by default and 600 at most; the call returns
    /// earlier when the command ends or waits for input.
    #[serde(default)]
    delay: Option<f64>,
}

impl Tool for Read {
    type Args = ReadArgs;
    const NAME: &'static str = names::READ;
    const DESCRIPTION: &'static str = "Reads what a command in the background printed since it was read last, and tells whether it still runs.\n\
        - Reading a command to its end counts as being notified of it.\n\
        - Of a detached command, its log is read.";

    async fn need(&self, args: &ReadArgs, _context: &AssessContext) -> Need {
        match delay(args.delay, DELAY) {
            Ok(_) => Need::Nothing,
            Err(outcome) => Need::Refused(outcome),
        }
    }

    async fn run(&self, _grant: &Grant, args: ReadArgs, context: &ToolContext) -> Outcome {
        let delay = match delay(args.delay, DELAY) {
            Ok(delay) => delay,
            Err(outcome) => return outcome,
        };
        match context.shells.find(&args.shell_id) {
            Ok(FoundShell::Attached(command)) => attached(&command, delay, context).await,
            Ok(FoundShell::Detached(command)) => detached(&command, delay, context).await,
            Err(error) => words::refused(&error),
        }
    }
}

/// Returns the delay that a call asks for, or the usual one.
pub(super) fn delay(asked: Option<f64>, usual: Duration) -> Result<Duration, Outcome> {
    match asked {
        None => Ok(usual),
        Some(seconds) => words::seconds("delay", seconds).map_err(Outcome::failure),
    }
}

/// Waits, then returns the new output. A command that was read to its end needs no notification.
pub(super) async fn attached(
    command: &AttachedCommand,
    delay: Duration,
    context: &ToolContext,
) -> Outcome {
    if command.wait(delay, &context.cancel).await == WaitOutcome::Cancelled {
        return Outcome::failure(words::INTERRUPTED);
    }
    // The status is read before the output: if the command prints something in between, this
    // call or the next one returns it, and nothing is lost.
    let ending = command.status();
    let text = shell_output::whole(command.run.unread());
    if !matches!(ending, CommandStatus::Running | CommandStatus::Waiting(_)) {
        context.shells.mark_delivered(&command.id).await;
    }
    Outcome::success(words::with_note(text, &words::state_of(command, ending)))
}

async fn detached(command: &DetachedCommand, delay: Duration, context: &ToolContext) -> Outcome {
    if command.wait(delay, &context.cancel).await == WaitOutcome::Cancelled {
        return Outcome::failure(words::INTERRUPTED);
    }
    match command.unread().await {
        Ok(part) => {
            if part.status != CommandStatus::Running {
                context.shells.mark_delivered(&command.id).await;
            }
            let text = shell_output::whole(part.shown);
            Outcome::success(words::with_note(
                text,
                &words::state(&command.id, part.status),
            ))
        }
        Err(error) => Outcome::failure(words::log_unreadable(command, &error)),
    }
}
