//! What is written to the terminal, byte by byte.

use std::num::NonZeroU16;

use loopd_tests::script::Gate;
use vt100::Parser;

use super::markdown;
use crate::home::Home;
use crate::terminal::OnTerminal;

const BEGIN: &str = "\x1b[?2026h";
const COLUMNS: u16 = 60;
const ROWS: u16 = 16;

/// Returns all rows, also those above the screen.
fn rows(terminal: &mut Parser) -> Vec<String> {
    terminal.screen_mut().set_scrollback(usize::MAX);
    let most = terminal.screen().scrollback();
    let mut rows = Vec::new();
    for above in (1..=most).rev() {
        terminal.screen_mut().set_scrollback(above);
        rows.extend(terminal.screen().rows(0, COLUMNS).next());
    }
    terminal.screen_mut().set_scrollback(0);
    rows.extend(terminal.screen().rows(0, COLUMNS));
    rows
}

/// Returns the row of the cursor, counted from the first one that was ever written.
fn cursor_row(terminal: &mut Parser) -> usize {
    terminal.screen_mut().set_scrollback(usize::MAX);
    let above = terminal.screen().scrollback();
    terminal.screen_mut().set_scrollback(0);
    above + usize::from(terminal.screen().cursor_position().0)
}

#[test]
fn no_finished_line_is_ever_written_again() {
    let (home, gate) = (Home::new(), Gate::new());
    let model = markdown(&gate);
    gate.open();
    let mut command = model.command(&home, &[]);
    command.env("TERM", "xterm-256color");
    let mut chat = OnTerminal::sized(command, COLUMNS, ROWS);
    let mut bytes = chat.read_until("/help lists");
    for number in 1..=4 {
        // Each letter is shown before the next one is typed, so each has a frame of its own.
        let message = format!("message {number}");
        for (at, letter) in message.char_indices() {
            chat.types(&letter.to_string());
            bytes += &chat.read_until(&format!("\x1b[0m{}", &message[..=at]));
        }
        chat.types("\r");
        bytes += &chat.read_until("The end.");
        // What it used is told when the session is idle.
        bytes += &chat.read_until("tokens in");
    }
    chat.types("\x04");
    bytes += &chat.read_until("loop resume ");
    assert_eq!(chat.ends(), Some(0));
    model.finish();
    let mut terminal = Parser::new(
        NonZeroU16::new(ROWS).unwrap(),
        NonZeroU16::new(COLUMNS).unwrap(),
        10_000,
    );
    let mut finished: Vec<String> = Vec::new();
    let mut frames = 0;
    for frame in bytes.split(BEGIN).skip(1) {
        frames += 1;
        // A frame begins by going to the top of the live region: what is above it is finished.
        let top = frame.find('\r').unwrap() + 1;
        terminal.process(&frame.as_bytes()[..top]);
        let row = cursor_row(&mut terminal);
        let now = rows(&mut terminal);
        assert!(
            row >= finished.len(),
            "frame {frames} goes above the region"
        );
        assert_eq!(finished[..], now[..finished.len()], "frame {frames}");
        finished = now[..row].to_vec();
        terminal.process(&frame.as_bytes()[top..]);
    }
    let text = finished.join("\n");
    assert!(frames > 20, "{frames}");
    for number in 1..=4 {
        assert_eq!(
            text.matches(&format!("> message {number}")).count(),
            1,
            "{text}"
        );
    }
    assert_eq!(text.matches("let answer = 42;").count(), 4, "{text}");
}

#[test]
fn without_colours_no_colour_is_written() {
    let (home, gate) = (Home::new(), Gate::new());
    let model = markdown(&gate);
    gate.open();
    let mut command = model.command(&home, &[]);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let mut chat = OnTerminal::sized(command, COLUMNS, ROWS);
    let mut bytes = chat.read_until("/help lists");
    chat.types("go\r");
    bytes += &chat.read_until("The end.");
    chat.types("\x04");
    for code in 30..38 {
        for form in [format!("[{code}m"), format!(";{code}m")] {
            assert!(!bytes.contains(&form), "{form}: {bytes:?}");
        }
    }
    chat.hangs_up();
    model.finish();
}

#[test]
fn a_dumb_terminal_and_who_asks_for_it_get_plain_lines() {
    for (name, value) in [("TERM", "dumb"), ("LOOPD_PLAIN", "1")] {
        let home = Home::new();
        let mut command = home.command(&[]);
        command.env("TERM", "xterm").env(name, value);
        let mut chat = OnTerminal::sized(command, COLUMNS, ROWS);
        let mut bytes = chat.read_until("> ");
        chat.types("run echo he''re\n");
        bytes += &chat.read_until("Done.");
        bytes += &chat.read_until("> ");
        assert!(bytes.contains("\nhere\r\n"), "{bytes:?}");
        for code in ["\x1b[?2026", "\x1b[J", "\x1b[1A"] {
            assert!(name != "TERM" || !bytes.contains(code), "{bytes:?}");
        }
        // The mark of a frame of the live region.
        let frame = format!("{BEGIN}\x1b[?25l");
        assert!(!bytes.contains(&frame), "{bytes:?}");
        chat.types("\x04");
        assert_eq!(chat.ends(), Some(0));
    }
}
