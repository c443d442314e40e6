//! What a line writes to: files that it certainly writes, names that it may write, and words whose
//! meaning is not known before it runs. Deny rules for writing are compared with them.
//!
//! `written` collects every name in a line that may be written at all. Here the words of programs
//! that are known to write are told apart: what `rm` and `touch` name is written, and of `cp` only
//! the last word is.

use super::looks;
use super::runs::{Certainty, ProgramRun, Runs};
use super::word::{Word, base_name};
use super::written;

/// Programs that write to everything that they name.
#[rustfmt::skip]
const WRITERS: &[&str] = &[
    "rm", "rmdir", "unlink", "shred", "truncate", "touch", "tee", "sponge", "mkdir", "mkfifo", "mknod", "chmod", "chown", "chgrp", "chattr",
    "setfacl", "srm", "trash", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "dos2unix", "unix2dos",
];

/// Programs that write to the last thing that they name, or to what `-t` names.
const COPIERS: &[&str] = &["cp", "install", "ln", "rsync", "scp", "link", "ditto"];

/// Programs that remove what they name with all that is in it.
const REMOVERS: &[&str] = &[
    "rm", "mv", "shred", "chmod", "chown", "chgrp", "trash", "srm",
];

/// Commands of git that write to what they name.
const GIT_WRITERS: &[&str] = &["rm", "mv", "restore", "clean"];

/// Options of any program whose value is a file that it writes.
const OUTPUT_OPTIONS: &[&str] = &[
    "-o",
    "--output",
    "--output-file",
    "--out",
    "--outfile",
    "--output-document",
];

/// How many folders `cd` may lead to. With more, it is not known where a line writes.
const MAX_FOLDERS: usize = 16;

/// What a line writes to.
#[derive(Debug, Default)]
pub(crate) struct WriteTargets {
    /// Words that the line writes to.
    pub certain: Vec<String>,
    /// Words that the line removes with everything below them.
    pub removed: Vec<String>,
    /// Names that the line may write to.
    pub possible: Vec<String>,
    /// Words that the line writes to, with gaps that are known only when it runs.
    pub computed: Vec<Word>,
    /// The folders that `cd` may have led to, relative to where the line began.
    pub folders: Vec<String>,
    /// Whether the line may write to what is not in its text.
    pub is_unclear: bool,
}

