//! Interprets what programs write to a terminal. Plain text goes to [`Lines`], escape sequences are
//! applied and dropped, queries get a reply, and a full-screen program gets a separate screen.
//! `text.rs` feeds it; the terminal backend sends the replies.

mod replies;
mod sequences;

use std::num::NonZeroU16;

use super::keys::CursorKeys;
use super::lines::{HEIGHT, Lines, WIDTH};
use super::output::Screen;
use sequences::{SequenceHandler, TerminalEvent};

/// The minimum number of bytes for which lines are added in bulk.
const BULK: usize = 8 * 1024;

/// The terminal emulator of one command.
pub(super) struct Emulator {
    parser: vte::Parser,
    sequences: SequenceHandler,
    /// Whether the next byte is text and not part of an escape sequence.
    in_text: bool,
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
    /// The screen of a full-screen program.
    screen: Option<Box<vt100::Parser>>,
    answers: Vec<u8>,
}

impl std::fmt::Debug for Emulator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Emulator").finish_non_exhaustive()
    }
}

impl Emulator {
    pub(super) fn new() -> Self {
        Self {
            parser: vte::Parser::new(),
            sequences: SequenceHandler::new(),
            in_text: true,
            partial: Vec::new(),
            screen: None,
            answers: Vec::new(),
        }
    }

    pub(super) fn lines(&mut self) -> &mut Lines {
        &mut self.sequences.lines
    }

    pub(super) fn open(&self) -> String {
        self.sequences.lines.open()
    }

    pub(super) fn cursor_keys(&self) -> CursorKeys {
        self.sequences.cursor_keys
    }

    pub(super) fn screen(&self) -> Option<Screen> {
        let screen = self.screen.as_ref()?.screen();
        let rows: Vec<String> = screen
            .rows(0, u16::try_from(WIDTH).unwrap_or(u16::MAX))
            .map(|row| row.trim_end().to_owned())
            .collect();
        let (row, column) = screen.cursor_position();
        Some(Screen {
            text: rows.join("\n").trim_end().to_owned(),
            cursor: (row + 1, column + 1),
        })
    }

