//! How rules speak about shell commands.
//!
//! A deny rule with an argument is compared with everything that a line runs, at every depth:
//! `reader` reads the line, `runs` sees through wrappers, shells and interpreters, `deny` compares.
//! What is not certain is asked about. An allow rule covers a line only if every command of it is
//! plain (`plain`), named by a rule (`identifier`), and called in a way that is known to be harmless
//! (`coverage`, `runner`). The data is in `tables/`. Called by `policy`.

pub mod analysis;
pub mod coverage;
mod deny;
pub mod identifier;
mod options;
pub mod plain;
pub mod reader;
pub mod rule;
pub mod runner;
pub mod runs;
mod script_text;
mod table;
pub mod word;

use loopd_proto::permission::{PermissionRule, ShellCommand};

use self::coverage::Coverage;
use self::deny::Hit;
use self::rule::Rule;
use self::runs::Runs;

/// A program and its arguments, free of quotes.
pub type Argv = Vec<String>;

/// Bytes that part words, seen from as far away as possible: whatever bash may read as a border.
const BORDERS: &str = "'\"`$(){}[]<>|&;,=!#*?~^";

/// What deny rules with an argument say of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denial<'r> {
    /// None of them hits.
    No,
    /// One of them may hit: words are computed, or the text is not understood.
    Possible,
    By(&'r PermissionRule),
}

/// Compares a text with the deny rules that have an argument, each about shell commands.
///
/// Text that is typed into a shell has `{enter}` for the end of a line; in a command this is a word
/// like any other, so a text with it is read both ways.
pub(super) fn denial<'r>(rules: &[&'r PermissionRule], text: &str) -> Denial<'r> {
    let denial = denial_of_line(rules, text);
    if denial == Denial::No && text.contains("{enter}") {
        return denial_of_line(rules, &text.replace("{enter}", "\n"));
    }
    denial
}

fn denial_of_line<'r>(rules: &[&'r PermissionRule], text: &str) -> Denial<'r> {
    let mut runs = None;
    let mut denial = Denial::No;
    for rule in rules {
        let Some(argument) = rule.argument.as_deref() else {
            continue;
        };
        if argument.trim() == text.trim() {
            return Denial::By(rule);
        }
        let Some(read) = Rule::guess(argument) else {
            // A rule of nothing but marks: nobody knows what it forbids.
            denial = Denial::Possible;
            continue;
        };
        let runs = runs.get_or_insert_with(|| Runs::of(text));
        let mut hit = deny::hit(&read, runs);
        let is_mentioned = || {
            // Both ways of reading quotes: `r'm' x` is rm, and `sh -c 'rm x'` is rm too.
            let mut ways = [Quotes::Joined, Quotes::Parting].into_iter();
            ways.any(|quotes| deny::is_mentioned(&read, &words(text, quotes)))
        };
        if !read.is_certain && is_mentioned() {
            hit = hit.max(Hit::Possible);
        }
        match hit {
            Hit::Certain => return Denial::By(rule),
            Hit::Possible if is_mentioned() => return Denial::By(rule),
            Hit::Possible => denial = Denial::Possible,
            Hit::No => {}
        }
    }
    denial
}

/// Says whether allow rules cover every command of a text.
pub(super) fn is_covered(
    rules: &[&str],
    text: &str,
    commands: &[ShellCommand],
    can_offer_session_approval: bool,
) -> bool {
    let Some(plain) = plain::parse(text) else {
        return false;
    };
    // The request itself may say that no standing approval covers it, for another reason than how
    // its commands are called.
    let is_explained = can_offer_session_approval || !plain.iter().all(|argv| is_harmless(argv, 0));
    is_explained
        && plain.len() == commands.len()
        && plain
            .iter()
            .all(|argv| rules.iter().any(|rule| allows(rule, argv)))
}

/// Says whether one allow rule covers a command: the very same words; or its identifier, or with
/// `:*` words that it begins with, where what else it says is harmless.
fn allows(rule: &str, argv: &[String]) -> bool {
    let is_same = |text: &str| plain::words(text).is_some_and(|words| words == argv);
    if argv.len() > 1 && is_same(rule) {
        return true;
    }
    if names(rule, &identifier::of(argv)) && is_harmless(argv, 0) {
        return true;
    }
    let Some(start) = rule.strip_suffix(":*").and_then(plain::words) else {
        return false;
    };
    argv.starts_with(&start) && is_harmless(argv, start.len())
}

/// Says whether a command does only what its name says; the first words are allowed as they are.
pub fn is_harmless(argv: &[String], granted: usize) -> bool {
    match coverage::of(argv, granted) {
        Coverage::Harmless => true,
        Coverage::Notable | Coverage::Unknown => false,
        Coverage::Unlisted => !runner::runs_anything(argv),
    }
}

/// Says whether an allow rule names a command: itself or, with `:*`, all that begin with its words.
fn names(argument: &str, identifier: &str) -> bool {
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
