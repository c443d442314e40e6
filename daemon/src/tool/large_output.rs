//! Saves tool results that are too long for a conversation to a file, and tells the model where.
//! The session uses [`bound`] for every tool result; shells save their output while it arrives.

use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::{DirBuilder, File, OpenOptions};
use tokio::io::AsyncWriteExt;
use ulid::Ulid;

use super::texts;

/// From which size a result is saved to a file, and how much of it is still shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// The largest result that is not saved to a file.
    pub max_bytes: usize,
    /// How many characters of a larger result are shown.
    pub preview_chars: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            max_bytes: 51_200,
            preview_chars: 500,
        }
    }
}

/// Returns the text if it is short enough, or else a notice that names the file with the text.
pub async fn bound(text: String, scratch: &Path, limits: OutputLimits) -> String {
    if text.len() <= limits.max_bytes {
        return text;
    }
    let preview = first_chars(&text, limits.preview_chars);
    let saved = save(text.as_bytes(), scratch).await;
    notice(text.len() as u64, &saved, preview, limits.preview_chars)
}

/// Returns the notice for a long output that was saved by other means than [`bound`].
pub fn saved_notice(bytes: u64, path: &str, text: &str, limits: OutputLimits) -> String {
    let head = texts::too_large_output(texts::size(bytes), path);
    let preview = first_chars(text, limits.preview_chars);
    format!(
        "{head}\n\n{}",
        texts::first_preview(limits.preview_chars, preview)
    )
}

/// Returns a unique file name for a saved output.
pub fn file_name() -> String {
    let id = Ulid::generate();
    let random = id.to_string().to_lowercase();
    // The first characters of a ULID are its time, the last ones are random.
    let random = random.get(14..).unwrap_or_default();
    format!(
        "{}-{}-{random}.txt",
        id.timestamp_ms(),
        texts::SAVED_OUTPUT_STEM
    )
}

pub(super) fn notice(
    bytes: u64,
    saved: &io::Result<PathBuf>,
    preview: &str,
    characters: usize,
) -> String {
    let size = texts::size(bytes);
    let head = match saved {
        Ok(path) => texts::too_large_output(size, path.display()),
        Err(error) => texts::too_large_unsaved(size, error),
    };
    format!("{head}\n\n{}", texts::first_preview(characters, preview))
}

/// Creates an empty file for an output. Only its owner can read it.
pub(super) async fn create(scratch: &Path) -> io::Result<(File, PathBuf)> {
    let mut folder = DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    folder.mode(0o700);
    folder.create(scratch).await?;
    let path = scratch.join(file_name());
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    Ok((options.open(&path).await?, path))
}

/// Saves an output to a file of its own.
pub async fn save(bytes: &[u8], scratch: &Path) -> io::Result<PathBuf> {
    let (mut file, path) = create(scratch).await?;
    file.write_all(bytes).await?;
    file.flush().await?;
    Ok(path)
}

/// Returns the first characters of a text.
pub(super) fn first_chars(text: &str, characters: usize) -> &str {
    match text.char_indices().nth(characters) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
