//! A word of a command line, as far as it is known before the line runs.

/// A word: literal text, and gaps that are known only when the line runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    parts: Vec<Part>,
    /// Whether the word may become several words, or none.
    several: bool,
    /// Whether a gap can hold any text. Otherwise its gaps are patterns, which match names of
    /// files, or process substitutions.
    expands: bool,
    /// Whether a gap is a pattern, which matches names of files.
    matches: bool,
    /// Whether a gap is a variable, `~` or the like, and not what a command prints.
    variables: bool,
    /// Whether a gap is what a command prints.
    prints: bool,
    /// The text inside its braces: `{a,b}` becomes two words.
    braces: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// Any text, including none.
    Any,
}

impl Word {
    /// Returns a word of literal text only.
    pub(crate) fn literal(text: &str) -> Self {
        let mut word = Self::default();
        word.push_str(text);
        word
    }

    /// Returns a word that may become any words at all.
    pub(crate) fn anything() -> Self {
        let mut word = Self::default();
        word.push_any(Count::Several);
        word
    }

    pub(super) fn push(&mut self, character: char) {
        if let Some(Part::Text(text)) = self.parts.last_mut() {
            text.push(character);
        } else {
            self.parts.push(Part::Text(character.to_string()));
        }
    }

    pub(super) fn push_str(&mut self, more: &str) {
        if let Some(Part::Text(text)) = self.parts.last_mut() {
            text.push_str(more);
        } else if !more.is_empty() || self.parts.is_empty() {
            self.parts.push(Part::Text(more.to_owned()));
        }
    }

    pub(super) fn push_any(&mut self, count: Count) {
        self.add_gap(count);
        self.expands = true;
    }

    /// Adds a gap whose text is known to the shell alone.
    pub(super) fn push_variable(&mut self, count: Count) {
        self.push_any(count);
        self.variables = true;
    }

    /// Adds a gap that is what a command prints.
    pub(super) fn push_output(&mut self, count: Count) {
        self.push_any(count);
        self.prints = true;
    }

    /// Adds a gap that is a pattern or a process substitution.
    pub(super) fn push_gap(&mut self, count: Count) {
        self.add_gap(count);
        self.matches = true;
    }

    fn add_gap(&mut self, count: Count) {
        if matches!(self.parts.last(), Some(Part::Text(text)) if text.is_empty()) {
            self.parts.pop();
        }
        if self.parts.last() != Some(&Part::Any) {
            self.parts.push(Part::Any);
        }
        self.several |= count == Count::Several;
    }

    /// Returns the current end of the word, for [`Self::blur_from`].
    pub(super) fn mark(&self) -> Mark {
        let text = match self.parts.last() {
            Some(Part::Text(text)) => text.len(),
            Some(Part::Any) | None => 0,
        };
        Mark {
            parts: self.parts.len(),
            text,
        }
    }

    /// Replaces everything after a mark by any words, because braces become several words.
    pub(super) fn blur_from(&mut self, mark: Mark, braces: &str) {
        self.braces.push_str(braces);
        self.parts.truncate(mark.parts);
        if let Some(Part::Text(text)) = self.parts.last_mut() {
            text.truncate(mark.text);
        }
        self.push_any(Count::Several);
    }

