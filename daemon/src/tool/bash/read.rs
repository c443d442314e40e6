//! The tool that reads what a command in the background printed since it was read last.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::id::ShellId;

use super::{names, words};
use crate::gate::Grant;
use crate::jobs::{DetachedJob, Ending, Found, Job, Pause};
use crate::tool::{Need, Outcome, Tool, ToolContext, shell_output};

/// How long a read waits unless it says otherwise.
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

    async fn need(&self, args: &ReadArgs, _context: &ToolContext) -> Need {
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
        match context.jobs.find(&args.shell_id) {
            Ok(Found::Attached(job)) => attached(&job, delay, context).await,
            Ok(Found::Detached(job)) => detached(&job, delay, context).await,
            Err(error) => words::refused(&error),
        }
    }
}

/// The delay that a call asks for.
pub(super) fn delay(asked: Option<f64>, usual: Duration) -> Result<Duration, Outcome> {
    match asked {
        None => Ok(usual),
        Some(seconds) => words::seconds("delay", seconds).map_err(Outcome::failure),
    }
}

/// Waits, then shows what is new; a command read to its end needs no notification.
pub(super) async fn attached(job: &Job, delay: Duration, context: &ToolContext) -> Outcome {
    if job.pause(delay, &context.cancel).await == Pause::Cancelled {
        return Outcome::failure(words::INTERRUPTED);
    }
    // Asked first: what is printed in between is read with the next call, never lost.
    let ending = job.ending();
    let text = shell_output::whole(job.run.unread());
    if !matches!(ending, Ending::Running | Ending::Waiting(_)) {
        context.jobs.heard(&job.id).await;
    }
    Outcome::success(words::with_note(text, &words::state(&job.id, ending)))
}

async fn detached(job: &DetachedJob, delay: Duration, context: &ToolContext) -> Outcome {
    if job.pause(delay, &context.cancel).await == Pause::Cancelled {
        return Outcome::failure(words::INTERRUPTED);
    }
    match job.unread().await {
        Ok(part) => {
            if part.ending != Ending::Running {
                context.jobs.heard(&job.id).await;
            }
            let text = shell_output::whole(part.shown);
            Outcome::success(words::with_note(text, &words::state(&job.id, part.ending)))
        }
        Err(error) => Outcome::failure(words::log_unreadable(job, &error)),
    }
}