impl WriteTargets {
    /// Returns what a line writes to, or `None` if there are too many names. In text that is typed
    /// into a shell, `{enter}` is the end of a line, so a text that contains it is read both ways.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let mut targets = Self {
            folders: vec![String::new()],
            ..Self::default()
        };
        targets.read(text)?;
        if text.contains("{enter}") {
            targets.read(&text.replace("{enter}", "\n"))?;
        }
        Some(targets)
    }

    fn read(&mut self, text: &str) -> Option<()> {
        if looks::only_looks(text) {
            return Some(());
        }
        let runs = Runs::of(text);
        self.is_unclear |= runs.anything;
        for word in runs.redirected() {
            self.write(word);
        }
        for run in &runs.programs {
            self.program(run);
        }
        // Of programs that are known, the words that are not written do not count.
        let is_known = |run: &ProgramRun| name_of(run).is_some_and(|name| is_known(name, run));
        let unknown = runs.programs.iter().filter(|run| !is_known(run));
        let unknown = unknown.map(|run| run.words.as_slice());
        self.possible.extend(written::of_commands(unknown)?);
        if runs.anything {
            self.possible.extend(written::of_text(text)?);
        }
        Some(())
    }

    fn program(&mut self, run: &ProgramRun) {
        let (Some(name), Some((_, arguments))) = (name_of(run), run.words.split_first()) else {
            return;
        };
        if let ("cd" | "pushd", [.., to]) = (name, arguments) {
            self.go(to);
            return;
        }
        if run.certainty == Certainty::Possible || looks::is_looking(name, arguments) {
            return;
        }
        for word in outputs(arguments) {
            self.write(&word);
        }
        let operands: Vec<&Word> = operands(arguments);
        if WRITERS.contains(&name) || name == "mv" {
            for word in &operands {
                self.write(word);
            }
        }
        if COPIERS.contains(&name) {
            for word in copied_to(arguments, &operands) {
                self.write(&word);
            }
        }
        if REMOVERS.contains(&name) {
            // The last word of `mv` is where the others go.
            let kept = usize::from(name == "mv" && operands.len() > 1);
            let removed = operands.len().saturating_sub(kept);
            let removed = operands.iter().take(removed);
            let removed = removed.filter_map(|word| word.text());
            self.removed.extend(removed.map(str::to_owned));
        }
        match name {
            "dd" => {
                let of = arguments.iter().filter_map(|it| it.without_prefix("of="));
                of.for_each(|word| self.write(&word));
            }
            "sed" | "perl" if is_in_place(arguments) => {
                operands.iter().skip(1).for_each(|word| self.write(word));
            }
            "git" => {
                let command = operands.first().and_then(|word| word.text());
                if command.is_some_and(|command| GIT_WRITERS.contains(&command)) {
                    operands.iter().skip(1).for_each(|word| self.write(word));
                }
            }
            _ => {}
        }
    }

    fn write(&mut self, word: &Word) {
        if let Some(text) = word.text() {
            self.certain.push(text.to_owned());
            return;
        }
        let braces = word.braces().split([',', '{', '}']);
        let braces = braces.filter(|part| !part.is_empty());
        let braces = braces.map(|part| format!("{}{part}", word.prefix()));
        self.certain.extend(braces);
        self.computed.push(word.clone());
    }

    /// Follows `cd`. It may have failed, or have led only a part of the line there.
    fn go(&mut self, to: &Word) {
        let Some(to) = to.text().filter(|to| *to != "-") else {
            self.is_unclear = true;
            return;
        };
        if self.folders.len() * 2 > MAX_FOLDERS {
            self.is_unclear = true;
            return;
        }
        let entered: Vec<String> = if to.starts_with('/') {
            vec![to.to_owned()]
        } else {
            self.folders.iter().map(|it| below(it, to)).collect()
        };
        self.folders.extend(entered);
    }
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

fn name_of(run: &ProgramRun) -> Option<&str> {
    run.words.first()?.text().map(base_name)
}

fn is_known(name: &str, run: &ProgramRun) -> bool {
    let certain = run.certainty != Certainty::Possible;
    let copies = COPIERS.contains(&name) && !run.words.iter().any(Word::is_computed);
    certain && (WRITERS.contains(&name) || copies || matches!(name, "mv" | "cd" | "pushd" | "dd"))
}

/// Returns the words that are no options. What follows `--` is none.
fn operands(arguments: &[Word]) -> Vec<&Word> {
    let end = arguments.iter().position(|word| word.text() == Some("--"));
    let end = end.unwrap_or(arguments.len());
    let before = arguments.iter().take(end);
    let before = before.filter(|word| !word.prefix().starts_with('-'));
    before.chain(arguments.iter().skip(end + 1)).collect()
}

/// Returns the values of options that name a file to write.
fn outputs(arguments: &[Word]) -> Vec<Word> {
    let mut found = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        for option in OUTPUT_OPTIONS {
            if word.text() == Some(option) {
                found.extend(arguments.get(at + 1).cloned());
            } else if option.starts_with("--") {
                found.extend(word.without_prefix(&format!("{option}=")));
            } else if !word.prefix().starts_with("--") && word.text() != Some(option) {
                found.extend(word.without_prefix(option));
            }
        }
    }
    found
}

/// Returns where a copying program writes to.
fn copied_to(arguments: &[Word], operands: &[&Word]) -> Vec<Word> {
    let mut found: Vec<Word> = operands
        .last()
        .map(|word| (*word).clone())
        .into_iter()
        .collect();
    for (at, word) in arguments.iter().enumerate() {
        if matches!(word.text(), Some("-t" | "--target-directory")) {
            found.extend(arguments.get(at + 1).cloned());
        }
        found.extend(word.without_prefix("--target-directory="));
        let attached = word.without_prefix("-t");
        found.extend(attached.filter(|rest| !rest.prefix().is_empty()));
    }
    found
}

fn is_in_place(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| {
        let text = word.prefix();
        let letters = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
        text.starts_with("--in-place") || letters.is_some_and(|letters| letters.contains('i'))
    })
}
