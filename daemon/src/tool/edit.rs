//! The tool that replaces pieces of a text file. `edit/replacement.rs` finds a piece,
//! `edit/closest.rs` what was probably meant; this file asks, checks and writes. Never creates a
//! file and never makes some edits of a call without the others.

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::permission::PermissionRequest;

use loopd_kernel::policy::grant::Grant;

use super::diff::{self, Change};
use super::disk::{self, DiskError, Stamp};
use super::resolved_path::{self, ResolvedPath};
use super::{AssessContext, Need, Outcome, Status, Tool, ToolContext, texts};

pub(super) mod closest;
mod replacement;

use replacement::{Count, NoReplacement};

/// How many edits one call may make.
const MAX_EDITS: usize = 100;

/// The tool `edit`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edit;

/// The arguments of `edit`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct EditArgs {
    /// Path of the file to change; relative paths start at the working directory.
    path: String,
    /// The text to replace, exactly as in the file and found there only once.
    #[serde(default)]
    old_str: Option<String>,
    /// The text to put in its place; empty or left out to delete it.
    #[serde(default)]
    new_str: Option<String>,
    /// Replace every occurrence of old_str instead of the only one.
    #[serde(default)]
    replace_all: Option<bool>,
    /// Several edits of this file, made in this order, all or none; instead of old_str and new_str.
    #[serde(default)]
    edits: Option<Vec<EditPiece>>,
}

/// One of several edits.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct EditPiece {
    /// The text to replace, as the edits before this one left it.
    old_str: String,
    /// The text to put in its place; empty or left out to delete it.
    #[serde(default)]
    new_str: String,
    /// Replace every occurrence of old_str instead of the only one.
    #[serde(default)]
    replace_all: Option<bool>,
}

impl EditPiece {
    fn count(&self) -> Count {
        match self.replace_all {
            Some(true) => Count::Every,
            Some(false) | None => Count::Once,
        }
    }
}

impl Tool for Edit {
    type Args = EditArgs;
    const NAME: &'static str = "edit";
    const WRITES: bool = true;
    const DESCRIPTION: &'static str = "Replaces text in an existing file.\n\
        - old_str has to match the file exactly, with all spaces and line breaks, and has to occur exactly once: add lines around it until it does, or set replace_all.\n\
        - Leave out the line numbers that view prints.\n\
        - The file keeps its line endings (LF or CRLF) and its permissions.\n\
        - Give edits, a list of {old_str, new_str}, to change several places at once: they are made in order, all or none.\n\
        - Use create for a new file.";

    async fn need(&self, args: &EditArgs, context: &AssessContext) -> Need {
        if let Err(outcome) = pieces(args) {
            return Need::Refused(outcome);
        }
        let (args, context) = (args.clone(), context.clone());
        let planned = disk::blocking(move || {
            plan(&args, &context)
                .map_err(|_| Box::new(resolved_path::need_to_explain(&context, &args.path)))
        });
        match planned.await {
            Ok(Ok(plan)) => Need::Permission(PermissionRequest::Write {
                managed_approval_required: None,
                tool_call_id: None,
                intention: "Edit file".to_owned(),
                also_named: plan.place.other_names(),
                repository_folders: plan.place.repository_folders(),
                file_name: texts::path(&plan.place.shown),
                diff: plan.diff,
                new_file_contents: None,
                can_offer_session_approval: true,
                other_files: Vec::new(),
            }),
            Ok(Err(need)) => *need,
            Err(outcome) => Need::Refused(outcome),
        }
    }

    async fn run(&self, grant: &Grant, args: EditArgs, context: &ToolContext) -> Outcome {
        let path = args.path.clone();
        let planned = {
            let context = context.clone();
            disk::blocking(move || plan(&args, &context)).await
        };
        let plan = match planned {
            Ok(Ok(plan)) => plan,
            Ok(Err(outcome)) => return resolved_path::explained(context, grant, &path, outcome),
            Err(outcome) => return outcome,
        };
        if let Err(outcome) = plan.place.check_write(context, grant, &plan.diff) {
            return outcome;
        }
        let (captures, call) = (context.captures.clone(), context.call.clone());
        let written = disk::blocking(move || {
            let writing = captures.writing(&call, [plan.place.real.as_path()]);
            let outcome = write(plan);
            if outcome.status == Status::Success {
                writing.done();
            }
            outcome
        });
        match written.await {
            Ok(outcome) | Err(outcome) => outcome,
        }
    }
}

