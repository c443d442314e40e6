//! Reads front matter that is not valid YAML line by line, as its author most likely meant it.
//!
//! The most common mistake is text with a colon in it that needs quotes. A strict reader would lose
//! the whole file, or the members that restrict it.

use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::{Problem, lines_of, read, split};

/// One member of front matter.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::discovery) struct Member {
    /// The key as it is written.
    pub(in crate::discovery) key: String,
    pub(in crate::discovery) value: Value,
    /// Its line in the file, from 1 on.
    pub(in crate::discovery) line: usize,
}

/// The front matter of a file, member by member.
#[derive(Debug, Default)]
pub(in crate::discovery) struct Members<'a> {
    pub(in crate::discovery) list: Vec<Member>,
    /// The lines that could not be read as a member, with their text.
    pub(in crate::discovery) unread: Vec<(usize, String)>,
    /// What is wrong with the file although it is used.
    pub(in crate::discovery) warnings: Vec<Problem>,
    /// The text after the front matter.
    pub(in crate::discovery) body: &'a str,
}

/// The members of a mapping in their order, those with the same key, too. A map would keep the last one
/// only, and with it lose what the others restrict.
#[derive(Default)]
struct Pairs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Pairs;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Reads front matter as YAML, or line by line if it is no valid YAML. A file whose front matter is
/// not closed cannot be read.
pub(in crate::discovery) fn read_members<'a>(
    path: &Path,
    text: &'a str,
) -> Result<Members<'a>, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut warnings = Vec::new();
    let begun = text.trim_start();
    let mut shift = 0;
    let mut text = text;
    if begun.len() < text.len() && begun.starts_with("---") {
        let skipped = text.get(..text.len() - begun.len());
        shift = skipped.unwrap_or_default().matches('\n').count();
        text = begun;
        let what = "front matter belongs on the first line; the empty lines before it are skipped";
        warnings.push(Problem::at(path, 1, what));
    }
    let moved = |mut problem: Problem| {
        problem.line = problem.line.map(|line| line + shift);
        problem
    };
    let Some((matter, _)) = split(path, text).map_err(moved)? else {
        return Ok(Members {
            warnings,
            body: text,
            ..Members::default()
        });
    };
    match read::<Pairs>(path, text) {
        Ok((Pairs(found), body)) => {
            let mut members: Vec<Member> = Vec::with_capacity(found.len());
            for (key, value) in found {
                let earlier = members.iter().filter(|member| member.key == key).count();
                let line = lines_of(text, &[&key]).nth(earlier).unwrap_or(1) + shift;
                if earlier > 0 {
                    let what = format!("`{key}` is written more than once; keep one of them");
                    warnings.push(Problem::at(path, line, what));
                }
                members.push(Member { key, value, line });
            }
            members.sort_by_key(|member| member.line);
            Ok(Members {
                list: members,
                unread: Vec::new(),
                warnings,
                body,
            })
        }
        Err(problem) if matter.len() > super::LONGEST => Err(moved(problem)),
        Err(problem) => {
            let body = split(path, text)?.map_or("", |(_, body)| body);
            let (members, unread) = by_lines(matter, shift + 2);
            let problem = moved(problem);
            let what = format!(
                "{}; it is read line by line, so put quotes around text with `: ` in it",
                problem.what
            );
            warnings.push(Problem { what, ..problem });
            Ok(Members {
                list: members,
                unread,
                warnings,
                body,
            })
        }
    }
}

