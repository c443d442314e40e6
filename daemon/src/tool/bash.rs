//! The tool that runs a shell command: it waits for the command, moves it to the background, or
//! detaches it. `loopd_exec::shells` runs commands. `bash/` holds the other shell tools and the
//! texts of all of them. `policy::shell` of the kernel reads the command line for the permission.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::id::ShellId;
use loopd_proto::permission::{PermissionRequest, PossibleUrl, ShellCommand};

use loopd_exec::shells::{AttachedCommand, CommandOrder, RunIn, ShellError, WaitOutcome};
use loopd_kernel::policy::grant::Grant;

use super::shell_output;
use super::{AssessContext, Need, Outcome, Tool, ToolContext, texts};
use loopd_kernel::policy::shell::analysis::{Analysis, SessionApproval};
use loopd_kernel::policy::shell::only_looks;

mod follow;
mod list;
pub(super) mod names;
mod places;
mod reached;
mod read;
mod stop;
mod words;
mod write;

pub(super) use list::List;
pub(super) use read::Read;
pub(super) use stop::Stop;
pub(super) use write::Write;

/// The longest command, in bytes. Linux accepts no longer argument.
const MAX_COMMAND: usize = 128 * 1024 - 1;

/// How long a call waits for its command by default, and at most.
const WAIT: Duration = Duration::from_secs(30);
const MAX_WAIT: Duration = Duration::from_secs(10 * 60);

/// How long a call waits after it started a command in the background, so that it can report a
/// command that fails at once.
const GLANCE: Duration = Duration::from_millis(250);

/// The tool `bash`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bash;

/// Whether a call waits for its command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    #[default]
    Sync,
    Async,
}

/// The arguments of `bash`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct BashArgs {
    /// The command, as you would type it.
    command: String,
    /// What the command does, in a few words for the user.
    #[serde(default)]
    description: String,
    /// Name of the shell to use, of your choice: commands with the same name share a shell and run
    /// one after the other. Without it every command gets a fresh shell.
    #[serde(default, rename = "shellId")]
    shell_id: Option<ShellId>,
    /// sync (default) waits for the command to end; async lets it run in the background.
    #[serde(default)]
    mode: Option<Mode>,
    /// With sync: how many seconds to wait, 30 by default and 600 at most; a command that takes
    /// longer goes on in the background.
    #[serde(default)]
    initial_wait: Option<f64>,
    /// With async: the command is a process of its own that outlives the session; its output goes
    /// to a log file, and it cannot be typed to.
    #[serde(default)]
    detach: Option<bool>,
}

impl Tool for Bash {
    type Args = BashArgs;
    const NAME: &'static str = names::RUN;
    const DESCRIPTION: &'static str = names::RUN_DESCRIPTION;

    async fn need(&self, args: &BashArgs, context: &AssessContext) -> Need {
        if let Err(outcome) = check(args) {
            return Need::Refused(outcome);
        }
        if let Err(outcome) = check_sandbox(args, context) {
            return Need::Refused(outcome);
        }
        if let Some(outcome) = not_in_a_new_shell(args, context) {
            return Need::Refused(outcome);
        }
        // A shell that is not known is not looked up, and its command is asked about.
        let shell = args.shell_id.as_ref().and_then(|id| {
            let cwd = texts::path(&context.cwd);
            context.changed_shells.directories(&id.to_string(), &cwd)
        });
        let shell = shell.unwrap_or_default();
        let request = match places::resolved(request(args), context, shell).await {
            Ok(request) => request,
            Err(outcome) => return Need::Refused(outcome),
        };
        if args.shell_id.is_none() && args.mode.unwrap_or_default() == Mode::Sync {
            return Need::PermissionForShell(request);
        }
        Need::Permission(request)
    }

