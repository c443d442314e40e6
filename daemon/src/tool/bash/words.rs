//! The texts that the shell tools answer with. Recorded conversations compare the text
//! `<exited with exit code …>` byte for byte. The other texts tell the model what it can do next.

use std::path::Path;
use std::time::Duration;

use loopd_proto::id::ShellId;

use super::names::{LIST, READ, RUN, STOP, WRITE};
use crate::tool::{Outcome, Status, texts};
use loopd_exec::sandbox::SandboxError;
use loopd_exec::shells::{
    AttachedCommand, CloseReason, CommandStatus, DetachedCommand, ShellError, WaitOutcome,
};
use loopd_exec::terminal::{Backend, WaitingFor};

pub(super) const INTERRUPTED: &str =
    "<interrupted: the command was stopped because the turn was aborted>";
pub(super) const DETACH_NEEDS_ASYNC: &str = "detach works only with mode \"async\": a detached command is never waited for. Nothing was run.";
/// Why rules for a command do not cover one that moves a folder.
pub(super) const MOVES_FOLDER: &str = "The command moves a folder, or something that is not there yet; what is in it may make programs run something in the new place.";

pub(super) const BAD_SHELL_NAME: &str = "shellId is not valid: use 1 to 64 letters, digits, hyphens, underscores and dots. Nothing was run.";
pub(super) const OUTLIVES: &str = "The command goes on when the session and the daemon have ended, until it ends by itself or is stopped.";

/// The refusal of a command that was asked for in another directory.
pub(super) fn directory_changed(asked: &str, here: &str) -> String {
    format!(
        "The working directory changed from {asked} to {here} after this command was asked about. Nothing was run. Run the command again if it is meant for {here}."
    )
}

/// The refusal of a detached command in plan mode.
const DETACHED_WHILE_PLANNING: &str = "Nothing was run: a detached command outlives the session, and in plan mode nothing does. Run it without detach, or leave plan mode first.";

/// The refusal of a shell that was opened before plan mode began.
pub(super) fn opened_before(id: &ShellId, others: &[ShellId]) -> String {
    let others: Vec<&str> = others.iter().map(ShellId::as_str).collect();
    format!(
        "Nothing was run: the shell \"{id}\" was opened before plan mode began, and what runs in it could change something. Such shells can be used again when plan mode has ended: {}. Use another shellId, or none; {READ} and {STOP} work.",
        others.join(", ")
    )
}

/// The refusal of commands where nothing keeps them from writing.
pub(super) fn no_sandbox(error: &SandboxError) -> String {
    format!(
        "Nothing was run: in plan mode commands run only where they can change nothing, and this machine cannot do that: {error}. Look with the other tools."
    )
}

/// The longest wait of a call, in seconds.
const MAX_SECONDS: f64 = 600.0;

/// Checks a number of seconds from the model.
pub(super) fn seconds(name: &str, value: f64) -> Result<Duration, String> {
    if value.is_finite() && (0.0..=86_400.0).contains(&value) {
        return Ok(Duration::from_secs_f64(value.min(MAX_SECONDS)));
    }
    Err(format!(
        "{name} is not valid: {value} is not a number of seconds from 0 to {MAX_SECONDS}."
    ))
}

/// The outcome of a command that was stopped because the turn was aborted.
pub(super) fn interrupted(shown: String) -> Outcome {
    if shown.is_empty() {
        return Outcome::interrupted(shown);
    }
    Outcome::interrupted(with_note(shown, INTERRUPTED))
}

pub(super) fn with_note(mut text: String, note: &str) -> String {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(note);
    text
}

/// The outcome of a command that was not run, because the shell that earlier commands used was
/// closed and the model was not told; `None` if it knows.
pub(super) fn gone(id: &ShellId, reason: CloseReason, cwd: &Path) -> Option<Outcome> {
    let why = match reason {
        CloseReason::Finished | CloseReason::Stopped => return None,
        CloseReason::Cancelled => "because the user stopped its command",
        CloseReason::MadeRoom => "because it was idle and a new shell needed its place",
        CloseReason::Unattended => "because no user was there for a long time",
        CloseReason::PlanModeEnded => "because plan mode ended",
        CloseReason::Lost => "when the session or its daemon was stopped",
    };
    let text = format!(
        "The command was not run. The earlier shell {id} was closed {why}, and its variables, functions and \
         directory are gone. The next command with shellId \"{id}\" runs in a new shell, in {}.",
        cwd.display()
    );
    Some(Outcome {
        status: Status::ShellGone,
        ..Outcome::failure(text)
    })
}

