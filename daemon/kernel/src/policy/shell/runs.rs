//! Finds everything that a command line runs: its commands, and the commands that its wrappers,
//! shells and interpreters run.
//!
//! Deny rules are compared with the result. A command that is [`Sure`] runs exactly as listed if
//! the line gets there; a possible command might run. `anything` says that the line may run
//! something that cannot be read in it. All of this is pure.

mod program;
mod special;
mod told;

use std::collections::BTreeMap;

pub(super) use self::program::{SHELLS, code_options, is_for_running, is_special_variable};

use super::reader::{Assignment, IS_NUMBER, Input, Script, Simple};
use super::word::{Word, base_name};

/// How deep commands may be wrapped in each other before the analysis gives up.
const MAX_WRAPPING: usize = 20;

/// How many words are analysed for one line. A line that needs more is not understood.
const MAX_EFFORT: usize = 400_000;

/// How many pairs of written and executed files are compared. With more, the line may run anything.
const MAX_PAIRS: usize = 1_000_000;

/// Everything that a line may run.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    pub programs: Vec<ProgramRun>,
    /// Whether the line may run more than is listed.
    pub anything: bool,
    /// Whether the line may run a text that is not understood and may open any file. A script in a file
    /// is not meant.
    pub is_unclear: bool,
    /// Whether the line runs a script in the same shell.
    sources: bool,
    /// Files that are run, by the last part of their path.
    files: Vec<String>,
    /// Words that name files that are written or copied.
    written: Vec<Word>,
    /// Words after redirections that write.
    redirected: Vec<Word>,
    /// Words after redirections that read.
    opened: Vec<Word>,
    /// The values of variables that the line sets.
    assigned: Vec<Word>,
    /// The texts of the line that programs read as their input.
    fed: Vec<Word>,
    commands: usize,
    effort: usize,
    /// The classes of programs that were looked up before.
    classes: BTreeMap<String, program::Class>,
}

/// A command that runs or may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramRun {
    pub words: Vec<Word>,
    pub certainty: Certainty,
    pub arguments: Arguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    Sure,
    Possible,
}

/// What kind of arguments a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// The arguments are plain words.
    Data,
    /// The arguments may contain a command, because the program is not known.
    MayRun,
    /// The arguments may contain a command, or text in another language that runs one.
    Code,
    /// The arguments are file names, and one file becomes a copy of another.
    Copied,
}

impl Runs {
    /// Reads a command line.
    pub(crate) fn of(text: &str) -> Self {
        let mut runs = Self::default();
        runs.text(text, Certainty::Sure, 0);
        runs.anything |= runs.runs_what_it_writes();
        runs.is_unclear = runs.anything;
        runs.anything |= runs.sources;
        runs
    }

    /// Returns the words after redirections that write.
    pub(crate) fn redirected(&self) -> &[Word] {
        &self.redirected
    }

    /// Returns the words after redirections that read.
    pub(crate) fn opened(&self) -> &[Word] {
        &self.opened
    }

    /// Returns the values of variables that the line sets.
    pub(crate) fn assigned(&self) -> &[Word] {
        &self.assigned
    }

    /// Returns the texts of the line that programs read as their input.
    pub(crate) fn fed(&self) -> &[Word] {
        &self.fed
    }

    /// Reads a text that a shell executes.
    fn text(&mut self, text: &str, certainty: Certainty, depth: usize) {
        if self.is_too_much(depth) {
            self.anything = true;
            return;
        }
        let script = Script::read(text);
        self.anything |= script.doubt || hides_in_expressions(&script);
        self.redirected.extend(script.written.iter().cloned());
        self.written.extend(script.written);
        self.opened.extend(script.opened);
        self.commands += script.commands.len();
        for word in &script.listed {
            self.value(word, depth);
        }
        for command in &script.commands {
            for assignment in &command.assignments {
                self.assignment(assignment, depth);
            }
            self.command(command, certainty, depth);
        }
    }

    /// Reads a text that may be a command. If it cannot be understood, it counts as no command.
    fn perhaps(&mut self, text: &str, depth: usize) {
        if self.is_too_much(depth) {
            self.anything = true;
            return;
        }
        let mut inner = Self {
            effort: self.effort,
            classes: std::mem::take(&mut self.classes),
            ..Self::default()
        };
        inner.text(text, Certainty::Possible, depth + 1);
        self.effort = inner.effort;
        self.classes = inner.classes;
        for mut run in inner.programs {
            run.certainty = Certainty::Possible;
            self.programs.push(run);
        }
    }

    /// Reads the value of a variable or a word of an array. Later commands may run it.
    fn value(&mut self, word: &Word, depth: usize) {
        if let Some(text) = word.text()
            && text.contains(char::is_whitespace)
        {
            self.perhaps(text, depth);
        }
    }

    fn assignment(&mut self, assignment: &Assignment, depth: usize) {
        self.assigned.push(assignment.value.clone());
        if program::is_settings(&assignment.name) {
            self.anything = true;
        } else if program::is_run_by_others(&assignment.name) {
            match assignment.value.text() {
                Some(text) => self.perhaps(text, depth),
                None => self.anything = true,
            }
        } else {
            self.value(&assignment.value, depth);
        }
    }

    fn command(&mut self, command: &Simple, certainty: Certainty, depth: usize) {
        if let Input::Text(text) = &command.input {
            self.fed.push(text.clone());
        }
        self.words(&command.words, &command.input, certainty, depth);
    }

