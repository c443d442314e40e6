//! Text with looks: lines of spans that know how wide they are on a screen.

use unicode_width::UnicodeWidthChar;

/// How many columns a tab takes where the text is drawn again and again.
const TAB: &str = "    ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Blue => "34",
            Self::Magenta => "35",
            Self::Cyan => "36",
        }
    }
}

/// How a text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) bold: bool,
    pub(super) dim: bool,
    pub(super) italic: bool,
    pub(super) underlined: bool,
    pub(super) struck: bool,
    pub(super) colour: Option<Colour>,
}

impl Look {
    pub(super) const PLAIN: Self = Self {
        bold: false,
        dim: false,
        italic: false,
        underlined: false,
        struck: false,
        colour: None,
    };
    pub(super) const BOLD: Self = Self {
        bold: true,
        ..Self::PLAIN
    };
    pub(super) const DIM: Self = Self {
        dim: true,
        ..Self::PLAIN
    };

    pub(super) const fn of(colour: Colour) -> Self {
        Self {
            colour: Some(colour),
            ..Self::PLAIN
        }
    }

    pub(super) const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// Returns what switches the look on; empty for a plain one. Without colours the other
    /// attributes stay: they carry meaning.
    fn codes(self, colours: bool) -> String {
        let flags = [
            (self.bold, "1"),
            (self.dim && colours, "2"),
            (self.italic, "3"),
            (self.underlined, "4"),
            (self.struck, "9"),
        ];
        let mut codes: Vec<&str> = flags
            .into_iter()
            .filter_map(|(is_set, code)| is_set.then_some(code))
            .collect();
        if let Some(colour) = self.colour.filter(|_| colours) {
            codes.push(colour.code());
        }
        codes.join(";")
    }
}

/// A text in one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) look: Look,
}

/// One line of text. When it is too long, it is wrapped between words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// What stands before its first row, and before the others.
    pub(super) first: String,
    pub(super) rest: String,
    pub(super) spans: Vec<Span>,
    /// Whether the terminal wraps it, so that it can be copied as one line.
    pub(super) is_verbatim: bool,
}

impl Line {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::of(Look::PLAIN, text)
    }

    pub(super) fn of(look: Look, text: impl Into<String>) -> Self {
        Self::default().with(look, text)
    }

    pub(super) fn with(mut self, look: Look, text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() {
            return self;
        }
        match self.spans.last_mut() {
            Some(last) if last.look == look => last.text.push_str(&text),
            Some(_) | None => self.spans.push(Span { text, look }),
        }
        self
    }

    pub(super) fn push(&mut self, look: Look, text: &str) {
        *self = std::mem::take(self).with(look, text);
    }

    pub(super) fn verbatim(mut self) -> Self {
        self.is_verbatim = true;
        self
    }

    /// Sets what stands before the first row and before the others.
    pub(super) fn indented(mut self, first: &str, rest: &str) -> Self {
        self.first.insert_str(0, first);
        self.rest.insert_str(0, rest);
        self
    }

    pub(super) fn text(&self) -> String {
        let spans = self.spans.iter().map(|span| span.text.as_str());
        std::iter::once(self.first.as_str()).chain(spans).collect()
    }

    pub(super) fn width(&self) -> usize {
        width(&self.text())
    }

    /// Writes the line with the codes of a terminal.
    pub(super) fn ansi(&self, colours: bool) -> String {
        let mut out = String::new();
        let first = Span {
            text: self.first.clone(),
            look: Look::DIM,
        };
        for span in std::iter::once(&first).chain(&self.spans) {
            let codes = span.look.codes(colours);
            if codes.is_empty() || span.text.is_empty() {
                out.push_str(&span.text);
            } else {
                out.extend(["\x1b[", &codes, "m", &span.text, "\x1b[0m"]);
            }
        }
        out
    }

    /// Returns the beginning of the line that fits, with a mark if something is missing.
    pub(super) fn cut(&self, columns: usize) -> Self {
        let line = self.without_tabs();
        if line.width() <= columns {
            return line;
        }
        let room = columns.saturating_sub(1);
        let mut used = 0;
        let mut kept = Self::default();
        for (letter, look) in line.cells() {
            let wide = letter_width(letter);
            if used + wide > room {
                break;
            }
            used += wide;
            kept.push(look, letter.encode_utf8(&mut [0; 4]));
        }
        if columns > 0 {
            kept.push(Look::DIM, "…");
        }
        kept
    }

    fn without_tabs(&self) -> Self {
        let mut line = self.clone();
        for span in &mut line.spans {
            span.text = span.text.replace('\t', TAB);
        }
        line
    }

    fn cells(&self) -> impl Iterator<Item = (char, Look)> {
        let first = self.first.chars().map(|letter| (letter, Look::DIM));
        let spans = self.spans.iter();
        first.chain(spans.flat_map(|span| span.text.chars().map(|letter| (letter, span.look))))
    }

    /// Breaks the line into rows between words. A word that is too long is broken.
    pub(super) fn wrap(&self, columns: usize) -> Vec<Self> {
        if self.is_verbatim || self.width() <= columns {
            return vec![self.clone()];
        }
        // On a very narrow screen an indent leaves no room for text.
        let rest = if width(&self.rest) * 2 > columns {
            ""
        } else {
            &self.rest
        };
        let mut rows: Vec<Vec<(char, Look)>> = Vec::new();
        let mut row: Vec<(char, Look)> = Vec::new();
        let mut used = 0;
        let mut fixed = self.first.chars().count();
        for (letter, look) in self.cells() {
            let wide = letter_width(letter);
            if used + wide > columns && row.len() > fixed {
                if letter == ' ' {
                    // The row ends where the word ends.
                    rows.push(std::mem::take(&mut row));
                    row.extend(rest.chars().map(|letter| (letter, Look::DIM)));
                    used = width(rest);
                    fixed = row.len();
                    continue;
                }
                let space = row.iter().rposition(|(letter, _)| *letter == ' ');
                let word = match space.filter(|at| *at > fixed) {
                    Some(at) => {
                        let word = row.split_off(at + 1);
                        row.pop();
                        word
                    }
                    None => Vec::new(),
                };
                rows.push(std::mem::take(&mut row));
                row.extend(rest.chars().map(|letter| (letter, Look::DIM)));
                fixed = row.len();
                row.extend(word);
                used = row.iter().map(|(letter, _)| letter_width(*letter)).sum();
            }
            used += wide;
            row.push((letter, look));
        }
        rows.push(row);
        rows.into_iter().map(Self::from_cells).collect()
    }

    fn from_cells(cells: Vec<(char, Look)>) -> Self {
        let mut line = Self::default();
        for (letter, look) in cells {
            line.push(look, letter.encode_utf8(&mut [0; 4]));
        }
        line
    }
}

