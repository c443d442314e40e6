//! The line that a person types: a text of one or more lines, with history.

use super::keys::Key;
use super::painter::Cursor;
use super::styled::{Line, Look, letter_width, width};

/// How many texts are remembered.
const HISTORY: usize = 1_000;
/// What stands before the rows of the text after the first one.
const INDENT: &str = "  ";

/// What came of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Edit {
    Changed,
    /// The text was sent, and the line is empty again.
    Sent(String),
    /// The key means nothing here.
    Ignored,
}

#[derive(Debug, Default)]
pub(super) struct Editor {
    text: String,
    /// A position in bytes.
    cursor: usize,
    history: Vec<String>,
    /// Which text of the history is shown, and what was typed before it.
    recalled: Option<usize>,
    draft: String,
    /// What was cut last.
    cut: String,
}

impl Editor {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text up to the cursor.
    pub(super) fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    fn after(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    pub(super) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
        self.recalled = None;
    }

    /// Replaces the text between a position and the cursor.
    pub(super) fn complete(&mut self, start: usize, text: &str) {
        let before = self.text.get(..start).unwrap_or_default();
        let kept = format!("{before}{text}");
        let whole = format!("{kept}{}", self.after());
        self.cursor = kept.len();
        self.text = whole;
    }

    pub(super) fn remember(&mut self, text: &str) {
        if text.trim().is_empty() || self.history.last().is_some_and(|last| last == text) {
            return;
        }
        self.history.push(text.to_owned());
        let surplus = self.history.len().saturating_sub(HISTORY);
        self.history.drain(..surplus);
    }

