//! How rules match shell commands.
//!
//! A deny rule with an argument is compared with everything that a line runs, at every depth.
//! `reader` reads the line, `runs` looks into wrappers, shells and interpreters, `deny` compares.
//! What is not certain is asked about.
//!
//! An allow rule covers a line only if every command of the line is plain (`plain`), named by a
//! rule (`identifier`), and called in a way that is known to be harmless (`coverage`, `runner`).
//! The data is in `tables/`. `policy` calls this module.

pub mod analysis;
pub(crate) mod changes;
mod compiler;
pub(crate) mod composed;
pub(crate) mod coverage;
mod deny;
pub(crate) mod directories;
mod evaluated;
mod fit;
mod handed_over;
pub(crate) mod identifier;
mod lax;
pub(crate) mod looks;
mod options;
pub(crate) mod plain;
pub(crate) mod reader;
mod renamed;
pub(crate) mod rule;
pub(crate) mod runner;
pub(crate) mod runs;
mod script_text;
mod swept;
mod table;
pub(crate) mod word;
mod word_takers;
pub(crate) mod write_targets;
pub(crate) mod written;
pub(super) mod written_by_git;

use loopd_proto::permission::{PermissionRule, ShellCommand};

pub use self::evaluated::{differ_in_words_only, why_evaluated};
pub use self::fit::{LineFit, fit, fits};
pub use self::handed_over::{may_be_option, running_option};
pub use self::word_takers::Typed;

use self::coverage::Coverage;
use self::deny::Hit;
use self::rule::Rule;
use self::runs::Runs;

/// A program and its arguments, without quotes.
pub type Argv = Vec<String>;

/// Characters that may separate words: every one that bash may read as a border somewhere.
const BORDERS: &str = "'\"`$(){}[]<>|&;,=!#*?~^";

/// The verdict of deny rules with an argument on a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denial<'r> {
    /// No rule matches.
    No,
    /// A rule may match: words are computed, or the text is not understood.
    Possible,
    By(&'r PermissionRule),
}

/// Returns whether every command of a line is known to change nothing. Meant for where a wrong no
/// costs time; permissions ask `looks` for the paths, too.
pub fn only_looks(line: &str) -> bool {
    looks::only_looks(line)
}

/// Compares a text with the deny rules that have an argument. All rules are about shell commands.
///
/// In text that is typed into a shell, `{enter}` is the end of a line. In a command it is an
/// ordinary word. So a text that contains it is read both ways.
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
            // The rule consists of separators only, so it is not known what it forbids.
            denial = Denial::Possible;
            continue;
        };
        let runs = runs.get_or_insert_with(|| Runs::of(text));
        let mut hit = deny::hit(&read, runs);
        let is_mentioned = || {
            // Quotes are read both ways: `r'm' x` runs rm, and so does `sh -c 'rm x'`.
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
    // The request may say that no lasting approval covers it, for a reason other than how its
    // commands are called.
    let is_explained = can_offer_session_approval || !plain.iter().all(|argv| is_harmless(argv, 0));
    is_explained
        && plain.len() == commands.len()
        && plain
            .iter()
            .all(|argv| rules.iter().any(|rule| allows(rule, argv)))
}

/// Says whether one allow rule covers a command. The rule may be exactly its words. It may also be
/// its identifier or, with `:*`, its first words; then the rest of the command must be harmless.
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

/// Says whether a command does only what its name says. The first `granted` words are allowed as
/// they are.
pub(crate) fn is_harmless(argv: &[String], granted: usize) -> bool {
    match coverage::of(argv, granted) {
        Coverage::Harmless => true,
        Coverage::Notable | Coverage::Unknown => false,
        Coverage::Unlisted => !runner::runs_anything(argv),
    }
}

/// Says whether an allow rule names a command: exactly or, with `:*`, every command that begins
/// with its words.
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
    /// Quotes are removed, and the text around them joins into one word.
    Joined,
    /// Quotes separate words.
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
