//! Puts the live region together, and prints what is finished.

use super::painter::{Cursor, Region};
use super::styled::{Colour, Line, Look, wrapped};
use super::{Chat, footer, raw};

/// How many rows of the screen the typed text may take.
const INPUT_SHARE: usize = 3;

impl Chat<'_> {
    /// Prints what is finished, and draws the region if it has changed.
    pub(super) fn draw(&mut self) -> std::io::Result<()> {
        self.next_question();
        let finished = self.take_finished();
        let region = self.region();
        let frame = self.painter.frame(&finished, region);
        if frame.is_empty() {
            return Ok(());
        }
        raw::write(&frame)
    }

    /// Returns what prints the last lines and removes the region.
    pub(super) fn print_rest(&mut self) -> String {
        let finished = self.take_finished();
        let mut out = self.painter.frame(&finished, Region::default());
        out.push_str(&self.painter.clear());
        out
    }

    fn take_finished(&mut self) -> Vec<Line> {
        let printed = self.handle.take_printed();
        let printed = printed.lines().map(|line| {
            // It has the codes of its style already.
            Line::plain(line).verbatim()
        });
        let mut lines: Vec<Line> = printed.collect();
        let mut finished = self.transcript.take_finished();
        finished.append(&mut lines);
        let mut last_was_empty = self.last_was_empty;
        finished.retain(|line| {
            let is_empty = line.text().trim().is_empty();
            let is_kept = !(is_empty && last_was_empty);
            last_was_empty = is_empty;
            is_kept
        });
        self.last_was_empty = last_was_empty;
        finished
    }

    fn region(&mut self) -> Region {
        let columns = self.painter.size.usable();
        let room = self.painter.size.rows.saturating_sub(1).max(1);
        let (mut bottom, mut cursor) = self.input(columns, (room / INPUT_SHARE).max(1));
        bottom.push(self.status());
        bottom.truncate(room);
        let room = room - bottom.len();
        let mut work = footer::work(&self.transcript, self.tick);
        if self.command.is_some() {
            let spin = footer::spinner(self.tick);
            work.push(Line::of(
                Look::DIM,
                format!("{spin} the command runs · Esc stops"),
            ));
        }
        work.truncate(room.min(6));
        let room = room - work.len();
        let mut lists = footer::lists(&self.transcript, &self.tasks);
        lists.truncate(room / 2);
        let room = room - lists.len();
        let tail = wrapped(&self.transcript.unfinished(columns), columns);
        // The end of what is not finished is what comes next.
        let hidden = tail.len().saturating_sub(room.saturating_sub(1));
        let mut lines: Vec<Line> = tail.into_iter().skip(hidden).collect();
        if !lines.is_empty() && room > lines.len() && !work.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(work);
        lines.extend(lists);
        cursor.row += lines.len();
        lines.extend(bottom);
        Region { lines, cursor }
    }

    /// Returns the rows in which something is typed, and where the cursor is.
    fn input(&mut self, columns: usize, most: usize) -> (Vec<Line>, Cursor) {
        let last_key = self.last_key;
        if let Some(open) = &mut self.question
            && open.takes_keys(last_key)
        {
            let (mut rows, cursor) = open.question.rows(columns);
            if !self.editor.is_empty() {
                let kept = crate::terminal::sanitize(&self.editor.text().replace('\n', " ⏎ "));
                rows.push(Line::of(Look::DIM, format!("> {kept}")));
            }
            return (rows, cursor);
        }
        let prompt = Line::of(Look::of(Colour::Cyan).bold(), "> ");
        let (mut rows, cursor) = self.editor.rows(&prompt, columns, most);
        if let Some(menu) = &self.menu {
            rows.extend(menu.rows());
        }
        (rows, cursor)
    }

    fn status(&self) -> Line {
        if self.leaves_next {
            let what = if self.transcript.is_working() {
                "Ctrl-C again leaves; the session works on"
            } else {
                "Ctrl-C again leaves; the session is kept"
            };
            return Line::of(Look::of(Colour::Yellow), what);
        }
        if self.took_away {
            return Line::of(Look::of(Colour::Yellow), "Up brings back what you typed");
        }
        footer::status(&self.transcript)
    }
}
