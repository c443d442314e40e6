//! Shells and interpreters: programs that run a text, a file or their input.

use super::super::{Arguments, Certainty, Runs, Texts, program};
use crate::policy::shell::options::{Extent, Options, Role, Style};
use crate::policy::shell::reader::Input;
use crate::policy::shell::table::Line;
use crate::policy::shell::word::Word;

impl Runs {
    /// Reads `sh -c text`, `sh file`, or `sh` with its input.
    pub(super) fn shell(
        &mut self,
        arguments: &[Word],
        input: &Input,
        certainty: Certainty,
        depth: usize,
    ) {
        let mut takes_text = false;
        let mut takes_input = false;
        let mut rest = arguments.iter();
        let operand = loop {
            let Some(word) = rest.next() else { break None };
            let Some(text) = word.text() else {
                if word.may_be_option() {
                    self.anything = true;
                    return;
                }
                break Some(word);
            };
            if text == "-" {
                break rest.next();
            }
            if let Some(long) = text.strip_prefix("--") {
                match long {
                    "" => break rest.next(),
                    "norc" | "noprofile" | "posix" | "login" | "verbose" | "noediting"
                    | "restricted" | "version" | "help" => {}
                    _ => {
                        self.anything = true;
                        return;
                    }
                }
                continue;
            }
            let Some(letters) = text.strip_prefix(['-', '+']).filter(|l| !l.is_empty()) else {
                break Some(word);
            };
            takes_text |= text.starts_with('-') && letters.contains('c');
            takes_input |= text.starts_with('-') && letters.contains('s');
            // `-o` and `-O` take a name.
            for _ in letters.matches(['o', 'O']) {
                rest.next();
            }
        };
        match operand {
            Some(word) if takes_text => self.script(word, certainty, depth),
            None if takes_text => self.anything = true,
            Some(word) if !takes_input => self.file(word, rest.as_slice(), certainty),
            _ => match input {
                Input::Text(word) => self.script(word, certainty, depth),
                Input::File(word) => self.file(word, &[], certainty),
                Input::Unknown => {
                    let asks = ["--version", "--help"];
                    let is_question = arguments
                        .first()
                        .and_then(Word::text)
                        .is_some_and(|first| asks.contains(&first));
                    self.anything |= !is_question;
                }
            },
        }
    }

    /// Records a file that is run, with its arguments. Its contents are not judged, unless this line
    /// wrote the file.
    fn file(&mut self, word: &Word, arguments: &[Word], certainty: Certainty) {
        match word.text() {
            // The file is the input or a pipe.
            Some(text) if text.starts_with("/dev/") || text.starts_with("/proc/") => {
                self.anything = true;
            }
            _ => match program::name(word) {
                Some(name) => {
                    self.files.push(name.to_owned());
                    let words: Vec<Word> =
                        std::iter::once(word).chain(arguments).cloned().collect();
                    self.push(&words, certainty, Arguments::Data);
                }
                None => self.anything = true,
            },
        }
    }

    /// Reads a call of an interpreter. Inline code can run anything; the contents of a file are not
    /// judged.
    pub(super) fn interpreted(
        &mut self,
        line: Line,
        arguments: &[Word],
        input: &Input,
        certainty: Certainty,
    ) {
        let mut fields = line.listed.split(';').map(str::trim);
        let code = fields.next().unwrap_or_default();
        let valued = fields.next().unwrap_or_default();
        let foreign = fields.next().unwrap_or_default();
        let is_code = |text: &str| code.split_ascii_whitespace().any(|option| option == text);
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let Some(text) = word.text() else {
                if word.may_be_option() {
                    self.anything = true;
                } else {
                    self.file(word, rest.as_slice(), certainty);
                }
                return;
            };
            let name = text.split('=').next().unwrap_or(text);
            if is_code(name) {
                self.anything = true;
                return;
            }
            if matches!(text, "--version" | "--help" | "-V" | "-h" | "-v") {
                return;
            }
            if text == "-" {
                break;
            }
            if text.starts_with("--") {
                continue;
            }
            let Some(letters) = text.strip_prefix('-') else {
                self.file(word, rest.as_slice(), certainty);
                return;
            };
            for (place, letter) in letters.char_indices() {
                let is_last = letters.len() == place + letter.len_utf8();
                if is_code(&format!("-{letter}")) {
                    self.anything = true;
                    return;
                }
                if foreign.contains(letter) {
                    // These modules run a text or a program from their arguments.
                    let runs = [
                        "timeit", "pdb", "code", "runpy", "trace", "profile", "cProfile",
                    ];
                    let module = letters.get(place + letter.len_utf8()..).unwrap_or_default();
                    let module = if module.is_empty() {
                        rest.next().and_then(Word::text)
                    } else {
                        Some(module)
                    };
                    self.anything |= module.is_none_or(|module| runs.contains(&module));
                    return;
                }
                if valued.contains(letter) {
                    if is_last {
                        rest.next();
                    }
                    break;
                }
            }
        }
        match input {
            Input::File(word) => self.file(word, &[], certainty),
            Input::Text(_) | Input::Unknown => self.anything = true,
        }
    }

    pub(super) fn ssh(&mut self, arguments: &[Word], certainty: Certainty, depth: usize) {
        let options = Options {
            list: "-1246AaCfGgKkMNnqsTtVvXxYy -B= -b= -c= -D= -E= -e= -F= -I= -i= -J= -L= -l= -m= -O= -o= -p= -Q= -R= -S= -W= -w=",
            style: Style::Letters,
        };
        // Options may name programs: ProxyCommand, LocalCommand.
        self.arguments(arguments, depth, Texts::All);
        let roles = options.walk(arguments, Extent::Options);
        let start = roles
            .iter()
            .position(|role| matches!(role, Role::Operand | Role::Computed));
        if let Some(host) = start {
            let command = arguments.get(host + 1..).unwrap_or_default();
            self.joined(command, certainty, depth);
        }
    }

    /// Reads `su -c text` and `script -c text`.
    pub(super) fn with_command(&mut self, arguments: &[Word], certainty: Certainty, depth: usize) {
        let mut words = arguments.iter();
        let mut found = false;
        while let Some(word) = words.next() {
            let prefix = word.prefix();
            if let Some(after) = word.without_prefix("--command=") {
                self.script(&after, certainty, depth);
                found = true;
            } else if prefix == "--command" || (is_letters(prefix) && prefix.ends_with('c')) {
                found = true;
                match words.next() {
                    Some(text) => self.script(text, certainty, depth),
                    None => self.anything = true,
                }
            } else if word.is_computed() && word.may_be_option() {
                self.anything = true;
            }
        }
        if !found {
            // This starts a shell, or a command after the name of the user.
            self.anything = true;
            self.suffixes(arguments, &Input::Unknown, depth);
        }
    }
}

fn is_letters(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-') && !text.starts_with("--")
}