/// Says who stopped a command and why, if that was not the model itself.
fn stopped_because(reason: Option<CloseReason>) -> Option<&'static str> {
    match reason? {
        CloseReason::Cancelled => Some("<the user stopped the command>"),
        CloseReason::Unattended => {
            Some("<the command was stopped because no user was there for a long time>")
        }
        CloseReason::PlanModeEnded => Some("<the command was stopped because plan mode ended>"),
        CloseReason::Finished
        | CloseReason::Stopped
        | CloseReason::MadeRoom
        | CloseReason::Lost => None,
    }
}

/// The outcome of a command that ended while the call waited for it.
pub(super) fn ended(text: String, command: &AttachedCommand) -> Outcome {
    let mut outcome = ended_as(text, command.status());
    if let Some(why) = stopped_because(command.stop_reason()) {
        outcome.text = with_note(outcome.text, why);
    }
    outcome
}

fn ended_as(text: String, ending: CommandStatus) -> Outcome {
    match ending {
        CommandStatus::Exited(code) => Outcome::success(with_note(text, &texts::exited(code))),
        CommandStatus::Killed(signal) => {
            Outcome::success(with_note(text, &texts::killed_by_signal(signal)))
        }
        CommandStatus::Stopped => Outcome::failure(with_note(
            text,
            "<the command was stopped before it ended by itself>",
        )),
        CommandStatus::Running | CommandStatus::Waiting(_) | CommandStatus::Unknown => {
            Outcome::failure(with_note(
                text,
                "<the shell was closed while the command ran, so its exit code is unknown; check what it did before running it again>",
            ))
        }
    }
}

/// The outcome for a command in the background that has ended and whose output is complete.
pub(super) fn ended_in_background(text: String, command: &AttachedCommand) -> Outcome {
    Outcome::success(with_note(text, &state_of(command, command.status())))
}

/// Describes the status of a command, and who stopped it.
pub(super) fn state_of(command: &AttachedCommand, status: CommandStatus) -> String {
    let state = state(&command.id, status);
    match stopped_because(command.stop_reason()) {
        Some(why) => with_note(state, why),
        None => state,
    }
}

/// Describes the status of a command in one line.
pub(super) fn state(id: &ShellId, ending: CommandStatus) -> String {
    match ending {
        CommandStatus::Exited(code) => format!("<shellId: {id} completed with exit code {code}>"),
        CommandStatus::Killed(signal) => format!(
            "<shellId: {id} was killed by signal {signal}>\n<shellId: {id} completed with exit code {}>",
            128 + signal
        ),
        CommandStatus::Stopped => format!("<shellId: {id} was stopped>"),
        CommandStatus::Unknown => format!("<shellId: {id} is over, and nobody saw its exit code>"),
        CommandStatus::Running => format!("<shellId: {id} is still running>"),
        CommandStatus::Waiting(what) => format!(
            "<shellId: {id} waits for input ({}); answer with {WRITE} or stop it with {STOP}>",
            wanted(what)
        ),
    }
}

fn wanted(what: WaitingFor) -> &'static str {
    match what {
        WaitingFor::Line => "a line of text",
        WaitingFor::Password => "a line that is not shown, such as a password",
        WaitingFor::Screen => "keys, in a program that fills the screen",
    }
}

