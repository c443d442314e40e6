//! What a line may read that does not stand in it: names that a pattern matches, words that are known
//! only when it runs, and folders that a program goes through.
//!
//! Only programs that show or copy the files that they are given count. What a script or any other
//! program opens by itself is its own matter. The daemon compares the result with the places that rules
//! name, as they are on disk.

mod walks;

use self::walks::{is_listing, walks};
use super::reads::{pattern_of, without_others};
use crate::policy::shell::compiler::is_compiler;
use crate::policy::shell::directories::Directories;
use crate::policy::shell::lax;
use crate::policy::shell::runs::{ProgramRun, Runs};
use crate::policy::shell::word::{Word, base_name};

/// How many things are collected. Of a line with more, it is not known what it reaches.
const MOST_FOUND: usize = 500;

/// Programs that show, copy or send the files that they name.
#[rustfmt::skip]
const READERS: &[&str] = &[
    "cat", "tac", "nl", "head", "tail", "less", "more", "most", "bat", "batcat", "view", "wc", "sort", "uniq", "cut", "od", "xxd", "hexdump",
    "hd", "strings", "base64", "base32", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "sum",
    "diff", "colordiff", "cmp", "comm", "paste", "join", "fold", "fmt", "rev", "pr", "column", "expand", "unexpand", "split", "csplit", "iconv",
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "sed", "gsed", "awk", "gawk", "mawk", "nawk", "jq", "yq", "xmllint",
    "cp", "gcp", "mv", "gmv", "ln", "install", "rsync", "scp", "sftp", "tar", "gtar", "bsdtar", "zip", "7z", "7za", "cpio", "pax", "gzip", "bzip2", "xz",
    "zstd", "zcat", "bzcat", "xzcat", "zstdcat", "gunzip", "dd", "curl", "wget", "openssl", "gpg", "vi", "vim", "nvim", "nano", "emacs", "ed", "ex",
    "source", ".", "mapfile", "readarray", "nc", "ncat", "socat", "pandoc", "enscript", "lp", "mail",
];

/// Programs that print names of files, or words that are none.
#[rustfmt::skip]
const NAMING: &[&str] = &[
    "find", "gfind", "fd", "fdfind", "ls", "git", "basename", "dirname", "realpath", "readlink", "pwd", "date", "nproc", "whoami", "id", "uname",
    "hostname", "seq", "which", "command", "type", "true", "false", "test", "[", "xargs", "mktemp", "arch",
];

/// Programs that only repeat their words.
const ECHOES: &[&str] = &["echo", "printf"];

/// Programs that pass on what they are fed, if they name no file.
const FILTERS: &[&str] = &[
    "sort", "uniq", "head", "tail", "grep", "egrep", "fgrep", "rg", "sed", "awk", "tr", "cut",
    "wc", "tac", "rev", "tee",
];

/// What a line may read that does not stand in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Patterns for names, in which every gap is a `*`.
    pub patterns: Vec<String>,
    pub computed: Vec<ComputedPath>,
    pub walks: Vec<Walk>,
    /// The folders that the line may be in, relative to where it begins.
    pub folders: Vec<String>,
    /// Whether a pattern may also match names that begin with a dot.
    pub matches_hidden: bool,
    /// Whether the line has `..` in it, so that a gap may lead up.
    leads_up: bool,
}

/// A path that is known only when the line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedPath {
    /// What it begins and ends with, as far as that is known.
    pub start: String,
    pub end: String,
}

/// A folder that a program goes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    pub root: String,
    pub shows: Shows,
    /// Whether it goes into the folders below.
    pub is_deep: bool,
    /// Whether it leaves out names that begin with a dot.
    pub skips_hidden: bool,
    /// Whether it sees only files that git keeps.
    pub is_tracked: bool,
    /// Patterns for the only names that it reads; empty for all.
    pub only: Vec<String>,
    pub without: Vec<LeftOut>,
}

/// What a walk leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOut {
    /// Files whose names fit the pattern.
    File(String),
    /// Folders whose names fit the pattern, with all below.
    Folder(String),
    /// Files and folders whose names fit the pattern.
    Any(String),
    /// A path below the root, with all below.
    Path(String),
}

impl LeftOut {
    fn pattern(&self) -> &str {
        match self {
            Self::File(pattern) | Self::Folder(pattern) | Self::Any(pattern) => pattern,
            Self::Path(path) => path,
        }
    }
}

/// What a program shows of the files in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    Names,
    Content,
}

