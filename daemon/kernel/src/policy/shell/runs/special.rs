//! Programs that run their arguments, each in its own way. The larger ones are in
//! `special/wrapper.rs`, `special/shell.rs` and `special/find.rs`.

mod find;
mod shell;
mod wrapper;

use super::{Certainty, Runs, program, told};
use crate::policy::shell::reader::{Assignment, Input};
use crate::policy::shell::script_text;
use crate::policy::shell::word::{Count, Word, base_name};

/// How many words are tried as the beginning of a command. A command with more is not understood.
const MAX_SUFFIXES: usize = 50;

impl Runs {
    pub(super) fn special(
        &mut self,
        name: &str,
        arguments: &[Word],
        input: &Input,
        certainty: Certainty,
        depth: usize,
    ) {
        match name {
            "." | "source" => self.source(arguments),
            "fc" | "bind" | "enable" | "complete" | "compgen" => {
                self.anything = true;
            }
            "hash" => self.anything |= arguments.iter().any(Word::may_be_option),
            "mapfile" | "readarray" => {
                self.anything |= arguments.iter().any(|word| may_have_letter(word, 'C'));
            }
            "jobs" => self.jobs(arguments, input, certainty, depth),
            "eval" => self.joined(arguments, certainty, depth),
            "trap" => self.trapped(arguments, depth),
            "alias" => {
                self.named(arguments, depth);
                self.aliased(arguments, depth);
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                self.named(arguments, depth);
            }
            "env" | "genv" => self.env(arguments, input, certainty, depth),
            "find" | "gfind" => self.find(arguments, certainty, depth),
            "busybox" | "toybox" => self.words(arguments, input, certainty, depth + 1),
            "ssh" => self.ssh(arguments, certainty, depth),
            "su" | "runuser" | "sg" | "script" => self.with_command(arguments, certainty, depth),
            "flock" => self.flock(arguments, input, certainty, depth),
            "parallel" => self.parallel(arguments, certainty, depth),
            "awk" | "gawk" | "mawk" | "nawk" => self.awk(arguments),
            "sed" | "gsed" => self.sed(arguments),
            "tee" => self.written.extend(arguments.iter().cloned()),
            // These read commands from their input or from a file.
            "at" | "batch" | "crontab" => {
                let lists = ["-l", "-r", "-q"];
                let only_lists = arguments
                    .first()
                    .and_then(Word::text)
                    .is_some_and(|first| lists.contains(&first));
                self.anything |= !only_lists;
            }
            // The commands of these programs can run others, and input typed later is not known.
            conversing if program::CONVERSING.contains(&conversing) => self.anything = true,
            client if program::DATABASE_CLIENTS.contains(&client) => {
                self.anything |= !is_one_query(arguments);
            }
            shell if program::SHELLS.contains(&shell) => {
                self.shell(arguments, input, certainty, depth);
            }
            other => {
                if let Some(line) = program::interpreter(other) {
                    self.interpreted(line, arguments, input, certainty);
                }
            }
        }
    }

    /// Tries every word as the beginning of a command.
    fn suffixes(&mut self, arguments: &[Word], input: &Input, depth: usize) {
        if arguments.len() > MAX_SUFFIXES {
            self.anything = true;
            return;
        }
        for start in 0..arguments.len() {
            let rest = arguments.get(start..).unwrap_or_default();
            if rest.first().is_some_and(|first| first.text().is_some()) {
                self.words(rest, input, Certainty::Possible, depth + 8);
            }
        }
    }