/// The note for a command that moved to the background because the call stopped waiting.
pub(super) fn moved(command: &AttachedCommand, pause: WaitOutcome, waited: u64) -> String {
    let id = &command.id;
    match (pause, command.status()) {
        (WaitOutcome::WaitsForInput, CommandStatus::Waiting(what)) => format!(
            "<the command waits for input: {}. It goes on in the background as shellId {id}. {}>",
            wanted(what),
            answer(command)
        ),
        (WaitOutcome::Promoted, _) => format!(
            "<the user moved the command to the background, where it goes on as shellId {id}. {}>",
            later(command)
        ),
        (
            WaitOutcome::OutOfTime
            | WaitOutcome::WaitsForInput
            | WaitOutcome::Ended
            | WaitOutcome::Cancelled,
            _,
        ) => format!(
            "<the command still runs after {waited} seconds and goes on in the background as shellId {id}. {}>",
            later(command)
        ),
    }
}

/// The note for a command that was stopped because nobody could come back to it.
pub(super) fn cut_short(pause: WaitOutcome, waited: u64) -> String {
    match pause {
        WaitOutcome::WaitsForInput => {
            "<the command waited for input, which nobody can give it here, and was stopped; give it its \
             input, for example with </dev/null>"
                .to_owned()
        }
        WaitOutcome::Promoted => {
            "<the command cannot go on in the background, because its output is wanted here, and was \
             stopped>"
                .to_owned()
        }
        WaitOutcome::OutOfTime | WaitOutcome::Ended | WaitOutcome::Cancelled => format!(
            "<the command still ran after {waited} seconds and was stopped; its output is wanted here>"
        ),
    }
}

/// The note for a command that was started in the background.
pub(super) fn started(command: &AttachedCommand, pause: WaitOutcome) -> String {
    let id = &command.id;
    if let (WaitOutcome::WaitsForInput, CommandStatus::Waiting(what)) = (pause, command.status()) {
        return format!(
            "<the command runs in the background as shellId {id} and waits for input: {}. {}>",
            wanted(what),
            answer(command)
        );
    }
    format!(
        "<the command runs in the background as shellId {id}. {}>",
        later(command)
    )
}

fn answer(command: &AttachedCommand) -> String {
    let id = &command.id;
    format!(
        "Answer with {WRITE}, shellId \"{id}\" and the input, ending it with {{enter}}; or stop it with {STOP}."
    )
}

fn later(command: &AttachedCommand) -> String {
    let id = &command.id;
    let typing = match command.backend {
        Backend::Terminal => format!(", {WRITE} to type to it"),
        Backend::Process => String::new(),
    };
    format!(
        "You will be notified when it ends; until then go on with other work. Use {READ} with shellId \"{id}\" to see its output{typing}, {STOP} to stop it."
    )
}

pub(super) fn detached(command: &DetachedCommand) -> String {
    let (id, log) = (&command.id, command.log.display());
    let process = command.pid.map(|pid| format!(" (process {pid})"));
    format!(
        "<the command runs detached as shellId {id}{} and writes to {log}. It outlives this session; you will be notified when it ends while the session is open. Use {READ} with shellId \"{id}\" to see its log, {STOP} to stop it; it cannot be typed to.>",
        process.unwrap_or_default()
    )
}

pub(super) fn detached_needs_own_name(error: &ShellError) -> String {
    format!(
        "Nothing was run: {error}, and a detached command needs a shellId of its own. Choose another shellId or leave it out."
    )
}

/// The outcome of a call that did nothing: why, and what to do instead.
pub(super) fn refused(error: &ShellError) -> Outcome {
    Outcome::failure(match error {
        ShellError::Unknown { id, known } => match known.as_slice() {
            [] => format!(
                "There is no shell with the shellId \"{id}\", and no other shell is open. Start one with {RUN}."
            ),
            known => {
                let known: Vec<&str> = known.iter().map(ShellId::as_str).collect();
                format!(
                    "There is no shell with the shellId \"{id}\". Open shells: {}. Use one of them, see {LIST}, or start a new one with {RUN}.",
                    known.join(", ")
                )
            }
        },
        ShellError::Closed { id, reason } => closed(id, *reason),
        ShellError::Detached(id) => format!(
            "The shellId \"{id}\" belongs to a detached command that still runs; it has only a log and takes no input. Use {READ} to see the log, {STOP} to stop it, or another shellId."
        ),
        ShellError::NotSandboxed { id, others } => opened_before(id, others),
        ShellError::DetachedSandbox => DETACHED_WHILE_PLANNING.to_owned(),
        ShellError::StillBusy { id, command } => format!(
            "Nothing was run: the shell \"{id}\" still runs `{command}`. Wait for it with {READ}, stop it with {STOP}, or use another shellId."
        ),
        ShellError::TooManyShells { limit } => format!(
            "Nothing was run: {limit} shells are open already and none of them rests. Stop some with {STOP}; {LIST} shows them."
        ),
        ShellError::NotPermitted(why) => why.clone(),
        ShellError::Interrupted => INTERRUPTED.to_owned(),
        ShellError::SessionEnded => "Nothing was run: the session has ended.".to_owned(),
        ShellError::Open(error) => {
            format!("Nothing was run: the shell could not be opened: {error}.")
        }
        ShellError::Start(error) => format!("Nothing was run: {error}."),
        ShellError::Spawn(error) => format!("Nothing was run: {error}."),
        ShellError::NotStored(why) => {
            format!("The command was stopped, because the session could not note it: {why}.")
        }
    })
}