    /// Interprets the next bytes and returns the replies of the terminal.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut rest = bytes.get(self.feed_bulk(bytes)..).unwrap_or_default();
        while !rest.is_empty() {
            let taken = if self.screen.is_some() {
                self.feed_screen(rest)
            } else if self.in_text {
                self.feed_text(rest)
            } else {
                self.feed_sequence(rest)
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
        std::mem::take(&mut self.answers)
    }

    /// Adds whole lines of plain text at once, if there are many; returns the number of bytes used.
    fn feed_bulk(&mut self, bytes: &[u8]) -> usize {
        let can = self.screen.is_none()
            && self.in_text
            && self.partial.is_empty()
            && self.sequences.lines.at_bottom();
        let bulk = if can { bulk(bytes) } else { 0 };
        if bulk > 0 {
            let lines = bytes.get(..bulk).unwrap_or_default();
            self.sequences.lines.push_lines(lines);
        }
        bulk
    }

    /// Interprets text up to the next escape sequence; returns the number of bytes used.
    fn feed_text(&mut self, bytes: &[u8]) -> usize {
        let end = bytes
            .iter()
            .position(|byte| *byte < b' ' || *byte == 0x7F)
            .unwrap_or(bytes.len());
        if end > 0 {
            self.print(bytes.get(..end).unwrap_or_default());
            return end;
        }
        if !std::mem::take(&mut self.partial).is_empty() {
            self.sequences.lines.print("\u{FFFD}");
        }
        match bytes.first() {
            Some(0x1B) => {
                self.in_text = false;
                0
            }
            Some(byte) => {
                self.sequences.control(*byte);
                1
            }
            None => 0,
        }
    }

    /// Prints text without ASCII control characters; invalid bytes become replacement characters.
    fn print(&mut self, bytes: &[u8]) {
        let joined;
        let mut rest = if self.partial.is_empty() {
            bytes
        } else {
            let mut partial = std::mem::take(&mut self.partial);
            partial.extend_from_slice(bytes);
            joined = partial;
            &joined
        };
        while !rest.is_empty() {
            let (valid, wrong) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let valid = rest.get(..error.valid_up_to()).unwrap_or_default();
                    let text = std::str::from_utf8(valid).unwrap_or_default();
                    (text, Some(error.error_len()))
                }
            };
            self.print_valid(valid);
            rest = rest.get(valid.len()..).unwrap_or_default();
            match wrong {
                None => {}
                Some(Some(wrong)) => {
                    self.sequences.lines.print("\u{FFFD}");
                    rest = rest.get(wrong..).unwrap_or_default();
                }
                Some(None) => {
                    rest.clone_into(&mut self.partial);
                    return;
                }
            }
        }
    }

    fn print_valid(&mut self, text: &str) {
        if text.is_ascii() {
            self.sequences.lines.print(text);
            return;
        }
        // C1 control characters could start sequences on some terminals.
        if text.contains(char::is_control) {
            let shown: String = text.chars().filter(|shown| !shown.is_control()).collect();
            self.sequences.lines.print(&shown);
        } else {
            self.sequences.lines.print(text);
        }
    }

    /// Interprets an escape sequence byte by byte; returns the number of bytes used.
    fn feed_sequence(&mut self, bytes: &[u8]) -> usize {
        for (index, byte) in bytes.iter().enumerate() {
            self.sequences.in_sequence = true;
            self.parser.advance(&mut self.sequences, &[*byte]);
            if let Some(event) = self.sequences.event.take() {
                self.handle_event(event);
            }
            if !self.sequences.in_sequence {
                self.in_text = true;
                return index + 1;
            }
        }
        bytes.len()
    }

    /// Shows bytes on the screen of a full-screen program until it leaves that screen; returns the
    /// number of bytes used.
    fn feed_screen(&mut self, bytes: &[u8]) -> usize {
        let mut shown = 0;
        for (index, byte) in bytes.iter().enumerate() {
            self.sequences.in_sequence = true;
            self.parser.advance(&mut self.sequences, &[*byte]);
            let Some(event) = self.sequences.event.take() else {
                continue;
            };
            let slice = bytes.get(shown..=index).unwrap_or_default();
            if let Some(screen) = &mut self.screen {
                screen.process(slice);
            }
            shown = index + 1;
            self.handle_event(event);
            if self.screen.is_none() {
                self.in_text = true;
                return shown;
            }
        }
        if let Some(screen) = &mut self.screen {
            screen.process(bytes.get(shown..).unwrap_or_default());
        }
        bytes.len()
    }

    fn handle_event(&mut self, event: TerminalEvent) {
        match event {
            TerminalEvent::EnterScreen => {
                let size = |count: usize| {
                    let count = u16::try_from(count).ok().and_then(NonZeroU16::new);
                    count.unwrap_or(NonZeroU16::MIN)
                };
                let screen = vt100::Parser::new(size(HEIGHT), size(WIDTH), 0);
                self.screen = Some(Box::new(screen));
                self.sequences.on_screen = true;
            }
            TerminalEvent::LeaveScreen => {
                self.screen = None;
                self.sequences.on_screen = false;
            }
            TerminalEvent::Query(query) => {
                let cursor = match &self.screen {
                    Some(screen) => {
                        let (row, column) = screen.screen().cursor_position();
                        (usize::from(row) + 1, usize::from(column) + 1)
                    }
                    None => self.sequences.lines.cursor(),
                };
                let answer = replies::reply(&query, cursor);
                self.answers.extend_from_slice(answer.as_bytes());
            }
        }
    }
}

/// How many bytes at the beginning are whole lines of plain text that scroll off the screen within
/// `bytes`; 0 if there are too few.
fn bulk(bytes: &[u8]) -> usize {
    if bytes.len() < BULK {
        return 0;
    }
    let Some((last, _)) = memchr::memrchr_iter(b'\n', bytes)
        .zip(0..=HEIGHT)
        .find(|(_, count)| *count == HEIGHT)
    else {
        return 0;
    };
    let lines = bytes.get(..=last).unwrap_or_default();
    let special = lines.iter().enumerate().any(|(index, byte)| match byte {
        b'\n' | b'\t' => false,
        b'\r' => !matches!(lines.get(index + 1), Some(b'\n' | b'\r')),
        byte => *byte < b' ' || *byte == 0x7F,
    });
    let plain = !special
        && std::str::from_utf8(lines).is_ok_and(|text| {
            text.is_ascii()
                || !text
                    .chars()
                    .any(|shown| ('\u{80}'..='\u{9F}').contains(&shown))
        });
    if plain { lines.len() } else { 0 }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
