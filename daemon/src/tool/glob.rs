//! The tool that finds files by the pattern of their path. Reads no file.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use loopd_kernel::policy::GuardedPaths;
use loopd_kernel::policy::grant::Grant;

use super::closed::ClosedPlaces;
use super::resolved_path::{self, ResolvedPath};
use super::walk::{self, Answer, Labels, Selection};
use super::{AssessContext, Need, Outcome, Tool, ToolContext, disk, texts};

/// How many files are named.
const MAX_FILES: usize = 1000;

/// The tool `glob`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glob;

/// The arguments of `glob`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct GlobArgs {
    /// Pattern of the path, for example `**/*.rs`, `src/*.{ts,tsx}` or `docs/**`.
    pattern: String,
    /// Folder to search; the working directory if left out.
    #[serde(default)]
    path: Option<String>,
}

impl Tool for Glob {
    type Args = GlobArgs;
    const NAME: &'static str = "glob";
    const DESCRIPTION: &'static str = "Finds files by name.\n\
        - `*` and `?` match inside one folder, `**` matches any number of folders, `{a,b}` and `[a-z]` work as usual.\n\
        - A pattern without `**` only looks in the folder itself: use `**/*.ts` to search below it.\n\
        - Files ignored by git and the .git folder are left out; paths come back sorted.\n\
        - Use grep to search for what files contain.";

    async fn need(&self, args: &GlobArgs, context: &AssessContext) -> Need {
        let (folder, matcher) = match matcher(args) {
            Ok(matcher) => matcher,
            Err(outcome) => return Need::Refused(outcome),
        };
        let place = {
            let context = context.clone();
            disk::blocking(move || resolved_path::asked_about(&context, &searched(folder))).await
        };
        match place {
            Ok(place) => {
                let pattern = matcher.glob().glob();
                let what = format!("Search files: {pattern} in {}", place.shown.display());
                place.read_need(context, what)
            }
            Err(outcome) => Need::Refused(outcome),
        }
    }

    async fn run(&self, grant: &Grant, args: GlobArgs, context: &ToolContext) -> Outcome {
        let path = searched(split(&args).0);
        let planned = {
            let context = context.clone();
            disk::blocking(move || plan(&args, &context)).await
        };
        let plan = match planned {
            Ok(Ok(plan)) => plan,
            Ok(Err(outcome)) => return resolved_path::explained(context, grant, &path, outcome),
            Err(outcome) => return outcome,
        };
        if let Err(outcome) = plan.place.check_read(context, grant) {
            return outcome;
        }
        match walk::search(context, move |stop| find(&plan, stop)).await {
            Ok(((answer, notes), reach)) => Outcome::success(answer.finish(
                texts::NO_FILES,
                "Use a narrower pattern or a folder further down.",
                notes.into_iter().chain(walk::reach_note(reach)).collect(),
            )),
            Err(outcome) => outcome,
        }
    }
}

/// One prepared search.
struct Plan {
    place: ResolvedPath,
    labels: Labels,
    matcher: GlobMatcher,
    guarded: Arc<GuardedPaths>,
}

/// Returns the folder to search.
fn searched(folder: Option<String>) -> String {
    folder.unwrap_or_else(|| ".".to_owned())
}

/// Returns the folder that the arguments name, and their pattern.
fn matcher(args: &GlobArgs) -> Result<(Option<String>, GlobMatcher), Outcome> {
    let (folder, pattern) = split(args);
    if Path::new(&pattern)
        .components()
        .any(|part| part == Component::ParentDir)
    {
        return Err(Outcome::failure(format!(
            "The pattern {pattern:?} leaves the folder with `..`. Give that folder as path instead."
        )));
    }
    let matcher = GlobBuilder::new(&pattern)
        .literal_separator(true)
        .empty_alternates(true)
        .build()
        .map_err(|error| Outcome::failure(format!("The pattern is not valid: {error}.")))?
        .compile_matcher();
    Ok((folder, matcher))
}

fn plan(args: &GlobArgs, context: &AssessContext) -> Result<Plan, Outcome> {
    let (folder, matcher) = matcher(args)?;
    let place = resolved_path::existing(context, &searched(folder.clone()))?;
    if !place.real.is_dir() {
        return Err(Outcome::failure(format!(
            "Path {} is not a folder. Give the folder to search.",
            place.asked.display()
        )));
    }
    Ok(Plan {
        labels: Labels::new(&place, folder.as_deref()),
        place,
        matcher,
        guarded: context.guarded.clone(),
    })
}

/// Splits an absolute pattern into the folder before its first wildcard and the rest.
fn split(args: &GlobArgs) -> (Option<String>, String) {
    let pattern = args.pattern.strip_prefix("./").unwrap_or(&args.pattern);
    if !Path::new(pattern).is_absolute() {
        return (args.path.clone(), pattern.to_owned());
    }
    let mut folder = PathBuf::new();
    let mut rest = PathBuf::new();
    let mut components = Path::new(pattern).components().peekable();
    while let Some(part) = components.next() {
        let text = part.as_os_str().to_string_lossy();
        let is_last = components.peek().is_none();
        if rest.as_os_str().is_empty() && !is_last && !text.contains(['*', '?', '[', '{']) {
            folder.push(part);
        } else {
            rest.push(part);
        }
    }
    (
        Some(folder.display().to_string()),
        rest.display().to_string(),
    )
}

/// Returns the files that match, and notes about what was left out.
fn find(plan: &Plan, stop: &CancellationToken) -> (Answer, Vec<String>) {
    let mut answer = Answer::new(MAX_FILES);
    let selection = Selection {
        closed: Arc::new(ClosedPlaces::of(&plan.guarded)),
        ..Selection::default()
    };
    for file in walk::files(&plan.place.real, selection.clone()) {
        if stop.is_cancelled() {
            break;
        }
        let relative = file.strip_prefix(&plan.place.real).unwrap_or(&file);
        // The walk uses names, which may have become links in the meantime.
        if plan.matcher.is_match(relative) && disk::is_there(&file) {
            answer.add(&plan.labels.label(&file));
        }
    }
    (answer, selection.closed_notes(&plan.place.real))
}

#[cfg(test)]
mod tests;
