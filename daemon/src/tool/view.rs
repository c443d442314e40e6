//! The tool that shows a file, an image or a folder. `view/lines.rs` pages through text,
//! `view/image.rs` knows image formats, `view/folder.rs` lists. Never changes anything.

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use loopd_kernel::policy::GuardedPaths;
use loopd_kernel::policy::grant::Grant;

use super::closed::ClosedPlaces;
use super::disk::{self, DiskError, MAX_WHOLE_FILE};
use super::resolved_path::{self, ResolvedPath};
use super::{AssessContext, Need, Outcome, Tool, ToolContext, texts};

mod folder;
mod image;
mod lines;

use lines::{Page, Range};

/// The tool `view`.
#[derive(Debug, Clone, Copy)]
pub(super) struct View;

/// The arguments of `view`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct ViewArgs {
    /// Path of the file or folder; relative paths start at the working directory.
    path: String,
    /// First and last line to show, counted from 1; a last line of -1 means the end of the file.
    #[serde(default)]
    view_range: Option<[i64; 2]>,
}

impl Tool for View {
    type Args = ViewArgs;
    const NAME: &'static str = "view";
    const DESCRIPTION: &'static str = "Shows a text file, an image or a folder.\n\
        - Text is printed with line numbers (`12. text`); the numbers are not part of the file.\n\
        - view_range shows only some lines, [1, 40] or [200, -1]; it is required for very large files, and long output stops early and says where to go on.\n\
        - PNG, JPEG, GIF and WebP images are shown as pictures.\n\
        - A folder is listed two levels deep; names that end in / are folders.";

    async fn need(&self, args: &ViewArgs, context: &AssessContext) -> Need {
        if let Err(text) = Range::parse(args.view_range) {
            return Need::Refused(Outcome::failure(text));
        }
        let place = {
            let (path, context) = (args.path.clone(), context.clone());
            disk::blocking(move || {
                let place = resolved_path::asked_about(&context, &path);
                let is_folder = place.real.is_dir();
                (place, is_folder)
            })
            .await
        };
        match place {
            Ok((place, is_folder)) => {
                let action = if is_folder {
                    "Read folder"
                } else {
                    "Read file"
                };
                place.read_need(context, place.intention(action))
            }
            Err(outcome) => Need::Refused(outcome),
        }
    }

    async fn run(&self, grant: &Grant, args: ViewArgs, context: &ToolContext) -> Outcome {
        let seen = {
            let (args, context) = (args.clone(), context.clone());
            disk::blocking(move || look(&args, &context)).await
        };
        let (place, sight) = match seen {
            Ok(Ok(seen)) => seen,
            Ok(Err(outcome)) => {
                return resolved_path::explained(context, grant, &args.path, outcome);
            }
            Err(outcome) => return outcome,
        };
        if let Err(outcome) = place.check_read(context, grant) {
            return outcome;
        }
        let cancel = context.cancel.child_token();
        // Dropping the call stops the reading, too.
        let _guard = cancel.clone().drop_guard();
        let guarded = context.guarded.clone();
        let show = move || show(&place, &sight, &args, &guarded, &cancel);
        match disk::blocking(show).await {
            Ok(outcome) | Err(outcome) => outcome,
        }
    }
}

/// What the path is.
enum Sight {
    Folder,
    Image { media_type: &'static str },
    Text,
}

/// Determines what the path is and whether it can be shown.
fn look(args: &ViewArgs, context: &AssessContext) -> Result<(ResolvedPath, Sight), Outcome> {
    let range = Range::parse(args.view_range).map_err(Outcome::failure)?;
    let place = resolved_path::existing(context, &args.path)?;
    let asked = place.asked.display();
    let (mut file, metadata) = match disk::open(&place.real) {
        Err(DiskError::Folder) => return Ok((place, Sight::Folder)),
        opened => opened.map_err(|error| cannot_view(&place, &error))?,
    };
    let start = disk::sniff(&mut file).map_err(|error| cannot_view(&place, &error))?;
    if let Some(media_type) = image::media_type(&start) {
        if metadata.len() > image::MAX_BYTES {
            return Err(Outcome::failure(format!(
                "Image {asked} has {}, more than the limit of {}. Make a smaller copy and view that.",
                texts::size(metadata.len()),
                texts::size(image::MAX_BYTES)
            )));
        }
        return Ok((place, Sight::Image { media_type }));
    }
    if disk::is_binary(&start) {
        return Err(Outcome::failure(format!(
            "File {asked} holds binary data ({}), which cannot be shown as text. Inspect it with a shell command such as file, strings or xxd.",
            texts::size(metadata.len())
        )));
    }
    if range == Range::All && metadata.len() > MAX_WHOLE_FILE {
        return Err(Outcome::failure(format!(
            "File {asked} is too large to show at once ({}). Give a view_range such as [1, 200], or search it with grep.",
            texts::size(metadata.len())
        )));
    }
    Ok((place, Sight::Text))
}

fn show(
    place: &ResolvedPath,
    sight: &Sight,
    args: &ViewArgs,
    guarded: &GuardedPaths,
    cancel: &CancellationToken,
) -> Outcome {
    let shown = match sight {
        Sight::Folder => {
            let closed = ClosedPlaces::of(guarded);
            folder::list(&place.real, &closed, cancel).map(Outcome::success)
        }
        Sight::Image { media_type } => image::read(place, media_type),
        Sight::Text => read_text(place, args, cancel),
    };
    shown.unwrap_or_else(|error| cannot_view(place, &error))
}

fn read_text(
    place: &ResolvedPath,
    args: &ViewArgs,
    cancel: &CancellationToken,
) -> Result<Outcome, DiskError> {
    let range = match Range::parse(args.view_range) {
        Ok(range) => range,
        Err(text) => return Ok(Outcome::failure(text)),
    };
    let (file, _) = disk::open(&place.real)?;
    Ok(match lines::read(file, range, cancel)? {
        Page::Lines(text) => Outcome::success(text),
        Page::PastTheEnd { lines } => Outcome::failure(format!(
            "view_range starts after the end: {} has {lines} lines.",
            place.asked.display()
        )),
        Page::Interrupted => Outcome::failure("Reading was interrupted."),
    })
}

fn cannot_view(place: &ResolvedPath, error: &DiskError) -> Outcome {
    Outcome::failure(format!("Cannot view {}: {error}.", place.asked.display()))
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
