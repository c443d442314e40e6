//! A word of a command line as far as it is known before the line runs.

/// A word: what is written out, and what only the run decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    parts: Vec<Part>,
    /// Whether it may become several words, or none.
    several: bool,
    /// What stands in its braces: `{a,b}` becomes two words.
    braces: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// Any text, also none.
    Any,
}

impl Word {
    /// A word that is written out.
    pub fn literal(text: &str) -> Self {
        let mut word = Self::default();
        word.push_str(text);
        word
    }

    /// Any words at all.
    pub fn anything() -> Self {
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
        if matches!(self.parts.last(), Some(Part::Text(text)) if text.is_empty()) {
            self.parts.pop();
        }
        if self.parts.last() != Some(&Part::Any) {
            self.parts.push(Part::Any);
        }
        self.several |= count == Count::Several;
    }

    /// A mark to come back to.
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

    /// Forgets what came after a mark, where braces stand: they become several words.
    pub(super) fn blur_from(&mut self, mark: Mark, braces: &str) {
        self.braces.push_str(braces);
        self.parts.truncate(mark.parts);
        if let Some(Part::Text(text)) = self.parts.last_mut() {
            text.truncate(mark.text);
        }
        self.push_any(Count::Several);
    }

    /// The word, if it is written out whole.
    pub fn text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] if !self.several => Some(""),
            [Part::Text(text)] if !self.several => Some(text),
            _ => None,
        }
    }

    pub fn is_computed(&self) -> bool {
        self.text().is_none()
    }

    /// Whether it may stand for several words, or for none.
    pub fn may_be_several(&self) -> bool {
        self.several
    }

    /// What stands in its braces.
    pub fn braces(&self) -> &str {
        &self.braces
    }

    /// What it is known to begin with.
    pub fn prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            Some(Part::Any) | None => "",
        }
    }

    /// What it is known to end with.
    pub fn ending(&self) -> Option<&str> {
        match self.parts.last() {
            Some(Part::Text(text)) => Some(text),
            Some(Part::Any) | None => None,
        }
    }

    /// Whether it may be an option: it begins with a dash, or nobody knows what it begins with.
    pub fn may_be_option(&self) -> bool {
        match self.parts.first() {
            Some(Part::Text(text)) => text.starts_with('-'),
            Some(Part::Any) => true,
            None => false,
        }
    }

    /// The pieces that are written out.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Any => None,
        })
    }

    /// Whether it may come to be this text.
    pub fn may_be(&self, text: &str) -> bool {
        may_match(&self.parts, text)
    }

    /// Whether it may come to be this name, or a path that ends in it.
    pub fn may_name(&self, name: &str) -> bool {
        if let Some(text) = self.text() {
            return base_name(text) == name;
        }
        // A gap has room for the rest of a path.
        match self.parts.last() {
            Some(Part::Any) | None => true,
            Some(Part::Text(end)) if end.contains('/') => base_name(end) == name,
            Some(Part::Text(end)) => name.ends_with(end.as_str()),
        }
    }

    /// The word without its first characters, where those are written out.
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

/// Into how many words an expansion may fall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    One,
    Several,
}

/// A place in a word that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    parts: usize,
    text: usize,
}

/// The last part of a path.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether the parts, with anything in their gaps, can come to be a text.
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
