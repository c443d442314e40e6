//! Tables: in columns where they fit, else a line for each cell.

use crate::chat::styled::{Line, Look};

#[derive(Debug)]
pub(super) struct Table {
    columns: usize,
    rows: Vec<Vec<Line>>,
}

impl Table {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Returns whether the row that is being read is the first one.
    pub(super) fn is_head(&self) -> bool {
        self.rows.len() <= 1
    }

    pub(super) fn add(&mut self, cell: Line) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(super) fn lines(&self, room: usize) -> Vec<Line> {
        let width_of = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(Line::width).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns).map(width_of).collect();
        let separators = self.columns.saturating_sub(1) * 3;
        if widths.iter().sum::<usize>() + separators > room {
            return self.records();
        }
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = Line::default();
            for (at, width) in widths.iter().enumerate() {
                if at > 0 {
                    line.push(Look::DIM, " │ ");
                }
                let cell = row.get(at).cloned().unwrap_or_default();
                for span in &cell.spans {
                    line.push(span.look, &span.text);
                }
                if at + 1 < widths.len() {
                    let gap = width.saturating_sub(cell.width());
                    line.push(Look::PLAIN, &" ".repeat(gap));
                }
            }
            lines.push(line);
            if number == 0 {
                let parts = widths.iter().map(|width| "─".repeat(*width));
                let rule = parts.collect::<Vec<_>>().join("─┼─");
                lines.push(Line::of(Look::DIM, rule));
            }
        }
        lines
    }

    /// Writes each row as lines of `name: value`.
    fn records(&self) -> Vec<Line> {
        let Some((head, rows)) = self.rows.split_first() else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for row in rows {
            for (at, cell) in row.iter().enumerate() {
                let name = head.get(at).map(Line::text).unwrap_or_default();
                let mut line = Line::of(Look::BOLD, format!("{name}: "));
                for span in &cell.spans {
                    line.push(span.look, &span.text);
                }
                let first = if at == 0 { "• " } else { "  " };
                lines.push(line.indented(first, "    "));
            }
        }
        if rows.is_empty() {
            lines.extend(head.iter().cloned());
        }
        lines
    }
}
