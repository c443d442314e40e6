//! Whether a line only hands a word over to programs as data.
//!
//! Everything here is a list of what is known to be safe. The word is an argument of a program that is
//! known to take it as it is (`word_takers.rs`), the text that such a program reads, or the name of a
//! file. Wherever else the word stands, bash may evaluate it, even in quotes: `[[ $1 -eq 1 ]]`,
//! `declare $1` and `x=$1; echo $((x))` run the command in `a[$(command)]`. The other commands of the
//! line have to be known as well, because the word may come to them through a pipe, a variable, a file
//! or a substitution.

use super::reader::{Assignment, Input, Script, Simple};
use super::runs::is_special_variable;
use super::word::{Word, base_name};
use super::word_takers::{
    self, Program, Typed, has_running_options, is_running_option, program_of, writes_files,
};

/// Builtins that change variables by name. They are harmless while their words are known.
const DECLARE: &[&str] = &["export", "local", "readonly", "set", "unset"];

/// Conditions about one word and about two words that take them as they are.
const ABOUT_ONE: &[&str] = &[
    "!", "-d", "-e", "-f", "-h", "-L", "-n", "-r", "-s", "-w", "-x", "-z",
];
const ABOUT_TWO: &[&str] = &["!=", "-ef", "-nt", "-ot", "=", "=="];

/// Text in which a line is read in more than one way, or in which bash evaluates values again.
const UNCLEAR: &[(&str, &str)] = &[
    ("esac", "it has a `case`"),
    ("coproc", "it has a coprocess"),
    ("`", "it has backticks"),
    ("$'", "it has `$'…'`"),
    ("$\"", "it has `$\"…\"`"),
    ("$[", "it calculates"),
    ("((", "it calculates"),
    ("]=", "it writes to an array"),
    ("]+=", "it writes to an array"),
];

/// Returns why a place of a word in a line is not known to take it as data.
pub(super) fn why_not_handed_over(line: &str, mark: &str, typed: Typed) -> Option<String> {
    let unclear = UNCLEAR.iter().find(|(text, _)| line.contains(text));
    if let Some((_, why)) = unclear {
        return Some((*why).to_owned());
    }
    if has_here_document(line) || !has_plain_variables(line) || duplicates(line) {
        return Some("it is not read in one way only".to_owned());
    }
    let script = Script::read(line);
    if script.doubt || !script.listed.is_empty() {
        return Some("it has an array or cannot be read with certainty".to_owned());
    }
    let mut commands = script.commands.iter();
    if let Some(why) = commands.find_map(|command| why_not_harmless(command, typed)) {
        return Some(why);
    }
    if may_write(&script)
        && let Some(name) = script
            .commands
            .iter()
            .find_map(|command| runs_files(command, typed))
    {
        return Some(format!("`{name}` may run a file that the line writes"));
    }
    let count = |word: &Word| -> usize {
        let texts = word.texts();
        texts.map(|text| text.matches(mark).count()).sum()
    };
    let mut known = 0;
    for command in &script.commands {
        let words = command.words.iter().enumerate();
        let taken = words.filter(|(at, _)| takes_data(&command.words, *at, typed));
        known += taken.map(|(_, word)| count(word)).sum::<usize>();
        if let Input::Text(text) = &command.input {
            known += count(text);
        }
    }
    let files = script.opened.iter().chain(&script.written);
    known += files.map(count).sum::<usize>();
    (known != line.matches(mark).count())
        .then(|| "its place is none where a program is known to take a word as it is".to_owned())
}

/// Whether a word that begins with a dash would be taken for an option in one of its places.
pub fn may_be_option(line: &str, mark: &str) -> bool {
    let script = Script::read(line);
    script.commands.iter().any(|command| {
        let name = name_of(command).unwrap_or_default();
        let mut words = command.words.iter().skip(1);
        let mut data = matches!(name, "echo" | "[" | "test" | "[[");
        words.any(|word| {
            let begins = word.prefix().starts_with(mark);
            let is_option = begins && !data;
            data |= word.text() == Some("--")
                || name == "printf" && !word.may_be_option() && !word.prefix().contains(mark);
            is_option
        })
    })
}

/// Returns the first of these words that is an option in the line with which a program may run or
/// write something.
pub fn running_option<'w>(line: &str, typed: &[&'w str]) -> Option<&'w str> {
    let script = Script::read(line);
    script.commands.iter().find_map(|command| {
        let at = word_takers::program_at(&command.words)?;
        let name = base_name(command.words.get(at)?.text()?);
        let words = command.words.iter().skip(at + 1).filter_map(Word::text);
        let mut options = words.take_while(|text| *text != "--");
        options.find_map(|text| {
            let typed = typed.iter().find(|typed| **typed == text)?;
            is_running_option(name, text).then_some(*typed)
        })
    })
}

fn name_of(command: &Simple) -> Option<&str> {
    command.words.first().and_then(Word::text).map(base_name)
}

fn has_here_document(line: &str) -> bool {
    line.replace("<<<", "").contains("<<")
}

/// Whether all variables are `$name`, `${name}` or `$?`: nothing is taken out of their values or put
/// in their place.
fn has_plain_variables(line: &str) -> bool {
    line.match_indices("${").all(|(at, found)| {
        let rest = line.get(at + found.len()..).unwrap_or_default();
        rest.split_once('}').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    })
}

