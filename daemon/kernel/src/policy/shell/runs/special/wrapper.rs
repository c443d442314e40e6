//! Wrappers: programs that run the command in their arguments.

use super::super::{Certainty, Runs, Texts, program};
use super::{MAX_SUFFIXES, one_unknown};
use crate::policy::shell::options::{Extent, Options, Role, Style};
use crate::policy::shell::reader::Input;
use crate::policy::shell::script_text;
use crate::policy::shell::table;
use crate::policy::shell::word::Word;

impl Runs {
    /// Reads the command in the arguments of a wrapper.
    pub(in super::super) fn wrapped(
        &mut self,
        name: &str,
        arguments: &[Word],
        input: &Input,
        certainty: Certainty,
        depth: usize,
    ) {
        let Some(line) = table::lines(program::WRAPPERS).find(|line| line.is_for(name)) else {
            return;
        };
        let shows = |word: &Word| {
            let mut shown = line.listed.split_ascii_whitespace();
            shown.any(|token| token.strip_prefix('!') == word.text() && word.text().is_some())
        };
        let options = Options {
            list: line.listed,
            style: Style::Letters,
        };
        let roles = options.walk(arguments, Extent::Options);
        let mut before = arguments.iter().zip(&roles);
        if before.any(|(word, role)| *role == Role::Unknown && shows(word)) {
            return;
        }
        if roles.contains(&Role::Unknown) || roles.contains(&Role::Computed) {
            // It is not certain where the command begins.
            self.anything |= arguments.iter().any(Word::is_computed);
            self.suffixes(arguments, input, depth);
            self.arguments(arguments, depth, Texts::All);
            return;
        }
        let Some(start) = roles.iter().position(|role| *role == Role::Operand) else {
            // Without a command, some wrappers start a shell, which reads its input.
            self.anything |=
                ["sudo", "chroot", "unshare", "setarch"].contains(&name) && !arguments.is_empty();
            return;
        };
        let mut rest = arguments.get(start..).unwrap_or_default();
        for _ in 0..line.number("skip").unwrap_or(0) {
            rest = rest.split_first().map_or(&[], |(_, rest)| rest);
        }
        if line.is_for("vars") {
            rest = self.after_variables(rest, depth);
        }
        if line.is_for("text") {
            self.joined(rest, certainty, depth);
        } else if line.is_for("input") {
            let added = with_input(rest, arguments.get(..start).unwrap_or_default());
            self.words(&added, &Input::Unknown, certainty, depth + 1);
        } else {
            self.words(rest, input, certainty, depth + 1);
        }
    }

    pub(super) fn env(
        &mut self,
        arguments: &[Word],
        input: &Input,
        certainty: Certainty,
        depth: usize,
    ) {
        let mut rest = arguments;
        while let Some((first, others)) = rest.split_first() {
            if self.is_variable(first, depth) {
                rest = others;
                continue;
            }
            let Some(text) = first.text() else {
                if first.may_be_option() {
                    self.anything = true;
                    return;
                }
                break;
            };
            let split = text.strip_prefix("--split-string=").or_else(|| {
                let letters = text.strip_prefix('-').filter(|l| !l.starts_with('-'))?;
                let (before, after) = letters.split_once('S')?;
                before.chars().all(|c| "iv0".contains(c)).then_some(after)
            });
            if let Some(split) = split {
                let (split, others) = if split.is_empty() {
                    match others.split_first() {
                        Some((next, others)) => (next.text(), others),
                        None => return,
                    }
                } else {
                    (Some(split), others)
                };
                self.env_split(split, others, input, certainty, depth);
                return;
            }
            match text {
                "-" | "-i" | "--ignore-environment" | "-0" | "--null" | "-v" | "--debug" | "--" => {
                    rest = others;
                }
                "-u" | "--unset" | "-C" | "--chdir" => {
                    rest = others.split_first().map_or(&[], |(_, rest)| rest);
                }
                "--split-string" => {
                    let next = others.first().and_then(Word::text);
                    let others = others.get(1..).unwrap_or_default();
                    self.env_split(next, others, input, certainty, depth);
                    return;
                }
                known if known.starts_with("--unset=") || known.starts_with("--chdir=") => {
                    rest = others;
                }
                known if known.starts_with("-u") || known.starts_with("-C") => rest = others,
                other if other.starts_with('-') => {
                    self.anything |= others.iter().any(Word::is_computed);
                    self.suffixes(others, input, depth);
                    self.arguments(arguments, depth, Texts::All);
                    return;
                }
                _ => break,
            }
        }
        self.words(rest, input, certainty, depth + 1);
    }

