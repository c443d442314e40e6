//! Parses front matter: the YAML between two `---` lines at the beginning of a Markdown file.

mod lenient;
mod misplaced;

use loopd_proto::parse_error::plain;
use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use super::Problem;
pub(super) use lenient::{Member, Members, read_members};

/// The maximum length of front matter, in bytes.
const LONGEST: usize = 64 * 1024;

/// Parses a file's front matter, if it has one, and returns it with the text after it.
pub(super) fn read<'a, T: DeserializeOwned + Default>(
    path: &Path,
    text: &'a str,
) -> Result<(T, &'a str), Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((matter, body)) = split(path, text)? else {
        return Ok((T::default(), text));
    };
    if matter.len() > LONGEST {
        return Err(Problem::at(path, 1, "has front matter of more than 64 KiB"));
    }
    if matter.trim().is_empty() {
        return Ok((T::default(), body));
    }
    let reader = serde_norway::Deserializer::from_str(matter);
    let front = serde_path_to_error::deserialize(reader).map_err(|error| {
        let member = error.path().iter().find_map(|part| match part {
            Segment::Map { key } => Some(key.clone()),
            Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => None,
        });
        let (what, place) = without_places(&plain(error.inner()));
        // The first line of the front matter is the second line of the file.
        let line = place.map_or(1, |line| line + 1);
        let line = match (member, what.strip_prefix("duplicate field `")) {
            (_, Some(twice)) => lines_of(text, &[twice.trim_end_matches('`')]).last(),
            // For some values the parser names the beginning of the front matter.
            (Some(member), None) => lines_of(text, &[&member]).next().filter(|own| *own > line),
            (None, None) => None,
        }
        .unwrap_or(line);
        Problem::at(path, line, format!("the front matter is not valid: {what}"))
    })?;
    Ok((front, body))
}

/// Takes the places out of an error of the parser, which count from the front matter. Returns the
/// line of the mistake.
fn without_places(text: &str) -> (String, Option<usize>) {
    let mut parts = text.split(" at line ");
    let mut what = parts.next().unwrap_or_default().to_owned();
    let mut places = Vec::new();
    for part in parts {
        let digits = part.len()
            - part
                .trim_start_matches(|it: char| it.is_ascii_digit())
                .len();
        let (line, rest) = part.split_at(digits);
        places.extend(line.parse::<usize>());
        let rest = rest.strip_prefix(" column ").unwrap_or(rest);
        what.push_str(rest.trim_start_matches(|it: char| it.is_ascii_digit()));
    }
    // The first place is where the parser stopped, the second where that begins which it read.
    let is_unfinished = ["unexpected end", "could not find expected"];
    let is_unfinished = is_unfinished.iter().any(|it| what.contains(it));
    let place = if is_unfinished {
        places.last()
    } else {
        places.first()
    };
    (what, place.copied())
}

/// Returns the line of the file on which the front matter names one of these members.
pub(super) fn line_of(text: &str, members: &[&str]) -> Option<usize> {
    lines_of(text, members).next()
}

/// Returns the lines of the file on which the front matter names one of these members.
fn lines_of(text: &str, members: &[&str]) -> impl Iterator<Item = usize> {
    let named = |line: &str| {
        let name = line
            .split_once(':')
            .map(|(name, _)| name.trim_matches(['"', '\'']));
        name.is_some_and(|name| members.contains(&name))
    };
    let matter = text
        .lines()
        .skip(1)
        .take_while(|line| line.trim_end() != "---");
    let found = matter.enumerate().filter(move |(_, line)| named(line));
    found.map(|(index, _)| index + 2)
}

fn split<'a>(path: &Path, text: &'a str) -> Result<Option<(&'a str, &'a str)>, Problem> {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        return misplaced::find(path, text).map_or(Ok(None), Err);
    };
    let mut end = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            let matter = text.get(first.len()..end).unwrap_or_default();
            let body = text.get(end + line.len()..).unwrap_or_default();
            return Ok(Some((matter, body)));
        }
        end += line.len();
    }
    Err(Problem::at(
        path,
        1,
        "the front matter that begins here is not closed by a line of three dashes",
    ))
}

/// A list in one of three forms: text with commas, a list, or names that are on or off.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "expected words with commas, a list of words, or words that are true or false"
)]
pub(super) enum Words {
    One(String),
    Many(Vec<String>),
    Switches(BTreeMap<String, bool>),
}

impl Words {
    /// Returns the words; of switches, those that are on.
    pub(super) fn list(self) -> Vec<String> {
        match self {
            Self::One(text) => text
                .split(',')
                .map(|word| word.trim().to_owned())
                .filter(|word| !word.is_empty())
                .collect(),
            Self::Many(words) => words,
            Self::Switches(words) => words
                .into_iter()
                .filter_map(|(word, on)| on.then_some(word))
                .collect(),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
