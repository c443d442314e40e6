//! The tool that replaces one piece of a text file. `edit/replacement.rs` finds the piece; this
//! file asks, checks and writes. Never creates a file.

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::permission::PermissionRequest;

use crate::gate::Grant;

use super::diff::{self, Change};
use super::disk::{self, DiskError, Stamp};
use super::place::{self, Place};
use super::{Need, Outcome, Tool, ToolContext, texts};

mod replacement;

use replacement::NoReplacement;

/// The tool `edit`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edit;

/// The arguments of `edit`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct EditArgs {
    /// Path of the file to change; relative paths start at the working directory.
    path: String,
    /// The text to replace, exactly as in the file and found there only once.
    old_str: String,
    /// The text to put in its place; empty or left out to delete it.
    #[serde(default)]
    new_str: String,
}

impl Tool for Edit {
    type Args = EditArgs;
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = "Replaces one piece of text in an existing file.\n\
        - old_str has to match the file exactly, with all spaces and line breaks, and has to occur exactly once: add lines around it until it does.\n\
        - Leave out the line numbers that view prints.\n\
        - The file keeps its line endings (LF or CRLF) and its permissions.\n\
        - Call it several times to change several places; use create for a new file.";

    async fn need(&self, args: &EditArgs, context: &ToolContext) -> Need {
        let (args, context) = (args.clone(), context.clone());
        match disk::blocking(move || plan(&args, &context)).await {
            Ok(Ok(plan)) => Need::Permission(PermissionRequest::Write {
                tool_call_id: None,
                intention: "Edit file".to_owned(),
                file_name: texts::path(&plan.place.shown),
                diff: plan.diff,
                new_file_contents: None,
                can_offer_session_approval: true,
            }),
            Ok(Err(outcome)) | Err(outcome) => Need::Refused(outcome),
        }
    }

    async fn run(&self, grant: &Grant, args: EditArgs, context: &ToolContext) -> Outcome {
        let context = context.clone();
        let plan = match disk::blocking(move || plan(&args, &context)).await {
            Ok(Ok(plan)) => plan,
            Ok(Err(outcome)) | Err(outcome) => return outcome,
        };
        if let Err(outcome) = plan.place.check_write(grant, &plan.diff) {
            return outcome;
        }
        match disk::blocking(move || write(plan)).await {
            Ok(outcome) | Err(outcome) => outcome,
        }
    }
}

/// One edit, worked out but not made.
struct Plan {
    place: Place,
    new: String,
    diff: String,
    stamp: Stamp,
}

fn plan(args: &EditArgs, context: &ToolContext) -> Result<Plan, Outcome> {
    let place = place::existing(context, &args.path)?;
    let found = disk::read_text(&place.real)
        .map_err(|error| Outcome::failure(unreadable(&place, &error)))?;
    let new = replacement::apply(&found.text, &args.old_str, &args.new_str)
        .map_err(|error| Outcome::failure(no_replacement(&place, &error)))?;
    let change = Change::Edit {
        old: &found.text,
        new: &new,
    };
    Ok(Plan {
        diff: diff::git_style(&place.shown, change),
        place,
        new,
        stamp: found.stamp,
    })
}

fn write(plan: Plan) -> Outcome {
    let asked = plan.place.asked.display();
    match disk::replace(&plan.place.real, plan.new.as_bytes(), &plan.stamp) {
        Ok(()) => Outcome::success(texts::updated(asked)).with_detail(plan.diff),
        Err(DiskError::WriteProtected) => Outcome::failure(format!(
            "File {asked} is write-protected and was left as it is. Change its mode first if it should be edited."
        )),
        Err(error) => Outcome::failure(format!(
            "File {asked} was left as it is: {error}. View it and try again."
        )),
    }
}

fn unreadable(place: &Place, error: &DiskError) -> String {
    let advice = match error {
        DiskError::Folder => "Give the path of a file inside it.",
        DiskError::TooLarge { .. } | DiskError::Binary | DiskError::NotUtf8 => {
            "Change it with a shell command instead."
        }
        DiskError::Special
        | DiskError::WriteProtected
        | DiskError::Exists
        | DiskError::Changed
        | DiskError::Io(_) => "Check the path and its permissions.",
    };
    format!("Cannot edit {}: {error}. {advice}", place.asked.display())
}

fn no_replacement(place: &Place, error: &NoReplacement) -> String {
    let asked = place.asked.display();
    match error {
        NoReplacement::Empty => format!(
            "old_str is empty, so there is nothing to replace in {asked}. Quote the text around the place to change."
        ),
        NoReplacement::Unchanged => format!(
            "old_str and new_str are the same, so {asked} would not change. Give the new text in new_str."
        ),
        NoReplacement::NotFound => format!(
            "No match for old_str in {asked}. View the file and copy the text exactly, with all spaces and without line numbers."
        ),
        NoReplacement::Several(lines) => {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            format!(
                "old_str occurs more than once in {asked} (first on lines {}). Add lines around it until it occurs once.",
                lines.join(", ")
            )
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