/// Whether a descriptor is duplicated that is no number. Bash expands such a word a second time.
fn duplicates(line: &str) -> bool {
    let duplications = line.match_indices(">&").chain(line.match_indices("<&"));
    let mut after = duplications.filter_map(|(at, found)| line.get(at + found.len()..));
    after.any(|after| {
        !after
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit() || c == '-')
    })
}

/// Whether the line writes to a file, itself or by a program.
fn may_write(script: &Script) -> bool {
    let mut written = script.written.iter();
    written.any(|file| file.text() != Some("/dev/null"))
        || script.commands.iter().filter_map(name_of).any(writes_files)
}

/// Returns the name of a command that runs a file of a folder.
fn runs_files(command: &Simple, typed: Typed) -> Option<&str> {
    matches!(program_of(&command.words, typed), Some(Program::OwnScript))
        .then(|| command.words.first().map_or("", Word::prefix))
}

/// Returns why a command may evaluate what it reads or what it is given by other commands.
fn why_not_harmless(command: &Simple, typed: Typed) -> Option<String> {
    if let Some(name) = command.assignments.iter().find_map(set_by_others) {
        return Some(format!("`{name}=…` is not a word that is data"));
    }
    let words = &command.words;
    if words.is_empty() {
        return None;
    }
    let Some(name) = name_of(command) else {
        return Some("the name of a command is computed".to_owned());
    };
    let is_known = || !words.iter().any(Word::is_computed);
    let has_options = || words.iter().skip(1).any(Word::may_be_option);
    let is_harmless = match name {
        "[" | "test" | "[[" => is_known() || is_plain_condition(words),
        "printf" => {
            let format = words.get(1).and_then(Word::text);
            format.is_some_and(|format| !format.starts_with("-v")) || is_known()
        }
        "unset" | "export" | "readonly" => is_known() && !has_options(),
        "xargs" => is_known() && runs_plain_program(words),
        _ if DECLARE.contains(&name) => is_known() && !has_options(),
        _ => match program_of(words, typed) {
            None => false,
            Some(Program::OwnScript) => true,
            Some(Program::Taker(name)) => {
                // What is computed may become an option, unless options are harmless there.
                !has_running_options(name)
                    || !words
                        .iter()
                        .skip(1)
                        .take_while(|word| word.text() != Some("--"))
                        .any(|word| word.is_computed() && word.prefix().is_empty())
            }
        },
    };
    (!is_harmless).then(|| format!("`{name}` is not known to take its words as data"))
}

/// Returns the name of a variable whose value is computed and that means something to programs.
fn set_by_others(assignment: &Assignment) -> Option<&str> {
    let name = assignment.name.as_str();
    let is_own = name.starts_with(|c: char| c.is_ascii_lowercase()) && !is_special_variable(name);
    (assignment.value.is_computed() && !is_own).then_some(name)
}

/// Whether a word of a command is data for its program.
fn takes_data(words: &[Word], at: usize, typed: Typed) -> bool {
    let Some(from) = word_takers::program_at(words) else {
        return false;
    };
    let Some(name) = words.get(from).and_then(Word::text).map(base_name) else {
        return false;
    };
    if from >= at {
        return false;
    }
    match name {
        "[" | "test" | "[[" => is_plain_condition(words),
        // The first word is the format, and `-v` names a variable.
        "printf" => {
            let format = words.get(from + 1).filter(|word| !word.may_be_option());
            at > from + 1 && format.and_then(Word::text).is_some()
        }
        _ => {
            program_of(words, typed).is_some()
                && word_takers::takes_word(
                    name,
                    words.get(from + 1..).unwrap_or_default(),
                    at - from - 1,
                )
        }
    }
}

/// Whether a condition compares its words as texts, or asks about a file of this name.
fn is_plain_condition(words: &[Word]) -> bool {
    let mut operands: Vec<&Word> = words.iter().skip(1).collect();
    if operands.last().and_then(|word| word.text()) == Some("]") {
        operands.pop();
    }
    if operands.first().and_then(|word| word.text()) == Some("!") {
        operands.remove(0);
    }
    // No word is split in `[[ … ]]`.
    let splits = words.first().and_then(Word::text) != Some("[[");
    let is_one = |word: &Word| !splits || !word.may_be_several();
    let is = |word: &Word, known: &[&str]| word.text().is_some_and(|text| known.contains(&text));
    match operands.as_slice() {
        [] | [_] => true,
        [about, word] => is(about, ABOUT_ONE) && is_one(word),
        [one, compared, other] => is(compared, ABOUT_TWO) && is_one(one) && is_one(other),
        _ => false,
    }
}

/// Whether the program that `xargs` runs is named and takes any word as data, options included.
fn runs_plain_program(words: &[Word]) -> bool {
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.text() {
            Some("-I" | "-n" | "-P" | "-L" | "-d") => {
                rest.next();
            }
            Some("-0" | "-r" | "-t") => {}
            Some(option) if option.starts_with("-I") => {}
            Some(name) => return word_takers::takes_any_word(base_name(name)),
            None => return false,
        }
    }
    // Without a program it echoes.
    true
}

#[cfg(test)]
mod tests;
