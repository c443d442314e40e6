//! Keeps the output of one command: all of it while it is short, then its beginning and its end in
//! memory and the whole in a file. Never keeps more than [`HEAD`] + 3 * [`TAIL`] bytes.

use std::io;
use std::path::PathBuf;

use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::tool::large_output::{self, OutputLimits};
use crate::tool::texts;

/// How much of the beginning is kept; more than the largest output that is shown whole.
const HEAD: usize = 64 * 1024;

/// How much of the end is kept.
const TAIL: usize = 16 * 1024;

/// How many characters of the end of a long output are shown.
const TAIL_CHARS: usize = 2000;

/// How much of the output is saved; what follows is counted only.
const MAX_SAVED: u64 = 2 * 1024 * 1024 * 1024;

/// The output of one command.
#[derive(Debug)]
pub(super) struct Capture {
    scratch: PathBuf,
    limits: OutputLimits,
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
    spool: Spool,
}

/// The file behind a long output.
#[derive(Debug)]
enum Spool {
    NotNeeded,
    Open(File, PathBuf),
    Failed(io::Error),
}

impl Capture {
    pub(super) fn new(scratch: PathBuf) -> Self {
        Self {
            scratch,
            limits: OutputLimits::default(),
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
            spool: Spool::NotNeeded,
        }
    }

    /// Takes the next piece of output.
    pub(super) async fn push(&mut self, bytes: &[u8]) {
        let room = HEAD - self.head.len();
        let (first, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(first);
        self.total += first.len() as u64;
        if rest.is_empty() {
            return;
        }
        self.spool(rest).await;
        self.total += rest.len() as u64;
        let end = rest.get(rest.len().saturating_sub(TAIL)..);
        self.tail.extend_from_slice(end.unwrap_or_default());
        // Trimmed only at twice the size, so that each byte is moved once on average.
        if self.tail.len() >= 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }

    async fn spool(&mut self, bytes: &[u8]) {
        if matches!(self.spool, Spool::NotNeeded) {
            self.spool = self.open().await;
        }
        if self.total >= MAX_SAVED {
            return;
        }
        if let Spool::Open(file, path) = &mut self.spool
            && let Err(error) = file.write_all(bytes).await
        {
            // Half an output would only use up the space that is missing.
            if let Err(error) = tokio::fs::remove_file(path).await {
                tracing::warn!(%error, "an incomplete output file was left behind");
            }
            self.spool = Spool::Failed(error);
        }
    }

    /// Opens the file and puts everything there that came so far.
    async fn open(&self) -> Spool {
        let (mut file, path) = match large_output::create(&self.scratch).await {
            Ok(made) => made,
            Err(error) => return Spool::Failed(error),
        };
        match file.write_all(&self.head).await {
            Ok(()) => Spool::Open(file, path),
            Err(error) => Spool::Failed(error),
        }
    }

    /// Says what the output was: itself, or its beginning and end and where the whole is.
    pub(super) async fn finish(mut self) -> String {
        if self.total <= self.limits.max_bytes as u64 {
            return decode(&self.head).trim_end_matches(['\r', '\n']).to_owned();
        }
        let spool = match self.spool {
            Spool::NotNeeded => self.open().await,
            opened => opened,
        };
        let saved = match spool {
            Spool::Open(mut file, path) => file.flush().await.map(|()| path),
            Spool::Failed(error) => Err(error),
            Spool::NotNeeded => Err(io::Error::other("no file was made")),
        };
        let head = decode(&self.head);
        self.head.extend_from_slice(&self.tail);
        let end = decode(if self.tail.len() < TAIL {
            &self.head
        } else {
            &self.tail
        });
        let end = end.trim_end_matches(['\r', '\n']);
        let shown = self.limits.preview_chars;
        let mut text = large_output::notice(
            self.total,
            &saved,
            large_output::first_chars(&head, shown),
            shown,
        );
        text.push_str("\n\n");
        let end = large_output::last_chars(end, TAIL_CHARS);
        text.push_str(&texts::last_preview(TAIL_CHARS, self.total, end));
        if self.total > MAX_SAVED {
            text.push_str("\n[Only the first ");
            text.push_str(&texts::size(MAX_SAVED));
            text.push_str(" were saved.]");
        }
        text
    }

    #[cfg(test)]
    fn kept(&self) -> usize {
        self.head.capacity() + self.tail.capacity()
    }
}

fn decode(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
