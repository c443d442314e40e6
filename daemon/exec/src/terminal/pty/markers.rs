//! Finds in the bytes of a terminal what the hook in bash says to us, by a random word that nothing
//! else can write by chance. Works on bytes and before any escape sequence is understood, so that
//! a program which leaves one unfinished cannot hide them.

use memchr::memmem::Finder;

/// The longest part of a marker after its word: a letter, a status and the terminator.
const MAX_REST: usize = 16;

/// What bash itself prints when an interactive shell is left.
const FAREWELL: &[u8] = b"exit\r\n";

/// A piece of what came from the terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Output(&'a [u8]),
    /// The command begins.
    Begin,
    /// The command is done, with this status.
    Done(i32),
}

/// Tells markers from output.
#[derive(Debug)]
pub(super) struct Markers {
    finder: Finder<'static>,
    /// What may be the beginning of a marker.
    held: Vec<u8>,
    leaving: bool,
}

impl Markers {
    /// Looks for markers with this word.
    pub(super) fn new(word: &str) -> Self {
        Self {
            finder: Finder::new(&format!("\x1b_{word};")).into_owned(),
            held: Vec::new(),
            leaving: false,
        }
    }

    /// Hands on the pieces of what came, in order.
    pub(super) fn scan(&mut self, bytes: &[u8], mut piece: impl FnMut(Piece<'_>)) {
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
                let known = rest.len().min(FAREWELL.len());
                if rest.get(..known) == FAREWELL.get(..known) {
                    if known < FAREWELL.len() {
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
                        Some((b'B', _)) => piece(Piece::Begin),
                        Some((b'D', code)) => {
                            let code = std::str::from_utf8(code).unwrap_or_default();
                            piece(Piece::Done(code.parse().unwrap_or(-1)));
                        }
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

    /// Hands on what was held back, when nothing more will come.
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

fn output_piece(output: &[u8], piece: &mut impl FnMut(Piece<'_>)) {
    if !output.is_empty() {
        piece(Piece::Output(output));
    }
}

#[cfg(test)]
mod tests;