    async fn run(&self, grant: &Grant, args: BashArgs, context: &ToolContext) -> Outcome {
        let wait = match check(&args) {
            Ok(wait) => wait,
            Err(outcome) => return outcome,
        };
        if let Err(outcome) = check_sandbox(&args, context) {
            return outcome;
        }
        if let Some(outcome) = not_in_a_new_shell(&args, context) {
            return outcome;
        }
        match grant.request() {
            Some(PermissionRequest::Shell {
                full_command_text,
                resolved_working_directory,
                ..
            }) if context
                .redaction
                .is_shown_as(&args.command, full_command_text) =>
            {
                let here = places::directory(&context.cwd);
                if let Some(asked) = resolved_working_directory
                    && *asked != here
                {
                    return Outcome::failure(words::directory_changed(asked, &here));
                }
            }
            _ => return Outcome::failure(texts::not_granted("the command")),
        }
        if context.cancel.is_cancelled() {
            return Outcome::interrupted("");
        }
        let run_in = match args.mode.unwrap_or_default() {
            Mode::Sync => RunIn::Foreground,
            Mode::Async => RunIn::Background,
        };
        if may_write(&args, context) && !context.command_starts().await {
            return Outcome::interrupted("");
        }
        let order = CommandOrder {
            shell: args.shell_id,
            command: args.command,
            description: args.description,
            call: Some(context.call.clone()),
            context: context.command_context(),
            queue_timeout: wait,
            cancel: context.cancel.clone(),
            run_in,
        };
        let may_begin = context.may_begin(names::RUN, grant);
        if args.detach == Some(true) {
            return match may_begin.await {
                Ok(()) => detached(order, context).await,
                Err(why) => Outcome::failure(why),
            };
        }
        let command = match context.shells.start_if(order, may_begin).await {
            Ok(command) => command,
            Err(error) => return words::refused(&error),
        };
        match run_in {
            RunIn::Foreground => in_front(&command, wait, context).await,
            RunIn::Background => in_background(&command, context).await,
        }
    }
}

/// Returns whether a command may change files.
fn may_write(args: &BashArgs, context: &ToolContext) -> bool {
    if context.planning.is_on() {
        // The sandbox lets it change nothing.
        return false;
    }
    let named = args.shell_id.as_ref().map(ToString::to_string);
    // In a shell that was changed, names may mean something else.
    let changed = |name: &String| context.changed_shells.ids().any(|id| id == name);
    !only_looks(&args.command) || named.as_ref().is_some_and(changed)
}

/// Waits for a command for at most `wait`, then moves it to the background.
async fn in_front(
    command: &Arc<AttachedCommand>,
    wait: Duration,
    context: &ToolContext,
) -> Outcome {
    let _abandoned = Abandoned { command, context };
    let pause = follow::follow(command, wait, &context.cancel, &context.partial).await;
    match pause {
        WaitOutcome::Ended => {
            let text = shell_output::whole(command.run.output());
            context.shells.finish(command, &context.command_context());
            words::ended(text, command)
        }
        WaitOutcome::Cancelled => {
            // Before the command is stopped, because a shell shows how it is stopped.
            let shown = shell_output::whole(command.run.output());
            // The abort waits for nothing but this outcome, so the command has to end here.
            command.stop().await;
            context.shells.release(command);
            words::interrupted(shown)
        }
        WaitOutcome::OutOfTime | WaitOutcome::Promoted | WaitOutcome::WaitsForInput
            if !context.may_go_on =>
        {
            let shown = shell_output::whole(command.run.output());
            let note = words::cut_short(pause, wait.as_secs());
            command.stop().await;
            context.shells.release(command);
            Outcome::failure(words::with_note(shown, note.as_str()))
        }
        WaitOutcome::OutOfTime | WaitOutcome::Promoted | WaitOutcome::WaitsForInput => {
            if let Err(error) = context.shells.to_background(command).await {
                return words::refused(&error);
            }
            let shown = shell_output::whole(command.run.output());
            Outcome::success(words::with_note(
                shown,
                &words::moved(command, pause, wait.as_secs()),
            ))
        }
    }
}

/// Stops the command of a call that is dropped while it waits.
struct Abandoned<'a> {
    command: &'a AttachedCommand,
    context: &'a ToolContext,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if self.command.run_in() == RunIn::Foreground && self.command.is_running() {
            self.context.shells.abandon(&self.command.id);
        }
    }
}

/// Lets a command run in the background and returns its first output.
async fn in_background(command: &Arc<AttachedCommand>, context: &ToolContext) -> Outcome {
    let pause = command.wait(GLANCE, &context.cancel).await;
    if pause == WaitOutcome::Ended {
        // The command has ended, so no notification is needed later.
        let text = shell_output::whole(command.run.unread());
        return words::ended_in_background(text, command);
    }
    if let Err(error) = context.shells.to_background(command).await {
        return words::refused(&error);
    }
    let shown = shell_output::whole(command.run.unread());
    Outcome::success(words::with_note(shown, &words::started(command, pause)))
}

