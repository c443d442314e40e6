//! The tool that searches what files contain. `grep/finder.rs` goes through the files; this file
//! checks the arguments and asks. Never changes anything.

use std::sync::Arc;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use schemars::JsonSchema;
use serde::Deserialize;

use loopd_kernel::policy::grant::Grant;

use super::closed::ClosedPlaces;
use super::resolved_path::{self, ResolvedPath};
use super::walk::{self, Labels, Selection};
use super::{AssessContext, Need, Outcome, Tool, ToolContext, disk, texts};

mod finder;

use finder::{Finder, LineNumbers, Span};

/// How many lines are answered with where the call names no number.
const DEFAULT_LINES: usize = 1000;

/// How many lines of context a call gets at most.
const MAX_CONTEXT: u32 = 100;

/// The tool `grep`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grep;

/// What is printed for each match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutputMode {
    /// The matching lines.
    Content,
    /// Only the names of the files that match.
    #[default]
    FilesWithMatches,
    /// The number of matching lines of each file.
    Count,
}

/// The arguments of `grep`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub(super) struct GrepArgs {
    /// Regular expression in Rust syntax; escape `{`, `(` and `.` to search for them literally.
    #[serde(alias = "query")]
    pattern: String,
    /// File or folder to search; the working directory if left out.
    #[serde(default)]
    path: Option<String>,
    /// What to print: files_with_matches (default), content or count.
    #[serde(default)]
    output_mode: Option<OutputMode>,
    /// Print line numbers (with output_mode content).
    #[serde(default, rename = "-n")]
    line_numbers: Option<bool>,
    /// Ignore case.
    #[serde(default, rename = "-i")]
    ignore_case: Option<bool>,
    /// Lines to print after each match (with output_mode content).
    #[serde(default, rename = "-A")]
    after: Option<u32>,
    /// Lines to print before each match (with output_mode content).
    #[serde(default, rename = "-B")]
    before: Option<u32>,
    /// Lines to print before and after each match (with output_mode content).
    #[serde(default, rename = "-C")]
    around: Option<u32>,
    /// Search only files whose path matches, for example `*.rs` or `!**/*.test.ts`.
    #[serde(default)]
    glob: Option<String>,
    /// Search only files of this type, for example rust, ts, py or md.
    #[serde(default, rename = "type")]
    file_type: Option<String>,
    /// Let the pattern span several lines; `.` then matches line breaks too.
    #[serde(default)]
    multiline: Option<bool>,
    /// Print at most this many lines.
    #[serde(default)]
    head_limit: Option<usize>,
}

impl Tool for Grep {
    type Args = GrepArgs;
    const NAME: &'static str = "grep";
    const OTHER_NAMES: &'static [&'static str] = &["query"];
    const DESCRIPTION: &'static str = "Searches the contents of files with a regular expression.\n\
        - By default it prints the names of the files that match; set output_mode to content (with -n for line numbers, -A, -B or -C for lines around) or to count.\n\
        - Narrow the search with path, glob or type.\n\
        - Files ignored by git, binary files and the .git folder are left out; results are sorted by path.\n\
        - Long answers are cut and say how much is missing.";

    async fn need(&self, args: &GrepArgs, context: &AssessContext) -> Need {
        let place = {
            let (args, context) = (args.clone(), context.clone());
            disk::blocking(move || {
                matcher(&args)?;
                let place = resolved_path::asked_about(&context, searched(&args));
                filters(&args, &place).map(|_| place)
            })
            .await
        };
        match place {
            Ok(Ok(place)) => {
                let shown = place.shown.display();
                let intention = format!("Search files: {} in {shown}", args.pattern);
                place.read_need(context, intention)
            }
            Ok(Err(outcome)) | Err(outcome) => Need::Refused(outcome),
        }
    }

    async fn run(&self, grant: &Grant, args: GrepArgs, context: &ToolContext) -> Outcome {
        let path = searched(&args).to_owned();
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
        match walk::search(context, move |stop| plan.finder.run(stop)).await {
            Ok((found, reach)) => {
                let notes = found.notes.into_iter().chain(walk::reach_note(reach));
                Outcome::success(found.answer.finish(
                    texts::NO_MATCHES,
                    "Narrow the search or raise head_limit.",
                    notes.collect(),
                ))
            }
            Err(outcome) => outcome,
        }
    }
}

/// One prepared search.
struct Plan {
    place: ResolvedPath,
    finder: Finder,
}

/// Returns the path to search.
fn searched(args: &GrepArgs) -> &str {
    args.path.as_deref().unwrap_or(".")
}

fn plan(args: &GrepArgs, context: &AssessContext) -> Result<Plan, Outcome> {
    let matcher = matcher(args)?;
    let place = resolved_path::existing(context, searched(args))?;
    // A file that is named directly is searched regardless of the filters.
    let filters = if place.real.is_dir() {
        filters(args, &place)?
    } else {
        Selection::default()
    };
    let finder = Finder {
        matcher,
        root: place.real.clone(),
        selection: Selection {
            closed: Arc::new(ClosedPlaces::of(&context.guarded)),
            ..filters
        },
        labels: Labels::new(&place, args.path.as_deref()),
        mode: args.output_mode.unwrap_or_default(),
        numbers: match args.line_numbers {
            Some(true) => LineNumbers::Shown,
            Some(false) | None => LineNumbers::Hidden,
        },
        before: context_lines(args.before.or(args.around)),
        after: context_lines(args.after.or(args.around)),
        span: span(args),
        most: args.head_limit.unwrap_or(DEFAULT_LINES),
    };
    Ok(Plan { place, finder })
}

fn context_lines(given: Option<u32>) -> usize {
    given.unwrap_or(0).min(MAX_CONTEXT) as usize
}

fn span(args: &GrepArgs) -> Span {
    match args.multiline {
        Some(true) => Span::Lines,
        Some(false) | None => Span::OneLine,
    }
}

fn matcher(args: &GrepArgs) -> Result<RegexMatcher, Outcome> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .case_insensitive(args.ignore_case.unwrap_or(false));
    match span(args) {
        Span::Lines => builder.dot_matches_new_line(true),
        Span::OneLine => builder.line_terminator(Some(b'\n')),
    };
    let pattern = &args.pattern;
    builder
        .build(pattern)
        // `(?R)` lets `$` match before CRLF too; added last, so that errors show what was given.
        .and_then(|_| builder.build(&format!("(?R){pattern}")))
        .map_err(|error| {
            Outcome::failure(format!(
                "The pattern is not valid: {error}\nEscape characters that are meant literally, and set multiline to search for line breaks."
            ))
        })
}

fn filters(args: &GrepArgs, place: &ResolvedPath) -> Result<Selection, Outcome> {
    let mut selection = Selection::default();
    if let Some(glob) = &args.glob {
        let mut overrides = OverrideBuilder::new(&place.real);
        selection.overrides = overrides
            .add(glob)
            .and_then(|overrides| overrides.build())
            .map_err(|error| Outcome::failure(format!("The glob is not valid: {error}.")))?;
    }
    if let Some(file_type) = &args.file_type {
        let mut types = TypesBuilder::new();
        selection.types = types
            .add_defaults()
            .select(file_type)
            .build()
            .map_err(|error| {
                Outcome::failure(format!(
                    "The type {file_type:?} is not known: {error}. Use glob instead, for example `*.{file_type}`."
                ))
            })?;
    }
    Ok(selection)
}

#[cfg(test)]
mod tests;
