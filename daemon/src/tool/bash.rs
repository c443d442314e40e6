//! The tool that runs a shell command and waits for it. `bash/process.rs` owns the child,
//! `bash/capture.rs` its output, `shell_syntax` reads the command text for the permission.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::permission::{PermissionRequest, PossibleUrl, ShellCommand};

use crate::gate::Grant;

use super::shell_syntax::{Analysis, SessionApproval};
use super::{Need, Outcome, Status, Tool, ToolContext, texts};

mod capture;
mod partial;
#[cfg(unix)]
mod process;
#[cfg(not(unix))]
#[path = "bash/no_process.rs"]
mod process;

use process::{End, Finished, Timing};

/// The longest command: the kernel takes no longer argument.
const MAX_COMMAND: usize = 128 * 1024 - 1;

/// The tool `bash`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bash {
    timing: Timing,
}

impl Default for Bash {
    fn default() -> Self {
        Self {
            timing: Timing {
                limit: Duration::from_secs(10 * 60),
                kill_after: Duration::from_secs(5),
                pipe_grace: Duration::from_millis(500),
                partial_every: Duration::from_millis(100),
            },
        }
    }
}

/// Whether a call waits for its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    Sync,
    Async,
}

/// The arguments of `bash`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct BashArgs {
    /// The command, as you would type it into bash.
    command: String,
    /// What the command does, in a few words for the user.
    #[serde(default)]
    description: String,
    /// Name of the shell to use; every command runs in a fresh one for now.
    #[serde(default, rename = "shellId")]
    #[expect(
        dead_code,
        reason = "accepted so that calls which name a shell still run"
    )]
    shell_id: Option<String>,
    /// sync waits for the command to end; async is not available yet.
    #[serde(default)]
    mode: Option<Mode>,
    /// Seconds after which you expect the command to have ended.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that calls which set it still run")]
    initial_wait: Option<f64>,
    /// Whether the command outlives the session; not available yet.
    #[serde(default)]
    detach: Option<bool>,
}

impl Tool for Bash {
    type Args = BashArgs;
    const NAME: &'static str = "bash";
    const DESCRIPTION: &'static str = "Runs a bash command in the working directory and returns its output and exit code.\n\
        - Standard output and standard error come back together, in order.\n\
        - Each call starts a fresh shell: variables and cd do not last, so join steps with && or use absolute paths.\n\
        - There is no terminal and no input: pass flags such as --yes or --no-pager instead of answering prompts.\n\
        - A command is stopped after 10 minutes, and so is whatever it leaves in the background.\n\
        - Long output is saved to a file and shown in parts.\n\
        - Prefer view, grep, glob, create and edit for looking at and changing files.";

    async fn need(&self, args: &BashArgs, _context: &ToolContext) -> Need {
        if let Err(outcome) = check(args) {
            return Need::Refused(outcome);
        }
        Need::Permission(request(args))
    }

    async fn run(&self, grant: &Grant, args: BashArgs, context: &ToolContext) -> Outcome {
        if let Err(outcome) = check(&args) {
            return outcome;
        }
        match grant.request() {
            Some(PermissionRequest::Shell {
                full_command_text, ..
            }) if *full_command_text == args.command => {}
            _ => return Outcome::failure(texts::not_granted("the command")),
        }
        if context.cancel.is_cancelled() {
            return Outcome::failure(texts::INTERRUPTED);
        }
        match process::run(&args.command, context, self.timing).await {
            Ok(finished) => self.outcome(finished).await,
            Err(error) => Outcome::failure(error.to_string()),
        }
    }
}

impl Bash {
    async fn outcome(&self, finished: Finished) -> Outcome {
        let mut text = finished.capture.finish().await;
        let (status, mark) = match finished.end {
            End::Exited(code) => (Status::Success, texts::exited(code)),
            End::Killed(signal) => (Status::Success, texts::killed_by_signal(signal)),
            End::Interrupted => (Status::Failure, texts::INTERRUPTED.to_owned()),
            End::OutOfTime => (
                Status::Failure,
                texts::out_of_time(self.timing.limit.as_secs() / 60),
            ),
            End::NotStopped => (Status::Failure, texts::NOT_STOPPED.to_owned()),
        };
        for line in finished.note.into_iter().chain([mark.as_str()]) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line);
        }
        match status {
            Status::Success => Outcome::success(text),
            Status::Failure => Outcome::failure(text),
        }
    }
}

fn check(args: &BashArgs) -> Result<(), Outcome> {
    if args.mode == Some(Mode::Async) || args.detach == Some(true) {
        return Err(Outcome::failure(texts::NO_BACKGROUND));
    }
    if args.command.trim().is_empty() {
        return Err(Outcome::failure(
            "The command is empty. Give the command to run.",
        ));
    }
    if args.command.contains('\0') {
        return Err(Outcome::failure(
            "The command contains a NUL character, which no program can be given. Remove it.",
        ));
    }
    if args.command.len() > MAX_COMMAND {
        return Err(Outcome::failure(format!(
            "The command has {} bytes, more than the limit of {MAX_COMMAND}. Create a script file and run that.",
            args.command.len()
        )));
    }
    Ok(())
}

fn request(args: &BashArgs) -> PermissionRequest {
    let analysis = Analysis::of(&args.command);
    PermissionRequest::Shell {
        tool_call_id: None,
        full_command_text: args.command.clone(),
        intention: match args.description.trim() {
            "" => "Run a shell command".to_owned(),
            given => given.to_owned(),
        },
        commands: analysis
            .identifiers
            .into_iter()
            .map(|identifier| ShellCommand {
                identifier,
                read_only: false,
            })
            .collect(),
        possible_paths: analysis.possible_paths,
        possible_urls: analysis
            .possible_urls
            .into_iter()
            .map(|url| PossibleUrl { url })
            .collect(),
        has_write_file_redirection: analysis.writes_by_redirection,
        can_offer_session_approval: analysis.session_approval == SessionApproval::Offer,
        warning: analysis.warning,
    }
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
