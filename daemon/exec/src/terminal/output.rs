//! Stores the output text of one command. A short text is kept in memory. Of a long text, the
//! beginning and the end are kept in memory and the whole is written to a file. The memory is at
//! most [`HEAD`] + 2 * [`TAIL`] bytes plus the bytes that are not yet written.

use std::fmt;
use std::io;
use std::path::PathBuf;

use tokio::fs::{DirBuilder, File, OpenOptions};
use tokio::io::AsyncWriteExt;

/// Makes a filter for each output that is written to a file.
pub trait OutputFilters: fmt::Debug + Send + Sync {
    fn begin(&self) -> Box<dyn OutputFilter>;
}

/// Changes the bytes of one output on their way to the file.
pub trait OutputFilter: fmt::Debug + Send + Sync {
    /// Takes the next bytes; returns those that may be written by now.
    fn next(&mut self, bytes: &[u8]) -> Vec<u8>;
    /// Returns what was held back, after the last bytes.
    fn rest(&mut self) -> Vec<u8>;
}

/// The longest text that is shown in full, in bytes.
pub(super) const WHOLE: usize = 51_200;

/// How many bytes of the beginning are kept in memory.
const HEAD: usize = WHOLE;

/// How many bytes of the end are kept in memory. Unread text of up to `WHOLE` bytes is in memory.
const TAIL: usize = WHOLE;

/// How many characters of the beginning and of the end of a long text are shown.
pub const HEAD_CHARS: usize = 500;
pub const TAIL_CHARS: usize = 2000;

/// The maximum size of the file; further bytes are only counted.
const QUOTA: u64 = 1024 * 1024 * 1024;

/// The output of a command, as it can be shown to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    pub body: OutputBody,
    /// The current screen of a full-screen program.
    pub screen: Option<Screen>,
}

/// The text of an output, or its beginning and end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputBody {
    Whole(String),
    Preview {
        /// The first [`HEAD_CHARS`] characters; empty if they are no longer in memory.
        head: String,
        /// The last [`TAIL_CHARS`] characters.
        tail: String,
        /// The length of the whole text.
        bytes: u64,
        saved: SavedOutput,
    },
}

/// Where the full text of a long output is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SavedOutput {
    /// The file has this many bytes from the beginning of the output.
    File {
        path: PathBuf,
        bytes: u64,
    },
    /// The first bytes are still being written.
    Pending,
    Failed(String),
}

/// The screen of a full-screen program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    /// The rows, without trailing blanks and without empty rows at the bottom.
    pub text: String,
    /// The row and column of the cursor, counted from one.
    pub cursor: (u16, u16),
}

/// The final text, which can no longer change.
#[derive(Debug)]
pub(super) struct FinalText {
    head: Vec<u8>,
    /// The text after the head; only the end of a long text.
    tail: Vec<u8>,
    total: u64,
    file_state: FileState,
    saved: SavedOutput,
}

/// Whether the text is written to a file, and the bytes that are not yet written.
#[derive(Debug)]
enum FileState {
    NotYet,
    Waiting(Vec<u8>),
    Finished,
}

