//! Sends the output of a running command to whoever watches: in pieces, whole characters only,
//! and never more at once than somebody can read. A reader too slow misses pieces, never blocks.

use tokio::sync::mpsc;

/// How much is sent at once; of more, the end.
const MAX_PIECE: usize = 16 * 1024;

/// Output on its way to the watchers.
#[derive(Debug)]
pub(super) struct Partial {
    sender: mpsc::Sender<String>,
    waiting: Vec<u8>,
    skipped: usize,
}

impl Partial {
    pub(super) fn new(sender: mpsc::Sender<String>) -> Self {
        Self {
            sender,
            waiting: Vec::new(),
            skipped: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= 2 * MAX_PIECE {
            let surplus = self.waiting.len() - MAX_PIECE;
            self.waiting.drain(..surplus);
            self.skipped += surplus;
        }
    }

    /// Sends what waits, up to the last whole character.
    pub(super) fn flush(&mut self) {
        let whole = self.waiting.len() - unfinished(&self.waiting);
        let piece: Vec<u8> = self.waiting.drain(..whole).collect();
        self.send(&piece);
    }

    /// Sends everything that is left.
    pub(super) fn finish(mut self) {
        let piece = std::mem::take(&mut self.waiting);
        self.send(&piece);
    }

    fn send(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        let mut text = String::from_utf8_lossy(piece).into_owned();
        if self.skipped > 0 {
            text = format!("[... {} bytes are not shown ...]\n{text}", self.skipped);
            self.skipped = 0;
        }
        if self.sender.try_send(text).is_err() {
            tracing::trace!("partial output was dropped: nobody takes it fast enough");
        }
    }
}

/// How many bytes at the end are the start of a character that is not complete.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.rchunks(3).next().unwrap_or_default();
    (0..last.len())
        .map(|start| last.get(start..).unwrap_or_default())
        .find(|end| {
            std::str::from_utf8(end)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .map_or(0, <[u8]>::len)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