    /// Adds a command and the commands that it runs.
    fn words(&mut self, words: &[Word], input: &Input, certainty: Certainty, depth: usize) {
        let Some((first, arguments)) = words.split_first() else {
            return;
        };
        if self.is_too_much(depth) {
            self.anything = true;
            return;
        }
        let name = program::name(first).filter(|name| !name.starts_with(['^', '!']));
        let Some(name) = name else {
            // The program can be any, even a shell.
            self.push(words, certainty, Arguments::Data);
            self.anything = true;
            return;
        };
        if first.prefix().contains('/') || first.is_computed() {
            self.files.push(name.to_owned());
        }
        self.anything |=
            program::is_told_elsewhere(name, arguments) || told::is_told(name, arguments, input);
        let class = *self
            .classes
            .entry(name.to_owned())
            .or_insert_with(|| program::class(name));
        let kind = program::kind(class, name, arguments);
        let role = match kind {
            program::Kind::Unknown => Arguments::MayRun,
            program::Kind::Running => Arguments::Code,
            program::Kind::Copying => Arguments::Copied,
            program::Kind::Quiet | program::Kind::Special | program::Kind::Wrapper => {
                Arguments::Data
            }
        };
        self.push(words, certainty, role);
        match kind {
            program::Kind::Quiet => {}
            program::Kind::Copying => self.written.extend(arguments.iter().cloned()),
            program::Kind::Wrapper => self.wrapped(name, arguments, input, certainty, depth),
            program::Kind::Special => self.special(name, arguments, input, certainty, depth),
            program::Kind::Running => {
                self.anything |= arguments.iter().any(Word::is_computed);
                self.arguments(arguments, depth, Texts::All);
                if let Input::Text(text) = input {
                    // Some programs read from their input what to do.
                    let fed = [first.clone(), text.clone()];
                    self.push(&fed, Certainty::Possible, Arguments::Code);
                    self.anything |= text.is_computed();
                    self.arguments(&fed, depth, Texts::All);
                }
            }
            program::Kind::Unknown => self.arguments(arguments, depth, Texts::OfSeveralWords),
        }
    }

    fn is_too_much(&self, depth: usize) -> bool {
        depth > MAX_WRAPPING || self.effort > MAX_EFFORT
    }

    fn push(&mut self, words: &[Word], certainty: Certainty, arguments: Arguments) {
        self.effort += words.len();
        self.programs.push(ProgramRun {
            words: words.to_vec(),
            certainty,
            arguments,
        });
    }

    /// Reads arguments that may be command lines: `-x 'rm y'`, `--exec=rm`, `alias.x=!rm y`.
    fn arguments(&mut self, arguments: &[Word], depth: usize, texts: Texts) {
        for braces in arguments
            .iter()
            .map(Word::braces)
            .filter(|text| !text.is_empty())
        {
            // `{rm,x}` becomes a command of two words.
            self.perhaps(&braces.replace(['{', '}', ','], " "), depth);
        }
        for text in arguments.iter().filter_map(Word::text) {
            let after_letter = text
                .strip_prefix('-')
                .filter(|rest| !rest.starts_with('-'))
                .and_then(|rest| rest.get(1..));
            let after_equals = text.match_indices('=').take(3);
            let after_equals = after_equals.filter_map(|(place, _)| text.get(place + 1..));
            let all = std::iter::once(text)
                .chain(after_letter)
                .chain(after_equals);
            for part in all {
                let part = part.trim_start_matches(['!', '|', '@', '+', ':', ' ']);
                let is_worth_it = part.contains(char::is_whitespace)
                    || (texts == Texts::All && part.len() != text.len() && !part.is_empty());
                if is_worth_it {
                    self.perhaps(part, depth);
                }
            }
        }
    }

    /// Whether the line also runs a file that it writes.
    fn runs_what_it_writes(&self) -> bool {
        let pairs = self.files.len().saturating_mul(self.written.len());
        pairs > MAX_PAIRS
            || self.files.iter().any(|file| {
                self.written.iter().any(|written| match written.text() {
                    Some(text) => base_name(text) == file,
                    None => self.commands > 1 && written.may_name(file),
                })
            })
    }
}

/// Which arguments are read as command lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    All,
    OfSeveralWords,
}

/// Whether an arithmetic expression may evaluate a text of the script that contains a command. Bash
/// expands the subscript of an array even if it comes from quotes or a variable.
fn hides_in_expressions(script: &Script) -> bool {
    let names_variables = script.commands.iter().any(|command| {
        let name = command.words.first().and_then(Word::text);
        let mut assigned = command.assignments.iter();
        name.is_some_and(program::evaluates_names)
            || assigned.any(|it| IS_NUMBER.contains(&it.name.as_str()))
    });
    if !script.calculates && !names_variables {
        return false;
    }
    let assigned = script.commands.iter().flat_map(|command| {
        let values = command
            .assignments
            .iter()
            .map(|assignment| &assignment.value);
        let input = match &command.input {
            Input::Text(word) => Some(word),
            Input::Unknown | Input::File(_) => None,
        };
        values.chain(&command.words).chain(input)
    });
    let subscript = |text: &str| {
        text.contains("$(") || text.contains('`') || (text.contains('\\') && text.contains('('))
    };
    assigned
        .chain(&script.listed)
        .flat_map(Word::texts)
        .any(subscript)
}

#[cfg(test)]
mod tests;
