//! The names in a line that the line may write to: redirections, and the words of commands that do
//! more than look. Words that are computed when the line runs are not known here.

use std::collections::BTreeSet;

use super::composed;
use super::looks;
use super::renamed;
use super::runs::Runs;
use super::word::{Word, base_name};
use super::written_by_git as git;

/// Characters that cannot belong to a path where it stands in a longer text, such as a script.
const BETWEEN: &str = "'\"`$(){}[]<>|&;,=:!#*?~^ \t\r\n";

/// How many letters of options may stand before the value of the last.
const MOST_LETTERS: usize = 8;

/// How many names are collected. Of a line with more, it is not known what it writes to.
const MAX_NAMES: usize = 2_000;

/// Options whose value names what is left alone.
pub(super) const EXCLUDING: &[&str] = &["--exclude", "--exclude-dir", "--exclude-from", "--ignore"];

/// Returns the names that a line may write to, or `None` if there are too many.
pub(crate) fn names(text: &str) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    if looks::only_looks(text) {
        return Some(names);
    }
    let runs = Runs::of(text);
    for word in runs.redirected() {
        add(&mut names, word);
    }
    for run in &runs.programs {
        add_command(&mut names, &run.words)?;
    }
    // Programs write to files that variables name: `GIT_TRACE=x git status`.
    for word in runs.assigned() {
        add(&mut names, word);
    }
    if runs.anything {
        // The line may run text that was not read as a command.
        add(&mut names, &Word::literal(text));
    }
    let earlier = renamed::earlier(&runs, &names, MAX_NAMES)?;
    names.extend(earlier);
    (names.len() <= MAX_NAMES).then_some(names)
}

/// Returns the names that commands may write to, or `None` if there are too many.
pub(super) fn of_commands<'w>(
    commands: impl Iterator<Item = &'w [Word]>,
) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for words in commands {
        add_command(&mut names, words)?;
    }
    (names.len() <= MAX_NAMES).then_some(names)
}

/// Returns the names in a text that is not understood, or `None` if there are too many.
pub(super) fn of_text(text: &str) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    add(&mut names, &Word::literal(text));
    (names.len() <= MAX_NAMES).then_some(names)
}

/// Adds the names that a command may write to. Returns `None` if there are too many.
fn add_command(names: &mut BTreeSet<String>, words: &[Word]) -> Option<()> {
    let Some((program, arguments)) = words.split_first() else {
        return Some(());
    };
    let name = program.text().map_or("", base_name);
    // A command that only looks writes nothing, but `cd` leads later commands elsewhere.
    if name != "cd" && looks::is_looking(name, arguments) {
        return Some(());
    }
    let is_git = name == "git";
    // What git writes into its own folder is not counted.
    if is_git && git::writes_only_its_own(arguments) {
        return Some(());
    }
    for composed in composed::names(name, arguments)? {
        insert(names, &composed);
    }
    add(names, program);
    let mut is_excluded = false;
    for word in arguments {
        let option = word.prefix().split('=').next().unwrap_or_default();
        let excludes =
            EXCLUDING.contains(&option) || (is_git && git::takes_message(arguments, option));
        if !is_excluded && !excludes {
            add(names, word);
        }
        is_excluded = excludes && word.text() == Some(option);
    }
    Some(())
}

fn add(names: &mut BTreeSet<String>, word: &Word) {
    for piece in word.texts().chain([word.braces()]) {
        let parts = piece.split(|character: char| BETWEEN.contains(character));
        for part in [piece].into_iter().chain(parts) {
            insert(names, part);
        }
        // The value of an option of a few letters may be attached: `-o.bashrc`, `-MFb.txt`.
        if piece.starts_with('-')
            && !piece.starts_with("--")
            && let Some(start) = piece.find(['.', '/', '~'])
        {
            let starts = (2..=start.min(MOST_LETTERS)).chain([start]);
            for start in starts {
                insert(names, piece.get(start..).unwrap_or_default());
            }
        }
    }
}

fn insert(names: &mut BTreeSet<String>, name: &str) {
    if !name.is_empty() && names.len() <= MAX_NAMES && !names.contains(name) {
        names.insert(name.to_owned());
    }
}
