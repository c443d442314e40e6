//! The replies of the terminal to queries of programs. An unknown query gets no reply, as on a real
//! terminal.

use crate::terminal::lines::{HEIGHT, WIDTH};

/// A query of a program to the terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TerminalQuery {
    /// A control sequence: its intermediate bytes, first parameter and final letter.
    Control {
        marks: String,
        first: usize,
        action: char,
    },
    /// A colour query: the number of the command, and the palette index if there is one.
    Color {
        number: String,
        index: Option<String>,
    },
    /// A query for a capability or setting in a device control string.
    Device(char),
}

/// The reply; empty for an unknown query.
pub(super) fn reply(query: &TerminalQuery, (row, column): (usize, usize)) -> String {
    match query {
        TerminalQuery::Control {
            marks,
            first,
            action,
        } => match (marks.as_str(), first, action) {
            ("", 5, 'n') => "\x1b[0n".to_owned(),
            ("", 6, 'n') => format!("\x1b[{row};{column}R"),
            ("?", 6, 'n') => format!("\x1b[?{row};{column}R"),
            // A VT220 with colours.
            ("", 0, 'c') => "\x1b[?62;22c".to_owned(),
            (">", 0, 'c') => "\x1b[>1;10;0c".to_owned(),
            (">", 0, 'q') => "\x1bP>|loopd\x1b\\".to_owned(),
            ("?$", mode, 'p') => format!("\x1b[?{mode};0$y"),
            ("$", mode, 'p') => format!("\x1b[{mode};0$y"),
            ("", 18, 't') => format!("\x1b[8;{HEIGHT};{WIDTH}t"),
            ("", 19, 't') => format!("\x1b[9;{HEIGHT};{WIDTH}t"),
            _ => String::new(),
        },
        TerminalQuery::Color { number, index } => match (number.as_str(), index) {
            ("10", None) => "\x1b]10;rgb:ffff/ffff/ffff\x1b\\".to_owned(),
            ("11", None) => "\x1b]11;rgb:0000/0000/0000\x1b\\".to_owned(),
            ("12", None) => "\x1b]12;rgb:ffff/ffff/ffff\x1b\\".to_owned(),
            ("4", Some(index)) if index.len() <= 3 && index.parse::<u8>().is_ok() => {
                format!("\x1b]4;{index};rgb:8080/8080/8080\x1b\\")
            }
            _ => String::new(),
        },
        TerminalQuery::Device('r') => "\x1bP0+r\x1b\\".to_owned(),
        TerminalQuery::Device(_) => "\x1bP0$r\x1b\\".to_owned(),
    }
}