    /// Skips `NAME=value` words before a command.
    fn after_variables<'w>(&mut self, words: &'w [Word], depth: usize) -> &'w [Word] {
        let mut rest = words;
        while let Some((first, others)) = rest.split_first() {
            if !self.is_variable(first, depth) {
                break;
            }
            rest = others;
        }
        rest
    }

    /// Reads a word of the form `NAME=value` as an assignment.
    fn is_variable(&mut self, word: &Word, depth: usize) -> bool {
        let Some((name, _)) = word.prefix().split_once('=') else {
            return false;
        };
        if name.is_empty() || name.starts_with('-') {
            return false;
        }
        let value = word.without_prefix(&format!("{name}="));
        self.assignment(
            &Assignment {
                name: name.to_owned(),
                value: value.unwrap_or_default(),
            },
            depth,
        );
        true
    }

    /// Reads values that may be run later: `alias a='…'`, `export A=…`.
    fn named(&mut self, arguments: &[Word], depth: usize) {
        for word in arguments {
            self.is_variable(word, depth);
        }
    }

    /// Reads the texts of aliases. They run later, with further words.
    fn aliased(&mut self, arguments: &[Word], depth: usize) {
        for word in arguments {
            let Some((name, _)) = word.prefix().split_once('=') else {
                continue;
            };
            match word.without_prefix(&format!("{name}=")) {
                Some(value) => match value.text() {
                    Some(text) => {
                        let text = format!("{text} $further");
                        self.text(&text, Certainty::Possible, depth + 1);
                    }
                    None => self.anything = true,
                },
                None => self.anything = true,
            }
        }
    }

    /// Reads words that are joined by spaces and given to a shell.
    fn joined(&mut self, words: &[Word], certainty: Certainty, depth: usize) {
        let texts: Option<Vec<&str>> = words.iter().map(Word::text).collect();
        match texts {
            Some(texts) => self.text(&texts.join(" "), certainty, depth + 1),
            None => self.anything = true,
        }
    }

    fn script(&mut self, word: &Word, certainty: Certainty, depth: usize) {
        match word.text() {
            Some(text) => self.text(text, certainty, depth + 1),
            None => self.anything = true,
        }
    }

    fn trapped(&mut self, arguments: &[Word], depth: usize) {
        let action = arguments.iter().find(|word| word.text() != Some("--"));
        if let Some(action) = action
            && !matches!(action.text(), Some("-" | "-l" | "-p" | ""))
        {
            self.script(action, Certainty::Possible, depth);
        }
    }

    /// Reads `jobs -x command`, which runs the command.
    fn jobs(&mut self, arguments: &[Word], input: &Input, certainty: Certainty, depth: usize) {
        let Some(place) = arguments.iter().position(|word| may_have_letter(word, 'x')) else {
            return;
        };
        self.anything |= arguments.iter().take(place + 1).any(Word::is_computed);
        let rest = arguments.get(place + 1..).unwrap_or_default();
        match rest.split_first() {
            Some((first, others)) if first.text() == Some("--") => {
                self.words(others, input, certainty, depth + 1);
            }
            _ => self.words(rest, input, certainty, depth + 1),
        }
    }

    /// Reads `source FILE`. The file may change what later words of the line mean, but what it opens
    /// is its own matter, as with any script.
    fn source(&mut self, arguments: &[Word]) {
        let file = arguments.first().and_then(Word::text);
        match file.filter(|file| !file.starts_with('-') && !is_stream(file)) {
            Some(file) => {
                self.files.push(base_name(file).to_owned());
                self.sources = true;
            }
            None => self.anything = true,
        }
    }

    fn awk(&mut self, arguments: &[Word]) {
        if script_text::awk_runs(arguments) || told::is_program_from_input(arguments) {
            self.anything = true;
        }
    }

    fn sed(&mut self, arguments: &[Word]) {
        if script_text::sed_runs(arguments) || told::is_program_from_input(arguments) {
            self.anything = true;
        }
    }
}

/// Whether a database client gets a complete query, without anything that runs a program.
fn is_one_query(arguments: &[Word]) -> bool {
    let escapes = [
        ".sh",
        ".sy",
        "\\!",
        "|",
        "system",
        ".imp",
        ".o",
        ".ex",
        ".r",
        ".cd",
        ".ar",
        ".ba",
        ".sa",
        ".clone",
        ".lo",
        ".lo",
        "edit(",
        "load_",
        "readfile",
        "writefile",
        "fsdir",
        "zipfile",
        "sqlar",
        "attach",
        "vacuum",
        "pg_read",
        "lo_import",
        "infile",
        "outfile",
        "load data",
        "copy ",
    ];
    let texts: Option<Vec<&str>> = arguments.iter().map(Word::text).collect();
    texts.is_some_and(|texts| {
        texts
            .iter()
            .any(|text| text.contains(' ') || text.starts_with('.'))
            && !texts.iter().any(|text| {
                let text = text.to_ascii_lowercase();
                escapes.iter().any(|mark| text.contains(mark))
            })
    })
}

/// Whether a word is, or may become, letters of options with this one among them.
fn may_have_letter(word: &Word, letter: char) -> bool {
    let letters = word.prefix().strip_prefix('-');
    letters.is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
        || (word.is_computed() && word.may_be_option())
}

/// Whether a path leads to what is open, such as a pipe.
fn is_stream(path: &str) -> bool {
    path.starts_with("/dev/") || path.starts_with("/proc/")
}

fn one_unknown() -> Word {
    let mut word = Word::default();
    word.push_any(Count::One);
    word
}
