//! What a line writes to: files that it certainly writes, names that it may write, and words whose
//! meaning is not known before it runs. Deny rules for writing are compared with them.
//!
//! `written` collects every name in a line that may be written at all. Here the words of programs
//! that are known to write are told apart: what `rm` and `touch` name is written, and of `cp` only
//! the last word is.

use super::composed;
use super::directories::{Directories, below};
use super::lax;
use super::looks;
use super::runs::{Certainty, ProgramRun, Runs};
use super::script_text;
use super::swept;
use super::word::{Word, base_name};
use super::written;
use super::written_by_git;

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

/// Programs that write nothing, whatever their options are.
const SEARCHERS: &[&str] = &["grep", "egrep", "fgrep", "zgrep", "rg"];

/// Files that are written to without changing anything on the disk.
const NOWHERE: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "-"];

/// Programs that write to files which they name in places that are not known here: of these, every word
/// that is made when the line runs may be such a file.
#[rustfmt::skip]
const OUTPUT_PROGRAMS: &[&str] = &[
    "7z", "7za", "ar", "awk", "bsdtar", "bunzip2", "cc", "clang", "convert", "cpio", "csplit", "curl", "ed", "ex", "ffmpeg", "g++", "gawk", "gcc", "iconv",
    "install", "jar", "ld", "logrotate", "magick", "mktemp", "nano", "objcopy", "openssl", "pandoc", "patch", "pax", "perl", "rename", "ruby", "rustc",
    "script", "sed", "sort", "split", "sqlite3", "strip", "tar", "tic", "uniq", "unrar", "unzip", "uudecode", "vi", "vim", "wget", "xxd", "zip", "zstd",
];

/// Options of any program whose value is a file that it writes.
const OUTPUT_OPTIONS: &[&str] = &[
    "-o",
    "--output",
    "--output-file",
    "--out",
    "--outfile",
    "--output-document",
];

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
    /// Words with gaps of programs that may write to what they name. They are compared by what is
    /// known of them.
    pub named: Vec<Word>,
    /// Whether patterns may match other names than those that they spell.
    pub is_lax: bool,
    /// Folders below which the line may write to names that do not stand in it.
    pub swept: Vec<String>,
    /// The folders that `cd` may have led to.
    pub directories: Directories,
    /// Whether the line certainly writes to something.
    pub writes: bool,
    /// Whether a word that may be written to is a relative path.
    pub is_relative: bool,
    /// Whether the line may write to what is not in its text.
    pub is_unclear: bool,
    /// Whether the line has `..` in it, so that a gap may lead up again.
    pub leads_up: bool,
}