    /// Returns the word, if it is literal as a whole.
    pub(crate) fn text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] if !self.several => Some(""),
            [Part::Text(text)] if !self.several => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_computed(&self) -> bool {
        self.text().is_none()
    }

    /// Whether a gap can hold any text, unlike a pattern.
    pub(crate) fn expands(&self) -> bool {
        self.expands
    }

    /// Whether a gap is a variable, `~` or the like, besides others that it may have.
    pub(crate) fn names_variables(&self) -> bool {
        self.variables
    }

    /// Whether a gap is what a command prints, besides others that it may have.
    pub(crate) fn prints(&self) -> bool {
        self.prints
    }

    /// Whether the gaps are only braces and patterns: what they become stands in the line, or on the
    /// disk.
    pub(crate) fn is_braced(&self) -> bool {
        self.is_computed() && !self.braces.is_empty() && !self.prints && !self.variables
    }

    /// Returns what a word with gaps is known to end with, after its last `..`.
    pub(crate) fn known_end(&self) -> &str {
        let end = self.ending().unwrap_or_default();
        // Of `[a-z]`, the gap is only the first bracket.
        let end = if self.matches {
            end.rsplit(']').next().unwrap_or_default()
        } else {
            end
        };
        end.rfind("..")
            .and_then(|up| end.get(up + 2..))
            .unwrap_or(end)
    }

    /// Whether a gap is a pattern, besides others that it may have.
    pub(crate) fn matches(&self) -> bool {
        self.matches
    }

    /// Whether the word is a process substitution and nothing else: `<(sort a)`.
    pub(crate) fn is_process_output(&self) -> bool {
        self.parts == [Part::Any] && !self.expands && !self.several
    }

    /// Whether the word may become several words, or none.
    pub(crate) fn may_be_several(&self) -> bool {
        self.several
    }

    /// Returns the text inside its braces.
    pub(crate) fn braces(&self) -> &str {
        &self.braces
    }

    /// Returns the text that the word is known to begin with.
    pub(crate) fn prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            Some(Part::Any) | None => "",
        }
    }

    /// Returns the text that the word is known to end with.
    pub(crate) fn ending(&self) -> Option<&str> {
        match self.parts.last() {
            Some(Part::Text(text)) => Some(text),
            Some(Part::Any) | None => None,
        }
    }

    /// Whether the word may be an option: it begins with a dash, or its beginning is not known.
    pub(crate) fn may_be_option(&self) -> bool {
        match self.parts.first() {
            Some(Part::Text(text)) => text.starts_with('-'),
            Some(Part::Any) => true,
            None => false,
        }
    }

    /// Returns the literal pieces.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Any => None,
        })
    }

    /// Puts other text in the place of a text.
    pub(super) fn replace(&mut self, text: &str, other: &str) {
        for part in &mut self.parts {
            if let Part::Text(own) = part {
                *own = own.replace(text, other);
            }
        }
    }

    /// Whether the word may become this text.
    pub(crate) fn may_be(&self, text: &str) -> bool {
        may_match(&self.parts, text)
    }

    /// Whether the word may become this name, or a path that ends in it.
    pub(crate) fn may_name(&self, name: &str) -> bool {
        if let Some(text) = self.text() {
            return base_name(text) == name;
        }
        // A gap may hold the rest of a path.
        match self.parts.last() {
            Some(Part::Any) | None => true,
            Some(Part::Text(end)) if end.contains('/') => base_name(end) == name,
            Some(Part::Text(end)) => name.ends_with(end.as_str()),
        }
    }

    /// Returns the word without these first characters, if they are literal.
    pub(super) fn without_prefix(&self, prefix: &str) -> Option<Self> {
        let mut rest = self.clone();
        let first = rest.parts.first_mut()?;
        match first {
            Part::Text(text) => *text = text.strip_prefix(prefix)?.to_owned(),
            Part::Any => return None,
        }
        if matches!(rest.parts.first(), Some(Part::Text(text)) if text.is_empty()) {
            rest.parts.remove(0);
        }
        Some(rest)
    }
}

/// How many words an expansion may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    One,
    Several,
}

/// A position in a word that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    parts: usize,
    text: usize,
}

/// Returns the last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether the parts, with any text in their gaps, can become this text.
fn may_match(parts: &[Part], text: &str) -> bool {
    let (mut parts, mut rest) = (parts, text);
    if let Some((Part::Text(start), others)) = parts.split_first() {
        match rest.strip_prefix(start.as_str()) {
            Some(after) => (parts, rest) = (others, after),
            None => return false,
        }
    }
    if parts.is_empty() {
        return rest.is_empty();
    }
    if let Some((Part::Text(end), others)) = parts.split_last() {
        match rest.strip_suffix(end.as_str()) {
            Some(before) => (parts, rest) = (others, before),
            None => return false,
        }
    }
    parts.iter().all(|part| match part {
        Part::Any => true,
        Part::Text(middle) => match rest.split_once(middle.as_str()) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        },
    })
}

#[cfg(test)]
mod tests;
