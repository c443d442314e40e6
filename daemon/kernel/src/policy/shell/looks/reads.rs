//! The paths in a line that it may read, whatever its commands are. Deny rules for reading are
//! compared with them.
//!
//! Only what stands in the text is known here. `reach` says what the line may read besides: what
//! patterns match, what is computed when it runs, and what a program finds by itself.

use super::{Entry, Found, Place, names_pattern_by_option};
use crate::policy::shell::compiler::is_compiler;
use crate::policy::shell::directories::Directories;
use crate::policy::shell::runs::{ProgramRun, Runs};
use crate::policy::shell::word::{Word, base_name};
use crate::policy::shell::written_by_git;

/// How many paths are collected. Of a line with more, it is not known what it reads.
const MAX_PLACES: usize = 5_000;

/// Commands that do nothing with files that their arguments name.
const SAYING: &[&str] = &["echo", "printf", "true", "false", ":"];

/// Options whose value is a message, or names what is left alone or only compared with names. An
/// empty program stands for every one.
const NOT_READ: &[(&str, &[&str])] = &[
    (
        "",
        &["--exclude", "--exclude-dir", "--exclude-from", "--ignore"],
    ),
    (
        "find",
        &[
            "-path",
            "-ipath",
            "-wholename",
            "-iwholename",
            "-name",
            "-iname",
            "-lname",
            "-ilname",
            "-regex",
            "-iregex",
        ],
    ),
    ("fd", &["-E"]),
    ("fdfind", &["-E"]),
    ("git", &["-m", "--message"]),
    ("tree", &["-I"]),
];

/// Returns the paths in a line that it may read, or `None` if there are too many. In text that is typed into a shell, `{enter}` is
/// the end of a line, so a text that contains it is read both ways.
pub(crate) fn places(text: &str) -> Option<ReadPlaces> {
    let mut read = of_line(text);
    if text.contains("{enter}") {
        let typed = of_line(&text.replace("{enter}", "\n"));
        read.places.extend(typed.places);
        read.is_elsewhere |= typed.is_elsewhere;
        read.is_unclear |= typed.is_unclear;
    }
    (read.places.len() < MAX_PLACES).then_some(read)
}

/// What a line may read.
#[derive(Debug, Default)]
pub(crate) struct ReadPlaces {
    pub places: Vec<Place>,
    /// Whether the line may be in a folder that is not known, so that relative paths may lead
    /// anywhere.
    pub is_elsewhere: bool,
    /// Whether the line may run a text that is not understood, which may open anything.
    pub is_unclear: bool,
}

fn of_line(text: &str) -> ReadPlaces {
    let mut found = Found::new();
    let runs = Runs::of(text);
    let mut directories = Directories::default();
    directories.read(text, &runs);
    for run in &runs.programs {
        found.read(&run.words);
    }
    for word in runs.opened() {
        found.read_word(word);
    }
    // A program may open what a variable names: `ENV=x sh`.
    for word in runs.assigned() {
        found.read_word(word);
        let parts = word.texts().flat_map(|text| text.split(':'));
        parts.for_each(|part| found.read_path(part));
        // The shell may split it again: `cat $x`.
        let words = word.texts().flat_map(str::split_whitespace);
        words.for_each(|part| found.read_path(part));
    }
    if runs.programs.iter().any(preprocesses) {
        found.read_texts(&runs);
    }
    ReadPlaces {
        places: found.places,
        is_elsewhere: directories.is_unknown,
        is_unclear: runs.is_unclear,
    }
}

impl Found {
    /// Adds what a command may read.
    fn read(&mut self, words: &[Word]) {
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        if program.prefix().contains('/') {
            self.read_word(program);
        }
        let name = program.text().map_or("", base_name);
        if name == "git" {
            // `HEAD:x` is a file in the history.
            let paths = arguments
                .iter()
                .filter_map(|word| word.prefix().split_once(':'));
            paths.for_each(|(_, path)| self.read_path(path));
        }
        if SAYING.contains(&name) {
            return;
        }
        let arguments = without_others(name, arguments);
        if let ("cd" | "pushd", [to]) = (name, arguments.as_slice()) {
            self.go(to.prefix());
            return;
        }
        let before = self.places.len();
        if self.program(name, &arguments).is_some() {
            return;
        }
        self.places.truncate(before);
        let pattern = pattern_of(name, &arguments);
        let command = match name {
            "git" => written_by_git::subcommand(&arguments).map(|(command, _)| command),
            _ => None,
        };
        for word in &arguments {
            let is_command = command.is_some() && word.text() == command;
            if !is_command && !pattern.is_some_and(|pattern| std::ptr::eq(pattern, word)) {
                self.read_word(word);
            }
        }
    }