impl FinalText {
    pub(super) fn new() -> Self {
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
            file_state: FileState::NotYet,
            saved: SavedOutput::Pending,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.total + bytes.len() as u64 > WHOLE as u64 {
            self.start_file();
        }
        self.total += bytes.len() as u64;
        if let FileState::Waiting(waiting) = &mut self.file_state {
            waiting.extend_from_slice(bytes);
        }
        let room = HEAD - self.head.len();
        let (first, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(first);
        if rest.is_empty() {
            return;
        }
        let end = rest.get(rest.len().saturating_sub(TAIL)..);
        self.tail.extend_from_slice(end.unwrap_or_default());
        // Trim only at twice the size, so that each byte is moved once on average.
        if self.tail.len() >= 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }

    /// Starts to write all text to the file; must be called before any text is dropped from memory.
    pub(super) fn start_file(&mut self) {
        if matches!(self.file_state, FileState::NotYet) {
            let mut waiting = self.head.clone();
            waiting.extend_from_slice(&self.tail);
            self.file_state = FileState::Waiting(waiting);
        }
    }

    /// Takes the bytes that must be written to the file next.
    pub(super) fn take_waiting(&mut self) -> Option<Vec<u8>> {
        match &mut self.file_state {
            FileState::Waiting(waiting) if !waiting.is_empty() => Some(std::mem::take(waiting)),
            FileState::Waiting(_) | FileState::NotYet | FileState::Finished => None,
        }
    }

    /// Sets the state of the file.
    pub(super) fn set_saved(&mut self, saved: SavedOutput) {
        if matches!(&saved, SavedOutput::Failed(_))
            || matches!(&saved, SavedOutput::File { bytes, .. } if *bytes >= QUOTA)
        {
            self.file_state = FileState::Finished;
        }
        self.saved = saved;
    }

    pub(super) fn saved(&self) -> &SavedOutput {
        &self.saved
    }

    /// The text from an offset, if all of it is in memory.
    pub(super) fn since(&self, from: u64) -> Option<Vec<u8>> {
        let kept_from = self.total - self.tail.len() as u64;
        let mut bytes = Vec::new();
        if from < self.head.len() as u64 {
            if kept_from > self.head.len() as u64 {
                return None;
            }
            let from = usize::try_from(from).ok()?;
            bytes.extend_from_slice(self.head.get(from..)?);
            bytes.extend_from_slice(&self.tail);
        } else {
            let from = usize::try_from(from.checked_sub(kept_from)?).ok()?;
            bytes.extend_from_slice(self.tail.get(from..)?);
        }
        Some(bytes)
    }

    /// The first characters from an offset; empty if they are no longer in memory.
    pub(super) fn first(&self, from: u64) -> String {
        let bytes = match usize::try_from(from) {
            Ok(from) if from < self.head.len() => self.head.get(from..),
            Ok(_) | Err(_) => {
                let kept_from = self.total - self.tail.len() as u64;
                let from = from.checked_sub(kept_from);
                from.and_then(|from| self.tail.get(usize::try_from(from).ok()?..))
            }
        };
        // A character has at most four bytes.
        let bytes = bytes.unwrap_or_default();
        let bytes = bytes.get(..HEAD_CHARS * 4).unwrap_or(bytes);
        decode(bytes).chars().take(HEAD_CHARS).collect()
    }

    /// The last bytes that are in memory, at most `count`.
    pub(super) fn last(&self, count: usize) -> Vec<u8> {
        let mut bytes = if self.tail.len() >= count {
            Vec::new()
        } else {
            self.head.clone()
        };
        bytes.extend_from_slice(&self.tail);
        bytes.split_off(bytes.len().saturating_sub(count))
    }
}

/// Decodes text that may start inside a character.
pub(super) fn decode(bytes: &[u8]) -> String {
    let start = bytes
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0xC0 == 0x80);
    String::from_utf8_lossy(bytes.get(start.count()..).unwrap_or_default()).into_owned()
}

/// The last characters of a text.
pub(super) fn last_chars(text: &str, characters: usize) -> String {
    let start = text.char_indices().rev().nth(characters.saturating_sub(1));
    let start = start.map_or(0, |(start, _)| start);
    text.get(start..).unwrap_or(text).to_owned()
}

/// The file with the full text of a long output.
#[derive(Debug)]
pub(super) struct OutputFile {
    scratch: PathBuf,
    name: fn() -> String,
    filter: Box<dyn OutputFilter>,
    open: Option<(File, PathBuf)>,
    written: u64,
}

impl OutputFile {
    pub(super) fn new(
        scratch: PathBuf,
        name: fn() -> String,
        filter: Box<dyn OutputFilter>,
    ) -> Self {
        Self {
            scratch,
            name,
            filter,
            open: None,
            written: 0,
        }
    }

    /// Writes the next bytes and returns the state of the file.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> SavedOutput {
        let room = usize::try_from(QUOTA - self.written).unwrap_or(usize::MAX);
        let bytes = bytes.get(..room).unwrap_or(bytes);
        let filtered = self.filter.next(bytes);
        match self.append(&filtered).await {
            Ok(path) => {
                self.written += bytes.len() as u64;
                SavedOutput::File {
                    path,
                    bytes: self.written,
                }
            }
            Err(error) => {
                // Remove the incomplete file: a full disk is the likely cause, and the file uses
                // space.
                if let Some((_, path)) = self.open.take()
                    && let Err(error) = tokio::fs::remove_file(path).await
                {
                    tracing::warn!(%error, "an incomplete output file was left behind");
                }
                SavedOutput::Failed(error.to_string())
            }
        }
    }

    /// Writes what the filter held back. The output has ended.
    pub(super) async fn finish(&mut self) {
        let rest = self.filter.rest();
        if self.open.is_some()
            && !rest.is_empty()
            && let Err(error) = self.append(&rest).await
        {
            tracing::warn!(%error, "the end of an output could not be written");
        }
    }

    async fn append(&mut self, bytes: &[u8]) -> io::Result<PathBuf> {
        let (mut file, path) = match self.open.take() {
            Some(open) => open,
            None => self.create().await?,
        };
        let written = match file.write_all(bytes).await {
            Ok(()) => file.flush().await,
            Err(error) => Err(error),
        };
        self.open = Some((file, path.clone()));
        written.map(|()| path)
    }

    /// Creates the file, readable by its owner only.
    async fn create(&self) -> io::Result<(File, PathBuf)> {
        let mut folder = DirBuilder::new();
        folder.recursive(true);
        #[cfg(unix)]
        folder.mode(0o700);
        folder.create(&self.scratch).await?;
        let path = self.scratch.join((self.name)());
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        options.mode(0o600);
        Ok((options.open(&path).await?, path))
    }
}
