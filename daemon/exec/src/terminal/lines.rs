//! The last rows of a scrolling terminal, which may still change. Rows that scroll off the top
//! become final text. `emulator.rs` writes them. A row is as long as the line that the program
//! writes: unlike a screen, this text needs no wrapping. At most [`OPEN`] bytes are kept.

use std::collections::VecDeque;

use unicode_width::UnicodeWidthChar;

/// The size of the terminal, as programs see it.
pub(super) const HEIGHT: usize = 30;
pub(super) const WIDTH: usize = 120;

/// How many bytes may still change; the beginning of a longer line becomes final.
const OPEN: usize = 16 * 1024;

const TAB: usize = 8;

/// The column of the cursor. Most text is written at the end of a row, where columns need not be
/// counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CursorColumn {
    EndOfRow,
    At(usize),
}

/// A part of a row, relative to the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowPart {
    After,
    Before,
    All,
}

/// The rows that may still change.
#[derive(Debug)]
pub(super) struct Lines {
    /// At most [`HEIGHT`]; the first is the top of the screen.
    rows: VecDeque<String>,
    /// The row of the cursor. It may be below the last row; writing then adds the rows between.
    row: usize,
    column: CursorColumn,
    saved: (usize, usize),
    open: usize,
    done: Vec<u8>,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self {
            rows: VecDeque::from([String::new()]),
            row: 0,
            column: CursorColumn::EndOfRow,
            saved: (0, 0),
            open: 0,
            done: Vec::new(),
        }
    }

    /// Takes the text that became final.
    pub(super) fn take_done(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.done)
    }

    /// The text that may still change.
    pub(super) fn open(&self) -> String {
        let mut text = String::with_capacity(self.open + self.rows.len());
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            text.push_str(row);
        }
        text
    }

    /// The length of the text that may still change, in bytes.
    pub(super) fn open_bytes(&self) -> usize {
        self.open + self.rows.len() - 1
    }

    /// Makes all text final.
    pub(super) fn finish(&mut self) {
        let open = self.open();
        self.done.extend_from_slice(open.as_bytes());
        self.reset();
    }

    /// Starts an empty screen; the old rows become final.
    pub(super) fn clear(&mut self) {
        while self.rows.back().is_some_and(String::is_empty) && self.rows.len() > 1 {
            self.rows.pop_back();
        }
        let is_empty = self.open == 0;
        self.finish();
        if !is_empty {
            self.done.push(b'\n');
        }
    }

    fn reset(&mut self) {
        self.rows.clear();
        self.rows.push_back(String::new());
        self.row = 0;
        self.column = CursorColumn::EndOfRow;
        self.open = 0;
    }

    /// Writes printable characters.
    pub(super) fn print(&mut self, text: &str) {
        let column = self.column;
        let row = self.current();
        match column {
            CursorColumn::EndOfRow => row.push_str(text),
            CursorColumn::At(at) => {
                let before = row.len();
                let end = overwrite(row, at, text);
                let after = row.len();
                self.open = (self.open + after).saturating_sub(before);
                self.column = end;
                self.bound();
                return;
            }
        }
        self.open += text.len();
        self.bound();
    }

    /// Goes to the beginning of the next row.
    pub(super) fn newline(&mut self) {
        self.current();
        self.row += 1;
        if self.row == self.rows.len() && self.rows.len() < HEIGHT {
            self.rows.push_back(String::new());
        } else if self.row >= HEIGHT {
            let mut row = self.rows.pop_front().unwrap_or_default();
            self.done.extend_from_slice(row.as_bytes());
            self.done.push(b'\n');
            self.open = self.open.saturating_sub(row.len());
            row.clear();
            self.rows.push_back(row);
            self.row = HEIGHT - 1;
        }
        self.column = match self.rows.get(self.row) {
            Some(row) if !row.is_empty() => CursorColumn::At(0),
            Some(_) | None => CursorColumn::EndOfRow,
        };
    }

    /// Whether whole lines can be added with [`Lines::push_lines`].
    pub(super) fn at_bottom(&self) -> bool {
        self.row + 1 == self.rows.len()
            && (self.column == CursorColumn::EndOfRow
                || self.rows.back().is_some_and(String::is_empty))
    }

    /// Adds lines of printable characters that end in a newline; all of them become final at once.
    pub(super) fn push_lines(&mut self, lines: &[u8]) {
        let open = self.open();
        self.done.extend_from_slice(open.as_bytes());
        self.reset();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', lines) {
            let mut line = lines.get(start..end).unwrap_or_default();
            while let Some(shorter) = line.strip_suffix(b"\r") {
                line = shorter;
            }
            self.done.extend_from_slice(line);
            self.done.push(b'\n');
            start = end + 1;
        }
    }

    pub(super) fn tab(&mut self) {
        match self.column {
            CursorColumn::EndOfRow => self.print("\t"),
            CursorColumn::At(at) => self.column = CursorColumn::At((at / TAB + 1) * TAB),
        }
    }

    /// The row and column of the cursor, counted from one and limited to the screen.
    pub(super) fn cursor(&self) -> (usize, usize) {
        let row = self.row.min(HEIGHT - 1) + 1;
        (row, self.column().min(WIDTH - 1) + 1)
    }

    fn column(&self) -> usize {
        match self.column {
            CursorColumn::At(at) => at,
            CursorColumn::EndOfRow => self.rows.get(self.row).map_or(0, |row| width(row)),
        }
    }

    pub(super) fn go_to_column(&mut self, column: usize) {
        self.column = CursorColumn::At(column.min(WIDTH - 1));
    }

    pub(super) fn by_columns(&mut self, by: isize) {
        self.go_to_column(self.column().saturating_add_signed(by));
    }

    pub(super) fn go_to_row(&mut self, row: usize) {
        let column = self.column();
        self.row = row.min(HEIGHT - 1);
        self.column = CursorColumn::At(column);
    }

    pub(super) fn by_rows(&mut self, by: isize) {
        self.go_to_row(self.row.saturating_add_signed(by));
    }

    /// Carriage return: programs use it to overwrite a line.
    pub(super) fn go_to_start(&mut self) {
        self.column = CursorColumn::At(0);
    }

    pub(super) fn save_cursor(&mut self) {
        self.saved = (self.row, self.column());
    }

    pub(super) fn restore_cursor(&mut self) {
        let (row, column) = self.saved;
        self.go_to_row(row);
        self.go_to_column(column);
    }

    pub(super) fn erase_in_row(&mut self, part: RowPart) {
        let at = self.column();
        let row = self.current();
        let index = index_of(row, at);
        match part {
            RowPart::After => row.truncate(index),
            RowPart::All => row.clear(),
            RowPart::Before => {
                let rest = row.get(index..).unwrap_or_default().to_owned();
                *row = " ".repeat(at.min(WIDTH)) + &rest;
            }
        }
        self.column = CursorColumn::At(at);
        self.recount();
    }

    pub(super) fn erase_below(&mut self) {
        self.erase_in_row(RowPart::After);
        self.rows.truncate(self.row + 1);
        self.recount();
    }

    /// Replaces characters after the cursor by blanks.
    pub(super) fn erase_characters(&mut self, count: usize) {
        let at = self.column();
        let blanks = " ".repeat(count.min(WIDTH));
        self.column = CursorColumn::At(at);
        self.print(&blanks);
        self.column = CursorColumn::At(at);
    }

    pub(super) fn delete_characters(&mut self, count: usize) {
        let at = self.column();
        let row = self.current();
        let (start, end) = (index_of(row, at), index_of(row, at.saturating_add(count)));
        row.drain(start..end);
        self.column = CursorColumn::At(at);
        self.recount();
    }

    pub(super) fn insert_blanks(&mut self, count: usize) {
        let at = self.column();
        let row = self.current();
        let index = index_of(row, at);
        row.insert_str(index, &" ".repeat(count.min(WIDTH)));
        self.column = CursorColumn::At(at);
        self.recount();
    }

    pub(super) fn insert_rows(&mut self, count: usize) {
        self.current();
        for _ in 0..count.min(HEIGHT - self.row) {
            self.rows.insert(self.row, String::new());
        }
        self.rows.truncate(HEIGHT);
        self.recount();
    }

    pub(super) fn delete_rows(&mut self, count: usize) {
        self.current();
        let end = self.row.saturating_add(count).min(self.rows.len());
        self.rows.drain(self.row..end);
        self.current();
        self.recount();
    }

    /// The row of the cursor; adds it if it does not exist.
    #[expect(clippy::indexing_slicing, reason = "the loop makes the row")]
    fn current(&mut self) -> &mut String {
        while self.rows.len() <= self.row {
            self.rows.push_back(String::new());
        }
        &mut self.rows[self.row]
    }

    fn recount(&mut self) {
        self.open = self.rows.iter().map(String::len).sum();
    }

    /// Makes the oldest text final if more than [`OPEN`] bytes may change.
    fn bound(&mut self) {
        while self.open > OPEN && self.rows.len() > 1 && self.row > 0 {
            let row = self.rows.pop_front().unwrap_or_default();
            self.done.extend_from_slice(row.as_bytes());
            self.done.push(b'\n');
            self.open -= row.len().min(self.open);
            self.row -= 1;
        }
        if self.open > OPEN {
            let open = self.open();
            self.done.extend_from_slice(open.as_bytes());
            self.reset();
        }
    }
}

