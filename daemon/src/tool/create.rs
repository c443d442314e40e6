//! The tool that creates a file. Never changes an existing file.

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::permission::PermissionRequest;

use loopd_kernel::policy::grant::Grant;

use super::diff::{self, Change};
use super::disk::{self, DiskError, MAX_WHOLE_FILE};
use super::resolved_path::{self, ResolvedPath};
use super::{AssessContext, Need, Outcome, Tool, ToolContext, texts};

/// The tool `create`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Create;

/// The arguments of `create`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct CreateArgs {
    /// Path of the file to create; relative paths start at the working directory.
    path: String,
    /// The whole content of the new file.
    file_text: String,
}

impl Tool for Create {
    type Args = CreateArgs;
    const NAME: &'static str = "create";
    const WRITES: bool = true;
    const DESCRIPTION: &'static str = "Creates a new file with the given content.\n\
        - Folders that are missing above the file are created too.\n\
        - A file that already exists is never overwritten: change it with the edit tool instead.\n\
        - file_text is written exactly as given, so include the final newline if the file should have one.";

    async fn need(&self, args: &CreateArgs, context: &AssessContext) -> Need {
        let (args, context) = (args.clone(), context.clone());
        if let Err(outcome) = check(&args) {
            return Need::Refused(outcome);
        }
        let planned = disk::blocking(move || {
            let planned = plan(&args, &context)
                .map_err(|_| Box::new(resolved_path::need_to_explain(&context, &args.path)));
            planned.map(|(place, diff)| PermissionRequest::Write {
                managed_approval_required: None,
                tool_call_id: None,
                intention: "Create file".to_owned(),
                file_name: texts::path(&place.shown),
                diff,
                new_file_contents: Some(args.file_text),
                can_offer_session_approval: true,
                other_files: Vec::new(),
                also_named: place.other_names(),
                repository_folders: place.repository_folders(),
            })
        });
        match planned.await {
            Ok(Ok(request)) => Need::Permission(request),
            Ok(Err(need)) => *need,
            Err(outcome) => Need::Refused(outcome),
        }
    }

    async fn run(&self, grant: &Grant, args: CreateArgs, context: &ToolContext) -> Outcome {
        let planning = {
            let (args, context) = (args.clone(), context.clone());
            disk::blocking(move || plan(&args, &context))
        };
        let (place, diff) = match planning.await {
            Ok(Ok(planned)) => planned,
            Ok(Err(outcome)) => {
                return resolved_path::explained(context, grant, &args.path, outcome);
            }
            Err(outcome) => return outcome,
        };
        if let Err(outcome) = place.check_write(context, grant, &diff) {
            return outcome;
        }
        let (captures, call) = (context.captures.clone(), context.call.clone());
        let written = disk::blocking(move || {
            let writing = captures.writing(&call, [place.real.as_path()]);
            let written = write(&place, &args.file_text)?;
            writing.done();
            Ok(written)
        });
        match written.await {
            Ok(Ok(text)) => Outcome::success(text).with_detail(diff),
            Ok(Err(outcome)) | Err(outcome) => outcome,
        }
    }
}

/// Checks what needs no look at the disk.
fn check(args: &CreateArgs) -> Result<(), Outcome> {
    if args.path.is_empty() || args.path.ends_with('/') {
        return Err(Outcome::failure(format!(
            "Path {:?} does not name a file. Give the name of the file to create.",
            args.path
        )));
    }
    if args.file_text.len() as u64 > MAX_WHOLE_FILE {
        return Err(Outcome::failure(format!(
            "file_text has {} bytes, more than the limit of {MAX_WHOLE_FILE}. Create the file with a shell command instead.",
            args.file_text.len()
        )));
    }
    Ok(())
}

fn plan(args: &CreateArgs, context: &AssessContext) -> Result<(ResolvedPath, String), Outcome> {
    check(args)?;
    let place = resolved_path::possible(context, &args.path)?;
    let asked = place.asked.display();
    // Checked without following links: a dangling link is in the way as well.
    match place.real.symlink_metadata() {
        Ok(found) if found.is_dir() => {
            return Err(Outcome::failure(format!(
                "Path {asked} is a folder. Give the name of a file inside it."
            )));
        }
        Ok(_) => return Err(Outcome::failure(exists(&place))),
        Err(_) => {}
    }
    let in_the_way = place.real.ancestors().skip(1).find(|path| path.exists());
    if let Some(ancestor) = in_the_way
        && !ancestor.is_dir()
    {
        return Err(Outcome::failure(format!(
            "Cannot create {asked}: {} is a file, not a folder.",
            ancestor.display()
        )));
    }
    let diff = diff::git_style(
        &place.shown,
        Change::Create {
            new: &args.file_text,
        },
    );
    Ok((place, diff))
}

fn write(place: &ResolvedPath, contents: &str) -> Result<String, Outcome> {
    match disk::create(&place.real, contents.as_bytes()) {
        Ok(()) => Ok(texts::created(
            place.asked.display(),
            contents.chars().count(),
        )),
        Err(DiskError::Exists) => Err(Outcome::failure(exists(place))),
        Err(error) => Err(Outcome::failure(format!(
            "Cannot create {}: {error}.",
            place.asked.display()
        ))),
    }
}

fn exists(place: &ResolvedPath) -> String {
    format!(
        "Path {} already exists and was left as it is. Use edit to change it, or choose another name.",
        place.asked.display()
    )
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
