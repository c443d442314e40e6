//! Programs that run what their arguments say, each in its own way.

use super::{Certainty, Runs, Texts, program};
use crate::kernel::policy::shell::options::{Extent, Options, Role, Style};
use crate::kernel::policy::shell::reader::{Assignment, Input};
use crate::kernel::policy::shell::script_text;
use crate::kernel::policy::shell::table::{self, Line};
use crate::kernel::policy::shell::word::{Count, Word};

impl Runs {
    /// Runs the command in the arguments of a wrapper.
    pub(super) fn wrapped(
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
            let mut shown = line.listed.split_whitespace();
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
            // Where its command begins is not certain.
            self.anything |= arguments.iter().any(Word::is_computed);
            self.suffixes(arguments, input, depth);
            self.arguments(arguments, depth, Texts::All);
            return;
        }
        let Some(start) = roles.iter().position(|role| *role == Role::Operand) else {
            // Without a command some start a shell, which reads its input.
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

    pub(super) fn special(
        &mut self,
        name: &str,
        arguments: &[Word],
        input: &Input,
        certainty: Certainty,
        depth: usize,
    ) {
        match name {
            "." | "source" | "fc" | "bind" | "enable" | "complete" | "compgen" => {
                self.anything = true;
            }
            "hash" => self.anything |= arguments.iter().any(Word::may_be_option),
            "mapfile" | "readarray" => {
                self.anything |= arguments.iter().any(|word| word.prefix().starts_with("-C"));
            }
            "eval" => self.joined(arguments, certainty, depth),
            "trap" => self.trapped(arguments, depth),
            "alias" | "export" | "declare" | "typeset" | "local" | "readonly" => {
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
            // They read commands from their input, or a file.
            "at" | "batch" | "crontab" => {
                let lists = ["-l", "-r", "-q"];
                let only_lists = arguments
                    .first()
                    .and_then(Word::text)
                    .is_some_and(|first| lists.contains(&first));
                self.anything |= !only_lists;
            }
            shell if program::SHELLS.contains(&shell) => {
                self.shell(arguments, input, certainty, depth);
            }
            other => {
                if let Some(line) = program::interpreter(other) {
                    self.interpreted(line, arguments, input);
                }
            }
        }
    }

    /// Every word may begin a command.
    fn suffixes(&mut self, arguments: &[Word], input: &Input, depth: usize) {
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

    /// `alias a='…'`, `export A=…`: texts that are run later.
    fn named(&mut self, arguments: &[Word], depth: usize) {
        for word in arguments {
            self.is_variable(word, depth);
        }
    }

    /// Words joined by spaces and given to a shell.
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

    /// `sh -c text`, `sh file`, or `sh` with its input.
    fn shell(&mut self, arguments: &[Word], input: &Input, certainty: Certainty, depth: usize) {
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
            // `-o name` and `-O name`.
            for _ in letters.matches(['o', 'O']) {
                rest.next();
            }
        };
        match operand {
            Some(word) if takes_text => self.script(word, certainty, depth),
            None if takes_text => self.anything = true,
            Some(word) if !takes_input => self.file(word),
            _ => match input {
                Input::Text(word) => self.script(word, certainty, depth),
                Input::File(word) => self.file(word),
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

    /// A file that is run: what it says is its own matter, unless this line wrote it.
    fn file(&mut self, word: &Word) {
        match word.text() {
            // The input, or a pipe.
            Some(text) if text.starts_with("/dev/") || text.starts_with("/proc/") => {
                self.anything = true;
            }
            _ => match program::name(word) {
                Some(name) => self.files.push(name.to_owned()),
                None => self.anything = true,
            },
        }
    }

    /// Inline code of another language can run anything; a file is its own matter.
    fn interpreted(&mut self, line: Line, arguments: &[Word], input: &Input) {
        let mut fields = line.listed.split(';').map(str::trim);
        let code = fields.next().unwrap_or_default();
        let valued = fields.next().unwrap_or_default();
        let foreign = fields.next().unwrap_or_default();
        let is_code = |text: &str| code.split_whitespace().any(|option| option == text);
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let Some(text) = word.text() else {
                if word.may_be_option() {
                    self.anything = true;
                } else {
                    self.file(word);
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
                self.file(word);
                return;
            };
            for (place, letter) in letters.char_indices() {
                let is_last = letters.len() == place + letter.len_utf8();
                if is_code(&format!("-{letter}")) {
                    self.anything = true;
                    return;
                }
                if foreign.contains(letter) {
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
            Input::File(word) => self.file(word),
            Input::Text(_) | Input::Unknown => self.anything = true,
        }
    }

    fn env(&mut self, arguments: &[Word], input: &Input, certainty: Certainty, depth: usize) {
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

    /// `env -S 'rm -r' x`: the text falls into words, the others follow.
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

    fn find(&mut self, arguments: &[Word], certainty: Certainty, depth: usize) {
        // Words that fall apart may hold an action.
        self.anything |= arguments
            .iter()
            .any(|word| word.may_be_several() && word.prefix().is_empty());
        let starts_plainly = arguments
            .iter()
            .take_while(|word| !word.may_be_option())
            .all(|word| !word.prefix().is_empty());
        let mut rest = arguments;
        while let Some((first, others)) = rest.split_first() {
            rest = others;
            match first.text() {
                Some("-delete") => {
                    let mut removal = vec![Word::literal("rm"), Word::literal("-rf")];
                    removal.push(Word::anything());
                    self.push(&removal, Certainty::Possible, super::Arguments::Data);
                }
                Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                    let end = others
                        .iter()
                        .position(|word| matches!(word.text(), Some(";" | "+")))
                        .unwrap_or(others.len());
                    let command = others.get(..end).unwrap_or_default();
                    let found = |word: &Word| {
                        if word.texts().any(|text| text.contains("{}")) {
                            found_by_find(word, starts_plainly)
                        } else {
                            word.clone()
                        }
                    };
                    let command: Vec<Word> = command.iter().map(found).collect();
                    self.words(&command, &Input::Unknown, certainty, depth + 1);
                    rest = others.get(end..).unwrap_or_default();
                }
                Some(_) | None => {}
            }
        }
    }

    fn ssh(&mut self, arguments: &[Word], certainty: Certainty, depth: usize) {
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

    /// `su -c text`, `script -c text`.
    fn with_command(&mut self, arguments: &[Word], certainty: Certainty, depth: usize) {
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
            // A shell, or a command after the name of the user.
            self.anything = true;
            self.suffixes(arguments, &Input::Unknown, depth);
        }
    }

    fn flock(&mut self, arguments: &[Word], input: &Input, certainty: Certainty, depth: usize) {
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

    fn parallel(&mut self, arguments: &[Word], certainty: Certainty, depth: usize) {
        let end = arguments
            .iter()
            .position(|word| word.text().is_some_and(|text| text.starts_with(":::")));
        let command = arguments
            .get(..end.unwrap_or(arguments.len()))
            .unwrap_or_default();
        let start = command.iter().position(|word| !word.may_be_option());
        // Values of options come before the command; every word may begin it.
        let command = command.get(start.unwrap_or(0)..).unwrap_or_default();
        if start.is_none() || command.is_empty() {
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

    fn awk(&mut self, arguments: &[Word]) {
        if script_text::awk_runs(arguments) {
            self.anything = true;
        }
    }

    fn sed(&mut self, arguments: &[Word]) {
        if script_text::sed_runs(arguments) {
            self.anything = true;
        }
    }
}

fn is_letters(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-') && !text.starts_with("--")
}

/// The command of `xargs`: words of its input come at the end, or where `-I` says.
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

fn one_unknown() -> Word {
    let mut word = Word::default();
    word.push_any(Count::One);
    word
}

/// What `{}` stands for: a path below the places that `find` starts from.
fn found_by_find(word: &Word, starts_plainly: bool) -> Word {
    if word.text() == Some("{}") && starts_plainly {
        let mut path = Word::literal("./");
        path.push_any(Count::One);
        path
    } else {
        one_unknown()
    }
}