async fn detached(order: CommandOrder, context: &ToolContext) -> Outcome {
    match context.shells.detach(order).await {
        Ok(command) => Outcome::success(words::detached(&command)),
        Err(error @ ShellError::StillBusy { .. }) => {
            Outcome::failure(words::detached_needs_own_name(&error))
        }
        Err(error) => words::refused(&error),
    }
}

/// Returns how long the call waits, or why its arguments are invalid.
fn check(args: &BashArgs) -> Result<Duration, Outcome> {
    let refuse = |text: String| Err(Outcome::failure(text));
    if args.command.trim().is_empty() {
        return refuse("The command is empty. Give the command to run.".to_owned());
    }
    if args.command.contains('\0') {
        return refuse(
            "The command contains a NUL character, which no program can be given. Remove it."
                .to_owned(),
        );
    }
    if args.command.len() > MAX_COMMAND {
        return refuse(format!(
            "The command has {} bytes, more than the limit of {MAX_COMMAND}. Create a script file and run that.",
            args.command.len()
        ));
    }
    if args.detach == Some(true) && args.mode.unwrap_or_default() == Mode::Sync {
        return refuse(words::DETACH_NEEDS_ASYNC.to_owned());
    }
    if let Some(id) = &args.shell_id
        && !names::is_shell_name(id)
    {
        return refuse(words::BAD_SHELL_NAME.to_owned());
    }
    match args.initial_wait {
        None => Ok(WAIT),
        Some(wait) => words::seconds("initial_wait", wait)
            .map(|wait| wait.min(MAX_WAIT))
            .map_err(Outcome::failure),
    }
}

/// Returns why a command cannot run in the sandbox that plan mode demands.
fn check_sandbox(args: &BashArgs, context: &AssessContext) -> Result<(), Outcome> {
    if !context.planning.is_on() {
        return Ok(());
    }
    if let Err(error) = loopd_exec::sandbox::check() {
        return Err(Outcome::failure(words::no_sandbox(&error)));
    }
    if args.detach == Some(true) {
        return Err(words::refused(&ShellError::DetachedSandbox));
    }
    match &args.shell_id {
        Some(id) => opened_in_sandbox(id, context),
        None => Ok(()),
    }
}

/// Refuses the first command for a shell that was closed under the model: in a new shell it might
/// work in another directory than the model means. The next command runs.
fn not_in_a_new_shell(args: &BashArgs, context: &AssessContext) -> Option<Outcome> {
    let id = args.shell_id.as_ref()?;
    let reason = context.open_shells.lost(id)?;
    let is_concerned =
        args.detach != Some(true) && context.changed_shells.is_counted_on(&id.to_string());
    is_concerned.then(|| words::gone(id, reason, &context.cwd))?
}

/// Refuses a shell that was opened before plan mode began.
fn opened_in_sandbox(id: &ShellId, context: &AssessContext) -> Result<(), Outcome> {
    let others = context.open_shells.not_sandboxed();
    if context.planning.is_on() && others.contains(id) {
        return Err(Outcome::failure(words::opened_before(id, &others)));
    }
    Ok(())
}

fn request(args: &BashArgs) -> PermissionRequest {
    let lasting = (args.detach == Some(true)).then(|| words::OUTLIVES.to_owned());
    let intention = match args.description.trim() {
        "" => "Run a shell command",
        given => given,
    };
    permission(&args.command, intention, lasting)
}

/// Returns the permission request for a command.
pub(crate) fn permission(
    command: &str,
    intention: &str,
    lasting: Option<String>,
) -> PermissionRequest {
    let analysis = Analysis::of(command);
    let warning = match (analysis.warning, lasting) {
        (Some(warning), Some(lasting)) => Some(format!("{warning} {lasting}")),
        (warning, lasting) => warning.or(lasting),
    };
    PermissionRequest::Shell {
        managed_approval_required: None,
        tool_call_id: None,
        full_command_text: command.to_owned(),
        intention: intention.to_owned(),
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
        warning,
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

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
