//! Whether what somebody types is data in a line that somebody else has written: an argument of a program
//! that takes it as a plain word, the text that such a program reads, or the name of a file.
//!
//! This is a list of what is known to be safe. Wherever else a word stands, bash or a program may evaluate
//! it, even in quotes: `[[ $1 -eq 1 ]]`, `declare $1` and `x=$1; echo $((x))` run the command in
//! `a[$(command)]`, and `timeout 5 sh -c $1` runs all of it. What another command of the line reads counts
//! as well, because the word may come to it through a pipe, a variable or a file.
//!
//! `typed_words/place.rs` says what programs do with their words, `typed_words/programs.rs` has the lists.

mod place;
mod programs;
mod reach;

use super::reader::{Input, Script};
use super::runs::Runs;
use super::word::Word;

/// What was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypedText {
    /// Letters, digits and a few signs: these words mean the same in every language. They may still name a
    /// command or a script.
    Plain,
    Any,
}

/// A line with what was typed, and the same line with a mark in its places.
#[derive(Debug, Clone, Copy)]
pub struct TypedLine<'a> {
    pub marked: &'a str,
    pub mark: &'a str,
    pub actual: &'a str,
    pub typed: TypedText,
}

/// Why a place may do more with a word than to take it as data.
type Refusal = String;

impl TypedLine<'_> {
    /// Returns why a place of the line may evaluate what was typed; `None` if all places take it as data.
    pub fn refusal(&self) -> Option<String> {
        self.check(0).err()
    }

    fn check(&self, depth: usize) -> Result<(), Refusal> {
        let (marked, actual) = (Script::read(self.marked), Script::read(self.actual));
        let same = marked.commands.len() == actual.commands.len()
            && (marked.commands.iter().zip(&actual.commands))
                .all(|(one, other)| one.words.len() == other.words.len());
        if marked.doubt || actual.doubt || !same || duplicates(self.marked) {
            return Err("the command cannot be read with certainty".to_owned());
        }
        self.runs_no_word()?;
        let mut known = self.in_words(&marked, &actual, depth)?;
        let files = marked.opened.iter().chain(&marked.written);
        known += files.map(|word| self.count(word)).sum::<usize>();
        let assigned = self.in_assignments(&marked)?;
        let all_known = known + assigned == self.marked.matches(self.mark).count();
        if self.typed == TypedText::Any && !(all_known && assigned == 0) {
            return Err("its place may evaluate it".to_owned());
        }
        let named = self.in_names(&marked);
        reach::check(&marked, self, assigned > 0 || named || !all_known)
    }

    /// Checks that the word is no command, at no depth that is known.
    fn runs_no_word(&self) -> Result<(), Refusal> {
        let script = Script::read(self.marked);
        let is_own = |word: &Word| {
            let mut words = script.commands.iter().flat_map(|command| &command.words);
            words.any(|own| own == word)
        };
        for run in Runs::of(self.marked).programs {
            if run.words.first().is_some_and(|first| self.has(first)) {
                return Err("it would be a command".to_owned());
            }
            let hidden = |word: &&Word| self.has(word) && !is_own(word);
            if self.typed == TypedText::Any && run.words.iter().any(|word| hidden(&word)) {
                return Err("it would be part of a command in a text".to_owned());
            }
        }
        Ok(())
    }

    /// Checks the words of all commands. Returns how often they have the mark.
    fn in_words(&self, marked: &Script, actual: &Script, depth: usize) -> Result<usize, Refusal> {
        let mut known = 0;
        for (command, real) in marked.commands.iter().zip(&actual.commands) {
            for (at, word) in command.words.iter().enumerate() {
                let count = self.count(word);
                if count > 0 {
                    let place = place::Place {
                        line: self,
                        words: &command.words,
                        actual: &real.words,
                        at,
                        depth,
                    };
                    place.check()?;
                    known += count;
                }
            }
            if let Input::Text(text) = &command.input
                && self.has(text)
            {
                if !reach::is_inert(command, self.typed) {
                    return Err("the program that reads it may evaluate it".to_owned());
                }
                known += self.count(text);
            }
        }
        Ok(known)
    }

    /// Checks the values of variables. Returns how often they have the mark.
    fn in_assignments(&self, marked: &Script) -> Result<usize, Refusal> {
        let commands = marked.commands.iter();
        let assignments = commands.flat_map(|command| &command.assignments);
        let mut count = 0;
        for assignment in assignments.filter(|it| self.has(&it.value)) {
            if super::runs::is_told_by(&assignment.name) {
                return Err(format!("programs run what `{}` says", assignment.name));
            }
            count += self.count(&assignment.value);
        }
        Ok(count)
    }

    /// Whether a command sets variables with the word.
    fn in_names(&self, marked: &Script) -> bool {
        marked.commands.iter().any(|command| {
            let name = command.words.first().and_then(Word::text);
            let second = command.words.get(1).map_or("", Word::prefix);
            let sets = name.is_some_and(|name| {
                programs::ABOUT_VARIABLES.contains(&name)
                    || name == "printf" && second.starts_with("-v")
            });
            sets && command.words.iter().any(|word| self.has(word))
        })
    }

    fn has(&self, word: &Word) -> bool {
        word.texts().any(|text| text.contains(self.mark))
    }

    fn count(&self, word: &Word) -> usize {
        let texts = word.texts();
        texts.map(|text| text.matches(self.mark).count()).sum()
    }
}

/// Whether a line has this text so often in its words, as it stands. So quotes around it are where they
/// seem to be.
pub fn has_words_with(line: &str, text: &str, times: usize) -> bool {
    let script = Script::read(line);
    let count = |word: &Word| -> usize {
        let texts = word.texts();
        texts.map(|it| it.matches(text).count()).sum()
    };
    let words = script.commands.iter().flat_map(|command| {
        let values = command.assignments.iter().map(|it| &it.value);
        let input = match &command.input {
            Input::Text(word) => Some(word),
            Input::Unknown | Input::File(_) => None,
        };
        command.words.iter().chain(values).chain(input)
    });
    let files = script.opened.iter().chain(&script.written);
    let found: usize = words.chain(files).chain(&script.listed).map(count).sum();
    !script.doubt && found == times
}

/// Whether lines that run one after the other may run a file that one of them writes.
pub fn run_what_they_write(lines: &str) -> bool {
    let script = Script::read(lines);
    script.doubt || (reach::writes(&script) && script.commands.iter().any(reach::runs_file))
}

/// Whether a word that begins with a dash would be taken for an option in one of its places.
pub fn may_be_option(line: &str, mark: &str) -> bool {
    let script = Script::read(line);
    script.commands.iter().any(|command| {
        let name = command.words.first().and_then(Word::text);
        let name = name.map_or("", super::word::base_name);
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

#[cfg(test)]
mod tests;
