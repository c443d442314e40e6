//! Parses front matter: the YAML between two `---` lines at the beginning of a Markdown file.

use loopd_proto::parse_error::plain;
use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Problem;

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
    let front = serde_norway::from_str(matter).map_err(|error| {
        // The first line of the front matter is the second line of the file.
        let line = error.location().map_or(1, |place| place.line() + 1);
        let text = plain(&error);
        // The problem names the line of the file; the error counts from the front matter.
        let text = text
            .rsplit_once(" at line ")
            .map_or(&*text, |(text, _)| text);
        Problem::at(path, line, format!("the front matter is not valid: {text}"))
    })?;
    Ok((front, body))
}

/// Returns the line of the file on which the front matter names one of these members.
pub(super) fn line_of(text: &str, members: &[&str]) -> Option<usize> {
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
    matter
        .enumerate()
        .find(|(_, line)| named(line))
        .map(|(index, _)| index + 2)
}

fn split<'a>(path: &Path, text: &'a str) -> Result<Option<(&'a str, &'a str)>, Problem> {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        return Ok(None);
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
