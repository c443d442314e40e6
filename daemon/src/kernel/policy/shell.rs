//! How rules speak about shell commands. An allow rule has to name every command of a text that is
//! fully understood; a deny rule hits a command wherever it may be hidden. Called by `policy`.

pub mod identifier;
pub mod plain;
pub mod runner;

use loopd_proto::permission::{PermissionRule, ShellCommand};

/// A program and its arguments, free of quotes.
pub type Argv = Vec<String>;

/// Bytes that part words, seen from as far away as possible: whatever bash may read as a border.
const BORDERS: &str = "'\"`$(){}[]<>|&;,=!#*?~^";

/// Says whether an allow rule names a command: itself or, with `:*`, all that begin with its words.
pub(super) fn names(argument: &str, identifier: &str) -> bool {
    match argument.strip_suffix(":*") {
        Some(prefix) => {
            identifier == prefix
                || identifier
                    .strip_prefix(prefix)
                    .is_some_and(|rest| rest.starts_with(' '))
        }
        None => argument == identifier,
    }
}

/// What is known about the text that asks to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Its commands are all it runs.
    Certain,
    /// It may run whatever it mentions, and perhaps more.
    Uncertain,
}

/// Says whether a deny rule hits a text.
pub(super) fn denies(
    argument: &str,
    text: &str,
    commands: &[ShellCommand],
    reading: Reading,
) -> bool {
    let argument = argument.strip_suffix(":*").unwrap_or(argument).trim();
    let rule: Vec<&str> = argument.split_whitespace().collect();
    if rule.is_empty() {
        return false;
    }
    if argument == text.trim() {
        return true;
    }
    match reading {
        Reading::Certain => commands
            .iter()
            .any(|command| runs(&rule, &words(&command.identifier, Quotes::Joined))),
        // Both ways of reading quotes: `r'm' x` is rm, and `sh -c 'rm x'` is rm too.
        Reading::Uncertain => [Quotes::Joined, Quotes::Parting]
            .into_iter()
            .any(|quotes| mentions(&rule, &words(text, quotes))),
    }
}

/// Says whether a text could run a command without a word that names it.
pub(super) fn may_hide(denied: &[PermissionRule], text: &str) -> bool {
    let about_shell = |rule: &PermissionRule| {
        matches!(rule.kind.as_str(), "shell" | "commands") && rule.argument.is_some()
    };
    denied.iter().any(about_shell) && computes_words(text)
}

/// Words that come out of an expansion cannot be read beforehand.
fn computes_words(text: &str) -> bool {
    let computing = [
        "`", "$(", "${", "$'", "$\"", "$[", "<(", ">(", "\\", "eval", "base64", "xxd",
    ];
    if computing.iter().any(|mark| text.contains(mark)) {
        return true;
    }
    // A variable, pattern or brace in the place of a program.
    let mut starts = true;
    for word in text.split_inclusive([' ', '\n', '\t', ';', '|', '&', '(', '{']) {
        let bare = word.trim_end_matches([' ', '\n', '\t', ';', '|', '&', '(', '{']);
        let is_braced = bare.len() > 1 && bare.contains('}');
        if starts && (is_braced || bare.contains(['$', '*', '?', '[', '~', '!'])) {
            return true;
        }
        if !bare.is_empty() {
            // An assignment before a command leaves the place of the program open.
            starts = bare.contains('=') || is_reserved(bare);
        }
        if word.ends_with([';', '|', '&', '(', '{', '\n']) {
            starts = true;
        }
    }
    false
}

fn is_reserved(word: &str) -> bool {
    [
        "if", "then", "else", "elif", "do", "while", "until", "time", "!", "coproc", "exec",
        "command", "builtin", "nohup", "sudo", "env", "xargs",
    ]
    .contains(&word)
}

/// A rule hits a certain command by its program and, in order, its further words.
fn runs(rule: &[&str], command: &[String]) -> bool {
    let (Some(program), Some((first, rest))) = (rule.first(), command.split_first()) else {
        return false;
    };
    if !is_program(program, first) {
        return false;
    }
    let mut rest = rest.iter();
    rule.iter()
        .skip(1)
        .all(|word| rest.any(|found| found == word))
}

/// A rule hits an uncertain text that mentions its words in order, from any word on.
fn mentions(rule: &[&str], text: &[String]) -> bool {
    let Some((program, further)) = rule.split_first() else {
        return false;
    };
    let Some(first) = text.iter().position(|word| is_program(program, word)) else {
        return false;
    };
    // From the first mention on: looking further could only find less.
    let mut rest = text.iter().skip(first + 1);
    further.iter().all(|word| rest.any(|found| found == word))
}

/// A program by its name or by a path that ends in it.
fn is_program(rule: &str, word: &str) -> bool {
    rule == word || (!rule.contains('/') && word.rsplit('/').next() == Some(rule))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// Quotes are taken out of words.
    Joined,
    /// Quotes part words.
    Parting,
}

fn words(text: &str, quotes: Quotes) -> Vec<String> {
    let joined: String = match quotes {
        Quotes::Joined => text
            .chars()
            .filter(|character| !matches!(character, '\'' | '"' | '\\'))
            .collect(),
        Quotes::Parting => text.replace('\\', ""),
    };
    joined
        .split(|character: char| character.is_whitespace() || BORDERS.contains(character))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests;