    /// Goes into a folder anywhere.
    fn go(&mut self, to: &str) {
        let place = self.places.len();
        self.read_path(to);
        let entered = self.places.get(place..).unwrap_or_default();
        let entered: Vec<String> = entered.iter().map(|it| format!("{}/", it.path)).collect();
        if self.folders.len() <= super::MAX_FOLDERS {
            self.folders.extend(entered);
        }
    }

    /// Adds a word and the values in it: `--file=x`, `-fx`, `if=x`, `a=@x`.
    fn read_word(&mut self, word: &Word) {
        if word.is_computed() {
            // The folder before a gap is known.
            if let Some((folder, _)) = word.prefix().rsplit_once('/') {
                self.read_path(folder);
            }
            let ending = word.ending().unwrap_or_default();
            for part in word.braces().split([',', '{', '}']) {
                self.read_path(part);
                self.read_path(&format!("{}{part}{ending}", word.prefix()));
            }
            return;
        }
        let text = word.text().unwrap_or_default();
        let value = text.split_once('=').map(|(_, value)| value);
        let is_letters = text.starts_with('-') && !text.starts_with("--");
        let attached = text.get(2..).filter(|_| is_letters);
        for path in [Some(text), value, attached].into_iter().flatten() {
            self.read_path(path);
            if let Some(path) = path.strip_prefix(['@', '<']) {
                self.read_path(path);
            }
        }
        // `curl file:/a`: how many slashes there are makes no difference.
        if let Some((scheme, path)) = text.split_once(':')
            && scheme.to_ascii_lowercase().ends_with("file")
        {
            let path = path.trim_start_matches('/');
            let path = path.strip_prefix("localhost/").unwrap_or(path);
            self.read_path(path);
            self.read_path(&format!("/{path}"));
        }
        // `curl --data-urlencode name@file`
        if let Some((_, path)) = text.rsplit_once('@') {
            self.read_path(path);
        }
    }

    /// Adds the names in texts that are fed to a preprocessor: `echo '#include "x"' | cpp`.
    fn read_texts(&mut self, runs: &Runs) {
        let words = runs.programs.iter().flat_map(|run| run.words.iter());
        for text in words.chain(runs.fed()).flat_map(Word::texts) {
            for part in text.split(|c: char| c.is_whitespace() || "\"'<>(),`\\".contains(c)) {
                self.read_path(part);
            }
        }
    }

    fn read_path(&mut self, path: &str) {
        if self.places.len() < MAX_PLACES {
            // Where `~` leads is not known.
            let _ = self.add(path, false);
        }
    }
}

/// Programs that replace lines of their input by the contents of files that these name.
const PREPROCESSORS: &[&str] = &["cpp", "m4", "as", "nasm", "tcc"];

fn preprocesses(run: &ProgramRun) -> bool {
    let name = run.words.first().and_then(Word::text).map_or("", base_name);
    PREPROCESSORS.contains(&name) || is_compiler(name)
}

/// Returns the operand of a command that is a pattern or a script.
pub(super) fn pattern_of<'w>(name: &str, arguments: &'w [Word]) -> Option<&'w Word> {
    let (entry, _) = Entry::find(name, arguments)?;
    if !entry.has("first") || names_pattern_by_option(arguments) {
        return None;
    }
    arguments
        .iter()
        .find(|word| !word.prefix().starts_with('-'))
}

/// Returns the arguments without the options of [`NOT_READ`] and their values.
pub(super) fn without_others(name: &str, arguments: &[Word]) -> Vec<Word> {
    let is_listed = |option: &str| {
        NOT_READ.iter().any(|(program, options)| {
            (program.is_empty() || *program == name) && options.contains(&option)
        })
    };
    let mut kept = Vec::new();
    let mut is_value = false;
    for word in arguments {
        let option = word.prefix().split('=').next().unwrap_or_default();
        let listed = is_listed(option);
        if !is_value && !listed {
            kept.push(word.clone());
        }
        is_value = listed && !word.prefix().contains('=');
    }
    kept
}
