//! The tool that changes several files by one patch: `apply_patch/patch.rs` reads it in either
//! format, `apply_patch/hunks.rs` finds where its hunks belong, `apply_patch/plan.rs` works out every
//! file before any is touched; this file asks, checks and writes. All files change or none.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::permission::PermissionRequest;

use loopd_kernel::policy::grant::Grant;

use super::disk::batch::{self, NotDone, Step};
use super::{AssessContext, Need, Outcome, Tool, ToolContext, disk, resolved_path, texts};
use crate::redaction::Redaction;

mod envelope;
mod hunks;
mod patch;
mod plan;
mod unified;

use plan::{NoPlan, Plan};

/// The tool `apply_patch`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ApplyPatch;

/// The arguments of `apply_patch`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct ApplyPatchArgs {
    /// The whole patch: a unified diff, or the text from `*** Begin Patch` to `*** End Patch`.
    #[serde(alias = "input")]
    patch: String,
}

impl Tool for ApplyPatch {
    type Args = ApplyPatchArgs;
    const NAME: &'static str = "apply_patch";
    const WRITES: bool = true;
    const OTHER_NAMES: &'static [&'static str] = &["input"];
    const DESCRIPTION: &'static str = "Changes one or several files by a patch; either all of it is applied or nothing.\n\
        - Takes a unified diff as git prints it, or a patch in this form:\n\
        *** Begin Patch\n\
        *** Update File: path/to/file\n\
        @@ a line above the change, if it is needed to find the place\n\
        \u{20}a line that stays\n\
        -a line to remove\n\
        +a line to add\n\
        *** Add File: path/to/new\n\
        +every line of the new file\n\
        *** Delete File: path/to/old\n\
        *** End Patch\n\
        - To move a file, put `*** Move to: new/path` below its Update File line.\n\
        - The lines that stay or go have to be exactly as in the file and fit in one place only: give about three lines of context. Line numbers are only hints.\n\
        - Files keep their line endings and permissions. Paths are relative to the working directory.";

    async fn need(&self, args: &ApplyPatchArgs, context: &AssessContext) -> Need {
        let (args, context) = (args.clone(), context.clone());
        let planned = disk::blocking(move || match plan::make(&args.patch, &context) {
            Ok(plan) => Need::Permission(request(&plan)),
            Err(NoPlan {
                path: Some(path), ..
            }) => resolved_path::need_to_explain(&context, &path),
            Err(NoPlan { outcome, .. }) => Need::Refused(outcome),
        });
        planned.await.unwrap_or_else(Need::Refused)
    }

    async fn run(&self, grant: &Grant, args: ApplyPatchArgs, context: &ToolContext) -> Outcome {
        let planned = {
            let context = context.clone();
            disk::blocking(move || plan::make(&args.patch, &context)).await
        };
        let plan = match planned {
            Ok(Ok(plan)) => plan,
            Ok(Err(NoPlan {
                outcome,
                path: Some(path),
            })) => return resolved_path::explained(context, grant, &path, outcome),
            Ok(Err(NoPlan { outcome, .. })) | Err(outcome) => return outcome,
        };
        // The names and the diff must be those that were allowed.
        let wanted = request(&plan);
        if !grant
            .request()
            .is_some_and(|granted| is_same(granted, &wanted, &context.redaction))
        {
            return Outcome::failure(texts::not_granted("the patch"));
        }
        let (captures, call) = (context.captures.clone(), context.call.clone());
        let written = disk::blocking(move || {
            let paths: Vec<PathBuf> = plan.steps.iter().map(Step::path).collect();
            let writing = captures.writing(&call, paths.iter().map(PathBuf::as_path));
            let (outcome, is_changed) = write(plan);
            if is_changed {
                writing.done();
            }
            outcome
        });
        match written.await {
            Ok(outcome) | Err(outcome) => outcome,
        }
    }
}

/// Returns the files that a patch would change, as it names them; `None` if it is no patch. What moves
/// has two.
pub fn named_files(patch: &str) -> Option<Vec<String>> {
    let files = patch::parse(patch).ok()?;
    let names = files.into_iter().flat_map(|file| {
        let target = match file.action {
            patch::Action::Update { move_to, .. } => move_to,
            patch::Action::Add { .. } | patch::Action::Delete => None,
        };
        std::iter::once(file.path).chain(target)
    });
    Some(names.collect())
}

fn request(plan: &Plan) -> PermissionRequest {
    let names = plan.written();
    let (first, others) = names.split_first().map_or_else(
        || (String::new(), Vec::new()),
        |(first, others)| (first.clone(), others.to_vec()),
    );
    PermissionRequest::Write {
        managed_approval_required: None,
        tool_call_id: None,
        intention: match names.len() {
            1 => "Apply patch".to_owned(),
            count => format!("Apply patch to {count} files: {}", names.join(", ")),
        },
        file_name: first,
        diff: plan.diff.clone(),
        new_file_contents: plan.only_new_file(),
        can_offer_session_approval: true,
        other_files: others,
        also_named: plan.also_named.clone(),
        repository_folders: plan.repository_folders.clone(),
    }
}

fn is_same(granted: &PermissionRequest, wanted: &PermissionRequest, redaction: &Redaction) -> bool {
    match (granted, wanted) {
        (
            PermissionRequest::Write {
                file_name,
                diff,
                other_files,
                ..
            },
            PermissionRequest::Write {
                file_name: wanted_name,
                diff: wanted_diff,
                other_files: wanted_others,
                ..
            },
        ) => {
            let is_same =
                |wanted: &String, granted: &String| redaction.is_shown_as(wanted, granted);
            is_same(wanted_name, file_name)
                && is_same(wanted_diff, diff)
                && wanted_others.len() == other_files.len()
                && wanted_others
                    .iter()
                    .zip(other_files)
                    .all(|(wanted, granted)| is_same(wanted, granted))
        }
        _ => false,
    }
}

/// Makes the changes; returns whether any file is not as it was.
fn write(plan: Plan) -> (Outcome, bool) {
    let Plan {
        steps,
        touched,
        summary,
        diff,
        ..
    } = plan;
    let name = |step: usize| touched.get(step).map_or("a file", String::as_str);
    match batch::carry_out(steps) {
        Ok(()) => (Outcome::success(summary).with_detail(diff), true),
        Err(NotDone {
            step,
            error,
            not_undone,
        }) if not_undone.is_empty() => {
            let outcome = Outcome::failure(format!(
                "The patch was not applied and every file was left as it was: {}: {error}. View the files and try again.",
                name(step)
            ));
            (outcome, false)
        }
        Err(NotDone {
            step,
            error,
            not_undone,
        }) => {
            let changed: Vec<&str> = not_undone.into_iter().map(name).collect();
            let outcome = Outcome::failure(format!(
                "The patch failed at {}: {error}. These files could not be put back as they were: {}. View them before going on.",
                name(step),
                changed.join(", ")
            ));
            (outcome, true)
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