    /// Reads `env -S 'rm -r' x`: the text is split into words, and the other arguments follow.
    fn env_split(
        &mut self,
        text: Option<&str>,
        others: &[Word],
        input: &Input,
        certainty: Certainty,
        depth: usize,
    ) {
        let argv = text.and_then(script_text::plain_words);
        let Some(argv) = argv else {
            self.anything = true;
            return;
        };
        let mut words: Vec<Word> = argv.iter().map(|word| Word::literal(word)).collect();
        words.extend(others.iter().cloned());
        self.env(&words, input, certainty, depth + 1);
    }

    pub(super) fn flock(
        &mut self,
        arguments: &[Word],
        input: &Input,
        certainty: Certainty,
        depth: usize,
    ) {
        let options = Options {
            list: "-sxeuno -E= -w= -F --shared --exclusive --unlock --nonblock --nb --wait= --timeout= --close --conflict-exit-code= --verbose --no-fork",
            style: Style::Letters,
        };
        let roles = options.walk(arguments, Extent::Options);
        let start = roles.iter().position(|role| *role == Role::Operand);
        let (Some(start), false) = (start, roles.contains(&Role::Unknown)) else {
            self.anything |= arguments.iter().any(Word::is_computed);
            self.suffixes(arguments, input, depth);
            self.arguments(arguments, depth, Texts::All);
            return;
        };
        let rest = arguments.get(start + 1..).unwrap_or_default();
        match rest {
            [option, text, ..] if matches!(option.text(), Some("-c" | "--command")) => {
                self.script(text, certainty, depth);
            }
            _ => self.words(rest, input, certainty, depth + 1),
        }
    }

    pub(super) fn parallel(&mut self, arguments: &[Word], certainty: Certainty, depth: usize) {
        let end = arguments
            .iter()
            .position(|word| word.text().is_some_and(|text| text.starts_with(":::")));
        let command = arguments
            .get(..end.unwrap_or(arguments.len()))
            .unwrap_or_default();
        let start = command.iter().position(|word| !word.may_be_option());
        // Values of options may come before the command, so every word may begin it.
        let command = command.get(start.unwrap_or(0)..).unwrap_or_default();
        if start.is_none() || command.is_empty() || command.len() > MAX_SUFFIXES {
            self.anything = true;
            return;
        }
        for first in 0..command.len() {
            let words = command.get(first..).unwrap_or_default();
            let mut added = words.to_vec();
            added.push(Word::anything());
            self.words(&added, &Input::Unknown, Certainty::Possible, depth + 1);
        }
        self.joined(command, certainty, depth);
        self.arguments(arguments, depth, Texts::OfSeveralWords);
    }
}

/// Returns the command of `xargs`, with the words of its input at the end or where `-I` puts them.
fn with_input(command: &[Word], options: &[Word]) -> Vec<Word> {
    let mut replaced: Option<String> = None;
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.text() else { continue };
        if text == "-I" {
            replaced = words.next().and_then(Word::text).map(str::to_owned);
        } else if let Some(after) = text.strip_prefix("-I").or(text.strip_prefix("--replace=")) {
            replaced = Some(after.to_owned());
        } else if let Some(after) = text.strip_prefix("-i") {
            replaced = Some(if after.is_empty() { "{}" } else { after }.to_owned());
        } else if text == "--replace" {
            replaced = Some("{}".to_owned());
        }
    }
    let Some(mark) = replaced else {
        let mut all = command.to_vec();
        all.push(Word::anything());
        return all;
    };
    let holds_mark = |word: &Word| word.texts().any(|text| text.contains(mark.as_str()));
    command
        .iter()
        .map(|word| {
            if holds_mark(word) {
                one_unknown()
            } else {
                word.clone()
            }
        })
        .collect()
}
