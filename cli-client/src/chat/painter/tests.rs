use std::num::NonZeroU16;

use vt100::Parser;

use super::*;

const SIZE: Size = Size {
    columns: 20,
    rows: 6,
};

fn region(lines: &[&str], row: usize, column: usize) -> Region {
    Region {
        lines: lines.iter().map(|line| Line::plain(*line)).collect(),
        cursor: Cursor { row, column },
    }
}

fn plain(lines: &[&str]) -> Vec<Line> {
    lines.iter().map(|line| Line::plain(*line)).collect()
}

fn emulator(scrollback: usize) -> Parser {
    let size = |number: u16| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
    Parser::new(size(6), size(20), scrollback)
}

fn screen(parser: &Parser) -> Vec<String> {
    let text = parser.screen().contents();
    text.lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[test]
fn finished_lines_stand_above_the_region() {
    let mut painter = Painter::new(SIZE, true, true);
    let mut terminal = emulator(100);
    terminal.process(painter.frame(&[], region(&["> "], 0, 2)).as_bytes());
    terminal.process(
        painter
            .frame(&plain(&["one"]), region(&["works", "> a"], 1, 3))
            .as_bytes(),
    );
    assert_eq!(screen(&terminal), ["one", "works", "> a"]);
    assert_eq!(terminal.screen().cursor_position(), (2, 3));
    terminal.process(
        painter
            .frame(&plain(&["two"]), region(&["> a"], 0, 3))
            .as_bytes(),
    );
    assert_eq!(screen(&terminal), ["one", "two", "> a"]);
    terminal.process(painter.clear().as_bytes());
    assert_eq!(screen(&terminal), ["one", "two"]);
}

#[test]
fn the_same_region_is_not_drawn_twice() {
    let mut painter = Painter::new(SIZE, true, true);
    assert!(!painter.frame(&[], region(&["> "], 0, 2)).is_empty());
    assert!(painter.frame(&[], region(&["> "], 0, 2)).is_empty());
    painter.resize(SIZE);
    assert!(!painter.frame(&[], region(&["> "], 0, 2)).is_empty());
}

#[test]
fn no_finished_line_is_touched_again_when_the_region_grows_and_shrinks() {
    let mut painter = Painter::new(SIZE, true, true);
    let mut terminal = emulator(1_000);
    let tall: Vec<String> = (0..9).map(|number| format!("row {number}")).collect();
    for number in 0..40_usize {
        let height = 1 + number * 7 % 9;
        let lines: Vec<&str> = tall.iter().take(height).map(String::as_str).collect();
        let finished = if number % 3 == 0 {
            plain(&[&format!(
                "finished {number} and a text that is too long for a row"
            )])
        } else {
            Vec::new()
        };
        let frame = painter.frame(&finished, region(&lines, height - 1, 2));
        terminal.process(frame.as_bytes());
    }
    terminal.process(painter.clear().as_bytes());
    let mut all = Vec::new();
    terminal.screen_mut().set_scrollback(usize::MAX);
    let most = terminal.screen().scrollback();
    for above in (0..=most).rev() {
        terminal.screen_mut().set_scrollback(above);
        let top = terminal.screen().rows(0, 20).next().unwrap_or_default();
        all.push(top);
    }
    all.extend(terminal.screen().rows(0, 20).skip(1));
    let text = all.join("\n");
    for number in (0..40).step_by(3) {
        let found = text.matches(&format!("finished {number} ")).count();
        assert_eq!(found, 1, "{number}: {text}");
    }
    assert!(!text.contains("row "), "{text}");
}

#[test]
fn a_narrower_screen_that_breaks_lines_anew_is_climbed_in_full() {
    let mut painter = Painter::new(SIZE, true, true);
    painter.frame(&[], region(&["0123456789012345", "> "], 1, 2));
    painter.resize(Size {
        columns: 8,
        rows: 6,
    });
    let frame = painter.frame(&[], region(&["> "], 0, 2));
    assert!(frame.contains("\x1b[2A\r\x1b[J"), "{frame:?}");
    let mut other = Painter::new(SIZE, true, false);
    other.frame(&[], region(&["0123456789012345", "> "], 1, 2));
    other.resize(Size {
        columns: 8,
        rows: 6,
    });
    let frame = other.frame(&[], region(&["> "], 0, 2));
    assert!(frame.contains("\x1b[1A\r\x1b[J"), "{frame:?}");
}