/// Wraps all lines.
pub(super) fn wrapped(lines: &[Line], columns: usize) -> Vec<Line> {
    lines.iter().flat_map(|line| line.wrap(columns)).collect()
}

pub(super) fn width(text: &str) -> usize {
    text.chars().map(letter_width).sum()
}

pub(super) fn letter_width(letter: char) -> usize {
    match letter {
        '\t' => TAB.len(),
        _ => letter.width().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(line: &Line, columns: usize) -> Vec<String> {
        line.wrap(columns).iter().map(Line::text).collect()
    }

    #[test]
    fn lines_are_broken_between_words_and_keep_their_indent() {
        let line = Line::plain("one two three").with(Look::BOLD, " four");
        assert_eq!(rows(&line, 8), ["one two", "three", "four"]);
        let item = Line::plain("one two three").indented("• ", "  ");
        assert_eq!(rows(&item, 8), ["• one", "  two", "  three"]);
        assert_eq!(rows(&Line::plain("abcdefghij"), 4), ["abcd", "efgh", "ij"]);
        assert_eq!(rows(&Line::plain("好好好"), 4), ["好好", "好"]);
        assert_eq!(
            rows(&Line::plain("abcdefghij").verbatim(), 4),
            ["abcdefghij"]
        );
        let deep = Line::plain("one two").indented("      1. ", "         ");
        for columns in 1..20 {
            let text: String = rows(&deep, columns).join(" ");
            assert!(text.contains("one") || columns < 12, "{columns}: {text}");
        }
    }

    #[test]
    fn a_cut_line_fits_and_shows_that_it_is_cut() {
        let line = Line::plain("ab").with(Look::BOLD, "cdef");
        assert_eq!(line.cut(6).text(), "abcdef");
        assert_eq!(line.cut(4).text(), "abc…");
        assert_eq!(Line::plain("好好好").cut(4).text(), "好…");
        assert_eq!(line.cut(0).text(), "");
    }

    #[test]
    fn without_colours_attributes_stay() {
        let line = Line::of(Look::of(Colour::Red).bold(), "x");
        assert_eq!(line.ansi(true), "\x1b[1;31mx\x1b[0m");
        assert_eq!(line.ansi(false), "\x1b[1mx\x1b[0m");
        assert_eq!(Line::of(Look::DIM, "x").ansi(false), "x");
    }
}
