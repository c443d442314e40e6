//! Applies escape sequences to the rows of [`Lines`], and returns an event for those that concern
//! the whole terminal.

use crate::terminal::keys::CursorKeys;
use crate::terminal::lines::{Lines, RowPart};

use super::replies::TerminalQuery;

/// An escape sequence that concerns the whole terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TerminalEvent {
    EnterScreen,
    LeaveScreen,
    Query(TerminalQuery),
}

/// Handles the sequences that the parser finds.
#[derive(Debug)]
pub(super) struct SequenceHandler {
    pub(super) lines: Lines,
    pub(super) cursor_keys: CursorKeys,
    /// A full-screen program is running; the rows are not changed.
    pub(super) on_screen: bool,
    /// Cleared at the end of a sequence.
    pub(super) in_sequence: bool,
    pub(super) event: Option<TerminalEvent>,
    /// The reply type for a device control string that is a query.
    device: Option<char>,
}

impl SequenceHandler {
    pub(super) fn new() -> Self {
        Self {
            lines: Lines::new(),
            cursor_keys: CursorKeys::default(),
            on_screen: false,
            in_sequence: false,
            event: None,
            device: None,
        }
    }

    /// Applies a control character.
    pub(super) fn control(&mut self, byte: u8) {
        match byte {
            b'\n' | 0x0B | 0x0C => self.lines.newline(),
            b'\r' => self.lines.go_to_start(),
            b'\t' => self.lines.tab(),
            0x08 => self.lines.by_columns(-1),
            _ => {}
        }
    }

    fn mode(&mut self, mode: u16, set: ModeChange) {
        match (mode, set) {
            (1, ModeChange::Set) => self.cursor_keys = CursorKeys::Application,
            (1, ModeChange::Reset) => self.cursor_keys = CursorKeys::Normal,
            (47 | 1047 | 1049, ModeChange::Set) if !self.on_screen => {
                self.event = Some(TerminalEvent::EnterScreen);
            }
            (47 | 1047 | 1049, ModeChange::Reset) if self.on_screen => {
                self.event = Some(TerminalEvent::LeaveScreen);
            }
            _ => {}
        }
    }

    /// Applies a sequence that moves the cursor or changes the rows.
    fn edit(&mut self, first: Option<usize>, second: Option<usize>, action: char) {
        let count = first.unwrap_or(1).clamp(1, 10_000);
        let by = isize::try_from(count).unwrap_or(1);
        let lines = &mut self.lines;
        match action {
            'A' => lines.by_rows(-by),
            'B' | 'e' => lines.by_rows(by),
            'C' | 'a' => lines.by_columns(by),
            'D' => lines.by_columns(-by),
            'E' => {
                lines.by_rows(by);
                lines.go_to_start();
            }
            'F' => {
                lines.by_rows(-by);
                lines.go_to_start();
            }
            'G' | '`' => lines.go_to_column(count - 1),
            'd' => lines.go_to_row(count - 1),
            'H' | 'f' => {
                lines.go_to_row(count - 1);
                lines.go_to_column(second.unwrap_or(1).max(1) - 1);
            }
            'J' => match first.unwrap_or(0) {
                0 => lines.erase_below(),
                2 | 3 => lines.clear(),
                _ => {}
            },
            'K' => match first.unwrap_or(0) {
                0 => lines.erase_in_row(RowPart::After),
                1 => lines.erase_in_row(RowPart::Before),
                _ => lines.erase_in_row(RowPart::All),
            },
            'L' => lines.insert_rows(count),
            'M' => lines.delete_rows(count),
            'P' => lines.delete_characters(count),
            '@' => lines.insert_blanks(count),
            'X' => lines.erase_characters(count),
            's' => lines.save_cursor(),
            'u' => lines.restore_cursor(),
            _ => {}
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum ModeChange {
    Set,
    Reset,
}

impl vte::Perform for SequenceHandler {
    fn print(&mut self, _: char) {
        self.in_sequence = false;
    }

    fn execute(&mut self, byte: u8) {
        // CAN and SUB cancel a sequence; other control characters may be inside one.
        if matches!(byte, 0x18 | 0x1A) {
            self.in_sequence = false;
        } else if !self.on_screen {
            self.control(byte);
        }
    }

    fn hook(&mut self, _: &vte::Params, intermediates: &[u8], _: bool, action: char) {
        self.device = match (intermediates, action) {
            (b"+", 'q') => Some('r'),
            (b"$", 'q') => Some('$'),
            _ => None,
        };
    }

    fn unhook(&mut self) {
        if let Some(kind) = self.device.take() {
            self.event = Some(TerminalEvent::Query(TerminalQuery::Device(kind)));
        }
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], bell_terminated: bool) {
        if let [number, .., b"?"] = params {
            let number = String::from_utf8_lossy(number).into_owned();
            let index = match params {
                [_, index, _] => Some(String::from_utf8_lossy(index).into_owned()),
                _ => None,
            };
            self.event = Some(TerminalEvent::Query(TerminalQuery::Color { number, index }));
        }
        // Otherwise the backslash of the terminator follows.
        if bell_terminated {
            self.in_sequence = false;
        }
    }

    fn csi_dispatch(
        &mut self,
        params: &vte::Params,
        intermediates: &[u8],
        ignore: bool,
        action: char,
    ) {
        self.in_sequence = false;
        if ignore {
            return;
        }
        let given = |index: usize| {
            let value = params.iter().nth(index)?.first().copied()?;
            (value > 0).then_some(usize::from(value))
        };
        let (first, second) = (given(0), given(1));
        match (intermediates, action) {
            (b"?", 'h' | 'l') => {
                let set = if action == 'h' {
                    ModeChange::Set
                } else {
                    ModeChange::Reset
                };
                for mode in params.iter().filter_map(|mode| mode.first().copied()) {
                    self.mode(mode, set);
                }
            }
            (_, 'n' | 'c' | 'q' | 'p' | 't' | 'x') => {
                let marks = String::from_utf8_lossy(intermediates).into_owned();
                let first = first.unwrap_or(0);
                let query = TerminalQuery::Control {
                    marks,
                    first,
                    action,
                };
                self.event = Some(TerminalEvent::Query(query));
            }
            (b"", _) if !self.on_screen => self.edit(first, second, action),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _: bool, byte: u8) {
        self.in_sequence = false;
        if self.on_screen || !intermediates.is_empty() {
            return;
        }
        match byte {
            b'7' => self.lines.save_cursor(),
            b'8' => self.lines.restore_cursor(),
            b'D' => self.lines.by_rows(1),
            b'E' => self.lines.newline(),
            b'M' => self.lines.by_rows(-1),
            b'c' => self.lines.clear(),
            _ => {}
        }
    }
}
