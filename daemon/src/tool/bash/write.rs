//! The tool that types to a command in the background.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::id::ShellId;
use loopd_proto::permission::{PermissionRequest, ShellCommand};

use super::{names, read, words};
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext, texts};
use loopd_exec::shells::{AttachedCommand, FoundShell};
use loopd_exec::terminal::{Backend, InputError, parse_input};
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::policy::shell::analysis::Analysis;

/// How long the call waits by default for the command's reaction to what was typed.
const DELAY: Duration = Duration::from_secs(2);

/// The longest input, in bytes.
const MAX_INPUT: usize = 64 * 1024;

/// The tool `write_bash`.
#[derive(Debug, Clone, Copy)]
pub(in crate::tool) struct Write;

/// The arguments of `write_bash`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct WriteArgs {
    /// The shell whose command to type to.
    #[serde(rename = "shellId")]
    shell_id: ShellId,
    /// The text to type. Keys are written in braces: {enter}, {tab}, {esc}, {up}, {down}, {left},
    /// {right}, {backspace}, {ctrl-c}, {f1} and so on. A line is sent only by its {enter}.
    #[serde(default)]
    input: String,
    /// How many seconds to wait for what the command answers, 2 by default.
    #[serde(default)]
    delay: Option<f64>,
}

impl Tool for Write {
    type Args = WriteArgs;
    const NAME: &'static str = names::WRITE;
    const NEEDS_TERMINAL: bool = true;
    const DESCRIPTION: &'static str = "Types to a command in the background and returns what it prints next.\n\
        - Use it to answer a command that waits for input, to drive an interactive program, or to interrupt one with {ctrl-c}.\n\
        - End a line with {enter}.";

    async fn need(&self, args: &WriteArgs, context: &AssessContext) -> Need {
        match check(args, context) {
            Ok((command, _)) => Need::Permission(request(args, &command)),
            Err(outcome) => Need::Refused(outcome),
        }
    }

    async fn run(&self, grant: &Grant, args: WriteArgs, context: &ToolContext) -> Outcome {
        let (command, delay) = match check(&args, context) {
            Ok(checked) => checked,
            Err(outcome) => return outcome,
        };
        match grant.request() {
            Some(PermissionRequest::Shell {
                full_command_text, ..
            }) if context
                .redaction
                .is_shown_as(&args.input, full_command_text) => {}
            _ => return Outcome::failure(texts::not_granted("the input")),
        }
        if !context.planning.is_on() && !context.command_starts().await {
            return Outcome::interrupted("");
        }
        let sent = match parse_input(&args.input) {
            Ok(input) => command.run.send(&input).await,
            Err(error) => Err(error),
        };
        match sent {
            Ok(()) => read::attached(&command, delay, context).await,
            Err(InputError::Ended) => Outcome::failure(words::nothing_to_type_to(&command)),
            Err(InputError::NoTerminal) => Outcome::failure(words::no_terminal(&command.id)),
            Err(error @ (InputError::UnknownKey(_) | InputError::NotRead)) => {
                Outcome::failure(format!("Nothing was typed: {error}."))
            }
        }
    }
}

/// Returns the command to type to and how long to wait, or why the call cannot work.
fn check(
    args: &WriteArgs,
    context: &AssessContext,
) -> Result<(std::sync::Arc<AttachedCommand>, Duration), Outcome> {
    let delay = read::delay(args.delay, DELAY)?;
    if args.input.is_empty() {
        return Err(Outcome::failure(
            "The input is empty. Give the text to type; {enter} alone sends an empty line.",
        ));
    }
    if args.input.len() > MAX_INPUT {
        return Err(Outcome::failure(format!(
            "The input has {} bytes, more than the limit of {MAX_INPUT}. Type it in parts, or put it into a file.",
            args.input.len()
        )));
    }
    if let Err(error) = parse_input(&args.input) {
        return Err(Outcome::failure(format!("Nothing was typed: {error}.")));
    }
    super::opened_in_sandbox(&args.shell_id, context)?;
    let command = match context.open_shells.find(&args.shell_id) {
        Ok(FoundShell::Attached(command)) => command,
        Ok(FoundShell::Detached(command)) => {
            return Err(Outcome::failure(words::detached_takes_no_input(
                &command.id,
            )));
        }
        Err(error) => return Err(words::refused(&error)),
    };
    if !command.is_running() {
        return Err(Outcome::failure(words::nothing_to_type_to(&command)));
    }
    if command.backend == Backend::Process {
        return Err(Outcome::failure(words::no_terminal(&command.id)));
    }
    Ok((command, delay))
}

/// Returns the permission request, which shows exactly what is typed. A standing approval of
/// commands does not cover it, but a denial does.
fn request(args: &WriteArgs, command: &AttachedCommand) -> PermissionRequest {
    let typed = Analysis::of(&args.input.replace("{enter}", "\n"));
    let own = [names::WRITE.to_owned()];
    PermissionRequest::Shell {
        managed_approval_required: None,
        tool_call_id: None,
        full_command_text: args.input.clone(),
        intention: format!(
            "Type into the shell {}, which runs `{}`",
            command.id, command.command
        ),
        commands: own
            .into_iter()
            .chain(typed.identifiers)
            .map(|identifier| ShellCommand {
                identifier,
                read_only: false,
            })
            .collect(),
        possible_paths: typed.possible_paths,
        possible_urls: Vec::new(),
        has_write_file_redirection: false,
        can_offer_session_approval: false,
        warning: None,
        resolved_paths: std::collections::BTreeMap::new(),
        resolved_working_directory: None,
        changed_shell: None,
        shell_directories: Vec::new(),
        shell_directory_unknown: None,
        repository_folders: Vec::new(),
        writes_protected: None,
        reached: None,
        typed_before: Vec::new(),
    }
}
