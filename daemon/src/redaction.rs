//! Masks secret values in text: in whole texts, and in texts that arrive in pieces.
//!
//! `session` builds a [`Redaction`] from the secrets that it knows and passes every tool outcome
//! through it; `turn` does so with partial output. A value is never stored, printed or logged.

pub mod file;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use loopd_proto::visible::visible;
use serde_json::Value;

/// Replaces a secret in a text.
pub const MASK: &str = "[redacted]";
/// The shortest value that is masked; shorter values would mask ordinary words.
pub const SHORTEST: usize = 6;
/// The longest value that is masked; longer values are documents, not secrets, and slow the search.
pub const LONGEST: usize = 64 * 1024;

/// The most values that are searched for one by one.
const FEW: usize = 32;

/// The values to mask, prepared for the search.
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
    /// Makes a search for these values, without those that are too short or too long.
    pub fn of(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values
            .into_iter()
            .filter(|value| (SHORTEST..=LONGEST).contains(&value.len()))
            .collect();
        values.sort_unstable();
        values.dedup();
        // Searching for a few values one by one takes less time than building a combined search.
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
        // At least one value occurs, maybe many times, so the combined search pays off now.
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

    /// Masks the values in a text in place.
    pub fn clean_in_place(&self, text: &mut String) {
        if let Cow::Owned(cleaned) = self.clean(text) {
            *text = cleaned;
        }
    }

    /// Returns whether there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Masks the values in every text of a JSON value; returns whether there was one.
    pub fn clean_value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.clean(text) {
                Cow::Owned(cleaned) => {
                    *text = cleaned;
                    true
                }
                Cow::Borrowed(_) => false,
            },
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |found, item| self.clean_value(item) | found),
            Value::Object(members) => members
                .values_mut()
                .fold(false, |found, member| self.clean_value(member) | found),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns the text as a permission request shows it: with every value masked, and with hidden
    /// characters written as escapes.
    pub fn shown(&self, text: &str) -> String {
        visible(&self.clean(text)).into_owned()
    }

    /// Returns whether a request that shows `shown` is a request for exactly `wanted`.
    pub fn is_shown_as(&self, wanted: &str, shown: &str) -> bool {
        wanted == shown || self.shown(wanted) == shown
    }

    /// Finds the first occurrence of a value; of several that start there, the longest.
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

    /// Returns where the end of the text starts to be a possible beginning of a value.
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

/// Builds the combined search; `None` if there are too many values for one.
fn search(values: &[String]) -> Option<AhoCorasick> {
    let search = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(values);
    search
        .inspect_err(|error| tracing::warn!(%error, "secrets are searched for one by one"))
        .ok()
}

/// Masks a text that arrives in pieces; a value that is split between pieces is found as well.
#[derive(Debug)]
pub struct Pieces {
    redaction: Redaction,
    /// The end of the text so far that may be the beginning of a value.
    held: String,
}

impl Pieces {
    pub fn new(redaction: Redaction) -> Self {
        Self {
            redaction,
            held: String::new(),
        }
    }

    /// Returns whether there is nothing to mask.
    pub fn is_idle(&self) -> bool {
        self.redaction.is_empty()
    }

    /// Takes a piece; returns the text that is safe to show by now, which may be empty.
    pub fn next(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let mut shown = String::new();
        let mut rest = self.held.as_str();
        loop {
            let open = self.redaction.open_end(rest);
            // A value that starts before `open` is complete, else `open` would be its start.
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

    /// Returns the text that was held back; called after the last piece.
    pub fn rest(self) -> String {
        self.redaction.clean(&self.held).into_owned()
    }
}

#[cfg(test)]
mod tests;
