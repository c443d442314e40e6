//! The current position in a text.

#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.rest
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    /// Takes this text if it comes next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) if !text.is_empty() => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Takes characters as long as they pass.
    pub(super) fn take_while(&mut self, passes: impl Fn(char) -> bool) -> &'t str {
        let end = self
            .rest
            .find(|character| !passes(character))
            .unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Skips spaces, tabs and line ends that a backslash removes.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            self.take_while(|character| matches!(character, ' ' | '\t'));
            if !self.eat("\\\n") {
                return;
            }
        }
    }

    /// Skips to the end of the line.
    pub(super) fn skip_line(&mut self) {
        self.take_while(|character| character != '\n');
    }

    /// Takes the rest of the line and its end.
    pub(super) fn line(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        let line = self.take_while(|character| character != '\n');
        self.bump();
        Some(line)
    }

    /// Returns the text up to the next character that separates words, including quotes.
    pub(super) fn bare(&self) -> &'t str {
        let end = self.rest.find(is_border).unwrap_or(self.rest.len());
        self.rest.get(..end).unwrap_or_default()
    }

    /// Whether a bracket is closed in this word. A long word is not read to its end.
    pub(super) fn closes_bracket(&self) -> bool {
        let mut near = self.rest.chars().take(256);
        near.find(|next| *next == ']' || is_border(*next))
            .is_none_or(|found| found == ']')
            && !self.rest.is_empty()
    }

    /// Whether a word begins here.
    pub(super) fn at_word(&self) -> bool {
        self.rest.starts_with("<(")
            || self.rest.starts_with(">(")
            || self.peek().is_some_and(|next| !is_border(next))
    }
}

/// Whether a character ends a word unless it is quoted.
fn is_border(character: char) -> bool {
    matches!(
        character,
        ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>'
    )
}