/// Reads lines of the form `key: value`; lines that are indented, and items of a list, belong to the
/// key above them. `first` is the number of the first line.
fn by_lines(matter: &str, first: usize) -> (Vec<Member>, Vec<(usize, String)>) {
    let mut found: Vec<(String, usize, String, Vec<&str>)> = Vec::new();
    let mut unread = Vec::new();
    for (index, line) in matter.lines().enumerate() {
        let number = index + first;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let belongs = line.starts_with([' ', '\t', '-']);
        match (found.last_mut(), line.split_once(':')) {
            (Some((_, _, _, more)), _) if belongs => more.push(line),
            (_, Some((key, value))) if is_key(key) => {
                let key = unquoted(key.trim()).to_owned();
                found.push((key, number, value.trim().to_owned(), Vec::new()));
            }
            _ => unread.push((number, line.trim().to_owned())),
        }
    }
    let members = found.into_iter().map(|(key, line, value, more)| Member {
        key,
        line,
        value: value_of(&value, &more),
    });
    (members.collect(), unread)
}

pub(super) fn is_key(key: &str) -> bool {
    let key = unquoted(key.trim());
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    !key.is_empty() && key.chars().all(plain)
}

/// Returns what the text after a colon and the lines below it say.
fn value_of(value: &str, more: &[&str]) -> Value {
    let is_block = matches!(value, "|" | ">" | "|-" | ">-" | "|+" | ">+");
    let lines = || more.iter().map(|line| line.trim());
    if value.is_empty() && !more.is_empty() && lines().all(|line| line.starts_with('-')) {
        let items = lines().map(|line| unquoted(line.trim_start_matches('-').trim()));
        return items.map(|item| Value::String(item.to_owned())).collect();
    }
    if let Some(items) = value.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        let items = items.split(',').map(|item| unquoted(item.trim()));
        let items = items.filter(|item| !item.is_empty());
        return items.map(|item| Value::String(item.to_owned())).collect();
    }
    if value.is_empty() && more.is_empty() {
        return Value::Null;
    }
    let first = (!is_block && !value.is_empty()).then_some(value);
    let text: Vec<&str> = first.into_iter().chain(lines()).collect();
    Value::String(unquoted(&text.join(" ")).to_owned())
}

/// Takes away quotes that enclose a text.
fn unquoted(text: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use serde_json::json;

    use super::*;

    fn members(text: &str) -> (Vec<(String, usize, Value)>, usize) {
        let read = read_members(Path::new("f"), text).unwrap();
        let members = read.list.into_iter();
        let shown = members.map(|it| (it.key, it.line, it.value)).collect();
        (shown, read.warnings.len() + read.unread.len())
    }

    #[test]
    fn what_is_no_yaml_is_read_line_by_line() {
        let text = "---\nname: a\ndescription: Use when: x\n  and: y\nallowed-tools:\n  - Read\n  - 'Bash(git:*)'\n\
                    other: [a, \"b\"]\nblock: >\n  one\n  two\nempty:\nnot a member\n---\nBody.\n";
        let (found, problems) = members(text);
        let expected = [
            ("name", 2, json!("a")),
            ("description", 3, json!("Use when: x and: y")),
            ("allowed-tools", 5, json!(["Read", "Bash(git:*)"])),
            ("other", 8, json!(["a", "b"])),
            ("block", 9, json!("one two")),
            ("empty", 12, Value::Null),
        ];
        let expected = expected.map(|(key, line, value)| (key.to_owned(), line, value));
        assert_eq!(found, expected);
        assert_eq!(problems, 2);
    }

    #[test]
    fn valid_front_matter_is_read_as_yaml() {
        let (found, problems) = members("\u{feff}---\nname: a # one\nflag: true\n---\n");
        let expected = [("name", 2, json!("a")), ("flag", 3, json!(true))];
        let expected = expected.map(|(key, line, value)| (key.to_owned(), line, value));
        assert_eq!((found.as_slice(), problems), (expected.as_slice(), 0));
        let (found, problems) = members("\n\n---\nname: a\n---\n");
        assert_eq!(found, [("name".to_owned(), 4, json!("a"))]);
        assert_eq!(problems, 1);
        let (found, problems) = members("no front matter\n---\n");
        assert_eq!((found.len(), problems), (0, 0));
        assert!(read_members(Path::new("f"), "---\nname: a\n").is_err());
    }
}
