//! The short sentences that the kernel writes into the conversation.
//!
//! They are part of the contract with recorded conversations: change one and old recordings no
//! longer match.

use loopd_proto::event::task::TaskOutcome;

use super::tasks::Task;

/// Stands in for the result of a call that an abort or a crash cut short.
pub const INTERRUPTED: &str = "The execution of this tool, or a previous tool was interrupted.";

/// A call was cut short by a crash after it may have started.
pub const OUTCOME_UNKNOWN: &str = "The daemon stopped while this tool was running, so its outcome is unknown. \
     It may have taken effect in whole or in part; check before running it again.";

/// Why a command in the background has no exit code: it died with the daemon.
pub const SHELL_LOST: &str =
    "it was interrupted because the daemon stopped, and its outcome is unknown";

/// Why a command in the background has no exit code: it died with the session.
pub const SHELL_CLOSED: &str = "it was stopped because the session was closed";

/// The code of a result that ends the loop: a person said no.
pub const REJECTED_CODE: &str = "rejected";

pub const REJECTED_BY_USER: &str = "The user rejected this tool call.";

pub const COULD_NOT_ASK: &str = "Permission denied and could not request permission from user";

pub fn rejected_with_feedback(feedback: &str) -> String {
    format!("{REJECTED_BY_USER} User feedback: {feedback}")
}

pub fn denied_by_rule(kind: &str, argument: Option<&str>) -> String {
    match argument {
        Some(argument) => format!("Permission denied by the rule {kind}({argument})."),
        None => format!("Permission denied by the rule {kind}."),
    }
}

/// A person chose one of the offered answers.
pub fn user_selected(answer: &str) -> String {
    format!("User selected: {answer}")
}

/// A person answered in their own words.
pub fn user_responded(answer: &str) -> String {
    format!("User responded: {answer}")
}

/// Tells the model how much of the session's limits is left.
pub fn limits_left(credits: f64) -> String {
    format!(
        "<session_limits_status>\nRemaining session limits: {} AI credits. Later session_limits_status messages \
         supersede earlier ones. Be frugal; avoid optional exploration and unnecessary tool calls.\n\
         </session_limits_status>",
        short_number(credits)
    )
}

/// A number with at most two decimals, and none that say nothing.
pub fn short_number(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The tool by which the model reads what a command printed.
pub const READ_SHELL: &str = if cfg!(windows) {
    "read_powershell"
} else {
    "read_bash"
};

/// Tells the model in the user's place that a command in the background has ended.
pub fn task_ended(task: &Task) -> String {
    let shell = task.shell();
    let id = escaped(shell.shell_id.as_str());
    let (status, exit_code, how) = match task.ending() {
        None => ("running", None, "still runs".to_owned()),
        Some(ending) => {
            let status = match ending.outcome {
                TaskOutcome::Completed => "completed",
                TaskOutcome::Failed => "failed",
                TaskOutcome::Cancelled => "cancelled",
            };
            let how = match (ending.exit_code, &ending.reason) {
                (Some(code), _) => format!("has ended with exit code {code}"),
                (None, Some(reason)) => format!("is over: {}", escaped(reason)),
                (None, None) => "has ended".to_owned(),
            };
            (status, ending.exit_code, how)
        }
    };
    let named = match task.description.as_str() {
        "" => String::new(),
        description => format!(" ({})", escaped(description)),
    };
    let command = escaped(first_line(&shell.command));
    let advice = if exit_code.is_none() && shell.log_path.is_none() {
        "Run the command again if its result is still needed.".to_owned()
    } else {
        format!("Call {READ_SHELL} with shellId \"{id}\" to read its output.")
    };
    let call = task.call.as_ref().map(|call| escaped(call.as_str()));
    let lines = [
        Some("<system_notification>".to_owned()),
        Some(format!("<task_id>{id}</task_id>")),
        call.map(|call| format!("<tool_use_id>{call}</tool_use_id>")),
        Some(format!("<status>{status}</status>")),
        exit_code.map(|code| format!("<exit_code>{code}</exit_code>")),
        Some(format!(
            "<summary>The background command `{command}`{named} {how}.</summary>"
        )),
        shell
            .log_path
            .as_ref()
            .map(|log| format!("<output_file>{}</output_file>", escaped(log))),
        Some(advice),
        Some("</system_notification>".to_owned()),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// How much of a command a notification quotes.
const QUOTED: usize = 200;

fn first_line(command: &str) -> &str {
    let line = command.lines().next().unwrap_or_default();
    match line.char_indices().nth(QUOTED) {
        Some((end, _)) => line.get(..end).unwrap_or(line),
        None => line,
    }
}

/// A text that cannot be taken for a tag.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

pub fn image_at(path: &str) -> String {
    format!("Image file at path {path}")
}
