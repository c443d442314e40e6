//! Finds the markers of the hook in the output of a terminal, by a random word that no other output
//! contains. The word changes from marker to marker; see `channel.rs`. It works on bytes before escape sequences are parsed, so that a program cannot hide a
//! marker with an unfinished sequence.

use memchr::memmem::Finder;

/// The maximum length of a marker after its word: a letter and the terminator, with some room.
const MAX_REST: usize = 16;

/// The text that an interactive bash prints when it exits.
const EXIT_TEXT: &[u8] = b"exit\r\n";

/// A piece of the terminal's output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TerminalPiece<'a> {
    Output(&'a [u8]),
    /// The command has begun.
    Begin,
    /// The output of the command ends here.
    Done,
}

/// Separates markers from output.
#[derive(Debug)]
pub(super) struct MarkerScanner {
    finder: Finder<'static>,
    /// Bytes that may be the beginning of a marker.
    held: Vec<u8>,
    leaving: bool,
}

impl MarkerScanner {
    /// Creates a scanner for markers with this word.
    pub(super) fn new(word: &str) -> Self {
        Self {
            finder: finder(word),
            held: Vec::new(),
            leaving: false,
        }
    }

    /// Looks for markers with this word from now on.
    pub(super) fn expect(&mut self, word: &str) {
        self.finder = finder(word);
    }

    /// Splits the next bytes and passes each piece to `piece`, in order.
    pub(super) fn scan(&mut self, bytes: &[u8], mut piece: impl FnMut(TerminalPiece<'_>)) {
        let joined;
        let mut rest = if self.held.is_empty() {
            bytes
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(bytes);
            joined = held;
            &joined
        };
        loop {
            if self.leaving && !rest.is_empty() {
                let known = rest.len().min(EXIT_TEXT.len());
                if rest.get(..known) == EXIT_TEXT.get(..known) {
                    if known < EXIT_TEXT.len() {
                        break self.hold(rest);
                    }
                    rest = rest.get(known..).unwrap_or_default();
                }
                self.leaving = false;
            }
            let Some(start) = self.finder.find(rest) else {
                let kept = rest.len() - self.unfinished(rest);
                let (output, held) = rest.split_at(kept);
                self.hold(held);
                break output_piece(output, &mut piece);
            };
            let (output, marker) = rest.split_at(start);
            output_piece(output, &mut piece);
            let word = self.finder.needle().len();
            let after = marker.get(word..).unwrap_or_default();
            let window = after.get(..MAX_REST).unwrap_or(after);
            match window.windows(2).position(|pair| pair == b"\x1b\\") {
                Some(end) => {
                    match window.get(..end).and_then(|said| said.split_first()) {
                        Some((b'B', _)) => piece(TerminalPiece::Begin),
                        Some((b'D', _)) => piece(TerminalPiece::Done),
                        Some((b'X', _)) => self.leaving = true,
                        Some(_) | None => {}
                    }
                    rest = after.get(end + 2..).unwrap_or_default();
                }
                None if window.len() < MAX_REST => break self.hold(marker),
                None => rest = after,
            }
        }
    }

    /// Returns the bytes that were held back, when no more bytes will come.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.leaving = false;
        std::mem::take(&mut self.held)
    }

    fn hold(&mut self, bytes: &[u8]) {
        bytes.clone_into(&mut self.held);
    }

    /// How many bytes at the end may be the beginning of a marker.
    fn unfinished(&self, bytes: &[u8]) -> usize {
        let needle = self.finder.needle();
        let most = bytes.len().min(needle.len() - 1);
        let end = bytes.get(bytes.len() - most..).unwrap_or_default();
        memchr::memchr_iter(0x1B, end)
            .map(|start| end.get(start..).unwrap_or_default())
            .find(|suffix| needle.starts_with(suffix))
            .map_or(0, <[u8]>::len)
    }
}

fn finder(word: &str) -> Finder<'static> {
    Finder::new(&format!("\x1b_{word};")).into_owned()
}

fn output_piece(output: &[u8], piece: &mut impl FnMut(TerminalPiece<'_>)) {
    if !output.is_empty() {
        piece(TerminalPiece::Output(output));
    }
}

#[cfg(test)]
mod tests;