fn width_of(character: char, column: usize) -> usize {
    match character {
        '\t' => TAB - column % TAB,
        other => other.width().unwrap_or(0),
    }
}

fn width(text: &str) -> usize {
    if text.is_ascii() && !text.contains('\t') {
        return text.len();
    }
    text.chars()
        .fold(0, |column, character| column + width_of(character, column))
}

/// The byte index of the character that covers a column; the end of a shorter row.
fn index_of(row: &str, at: usize) -> usize {
    character_at(row, at).0
}

/// The byte index of the character that covers a column, and the column where it begins.
fn character_at(row: &str, at: usize) -> (usize, usize) {
    let mut column = 0;
    for (index, character) in row.char_indices() {
        let wide = width_of(character, column);
        if column + wide > at {
            return (index, column);
        }
        column += wide;
    }
    (row.len(), at)
}

/// Overwrites characters from a column; returns the new column of the cursor.
fn overwrite(row: &mut String, at: usize, text: &str) -> CursorColumn {
    let reach = width(row);
    if at >= reach {
        row.extend(std::iter::repeat_n(' ', at - reach));
        row.push_str(text);
        return CursorColumn::EndOfRow;
    }
    let to = at + width(text);
    // A half-overwritten wide character leaves a blank.
    let (start, begins) = character_at(row, at);
    let (last, ends) = character_at(row, to);
    let (end, right) = match row.get(last..).and_then(|rest| rest.chars().next()) {
        Some(half) if ends < to => (last + half.len_utf8(), ends + width_of(half, ends) - to),
        Some(_) | None => (last, 0),
    };
    let (left, right) = (" ".repeat(at - begins), " ".repeat(right));
    let at_end = end == row.len();
    row.replace_range(start..end, &format!("{left}{text}{right}"));
    if at_end {
        CursorColumn::EndOfRow
    } else {
        CursorColumn::At(to)
    }
}

#[cfg(test)]
mod tests;
