//! Markdown that comes in pieces. A block is finished when another one begins after it; of a list each
//! item, and of code each line, is finished on its own. What is finished is printed once.

mod blocks;
mod table;

use super::styled::Line;
use crate::terminal::sanitize;

/// A part of a text that is printed at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Piece {
    lines: Vec<Line>,
    /// Whether it begins a block, before which an empty line is printed.
    begins_block: bool,
}

/// The pieces of a text, and where its last block begins.
struct Pieces {
    all: Vec<Piece>,
    /// How many of the pieces belong to the last block.
    of_last: usize,
    last_start: usize,
}

/// A message in Markdown, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct MarkdownStream {
    /// What is not printed in full.
    tail: String,
    /// How many pieces of the tail are printed.
    printed: usize,
    /// Whether something was printed before the tail.
    has_begun: bool,
}

impl MarkdownStream {
    pub(super) fn push(&mut self, text: &str) {
        self.tail.push_str(&sanitize(text));
    }

    /// Returns the lines that are finished since the last time.
    pub(super) fn take_finished(&mut self, columns: usize) -> Vec<Line> {
        // A line that is not complete may still change what stands before it.
        let Some(end) = self.tail.rfind('\n') else {
            return Vec::new();
        };
        let whole = self.tail.get(..=end).unwrap_or_default();
        let found = blocks::pieces(whole, columns);
        let finished = found.all.len().saturating_sub(1);
        let lines = self.lines(found.all.into_iter().take(finished));
        self.printed = self.printed.max(finished);
        if found.last_start > 0 {
            let passed = finished + 1 - found.of_last;
            self.tail.drain(..found.last_start);
            self.printed = self.printed.saturating_sub(passed);
            self.has_begun = true;
        }
        lines
    }

    /// Returns the lines that are not finished.
    pub(super) fn unfinished(&self, columns: usize) -> Vec<Line> {
        let found = blocks::pieces(&self.tail, columns);
        self.lines(found.all.into_iter())
    }

    /// Ends the message and returns its last lines.
    pub(super) fn finish(&mut self, columns: usize) -> Vec<Line> {
        let lines = self.unfinished(columns);
        *self = Self::default();
        lines
    }

    /// Returns the lines of the pieces that are not printed.
    fn lines(&self, pieces: impl Iterator<Item = Piece>) -> Vec<Line> {
        let mut lines = Vec::new();
        for (number, piece) in pieces.enumerate().skip(self.printed) {
            if piece.begins_block && (number > 0 || self.has_begun) {
                lines.push(Line::default());
            }
            lines.extend(piece.lines);
        }
        lines
    }
}

#[cfg(test)]
mod tests;
