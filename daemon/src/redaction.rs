//! Takes secret values out of text: whole texts, and texts that come in pieces.
//!
//! `session` builds one from what it knows and passes every tool outcome through it; `agent` does
//! so with partial output. It never stores, prints or logs a value.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

/// What stands in the place of a secret.
pub const MASK: &str = "[redacted]";
/// Shorter values would blank ordinary words.
pub const SHORTEST: usize = 6;
/// Longer values are no secrets but documents, and make the search dear.
pub const LONGEST: usize = 64 * 1024;

/// How many values are searched for one by one.
const FEW: usize = 32;

/// The values to take out, ready to be searched for.
#[derive(Clone, Default)]
pub struct Redaction {
    values: Vec<String>,
    search: Option<AhoCorasick>,
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redaction({} values)", self.values.len())
    }
}

impl Redaction {
    /// Searches for these values; those that are too short or too long are left out.
    pub fn of(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values
            .into_iter()
            .filter(|value| (SHORTEST..=LONGEST).contains(&value.len()))
            .collect();
        values.sort_unstable();
        values.dedup();
        // Few values are found faster one by one than a search for all of them is built.
        if values.len() <= FEW {
            return Self {
                values,
                search: None,
            };
        }
        let search = search(&values);
        Self { values, search }
    }

    /// Returns the text with every value masked.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.first(text).is_none() {
            return Cow::Borrowed(text);
        }
        // There is something to mask, perhaps often: now the search for all at once pays.
        if let Some(search) = self.search.clone().or_else(|| search(&self.values)) {
            return Cow::Owned(search.replace_all(text, &vec![MASK; self.values.len()]));
        }
        let mut rest = text;
        let mut cleaned = String::new();
        while let Some(found) = self.first(rest) {
            cleaned.push_str(rest.get(..found.start).unwrap_or_default());
            cleaned.push_str(MASK);
            rest = rest.get(found.end..).unwrap_or_default();
        }
        cleaned.push_str(rest);
        Cow::Owned(cleaned)
    }

    /// Masks a text in its place.
    pub fn clean_in_place(&self, text: &mut String) {
        if let Cow::Owned(cleaned) = self.clean(text) {
            *text = cleaned;
        }
    }

    /// Where the first value is, the longest of those that begin there.
    fn first(&self, text: &str) -> Option<Range<usize>> {
        if let Some(search) = &self.search {
            return search.find(text).map(|found| found.range());
        }
        let places = self.values.iter().filter_map(|value| {
            let start = text.find(value)?;
            Some(start..start + value.len())
        });
        places.min_by_key(|place| (place.start, Reverse(place.end)))
    }

    /// Where the end of a text begins that may be the beginning of a value.
    fn open_end(&self, text: &str) -> usize {
        let longest = self.values.iter().map(String::len).max().unwrap_or(0);
        let from = text.len().saturating_sub(longest.saturating_sub(1));
        let begins = |at: usize| {
            let end = text.get(at..)?;
            self.values
                .iter()
                .any(|value| value.len() > end.len() && value.starts_with(end))
                .then_some(at)
        };
        (from..text.len()).find_map(begins).unwrap_or(text.len())
    }
}

/// The search for all values at once; `None` when they are too many for one.
fn search(values: &[String]) -> Option<AhoCorasick> {
    let search = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(values);
    search
        .inspect_err(|error| tracing::warn!(%error, "secrets are searched for one by one"))
        .ok()
}

/// A text that comes in pieces; a value that is cut between them is found all the same.
#[derive(Debug)]
pub struct Pieces {
    redaction: Redaction,
    /// The end of what came, which may be the beginning of a value.
    held: String,
}

impl Pieces {
    pub fn new(redaction: Redaction) -> Self {
        Self {
            redaction,
            held: String::new(),
        }
    }

    /// Takes a piece and gives what is safe to show by now, which may be nothing.
    pub fn next(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let mut shown = String::new();
        let mut rest = self.held.as_str();
        loop {
            let open = self.redaction.open_end(rest);
            // What begins before the open end is whole: otherwise its beginning would be the
            // open end.
            let found = self.redaction.first(rest);
            let (show, skip, mask) = match found.filter(|found| found.start < open) {
                Some(found) => (found.start, found.end, MASK),
                None => (open, open, ""),
            };
            shown.push_str(rest.get(..show).unwrap_or_default());
            shown.push_str(mask);
            rest = rest.get(skip..).unwrap_or_default();
            if mask.is_empty() {
                break;
            }
        }
        self.held = rest.to_owned();
        shown
    }

    /// Gives what was held back, since nothing follows.
    pub fn rest(self) -> String {
        self.redaction.clean(&self.held).into_owned()
    }
}

#[cfg(test)]
mod tests;
