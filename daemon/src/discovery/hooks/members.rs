//! The members of a JSON object as they stand in the text, so that a mistake has a line.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Every member in its order. A name that occurs twice is kept twice: a second list of hooks must
/// not replace the first one.
pub(in crate::discovery) struct Members<'text>(
    pub(in crate::discovery) Vec<(String, &'text RawValue)>,
);

impl<'text> Members<'text> {
    pub(in crate::discovery) fn read(text: &'text str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    pub(in crate::discovery) fn get(&self, name: &str) -> Option<&'text RawValue> {
        self.all(name).next()
    }

    /// Returns the values of every member of a name.
    pub(in crate::discovery) fn all(&self, name: &str) -> impl Iterator<Item = &'text RawValue> {
        let named = self.0.iter().filter(move |(member, _)| member == name);
        named.map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

/// The text of a file beside its copy without comments, in which every byte has the same place.
pub(in crate::discovery) struct FileText<'a> {
    pub(in crate::discovery) original: &'a str,
    pub(in crate::discovery) json: &'a str,
}

impl FileText<'_> {
    /// Returns the line on which a value that was read from `json` begins.
    pub(in crate::discovery) fn line_of(&self, value: &RawValue) -> usize {
        self.line_at((value.get().as_ptr() as usize).saturating_sub(self.json.as_ptr() as usize))
    }

    /// Returns the line on which reading `json` failed.
    pub(in crate::discovery) fn line_of_error(&self, error: &serde_json::Error) -> usize {
        let lines = self.json.split_inclusive('\n');
        let before: usize = lines
            .take(error.line().saturating_sub(1))
            .map(str::len)
            .sum();
        self.line_at(before + error.column().saturating_sub(1))
    }

    fn line_at(&self, offset: usize) -> usize {
        let before = self.original.as_bytes().iter().take(offset);
        before.filter(|byte| **byte == b'\n').count() + 1
    }
}

/// Returns a member that an object has twice, at its top or in an object in it.
pub fn repeated_member(text: &str) -> Option<String> {
    let members = Members::read(text).ok()?;
    let mut seen = HashSet::new();
    for (name, value) in &members.0 {
        if !seen.insert(name) {
            return Some(name.clone());
        }
        let inner = value.get();
        if inner.starts_with('{')
            && let Some(found) = repeated_member(inner)
        {
            return Some(found);
        }
    }
    None
}
