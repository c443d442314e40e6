//! Imports: `@path` in a file of instructions adds another file.
//!
//! A name after `@` that is no file is text, such as the name of a person or of a package. Whoever
//! writes a file in a project must not choose what else of the machine a model reads: its imports stay
//! in the project, go through no links, and do not reach hidden files, where secrets are.

use std::path::{Component, Path, PathBuf};

use super::InstructionPlace;
use crate::discovery::Problem;

/// The most mentions of one file that are looked at.
const MOST_MENTIONS: usize = 200;
/// How far one import leads to the next.
pub(super) const DEEPEST: usize = 5;
/// The most files that one file imports, with their own imports.
pub(super) const MOST_FILES: usize = 50;
/// The endings after which a name is certainly meant as a file.
const TEXT_ENDINGS: [&str; 4] = [".md", ".mdc", ".markdown", ".txt"];
/// The hidden folders of a project whose Markdown files may be imported.
const AGENT_FOLDERS: [&str; 9] = [
    ".agents",
    ".claude",
    ".codex",
    ".copilot",
    ".cursor",
    ".gemini",
    ".github",
    ".loopd",
    ".opencode",
];

/// A name after `@`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) name: String,
    /// Its line in the text, from 1 on.
    pub(super) line: usize,
}

impl Mention {
    /// Returns whether the author certainly means a file.
    fn is_file_name(&self) -> bool {
        let begins = ["./", "../", "~/"]
            .iter()
            .any(|it| self.name.starts_with(it));
        begins || TEXT_ENDINGS.iter().any(|it| self.name.ends_with(it))
    }
}

/// Finds the names after `@` that are in no code.
pub(super) fn mentions(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let begun = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|it| begun.starts_with(it));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                let names = names(line);
                found.extend(names.into_iter().map(|name| Mention {
                    name,
                    line: index + 1,
                }));
            }
        }
        if found.len() >= MOST_MENTIONS {
            found.truncate(MOST_MENTIONS);
            break;
        }
    }
    found
}

fn names(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut in_code = false;
    let mut before = ' ';
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '`' {
            in_code = !in_code;
        }
        let begins = before.is_whitespace() || matches!(before, '(' | '[' | '"' | '\'' | '*' | '_');
        before = letter;
        if letter != '@' || in_code || !begins {
            continue;
        }
        let mut name = String::new();
        while let Some(next) = letters.peek().copied() {
            if next == '\\' {
                letters.next();
                // A space in a name is written with a backslash.
                name.extend(letters.next_if_eq(&' ').or(Some('\\')));
            } else if next.is_whitespace() || next == '`' {
                break;
            } else {
                name.push(next);
                letters.next();
            }
        }
        let end = [
            ',', ';', ':', '.', '!', '?', ')', ']', '"', '\'', '*', '_', '>',
        ];
        let name = name.trim_end_matches(end);
        if !name.is_empty() {
            names.push(name.to_owned());
        }
    }
    names
}

/// Finds the file that a mention in `file` names: `None` if it is only text.
pub(super) fn resolve(
    place: &InstructionPlace,
    file: &Path,
    mention: &Mention,
) -> Result<Option<PathBuf>, Problem> {
    let problem = |what: &str| {
        let name = &mention.name;
        Problem::at(
            file,
            mention.line,
            format!("the import @{name} is left out: {what}"),
        )
    };
    // What may well be the name of a person or of a package is not worth a warning.
    let refused = |what: &str| {
        if mention.is_file_name() {
            Err(problem(what))
        } else {
            Ok(None)
        }
    };
    let path = match (mention.name.strip_prefix("~/"), &place.user) {
        (Some(inside), Some(user)) => user.join(inside),
        (Some(_), None) => return refused("it leads out of the project"),
        (None, _) => file.parent().unwrap_or(file).join(&mention.name),
    };
    let path = plain(&path);
    if let Some(root) = &place.project {
        let Ok(inside) = path.strip_prefix(plain(root)) else {
            return refused("it leads out of the project");
        };
        if is_hidden(inside) {
            return refused("it names a hidden file");
        }
        let mut step = plain(root);
        for part in inside.components() {
            step.push(part);
            match std::fs::symlink_metadata(&step) {
                Ok(metadata) if metadata.is_symlink() => {
                    return refused("it leads through a link");
                }
                Ok(_) => {}
                // A missing file is told of below.
                Err(_) => break,
            }
        }
    }
    match std::fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(path)),
        Ok(_) => refused("it is not a regular file"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            refused("there is no such file")
        }
        Err(error) => refused(&format!("it cannot be read: {error}")),
    }
}

/// Returns whether a path in a project may lead to secrets: it names something hidden that is no
/// Markdown file of an agent.
fn is_hidden(inside: &Path) -> bool {
    let is_markdown = inside
        .extension()
        .is_some_and(|it| it == "md" || it == "mdc");
    inside.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        let is_agents = is_markdown && AGENT_FOLDERS.contains(&&*name);
        name.starts_with('.') && !is_agents
    })
}

/// Returns a path without `.` and `..`, without a look at the disk.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize)> {
        let mentions = mentions(text).into_iter();
        mentions.map(|it| (it.name, it.line)).collect()
    }

    #[test]
    fn names_after_an_at_sign_are_found_outside_of_code() {
        let table: &[(&str, &[&str])] = &[
            ("@docs/a.md", &["docs/a.md"]),
            ("See @README and @./b.md.", &["README", "./b.md"]),
            ("- (@a.md), \"@b.md\"", &["a.md", "b.md"]),
            ("mail me@example.com", &[]),
            ("run `npm i @scope/name` @a", &["a"]),
            ("@my\\ file.md", &["my file.md"]),
            ("@~/notes.md", &["~/notes.md"]),
            ("@ alone", &[]),
            ("```\n@code.md\n```\n@text.md", &["text.md"]),
            ("~~~\n```\n@code.md\n~~~\n@text.md", &["text.md"]),
        ];
        for (text, names) in table {
            let found: Vec<String> = found(text).into_iter().map(|(name, _)| name).collect();
            assert_eq!(found, *names, "{text}");
        }
        assert_eq!(found("a\n\n@b.md"), [("b.md".to_owned(), 3)]);
        assert_eq!(found(&"@a ".repeat(1_000)).len(), MOST_MENTIONS);
    }

    #[test]
    fn hidden_files_are_left_out_but_not_the_markdown_of_agents() {
        for hidden in [
            ".env",
            ".ssh/id",
            "a/.git/config",
            ".claude/settings.json",
            ".codex/auth.json",
        ] {
            assert!(is_hidden(Path::new(hidden)), "{hidden}");
        }
        for open in [
            "a.md",
            ".claude/rules/a.md",
            ".github/a.md",
            "a/b/package.json",
        ] {
            assert!(!is_hidden(Path::new(open)), "{open}");
        }
    }
}