fn closed(id: &ShellId, reason: CloseReason) -> String {
    match reason {
        CloseReason::Finished => format!(
            "The shell \"{id}\" is closed: its command had ended and its output was read. Run the command again with {RUN} if you need it."
        ),
        CloseReason::Stopped => {
            format!("The shell \"{id}\" is closed: you stopped it. Start a new one with {RUN}.")
        }
        CloseReason::Cancelled => format!(
            "The shell \"{id}\" is closed: the user cancelled its command. Ask before running it again."
        ),
        CloseReason::MadeRoom => format!(
            "The shell \"{id}\" is closed: too many shells were open, and it had rested longest. Start a new one with {RUN}."
        ),
        CloseReason::Unattended => format!(
            "The shell \"{id}\" is closed: no command was at work in it, or one waited for input, and no user was there for a long time. Start a new one with {RUN}."
        ),
        CloseReason::PlanModeEnded => format!(
            "The shell \"{id}\" is closed: it was opened in plan mode, which has ended. Start a new one with {RUN}."
        ),
        CloseReason::Lost => format!(
            "The shell \"{id}\" is closed: it ended with an earlier run of the daemon or session, and its output is gone. Check what its command did before running it again with {RUN}."
        ),
    }
}

pub(super) fn nothing_to_type_to(command: &AttachedCommand) -> String {
    let id = &command.id;
    match command.status() {
        CommandStatus::Running | CommandStatus::Waiting(_) => {
            format!("The shell \"{id}\" takes no input.")
        }
        CommandStatus::Exited(_)
        | CommandStatus::Killed(_)
        | CommandStatus::Stopped
        | CommandStatus::Unknown => format!(
            "Nothing was typed: the command of shell \"{id}\" has ended. Read its output with {READ}, or run another command in this shell with {RUN} and shellId \"{id}\"."
        ),
    }
}

pub(super) fn no_terminal(id: &ShellId) -> String {
    format!(
        "Nothing was typed: the command of shell \"{id}\" runs without a terminal and takes no input. Stop it with {STOP} and run it with flags or a pipe that answer for it."
    )
}

pub(super) fn detached_takes_no_input(id: &ShellId) -> String {
    format!(
        "Nothing was typed: the command of shell \"{id}\" is detached; it has only a log and takes no input. Read the log with {READ} or stop it with {STOP}."
    )
}

pub(super) fn log_unreadable(command: &DetachedCommand, error: &std::io::Error) -> String {
    format!(
        "The log of shell \"{}\" ({}) cannot be read: {error}.",
        command.id,
        command.log.display()
    )
}

pub(super) fn stopped(id: &ShellId, ending: CommandStatus) -> String {
    match ending {
        CommandStatus::Exited(code) => format!(
            "The command of shell \"{id}\" had ended already with exit code {code}; the shell is closed now."
        ),
        CommandStatus::Killed(_)
        | CommandStatus::Stopped
        | CommandStatus::Unknown
        | CommandStatus::Running
        | CommandStatus::Waiting(_) => {
            format!("The command of shell \"{id}\" was stopped and the shell is closed.")
        }
    }
}