/// One prepared edit.
struct Plan {
    place: ResolvedPath,
    new: String,
    diff: String,
    stamp: Stamp,
}

fn plan(args: &EditArgs, context: &AssessContext) -> Result<Plan, Outcome> {
    let pieces = pieces(args)?;
    let place = resolved_path::existing(context, &args.path)?;
    let found = disk::read_text(&place.real)
        .map_err(|error| Outcome::failure(unreadable(&place, &error)))?;
    let new = apply_all(&place, &found.text, &pieces)?;
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

/// Returns the edits of the arguments, which have one edit or a list.
fn pieces(args: &EditArgs) -> Result<Vec<EditPiece>, Outcome> {
    let edits = args.edits.clone().unwrap_or_default();
    match (&args.old_str, edits.is_empty()) {
        (Some(_), false) => Err(Outcome::failure(
            "Give either old_str and new_str or edits, not both. Nothing was changed.",
        )),
        (Some(old), true) => Ok(vec![EditPiece {
            old_str: old.clone(),
            new_str: args.new_str.clone().unwrap_or_default(),
            replace_all: args.replace_all,
        }]),
        (None, true) => Err(Outcome::failure(
            "Nothing to edit: give old_str with the text to replace, or a list of edits.",
        )),
        (None, false) if edits.len() > MAX_EDITS => Err(Outcome::failure(format!(
            "{} edits are more than the limit of {MAX_EDITS} for one call. Split them into several calls; nothing was changed.",
            edits.len()
        ))),
        (None, false) => Ok(edits),
    }
}

/// Makes the edits one after the other, in memory.
fn apply_all(
    place: &ResolvedPath,
    original: &str,
    pieces: &[EditPiece],
) -> Result<String, Outcome> {
    let mut text = original.to_owned();
    for (index, piece) in pieces.iter().enumerate() {
        let applied = replacement::apply(&text, &piece.old_str, &piece.new_str, piece.count());
        text = applied.map_err(|error| {
            let why = no_replacement(place, &error, &text, piece);
            let undone = matches!(error, NoReplacement::NotFound)
                && replacement::occurs(original, &piece.old_str);
            Outcome::failure(match (pieces.len(), undone) {
                (1, _) => why,
                (all, false) => {
                    format!("Edit {} of {all}: {why} Nothing was changed.", index + 1)
                }
                (all, true) => format!(
                    "Edit {} of {all}: its old_str overlaps what an edit before it replaced in {}. Join the two into one edit. Nothing was changed.",
                    index + 1,
                    place.asked.display()
                ),
            })
        })?;
        if text.len() as u64 > disk::MAX_WHOLE_FILE {
            return Err(Outcome::failure(format!(
                "File {} would grow beyond {} bytes and was left as it is. Change it with a shell command instead.",
                place.asked.display(),
                disk::MAX_WHOLE_FILE
            )));
        }
    }
    if text == original {
        return Err(Outcome::failure(format!(
            "The edits undo each other, so {} would not change.",
            place.asked.display()
        )));
    }
    Ok(text)
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

fn unreadable(place: &ResolvedPath, error: &DiskError) -> String {
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

fn no_replacement(
    place: &ResolvedPath,
    error: &NoReplacement,
    text: &str,
    piece: &EditPiece,
) -> String {
    let asked = place.asked.display();
    match error {
        NoReplacement::Empty => format!(
            "old_str is empty, so there is nothing to replace in {asked}. Quote the text around the place to change."
        ),
        NoReplacement::Unchanged => format!(
            "old_str and new_str are the same, so {asked} would not change. Give the new text in new_str."
        ),
        NoReplacement::NotFound => {
            let told = format!(
                "No match for old_str in {asked}. View the file and copy the text exactly, with all spaces and without line numbers."
            );
            match closest::advice(text, &piece.old_str, "old_str") {
                Some(advice) => format!("{told} {advice}"),
                None => told,
            }
        }
        NoReplacement::Several { count, lines } => {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            let more = if *count == replacement::MAX_COUNTED {
                " or more"
            } else {
                ""
            };
            format!(
                "old_str occurs more than once in {asked} (first on lines {}), {count}{more} times in all. Add lines around it until it occurs once, or set replace_all to change every one.",
                lines.join(", ")
            )
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