/// Returns what a line may read that does not stand in it, or `None` if that is too much to say.
pub fn reach(text: &str) -> Option<Reach> {
    if text.len() > super::MAX_TEXT {
        return None;
    }
    let text = text.replace("{enter}", "\n");
    let runs = Runs::of(&text);
    let mut directories = Directories::default();
    directories.read(&text, &runs);
    let mut found = Reach {
        folders: directories.folders,
        matches_hidden: ["dotglob", "GLOBIGNORE", "extglob"]
            .iter()
            .any(|option| text.contains(option)),
        ..Reach::default()
    };
    found.leads_up = text.contains("..");
    let mut fed = false;
    for run in &runs.programs {
        fed |= found.run(run);
    }
    for word in runs.opened() {
        fed |= found.word(word);
    }
    // A program may open what a variable names.
    let assigned = runs.assigned().iter();
    for word in assigned.filter(|word| word.expands() && has_known_end(word)) {
        found.compute(word);
    }
    if lax::changes_patterns(&text, &runs) && !found.patterns.is_empty() {
        found.compute_anything();
    }
    if fed {
        // Text that stands in the line may be a list of names.
        let has_list = text.contains("<<") || !runs.opened().is_empty();
        found.feed(&runs, has_list);
    }
    let count = found.patterns.len() + found.computed.len() + found.walks.len();
    (count < MOST_FOUND).then_some(found)
}

impl Reach {
    /// Adds what a command may read. Returns whether a word of it is what another command prints.
    fn run(&mut self, run: &ProgramRun) -> bool {
        let Some((program, arguments)) = run.words.split_first() else {
            return false;
        };
        let name = program.text().map_or("", base_name);
        self.walks.extend(walks(name, arguments));
        if reads_names_from_file(run) {
            self.compute_anything();
        }
        let preprocesses = is_compiler(name) && arguments.iter().any(shows_source);
        if name == "curl" && arguments.iter().any(is_spelled_address) {
            self.compute_anything();
        }
        if !READERS.contains(&name) && !preprocesses {
            // Whatever it is, it is told the names that the shell finds: `./show.sh s*`.
            if name == "git" {
                return self.git(arguments);
            }
            if !NAMING.contains(&name) && !ECHOES.contains(&name) {
                self.told(arguments);
            }
            return false;
        }
        let arguments = without_others(name, arguments);
        let pattern = pattern_of(name, &arguments);
        let is_pattern = |word: &Word| pattern.is_some_and(|it| std::ptr::eq(it, word));
        let mut fed = false;
        for word in arguments.iter().filter(|word| !is_pattern(word)) {
            fed |= self.word(word);
        }
        fed
    }

    /// Adds a word that names a file. Returns whether it is what another command prints.
    fn word(&mut self, word: &Word) -> bool {
        // The output of a command in its place is no name: `<(sort x)`.
        let is_pattern = word.matches() && !word.expands();
        if !word.is_computed() || (is_pattern && !word.may_be_several()) {
            return false;
        }
        if is_only_matched(word) {
            self.patterns.push(pattern(word));
            return false;
        }
        let has_text = word.texts().any(|text| !text.is_empty());
        if word.names_variables() || word.is_braced() || (word.prints() && has_text) {
            self.compute(word);
        }
        // What a command prints may become several words.
        word.prints() || !(word.names_variables() || word.is_braced())
    }

    /// Adds a path with gaps.
    fn compute(&mut self, word: &Word) {
        let start = word.prefix();
        // A gap may lead up, or begin another word.
        let is_open = word.prints() && word.may_be_several();
        let leads_up = self.leads_up && !start.contains("..");
        // `--file=$x`, `@$x`, `file://$x`
        let start = start.rsplit(['=', '@']).next().unwrap_or_default();
        let is_path = !start.starts_with('-') && !start.contains("://") && !is_open && !leads_up;
        let end = word.known_end();
        // Links may be among the folders of the end.
        let end = match end.rfind('/') {
            Some(at) if !matches!(end.get(at..), Some("/" | "/.")) => end.get(at..).unwrap_or(end),
            Some(_) => "",
            None => end,
        };
        self.computed.push(ComputedPath {
            start: if is_path { start } else { "" }.to_owned(),
            end: end.to_owned(),
        });
    }

    /// Adds the words of a program that is told the names that the shell finds: `./show.sh s*`. A word
    /// with gaps counts if its end is known, because it may be no path.
    fn told(&mut self, arguments: &[Word]) {
        for word in arguments {
            if is_only_matched(word) {
                self.patterns.push(pattern(word));
            } else if word.expands() && has_known_end(word) {
                self.compute(word);
            }
        }
    }

    /// Adds the words of git, whose options may name files. Returns whether a word is what another
    /// command prints.
    fn git(&mut self, arguments: &[Word]) -> bool {
        self.told(arguments);
        let mut fed = false;
        let mut is_value = false;
        for word in arguments {
            let text = word.prefix();
            let names_file = |text: &str| {
                GIT_FILES
                    .iter()
                    .any(|own| text == *own || (own.starts_with("--") && text.starts_with(own)))
            };
            if word.expands() && (is_value || names_file(text)) {
                fed |= self.word(word);
            }
            is_value = names_file(text) && word.text().is_some();
        }
        fed
    }

