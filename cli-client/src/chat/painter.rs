//! Draws the live region at the bottom of the screen, and prints finished lines above it.
//!
//! Finished lines go into the scrollback of the terminal and are never touched again: the cursor only
//! moves up inside the live region. Every frame is one write, marked as synchronised output, so that
//! a terminal shows it at once.

use std::fmt::Write as _;

use super::styled::{Line, wrapped};

const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?2026l";

/// The columns and rows of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl Size {
    /// The columns that are used. The last one stays free: a terminal that has written there wraps in
    /// its own way.
    pub(super) fn usable(self) -> usize {
        self.columns.saturating_sub(1).max(1)
    }
}

/// Where the cursor is in the live region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) row: usize,
    pub(super) column: usize,
}

/// What is in the live region.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) lines: Vec<Line>,
    pub(super) cursor: Cursor,
}

pub(super) struct Painter {
    pub(super) size: Size,
    colours: bool,
    /// Whether the terminal breaks long lines anew when it gets narrower.
    reflows: bool,
    /// The widths of the lines that are drawn, and where the cursor is among them.
    drawn: Vec<usize>,
    cursor: Cursor,
    last: Option<Region>,
}

impl Painter {
    pub(super) fn new(size: Size, colours: bool, reflows: bool) -> Self {
        Self {
            size,
            colours,
            reflows,
            drawn: Vec::new(),
            cursor: Cursor::default(),
            last: None,
        }
    }

    /// Notes a new size. The next frame draws the region anew.
    pub(super) fn resize(&mut self, size: Size) {
        self.size = size;
        self.last = None;
    }

    /// Returns what a terminal has to be sent to print lines above the region and to draw it; empty if
    /// nothing has changed.
    pub(super) fn frame(&mut self, finished: &[Line], region: Region) -> String {
        if finished.is_empty() && self.last.as_ref() == Some(&region) {
            return String::new();
        }
        let mut out = BEGIN.to_owned();
        self.go_to_top(&mut out);
        if !finished.is_empty() || self.last.is_none() {
            out.push_str("\x1b[J");
        }
        for line in wrapped(finished, self.size.usable()) {
            out.push_str(&line.ansi(self.colours));
            out.push_str("\r\n");
        }
        let most = self.size.rows.saturating_sub(1).max(1);
        self.drawn.clear();
        for line in region.lines.iter().take(most) {
            let line = line.cut(self.size.usable());
            if !self.drawn.is_empty() {
                out.push_str("\r\n");
            }
            out.push_str(&line.ansi(self.colours));
            out.push_str("\x1b[K");
            self.drawn.push(line.width());
        }
        out.push_str("\x1b[J");
        let last_row = self.drawn.len().saturating_sub(1);
        self.cursor = Cursor {
            row: region.cursor.row.min(last_row),
            column: region.cursor.column.min(self.size.usable()),
        };
        up(&mut out, last_row - self.cursor.row);
        out.push('\r');
        if self.cursor.column > 0 {
            // Writing into a text does not fail.
            write!(out, "\x1b[{}C", self.cursor.column).ok();
        }
        out.push_str(END);
        self.last = Some(region);
        out
    }

    /// Returns what removes the region from the screen; the cursor is then where it began.
    pub(super) fn clear(&mut self) -> String {
        let mut out = BEGIN.to_owned();
        self.go_to_top(&mut out);
        out.push_str("\x1b[J");
        out.push_str(END);
        self.drawn.clear();
        self.cursor = Cursor::default();
        self.last = None;
        out
    }

    fn go_to_top(&self, out: &mut String) {
        let above = self.drawn.iter().take(self.cursor.row);
        let columns = self.size.columns.max(1);
        let rows: usize = if self.reflows {
            // Lines that are longer than a narrower screen take several rows there.
            let above: usize = above.map(|width| width.div_ceil(columns).max(1)).sum();
            above + self.cursor.column / columns
        } else {
            above.count()
        };
        up(out, rows);
        out.push('\r');
    }
}

fn up(out: &mut String, rows: usize) {
    if rows > 0 {
        // Writing into a text does not fail.
        write!(out, "\x1b[{rows}A").ok();
    }
}

#[cfg(test)]
mod tests;