    pub(super) fn key(&mut self, key: &Key) -> Edit {
        match key {
            Key::Char(letter) => self.insert(letter.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.insert(text),
            Key::NewLine => self.insert("\n"),
            // A backslash at the end of a line continues it, as in a shell.
            Key::Enter if self.before().ends_with('\\') && self.after().is_empty() => {
                self.delete(self.cursor - 1, self.cursor);
                self.insert("\n");
            }
            Key::Enter => {
                let text = std::mem::take(&mut self.text);
                self.clear();
                return Edit::Sent(text);
            }
            Key::Backspace => self.delete(self.left(), self.cursor),
            Key::Delete | Key::Ctrl('d') => self.delete(self.cursor, self.right()),
            Key::Left | Key::Ctrl('b') => self.cursor = self.left(),
            Key::Right | Key::Ctrl('f') => self.cursor = self.right(),
            Key::Home | Key::Ctrl('a') => self.cursor = self.line_start(),
            Key::End | Key::Ctrl('e') => self.cursor = self.line_end(),
            Key::WordLeft | Key::Alt('b') => self.cursor = self.word_left(),
            Key::WordRight | Key::Alt('f') => self.cursor = self.word_right(),
            Key::Ctrl('k') => self.cut_out(self.cursor, self.line_end()),
            Key::Ctrl('u') => self.cut_out(self.line_start(), self.cursor),
            Key::Ctrl('w') => self.cut_out(self.word_left(), self.cursor),
            Key::Alt('d') => self.cut_out(self.cursor, self.word_right()),
            Key::Ctrl('y') => {
                let cut = self.cut.clone();
                self.insert(&cut);
            }
            Key::Up | Key::Ctrl('p') => return self.up(),
            Key::Down | Key::Ctrl('n') => return self.down(),
            Key::Tab | Key::BackTab | Key::Escape | Key::Ctrl(_) | Key::Alt(_) => {
                return Edit::Ignored;
            }
        }
        Edit::Changed
    }

    fn insert(&mut self, text: &str) {
        let whole = format!("{}{text}{}", self.before(), self.after());
        self.text = whole;
        self.cursor += text.len();
    }

    fn delete(&mut self, from: usize, to: usize) {
        let kept = self.text.get(..from).unwrap_or_default();
        let rest = self.text.get(to..).unwrap_or_default();
        self.text = format!("{kept}{rest}");
        self.cursor = from;
    }

    fn cut_out(&mut self, from: usize, to: usize) {
        self.cut = self.text.get(from..to).unwrap_or_default().to_owned();
        self.delete(from, to);
    }

    fn left(&self) -> usize {
        let last = self.before().char_indices().next_back();
        last.map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        let next = self.after().chars().next();
        self.cursor + next.map_or(0, char::len_utf8)
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let end = self.after().find('\n');
        end.map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_left(&self) -> usize {
        let before = self.before().trim_end();
        let start = before.char_indices().rfind(|(_, c)| c.is_whitespace());
        start.map_or(0, |(at, space)| at + space.len_utf8())
    }

    fn word_right(&self) -> usize {
        let after = self.after();
        let word = after.find(|c: char| !c.is_whitespace()).unwrap_or(0);
        let rest = after.get(word..).unwrap_or_default();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.cursor + word + end
    }

    /// Goes a line up, or to the text before in the history.
    fn up(&mut self) -> Edit {
        let start = self.line_start();
        if start > 0 {
            let column = self
                .text
                .get(start..self.cursor)
                .map_or(0, |it| it.chars().count());
            self.cursor = start - 1;
            self.go_to_column(column);
            return Edit::Changed;
        }
        let at = self.recalled.unwrap_or(self.history.len());
        let Some(before) = at.checked_sub(1) else {
            return Edit::Ignored;
        };
        if self.recalled.is_none() {
            self.draft = self.text.clone();
        }
        self.recall(before)
    }

    /// Goes a line down, or to the text after in the history.
    fn down(&mut self) -> Edit {
        let end = self.line_end();
        if end < self.text.len() {
            let start = self.line_start();
            let column = self
                .text
                .get(start..self.cursor)
                .map_or(0, |it| it.chars().count());
            self.cursor = end + 1;
            self.go_to_column(column);
            return Edit::Changed;
        }
        match self.recalled {
            None => Edit::Ignored,
            Some(at) if at + 1 < self.history.len() => self.recall(at + 1),
            Some(_) => {
                let draft = std::mem::take(&mut self.draft);
                self.set(&draft);
                self.recalled = None;
                Edit::Changed
            }
        }
    }

    fn go_to_column(&mut self, column: usize) {
        let start = self.line_start();
        let line = self.text.get(start..self.line_end()).unwrap_or_default();
        let at = line.char_indices().nth(column);
        self.cursor = start + at.map_or(line.len(), |(at, _)| at);
    }

    fn recall(&mut self, at: usize) -> Edit {
        let Some(text) = self.history.get(at).cloned() else {
            return Edit::Ignored;
        };
        self.set(&text);
        self.recalled = Some(at);
        Edit::Changed
    }

    /// Lays the text out in rows after a prompt. Returns at most `most` rows around the cursor, and
    /// where the cursor is in them.
    pub(super) fn rows(&self, prompt: &Line, columns: usize, most: usize) -> (Vec<Line>, Cursor) {
        let first = prompt.width();
        let indent = if first.min(INDENT.len()) * 3 > columns {
            ""
        } else {
            INDENT
        };
        let mut rows = vec![prompt.clone()];
        let mut used = first;
        let mut cursor = Cursor {
            row: 0,
            column: used,
        };
        for (at, letter) in self.text.char_indices() {
            let wide = letter_width(letter);
            let breaks = letter == '\n';
            if (!breaks && used + wide > columns) || (breaks && at == self.cursor && used > columns)
            {
                rows.push(Line::plain(indent));
                used = indent.len();
            }
            if at == self.cursor {
                cursor = Cursor {
                    row: rows.len() - 1,
                    column: used,
                };
            }
            if breaks {
                rows.push(Line::plain(indent));
                used = indent.len();
            } else {
                let shown = letter.to_string();
                let shown = crate::terminal::sanitize(&shown);
                used += width(&shown);
                if let Some(row) = rows.last_mut() {
                    row.push(Look::PLAIN, &shown);
                }
            }
        }
        if self.cursor >= self.text.len() {
            cursor = Cursor {
                row: rows.len() - 1,
                column: used,
            };
        }
        let hidden = (cursor.row + 1).saturating_sub(most.max(1));
        let shown = rows.into_iter().skip(hidden).take(most.max(1)).collect();
        cursor.row -= hidden;
        (shown, cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[Key]) -> Editor {
        let mut editor = Editor::default();
        for key in keys {
            editor.key(key);
        }
        editor
    }

    fn text(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn the_line_is_edited_as_in_a_shell() {
        let mut editor = typed(&text("one two three"));
        for (key, expected) in [
            (Key::Ctrl('w'), "one two "),
            (Key::WordLeft, "one two "),
            (Key::Char('x'), "one xtwo "),
            (Key::Ctrl('k'), "one x"),
            (Key::Ctrl('y'), "one xtwo "),
            (Key::Home, "one xtwo "),
            (Key::Delete, "ne xtwo "),
            (Key::End, "ne xtwo "),
            (Key::Backspace, "ne xtwo"),
            (Key::Ctrl('u'), ""),
        ] {
            editor.key(&key);
            assert_eq!(editor.text(), expected, "{key:?}");
        }
    }

    #[test]
    fn lines_are_continued_and_pastes_are_not_sent() {
        let mut editor = typed(&text("one\\"));
        assert_eq!(editor.key(&Key::Enter), Edit::Changed);
        editor.key(&Key::Paste("two\nthree".to_owned()));
        editor.key(&Key::NewLine);
        assert_eq!(
            editor.key(&Key::Enter),
            Edit::Sent("one\ntwo\nthree\n".to_owned())
        );
        assert!(editor.is_empty());
    }

    #[test]
    fn the_history_is_walked_and_the_draft_comes_back() {
        let mut editor = Editor::default();
        editor.remember("first");
        editor.remember("second\nline");
        editor.key(&Key::Char('d'));
        editor.key(&Key::Up);
        assert_eq!(editor.text(), "second\nline");
        editor.key(&Key::Up);
        editor.key(&Key::Up);
        assert_eq!(editor.text(), "first");
        editor.key(&Key::Down);
        editor.key(&Key::Down);
        assert_eq!(editor.text(), "d");
    }

    #[test]
    fn rows_are_broken_and_the_cursor_is_found() {
        let editor = typed(&text("abcdef"));
        let (rows, cursor) = editor.rows(&Line::plain("> "), 7, 9);
        let rows: Vec<String> = rows.iter().map(Line::text).collect();
        assert_eq!(rows, ["> abcde", "  f"]);
        assert_eq!(cursor, Cursor { row: 1, column: 3 });
        let (rows, cursor) = editor.rows(&Line::plain("> "), 7, 1);
        assert_eq!(rows.len(), 1);
        assert_eq!(cursor, Cursor { row: 0, column: 3 });
    }
}
