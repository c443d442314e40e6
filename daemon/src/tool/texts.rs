//! The short texts that tools answer with. They are in one place because recorded conversations
//! compare many of them byte for byte.

use std::fmt::Display;
use std::path::Path;

use loopd_proto::visible::visible;

pub(super) const IMAGE_VIEWED: &str = "Viewed image file successfully.";
pub(super) const NO_MATCHES: &str = "No matches found.";
pub(super) const NO_FILES: &str = "No files matched the pattern.";
pub(super) const NO_CLIENT_TO_ASK: &str = "The question was not asked: no connected client can answer questions. Decide on your own or end the turn with the question as your reply.";

/// The stem between the time and the random part of a saved output's file name.
pub(super) const SAVED_OUTPUT_STEM: &str = "copilot-tool-output";

pub(super) fn missing_path(path: impl Display) -> String {
    format!("Path {path} does not exist. Please provide a valid path.")
}

pub(super) fn created(path: impl Display, characters: usize) -> String {
    format!("Created file {path} with {characters} characters")
}

pub(super) fn updated(path: impl Display) -> String {
    format!("File {path} updated with changes.")
}

pub(super) fn exited(code: i32) -> String {
    format!("<exited with exit code {code}>")
}

pub(super) fn killed_by_signal(signal: i32) -> String {
    // bash reports this exit code for a command that a signal killed.
    format!("<killed by signal {signal}>\n{}", exited(128 + signal))
}

/// Formats one line as `view` prints it.
pub(super) fn numbered(number: u64, line: impl Display) -> String {
    format!("{number}. {line}")
}

/// The error when the grant does not fit what the tool is about to do.
pub(super) fn not_granted(path: impl Display) -> String {
    format!(
        "Nothing was done: {path} is not what permission was given for, because it changed in the meantime. Look at it again and repeat the call."
    )
}

pub(super) fn too_large_output(size: impl Display, path: impl Display) -> String {
    format!(
        "Output too large to read at once ({size}). Saved to: {path}\n\
         Consider using tools like grep (for searching), head/tail (for viewing start/end), view with view_range (for specific sections), or jq (for JSON) to examine portions of the output."
    )
}

pub(super) fn too_large_unsaved(size: impl Display, cause: impl Display) -> String {
    format!(
        "Output too large to read at once ({size}), and saving it failed: {cause}. Ask for less output, for example with head, tail or a narrower search."
    )
}

pub(super) fn first_preview(characters: usize, preview: impl Display) -> String {
    format!("Preview (first {characters} chars):\n{preview}")
}

pub(super) fn last_preview(characters: usize, bytes: u64, preview: impl Display) -> String {
    format!("Preview (last {characters} chars of {bytes} bytes):\n{preview}")
}

/// Formats a size in the unit that a person would choose.
pub(super) fn size(bytes: u64) -> String {
    const UNIT: u64 = 1024;
    let (unit, name) = match bytes {
        0..UNIT => return format!("{bytes} B"),
        UNIT..1_048_576 => (UNIT, "KB"),
        1_048_576..1_073_741_824 => (UNIT * UNIT, "MB"),
        _ => (UNIT * UNIT * UNIT, "GB"),
    };
    // Integer arithmetic rounds every size exactly to one decimal.
    let tenths = (u128::from(bytes) * 10 + u128::from(unit) / 2) / u128::from(unit);
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// Cuts a long line and adds how long it was.
pub(super) fn clipped(line: &str, whole_bytes: u64, characters: usize) -> String {
    let Some((end, _)) = line.char_indices().nth(characters) else {
        return line.to_owned();
    };
    let start = line.get(..end).unwrap_or(line);
    format!("{start}... [line cut, {whole_bytes} bytes in all]")
}

/// Formats the name of a file for a list of one name per line. Nothing in it is hidden, and it stays
/// on its line.
pub(super) fn listed(name: &str) -> String {
    visible(name).replace('\n', "\\n").replace('\t', "\\t")
}

/// Formats a path for people and models.
pub(super) fn path(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests;
