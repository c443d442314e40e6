//! What an allow rule for a program covers: options that the tables in `tables/` list as harmless.
//! Everything else is asked about. A table has one line per command:
//!
//! ```text
//! COMMAND [how]: harmless options | options that run nothing else but need a question
//! ```
//!
//! A command is a program, or a program and its subcommand. `a/b` means a or b. A program with
//! subcommands has a separate line for the options before them. A subcommand without a line is not
//! covered. `options.rs` describes how options are written. The marks in `[how]` are:
//!
//! ```text
//! [words]     options are words with one dash     [none]     no operands
//! [max=N]     at most N operands                  [no=]      no operand with =
//! [no:]       no word with :                      [no::]     no operand with ::
//! [no+]       no operand that begins with + or :  [no@]      no @file
//! [no-text=T] no word that contains T             [old]      options may lack a dash, as in tar
//! [+]         a word with + may come before the subcommand
//! [after=T]   after -- only the word T
//! [lints]     after -- only lints                 [sed] [awk] the first operand is a program text
//! [needs=A,B] harmless only with one of these options
//! [jq]        the program text brings in no other file
//! ```

use super::options::{Extent, Options, Role, Style};
use super::script_text;
use super::table::{Line, lines, lines_about};
use super::word::{Word, base_name};

const TABLES: [&str; 4] = [
    include_str!("tables/git.txt"),
    include_str!("tables/build.txt"),
    include_str!("tables/files.txt"),
    include_str!("tables/network.txt"),
];

/// Programs that look. Allow rules need this table; for deny rules these programs are quiet anyway.
const LOOKING: &str = include_str!("tables/looking.txt");

/// Programs that write where their input says. Allow rules alone need this table as well.
const TOLD: &str = include_str!("tables/told.txt");

/// Commands of git that no allow rule for all of git covers.
const OTHER_GIT_COMMANDS: &str = "archive bisect bugreport bundle checkout-index commit-graph \
    commit-tree credential daemon difftool fast-export fast-import filter-branch gui hook \
    instaweb interpret-trailers lfs maintenance mailinfo mergetool mktree multi-pack-index \
    pack-objects pack-refs prune read-tree repack replace request-pull rerere send-email \
    send-pack shell stripspace subtree svn unpack-objects update-index update-ref verify-pack \
    write-tree";

/// What the tables say about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// The program is in no table.
    Unlisted,
    Harmless,
    /// The command runs nothing else, but it may destroy, write or change something.
    Notable,
    /// An option, a subcommand or an operand is not known to be harmless.
    Unknown,
}

/// Says what the tables know about a command. The first `granted` words are allowed as they are.
pub(crate) fn of(argv: &[String], granted: usize) -> Coverage {
    let words: Vec<Word> = argv.iter().map(|word| Word::literal(word)).collect();
    let Some((program, arguments)) = words.split_first() else {
        return Coverage::Unknown;
    };
    let name = program.text().map(base_name).unwrap_or_default();
    of_words(name, arguments, granted.saturating_sub(1))
}

/// Says what the tables know about a program with these arguments. The first `granted` arguments
/// are allowed as they are.
pub(super) fn of_words(name: &str, arguments: &[Word], granted: usize) -> Coverage {
    let mut own: Vec<Line> = lines_about(LOOKING, name).collect();
    own.extend(lines_about(TOLD, name));
    if own.is_empty() {
        own = lines_of(name);
    }
    check(&own, arguments, granted)
}

/// Whether the tables know a program.
pub(super) fn is_listed(name: &str) -> bool {
    let mut all = TABLES
        .into_iter()
        .flat_map(|table| lines_about(table, name));
    all.next().is_some()
}

/// Whether a program in the tables runs no other program when it is called with these arguments.
pub(super) fn runs_nothing(name: &str, arguments: &[Word]) -> bool {
    match check(&lines_of(name), arguments, 0) {
        Coverage::Harmless | Coverage::Notable => true,
        Coverage::Unknown | Coverage::Unlisted => false,
    }
}

/// Returns the options that a program accepts before its subcommand, if it is known to have one.
pub(super) fn options_before_subcommand(program: &str) -> Option<&'static str> {
    let all = lines_of(program);
    has_subcommands(&all)
        .then(|| own_line(&all).map(|line| line.listed))
        .flatten()
}

/// Whether a word is a built-in command of git, which no alias can replace.
pub(super) fn is_git_command(word: &str) -> bool {
    let [git, ..] = TABLES;
    lines(git).any(|line| command(&line).nth(1).is_some_and(|own| is_one(own, word)))
        || OTHER_GIT_COMMANDS
            .split_ascii_whitespace()
            .any(|own| own == word)
}