    /// Adds what commands print for others to read: names in the folders that they go through, or
    /// anything.
    fn feed(&mut self, runs: &Runs, has_list: bool) {
        let is_known = |run: &ProgramRun| {
            let Some((program, arguments)) = run.words.split_first() else {
                return true;
            };
            let name = program.text().map_or("", base_name);
            let names_nothing = || {
                let pattern = pattern_of(name, arguments);
                let mut words = arguments.iter();
                words.all(|word| {
                    word.prefix().starts_with('-')
                        || word.expands()
                        || pattern.is_some_and(|it| std::ptr::eq(it, word))
                })
            };
            NAMING.contains(&name)
                || is_listing(name, arguments)
                || (FILTERS.contains(&name) && names_nothing())
                || arguments.iter().any(Word::expands)
        };
        if !has_list && !runs.anything && runs.programs.iter().all(is_known) {
            for walk in &mut self.walks {
                walk.shows = Shows::Content;
            }
        } else {
            self.compute_anything();
        }
    }

    /// Adds a path of which nothing is known.
    fn compute_anything(&mut self) {
        let anything = ComputedPath {
            start: String::new(),
            end: String::new(),
        };
        if !self.computed.contains(&anything) {
            self.computed.push(anything);
        }
    }
}

/// Options of git whose value is a file that it reads, or settings that name one.
const GIT_FILES: &[&str] = &[
    "-F",
    "-O",
    "-S",
    "-X",
    "-c",
    "-f",
    "-t",
    "--add-file",
    "--add-virtual-file",
    "--exclude-from",
    "--file",
    "--template",
];

/// Whether it is known what a word with gaps ends with, and this may be the name of a file.
fn has_known_end(word: &Word) -> bool {
    let end = word.known_end();
    !end.is_empty() && !end.ends_with('/') && !end.contains(char::is_whitespace)
}

/// Programs that read names of files from a file, and the options that say so.
const LISTS: &[(&[&str], &[&str])] = &[
    (&["xargs", "gxargs"], &["-a", "--arg-file"]),
    (
        &["wc", "gwc", "sort", "gsort", "du", "gdu"],
        &["--files0-from"],
    ),
    (&["file"], &["-f", "--files-from"]),
    (
        &["git"],
        &["--pathspec-from-file", "--stdin-paths", "--stdin"],
    ),
    (&["cat", "head", "tail", "bat"], &["--files-from"]),
];

/// Whether a program reads the names of files from a file.
fn reads_names_from_file(run: &ProgramRun) -> bool {
    let Some((program, arguments)) = run.words.split_first() else {
        return false;
    };
    let name = program.text().map_or("", base_name);
    let lists = LISTS
        .iter()
        .filter(|(programs, _)| programs.contains(&name));
    let options: Vec<&str> = lists
        .flat_map(|(_, options)| options.iter().copied())
        .collect();
    arguments.iter().any(|word| {
        let text = word.prefix().split('=').next().unwrap_or_default();
        options.iter().any(|option| {
            if option.starts_with("--") {
                // Long options may be cut short.
                text.len() > 3 && option.starts_with(text)
            } else {
                text.starts_with(option)
            }
        })
    })
}

/// Whether a word of curl names a file in the spelling of an address, with escapes, or with braces that
/// curl itself reads: `file:///a%62`, `{a,b}.txt`.
fn is_spelled_address(word: &Word) -> bool {
    let mut texts = word.texts();
    let is_file = word
        .texts()
        .any(|text| text.to_ascii_lowercase().contains("file:"));
    let is_list = |text: &str| {
        text.split_once('{')
            .is_some_and(|(_, inside)| inside.contains(',') && !inside.contains(['"', ':', ' ']))
            || text.split_once('[').is_some_and(|(_, inside)| {
                inside.contains('-') && !inside.contains(['"', ':', ' '])
            })
    };
    let is_remote = word.prefix().starts_with("http");
    texts.any(|text| (is_file && text.contains(['%', '{', '['])) || (!is_remote && is_list(text)))
}

/// Whether an option of a compiler has it print its source, and all that it includes.
fn shows_source(word: &Word) -> bool {
    matches!(word.prefix(), "-E" | "-M" | "-MM" | "-S") || word.prefix().starts_with("-include")
}

/// Whether the shell puts names of files in the place of a word, and nothing else.
fn is_only_matched(word: &Word) -> bool {
    word.is_computed() && !word.expands() && (!word.matches() || word.may_be_several())
}

/// Returns a word with a `*` for each gap.
pub(crate) fn pattern(word: &Word) -> String {
    let start = if word.prefix().is_empty() { "*" } else { "" };
    let end = if word.ending().is_some() { "" } else { "*" };
    let mut pieces = word.texts();
    let first = if start.is_empty() {
        pieces.next()
    } else {
        None
    };
    let pieces = first.into_iter().chain(pieces.map(after_bracket));
    format!("{start}{}{end}", pieces.collect::<Vec<_>>().join("*"))
}

/// Returns the text after `[a-z]`, of which a gap takes only the first bracket.
fn after_bracket(text: &str) -> &str {
    text.rsplit(']').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