impl WriteTargets {
    /// Returns what a line writes to, or `None` if there are too many names. In text that is typed
    /// into a shell, `{enter}` is the end of a line, so a text that contains it is read both ways.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let mut targets = Self::default();
        targets.read(text)?;
        if text.contains("{enter}") {
            targets.read(&text.replace("{enter}", "\n"))?;
        }
        Some(targets)
    }

    /// Returns the folders that the line goes to, and the words that it writes to in them.
    pub(crate) fn in_folders(&self) -> Vec<String> {
        let folders = self.directories.folders.iter();
        let folders = folders.filter(|folder| !folder.is_empty());
        let inside = |folder: &String| {
            let words = self.certain.iter().chain(&self.removed).chain(&self.swept);
            let words = words.map(|word| below(folder, word));
            std::iter::once(folder.clone())
                .chain(words)
                .collect::<Vec<_>>()
        };
        let swept = self.swept.iter().cloned();
        folders.flat_map(inside).chain(swept).collect()
    }

    fn read(&mut self, text: &str) -> Option<()> {
        if looks::only_looks(text) {
            return Some(());
        }
        let runs = Runs::of(text);
        self.is_unclear |= runs.is_unclear;
        self.leads_up |= text.contains("..");
        self.directories.read(text, &runs);
        for word in runs.redirected() {
            self.write_surely(word);
        }
        self.is_lax |= lax::changes_patterns(text, &runs);
        // Programs write to files that variables name: `GIT_TRACE=x git status`.
        for word in runs.assigned() {
            match word.text() {
                Some(text) => self.possible.push(text.to_owned()),
                None => self.named.push(word.clone()),
            }
        }
        for run in &runs.programs {
            self.program(run);
            self.composed(run, runs.assigned())?;
        }
        // Of programs that are known, the words that are not written do not count.
        let is_known = |run: &ProgramRun| name_of(run).is_some_and(|name| is_known(name, run));
        let unknown = runs.programs.iter().filter(|run| !is_known(run));
        let unknown: Vec<&[Word]> = unknown.map(|run| run.words.as_slice()).collect();
        self.is_relative |= unknown.iter().any(|words| names_relative(words));
        let unknown = unknown.into_iter();
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
        if matches!(name, "cd" | "pushd") {
            return;
        }
        if run.certainty == Certainty::Possible || looks::is_looking(name, arguments) {
            return;
        }
        for word in outputs(arguments) {
            self.write(&word);
        }
        if OUTPUT_PROGRAMS.contains(&name) {
            let made = arguments.iter().filter(|word| word.is_computed());
            self.computed.extend(made.flat_map(values));
        }
        let operands: Vec<&Word> = operands(arguments);
        if WRITERS.contains(&name) || name == "mv" {
            for word in &operands {
                self.write_surely(word);
            }
        }
        if COPIERS.contains(&name) || name == "mv" {
            for word in copied_to(arguments, &operands) {
                self.write_surely(&word);
                let target = word.text().unwrap_or_default();
                let names = swept::names_in_target(target, &operands);
                self.certain.extend(names);
            }
        }
        if matches!(name, "ln" | "link") {
            self.link(&operands);
        }
        let is_own = name == "git" && written_by_git::writes_only_its_own(arguments);
        if !is_own && !is_known(name, run) && !COPIERS.contains(&name) {
            let gaps = arguments.iter().filter(|word| word.is_computed());
            self.named.extend(gaps.flat_map(values));
        }
        self.computed.extend(composed::words(name, arguments));
        self.swept
            .extend(swept::folders(name, arguments, &operands));
        if REMOVERS.contains(&name) {
            // The last word of `mv` is where the others go.
            let kept = usize::from(name == "mv" && operands.len() > 1);
            let removed = operands.len().saturating_sub(kept);
            let removed = operands.iter().take(removed);
            let removed = removed.filter_map(|word| word.text());
            self.removed.extend(removed.map(str::to_owned));
        }
        self.is_unclear |= matches!(name, "awk" | "gawk" | "mawk" | "nawk")
            && script_text::awk_names_files(arguments);
        match name {
            "dd" => {
                let of = arguments.iter().filter_map(|it| it.without_prefix("of="));
                of.for_each(|word| self.write_surely(&word));
            }
            "sed" | "perl" if is_in_place(arguments) => {
                let files = operands.iter().skip(1);
                files.for_each(|word| self.write_surely(word));
            }
            "git" => self.git(arguments),
            _ => {}
        }
    }

    /// Adds names that a program makes of its words, and of endings that variables hold.
    fn composed(&mut self, run: &ProgramRun, assigned: &[Word]) -> Option<()> {
        let (Some(name), Some((_, arguments))) = (name_of(run), run.words.split_first()) else {
            return Some(());
        };
        let endings = assigned.iter().filter_map(Word::text);
        let endings = endings.map(|text| Word::literal(&format!("--suffix={text}")));
        let words: Vec<Word> = arguments.iter().cloned().chain(endings).collect();
        self.possible.extend(composed::names(name, &words)?);
        Some(())
    }

    fn write(&mut self, word: &Word) {
        self.is_relative |= !word.prefix().starts_with('/');
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

    /// Adds what a command of git writes to.
    fn git(&mut self, arguments: &[Word]) {
        let Some((command, rest)) = written_by_git::subcommand(arguments) else {
            return;
        };
        if !GIT_WRITERS.contains(&command) || written_by_git::writes_only_its_own(arguments) {
            return;
        }
        let operands = operands(rest);
        for word in &operands {
            self.write_surely(word);
        }
        let kept = match command {
            "mv" => 1,
            "rm" => 0,
            _ => operands.len(),
        };
        let removed = operands.len().saturating_sub(kept);
        let removed = operands.iter().take(removed);
        let removed = removed.filter_map(|word| word.text());
        self.removed.extend(removed.map(str::to_owned));
    }

    /// Adds what links lead to. A link gives a file another name, by which it can be read and
    /// written.
    fn link(&mut self, operands: &[&Word]) {
        let (sources, target) = match operands {
            [only] => (std::slice::from_ref(only), ""),
            [sources @ .., target] => (sources, target.text().unwrap_or_default()),
            [] => return,
        };
        let folder = target.rsplit_once('/').map_or("", |(folder, _)| folder);
        for text in sources.iter().filter_map(|word| word.text()) {
            // A relative link is read from where it stands: in the target, or beside it.
            for folder in ["", folder, target] {
                let leads = below(folder, text);
                self.certain.push(leads.clone());
                self.swept.push(leads);
            }
        }
    }

    /// Adds a word that is certainly written to.
    fn write_surely(&mut self, word: &Word) {
        self.writes |= !word.text().is_some_and(|text| NOWHERE.contains(&text));
        self.write(word);
    }
}

/// Whether a word of a command may be a relative path.
fn names_relative(words: &[Word]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    let name = program.text().map_or("", base_name);
    if matches!(name, "cd" | "pushd" | "popd") || looks::is_looking(name, arguments) {
        return false;
    }
    let is_own = name == "git" && written_by_git::writes_only_its_own(arguments);
    let is_relative = |word: &Word| {
        let text = word.prefix();
        !text.starts_with('/') && (!text.starts_with('-') || text.contains('='))
    };
    !is_own && arguments.iter().any(is_relative)
}

fn name_of(run: &ProgramRun) -> Option<&str> {
    run.words.first()?.text().map(base_name)
}

fn is_known(name: &str, run: &ProgramRun) -> bool {
    let certain = run.certainty != Certainty::Possible;
    let copies = COPIERS.contains(&name) && !run.words.iter().any(Word::is_computed);
    certain
        && (SEARCHERS.contains(&name)
            || WRITERS.contains(&name)
            || copies
            || matches!(name, "mv" | "cd" | "pushd" | "dd"))
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

/// Returns what a word may name: itself, the value of an option in it, or of an assignment.
fn values(word: &Word) -> Vec<Word> {
    let prefix = word.prefix();
    let mut starts = vec![""];
    if let Some(end) = prefix.find('=') {
        starts.extend(prefix.get(..=end));
    } else if prefix.starts_with('-') && !prefix.starts_with("--") {
        starts.extend((2..=prefix.len()).filter_map(|end| prefix.get(..end)));
    }
    let values = starts.into_iter().filter_map(|start| match start {
        "" => Some(word.clone()),
        start => word.without_prefix(start),
    });
    values.collect()
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