/// Returns the lines of one program.
fn lines_of(name: &str) -> Vec<Line> {
    TABLES
        .into_iter()
        .flat_map(|table| lines_about(table, name))
        .collect()
}

/// Returns the line for the options before a subcommand, or for all options if the program has
/// none.
fn own_line(all: &[Line]) -> Option<Line> {
    all.iter()
        .find(|line| command(line).nth(1).is_none())
        .copied()
}

fn has_subcommands(all: &[Line]) -> bool {
    all.iter().any(|line| command(line).nth(1).is_some())
}

fn check(all: &[Line], arguments: &[Word], granted: usize) -> Coverage {
    if all.is_empty() {
        return Coverage::Unlisted;
    }
    let Some(own) = own_line(all) else {
        return Coverage::Unknown;
    };
    if !has_subcommands(all) {
        return judge(&own, arguments, granted);
    }
    let roles = options(&own, Part::Both).walk(arguments, Extent::Options);
    let mut start = roles
        .iter()
        .position(|role| matches!(role, Role::Operand | Role::Computed))
        .unwrap_or(arguments.len());
    let is_toolchain = |word: &Word| word.prefix().starts_with('+');
    if has(&own, "+") && arguments.get(start).is_some_and(is_toolchain) {
        start += 1;
    }
    let (before, after) = arguments.split_at_checked(start).unwrap_or_default();
    let first = judge(&own, before, granted);
    if after.is_empty() {
        return first;
    }
    let granted = granted.saturating_sub(start);
    worse(first, subcommand(all, after, granted))
}

/// Checks a subcommand and its arguments.
fn subcommand(all: &[Line], words: &[Word], granted: usize) -> Coverage {
    let Some(name) = words.first().and_then(Word::text) else {
        return Coverage::Unknown;
    };
    let second = words.get(1).and_then(Word::text);
    let mut short = None;
    let mut exact = None;
    let mut has_second = false;
    for line in all {
        let mut names = command(line).skip(1);
        if !names.next().is_some_and(|own| is_one(own, name)) {
            continue;
        }
        match names.next() {
            None => short = Some(line),
            Some(own) => {
                has_second = true;
                if second.is_some_and(|second| is_one(own, second)) {
                    exact = Some(line);
                }
            }
        }
    }
    // The longest match counts: `git stash list` before `git stash`.
    let (line, taken) = match (exact, short) {
        (Some(line), _) => (line, 2),
        // A second subcommand that is not listed is not an operand: `git stash foo`.
        (None, Some(_))
            if has_second
                && granted < 2
                && second.is_some_and(|second| !second.starts_with('-')) =>
        {
            return Coverage::Unknown;
        }
        (None, Some(line)) => (line, 1),
        (None, None) => return Coverage::Unknown,
    };
    let rest = words.get(taken..).unwrap_or_default();
    judge(line, rest, granted.saturating_sub(taken))
}

/// Returns the less harmless of two.
fn worse(one: Coverage, other: Coverage) -> Coverage {
    match (one, other) {
        (Coverage::Unknown, _) | (_, Coverage::Unknown) => Coverage::Unknown,
        (Coverage::Notable, _) | (_, Coverage::Notable) => Coverage::Notable,
        (Coverage::Unlisted, other) => other,
        (Coverage::Harmless, _) => Coverage::Harmless,
    }
}

/// Returns the words of a line that name its command.
fn command(line: &Line) -> impl Iterator<Item = &'static str> + use<> {
    line.names
        .split_ascii_whitespace()
        .filter(|word| !word.starts_with('['))
}

fn is_one(alternatives: &str, word: &str) -> bool {
    alternatives.split('/').any(|own| own == word)
}

/// Whether a line has this mark in brackets.
fn has(line: &Line, mark: &str) -> bool {
    let mut marks = line.names.split_ascii_whitespace();
    marks.any(|word| word.strip_prefix('[').and_then(|w| w.strip_suffix(']')) == Some(mark))
}

fn value<'l>(line: &'l Line, key: &str) -> Option<&'l str> {
    let mut marks = line.names.split_ascii_whitespace();
    marks.find_map(|word| word.strip_prefix('[')?.strip_suffix(']')?.strip_prefix(key))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Harmless,
    Both,
}

fn options(line: &Line, part: Part) -> Options<'static> {
    let harmless = line.listed.split('|').next().unwrap_or_default();
    Options {
        list: match part {
            Part::Harmless => harmless,
            Part::Both => line.listed,
        },
        style: if has(line, "words") {
            Style::Words
        } else {
            Style::Letters
        },
    }
}

