//! Keeps the text of one command: all of it while it is short, then its two ends in memory and the
//! whole in a file. Never keeps more than [`HEAD`] + 2 * [`TAIL`] bytes and what waits for the file.

use std::io;
use std::path::PathBuf;

use tokio::fs::{DirBuilder, File, OpenOptions};
use tokio::io::AsyncWriteExt;

/// The longest text that is shown whole.
pub(super) const WHOLE: usize = 51_200;

/// How much of the beginning is kept.
const HEAD: usize = WHOLE;

/// How much of the end is kept, so that any unread text short enough to be shown is in memory.
const TAIL: usize = WHOLE;

/// How many characters of the beginning of a long text are shown, and of its end.
pub const HEAD_CHARS: usize = 500;
pub const TAIL_CHARS: usize = 2000;

/// How much is saved to a file; what follows is counted only.
const QUOTA: u64 = 1024 * 1024 * 1024;

/// Output as the model may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub body: Body,
    /// What a full-screen program shows at this moment.
    pub screen: Option<Screen>,
}

/// The text of an output, or the ends of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    Whole(String),
    Preview {
        /// The first [`HEAD_CHARS`] characters; empty for unread text that begins further back than
        /// what is kept in memory.
        head: String,
        /// The last [`TAIL_CHARS`] characters.
        tail: String,
        /// How long the text is.
        bytes: u64,
        saved: Saved,
    },
}

/// Where the whole of a long output is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// This much of it is in the file, counted from the beginning of the whole output.
    File {
        path: PathBuf,
        bytes: u64,
    },
    /// The first of it is still being written.
    Pending,
    Failed(String),
}

/// What a full-screen program shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    /// The rows without the blanks at their ends and without empty rows at the bottom.
    pub text: String,
    /// Where the cursor is, counted from one.
    pub cursor: (u16, u16),
}

/// The text that can no longer change.
#[derive(Debug)]
pub(super) struct Store {
    head: Vec<u8>,
    /// What follows the head, of a long text the end of it.
    tail: Vec<u8>,
    total: u64,
    spooling: Spooling,
    saved: Saved,
}

/// Whether text goes to a file, and what of it is not there yet.
#[derive(Debug)]
enum Spooling {
    NotYet,
    Waiting(Vec<u8>),
    Over,
}

impl Store {
    pub(super) fn new() -> Self {
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
            spooling: Spooling::NotYet,
            saved: Saved::Pending,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.total + bytes.len() as u64 > WHOLE as u64 {
            self.start_spooling();
        }
        self.total += bytes.len() as u64;
        if let Spooling::Waiting(waiting) = &mut self.spooling {
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
        // Trimmed only at twice the size, so that each byte is moved once on average.
        if self.tail.len() >= 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }

    /// From now on everything goes to the file as well; must come before anything is forgotten.
    pub(super) fn start_spooling(&mut self) {
        if matches!(self.spooling, Spooling::NotYet) {
            let mut waiting = self.head.clone();
            waiting.extend_from_slice(&self.tail);
            self.spooling = Spooling::Waiting(waiting);
        }
    }

    /// Takes what has to be written to the file next.
    pub(super) fn take_waiting(&mut self) -> Option<Vec<u8>> {
        match &mut self.spooling {
            Spooling::Waiting(waiting) if !waiting.is_empty() => Some(std::mem::take(waiting)),
            Spooling::Waiting(_) | Spooling::NotYet | Spooling::Over => None,
        }
    }

    /// Notes what became of the file.
    pub(super) fn set_saved(&mut self, saved: Saved) {
        if matches!(&saved, Saved::Failed(_))
            || matches!(&saved, Saved::File { bytes, .. } if *bytes >= QUOTA)
        {
            self.spooling = Spooling::Over;
        }
        self.saved = saved;
    }

    pub(super) fn saved(&self) -> &Saved {
        &self.saved
    }

    /// The text from a place on, if all of it is in memory.
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

    /// The first characters from a place on, or nothing if they are no longer in memory.
    pub(super) fn first(&self, from: u64) -> String {
        let bytes = match usize::try_from(from) {
            Ok(from) if from < self.head.len() => self.head.get(from..),
            Ok(_) | Err(_) => {
                let kept_from = self.total - self.tail.len() as u64;
                let from = from.checked_sub(kept_from);
                from.and_then(|from| self.tail.get(usize::try_from(from).ok()?..))
            }
        };
        // Four bytes are the longest character.
        let bytes = bytes.unwrap_or_default();
        let bytes = bytes.get(..HEAD_CHARS * 4).unwrap_or(bytes);
        decode(bytes).chars().take(HEAD_CHARS).collect()
    }

    /// The bytes of the end that are in memory, no more than asked for.
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

/// Decodes text that may have been cut inside a character.
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

/// The file behind a long output.
#[derive(Debug)]
pub(super) struct Spool {
    scratch: PathBuf,
    name: fn() -> String,
    open: Option<(File, PathBuf)>,
    written: u64,
}

impl Spool {
    pub(super) fn new(scratch: PathBuf, name: fn() -> String) -> Self {
        Self {
            scratch,
            name,
            open: None,
            written: 0,
        }
    }

    /// Writes the next bytes and says where they are.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Saved {
        let room = usize::try_from(QUOTA - self.written).unwrap_or(usize::MAX);
        let bytes = bytes.get(..room).unwrap_or(bytes);
        match self.append(bytes).await {
            Ok(path) => {
                self.written += bytes.len() as u64;
                Saved::File {
                    path,
                    bytes: self.written,
                }
            }
            Err(error) => {
                // Half an output would only use up the space that is missing.
                if let Some((_, path)) = self.open.take()
                    && let Err(error) = tokio::fs::remove_file(path).await
                {
                    tracing::warn!(%error, "an incomplete output file was left behind");
                }
                Saved::Failed(error.to_string())
            }
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

    /// Makes the file, readable by its owner only.
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
