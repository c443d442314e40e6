//! The short sentences that the kernel writes into the conversation.
//!
//! They are part of the contract with recorded conversations: change one and old recordings no
//! longer match.

/// Stands in for the result of a call that an abort or a crash cut short.
pub const INTERRUPTED: &str = "The execution of this tool, or a previous tool was interrupted.";

/// A call was cut short by a crash after it may have started.
pub const OUTCOME_UNKNOWN: &str = "The daemon stopped while this tool was running, so its outcome is unknown. \
     It may have taken effect in whole or in part; check before running it again.";

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

pub fn image_at(path: &str) -> String {
    format!("Image file at path {path}")
}