/// Checks the arguments of a command by its line.
fn judge(line: &Line, arguments: &[Word], granted: usize) -> Coverage {
    let dashed;
    let arguments = match arguments.split_first() {
        Some((first, rest))
            if has(line, "old") && first.text().is_some_and(|text| !text.starts_with('-')) =>
        {
            dashed = with_dashes(line, first.text().unwrap_or_default(), rest);
            dashed.as_slice()
        }
        _ => arguments,
    };
    let is_only_notable = line.listed.starts_with('|');
    let harmless = passes(line, Part::Harmless, arguments, granted);
    if harmless && !is_only_notable {
        Coverage::Harmless
    } else if harmless || passes(line, Part::Both, arguments, granted) {
        Coverage::Notable
    } else {
        Coverage::Unknown
    }
}

/// Returns the arguments with a dash before each of the letters that lack it. The words after them are
/// their values, in order: `tar cfI x.tar prog` is `tar -c -f x.tar -I prog`.
fn with_dashes(line: &Line, letters: &str, rest: &[Word]) -> Vec<Word> {
    let options = options(line, Part::Both);
    let mut values = rest.iter();
    let mut words = Vec::new();
    for letter in letters.chars() {
        words.push(Word::literal(&format!("-{letter}")));
        if options.needs_value(letter) {
            words.extend(values.next().cloned());
        }
    }
    words.extend(values.cloned());
    words
}

fn passes(line: &Line, part: Part, arguments: &[Word], granted: usize) -> bool {
    let roles = options(line, part).walk(arguments, Extent::All);
    let known = roles
        .iter()
        .enumerate()
        .all(|(place, role)| *role != Role::Unknown || place < granted);
    let operands: Vec<&Word> = arguments
        .iter()
        .zip(&roles)
        .skip(granted)
        .filter(|(_, role)| matches!(role, Role::Operand | Role::Computed))
        .map(|(word, _)| word)
        .collect();
    let limit = match value(line, "max=").and_then(|max| max.parse().ok()) {
        Some(max) => max,
        None if has(line, "none") => 0,
        None => usize::MAX,
    };
    let no_operand =
        |test: &dyn Fn(&str) -> bool| !operands.iter().any(|word| word.texts().any(test));
    let no_word =
        |test: &dyn Fn(&str) -> bool| !arguments.iter().any(|word| word.texts().any(test));
    let uses = |option: &str| options(line, part).uses(arguments, option);
    known
        && operands.len() <= limit
        // `uniq src/*` names two files if the pattern matches two, and the second is written.
        && (limit == usize::MAX || !operands.iter().any(|word| word.may_be_several()))
        && (part == Part::Both
            || value(line, "needs=").is_none_or(|listed| listed.split(',').any(uses)))
        && (!has(line, "no=") || no_operand(&|text| text.contains('=')))
        && (!has(line, "no::") || no_operand(&|text| text.contains("::")))
        && (!has(line, "no+")
            || part == Part::Both
            || no_operand(&|text| text.starts_with(['+', ':'])))
        && (!has(line, "no:") || no_word(&|text| text.contains(':')))
        && (!has(line, "no@") || no_word(&names_file))
        && value(line, "no-text=").is_none_or(|own| no_word(&|text| text.contains(own)))
        && (!has(line, "lints") || only_lints(arguments))
        && value(line, "after=").is_none_or(|own| {
            let mut after = arguments
                .iter()
                .skip_while(|word| word.text() != Some("--"));
            after.all(|word| matches!(word.text(), Some(text) if text == own || text == "--"))
        })
        && (!has(line, "jq")
            || part == Part::Both
            || no_word(&|text| script_text::jq_imports(text)))
        && (!has(line, "sed") || !script_text::sed_runs(arguments))
        && (!has(line, "awk")
            || !(script_text::awk_runs(arguments)
                || (part == Part::Harmless && script_text::awk_writes(arguments))))
}

/// Whether a value is `@file`, which sends the contents of a file.
fn names_file(text: &str) -> bool {
    let value = text.split_once('=').map_or(text, |(_, value)| value);
    let letter = text.strip_prefix('-').and_then(|rest| rest.get(1..));
    value.starts_with('@')
        || text.starts_with('@')
        || (!text.starts_with("--") && letter.is_some_and(|rest| rest.starts_with('@')))
}

fn only_lints(arguments: &[Word]) -> bool {
    let mut after = arguments
        .iter()
        .skip_while(|word| word.text() != Some("--"))
        .skip(1);
    after.all(|word| {
        let text = word.text().unwrap_or_default();
        ["-D", "-W", "-A", "-F", "clippy::"]
            .iter()
            .any(|start| text.starts_with(start))
            || text
                .chars()
                .all(|c| c.is_ascii_lowercase() || "_-:".contains(c))
                && !text.starts_with('-')
    })
}

#[cfg(test)]
mod tests;
