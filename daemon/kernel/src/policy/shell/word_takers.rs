//! Programs that take a word as data, wherever it comes from.
//!
//! A program that is not listed here may be anything: a wrapper that runs its words, a shell, a client
//! that sends them elsewhere. Scripts of the author, named by a path in the folder, are handed the word
//! as an argument; what they do with it is theirs.

use super::evaluated::SCRIPTED;
use super::runs::{SHELLS, code_options, is_for_running};
use super::script_text::{awk_runs, awk_writes, sed_runs};
use super::word::{Word, base_name};

/// Programs that run nothing and write to no other file than the ones they are given, with any option.
#[rustfmt::skip]
const PLAIN: &[&str] = &[
    ":", "base32", "base64", "basename", "cat", "cd", "cmp", "column", "comm", "cut", "date", "df", "diff", "dirname",
    "du", "echo", "egrep", "expand", "false", "fgrep", "fmt", "fold", "grep", "head", "hexdump", "id", "join", "ls",
    "md5sum", "nl", "od", "paste", "printf", "pwd", "readlink", "realpath", "rev", "seq", "sha1sum", "sha256sum",
    "sha512sum", "sleep", "stat", "strings", "tac", "tail", "tr", "true", "type", "uname", "wc", "which", "whoami",
];

/// Programs that write the files that they are given.
const WRITERS: &[&str] = &[
    "chmod", "cp", "install", "ln", "mkdir", "mv", "rm", "rmdir", "tee", "touch", "uniq", "xxd",
];

/// Programs with options that run something or write a file, and these options. A long one counts with
/// each of its beginnings, a short one with each letter before its value.
const WITH_OPTIONS: &[(&str, &[&str])] = &[
    ("ag", &["--pager"]),
    (
        "cargo",
        &["--config", "-Z", "--manifest-path", "-C", "--open"],
    ),
    (
        "curl",
        &[
            "--output",
            "--config",
            "--remote-name",
            "--dump-header",
            "--trace",
            "--cookie-jar",
            "--upload-file",
            "-o",
            "-K",
            "-O",
            "-D",
            "-c",
            "-T",
            "-J",
        ],
    ),
    ("fd", &["--exec", "--exec-batch", "-x", "-X"]),
    ("file", &["--compile", "-C"]),
    (
        "find",
        &[
            "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls",
            "-delete",
        ],
    ),
    (
        "gh",
        &[
            "--web", "--editor", "-w", "-e", "--output", "-O", "-D", "--dir",
        ],
    ),
    ("iconv", &["--output", "-o"]),
    (
        "git",
        &[
            "--output",
            "--open-files-in-pager",
            "--ext-diff",
            "--textconv",
            "--exec",
            "--upload-pack",
            "--config-env",
            "--paginate",
            "--edit",
            "-O",
            "-o",
        ],
    ),
    ("rg", &["--pre", "--hostname-bin", "--search-zip", "-z"]),
    (
        "sort",
        &[
            "--compress-program",
            "--output",
            "-o",
            "-T",
            "--temporary-directory",
        ],
    ),
    ("tree", &["-o"]),
];

/// Subcommands of git that only look, or that change the repository by the words that they are given.
#[rustfmt::skip]
const OF_GIT: &[&str] = &[
    "add", "blame", "branch", "cat-file", "check-ignore", "checkout", "cherry", "commit", "describe", "diff",
    "diff-tree", "for-each-ref", "grep", "log", "ls-files", "ls-tree", "merge-base", "mv", "name-rev", "range-diff",
    "reflog", "restore", "rev-list", "rev-parse", "rm", "shortlog", "show", "show-ref", "stash", "status", "switch",
    "tag",
];

const OF_GH: &[&str] = &[
    "api", "issue", "label", "pr", "release", "run", "search", "status", "workflow",
];

const OF_CARGO: &[&str] = &["bench", "build", "check", "clippy", "doc", "test", "tree"];

/// Programs that take plain words as names of targets, packages and tests, and may evaluate others.
const OF_NAMES: &[&str] = &[
    "gmake", "gradle", "just", "make", "mvn", "npm", "pnpm", "pytest", "rake", "tox", "yarn",
];

/// Programs that run another one with the rest of their words, if their own words are assignments only.
const WRAPPERS: &[&str] = &["command", "env", "nice", "nohup", "time"];

/// Folders of programs of the system.
const SYSTEM: &[&str] = &[
    "/dev/", "/proc/", "/bin/", "/sbin/", "/usr/", "/opt/", "/snap/", "/nix/",
];

/// What may be put into a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed {
    /// Words of letters, digits and the signs of names and paths.
    Plain,
    Anything,
}

/// What a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program<'w> {
    /// A program that takes words as data, by its name.
    Taker(&'w str),
    /// A script of a folder, or a known program text in another language.
    OwnScript,
}

/// Returns the place of the program among the words, behind wrappers.
pub(super) fn program_at(words: &[Word]) -> Option<usize> {
    let mut at = 0;
    loop {
        let name = base_name(words.get(at)?.text()?);
        if !WRAPPERS.contains(&name) {
            return Some(at);
        }
        at += 1;
        let is_assigned = |word: &Word| {
            let text = word.text().unwrap_or_default();
            text.split_once('=')
                .is_some_and(|(name, _)| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        };
        while name == "env" && words.get(at).is_some_and(is_assigned) {
            at += 1;
        }
    }
}

/// Returns what a command is, if it is known to take words as data.
pub(super) fn program_of(words: &[Word], typed: Typed) -> Option<Program<'_>> {
    let at = program_at(words)?;
    let called = words.get(at)?.text()?;
    let name = base_name(called);
    let arguments = words.get(at + 1..)?;
    let is_of_system = |path: &str| SYSTEM.iter().any(|folder| path.starts_with(folder));
    if SHELLS.contains(&name) {
        // Only a file that it is to run. Everything else is a program text, or input.
        let file = arguments.first()?.text()?;
        let is_file =
            !file.is_empty() && !file.starts_with(['-', '+']) && !file.starts_with("/dev");
        return is_file.then_some(Program::OwnScript);
    }
    if code_options(name).is_some() {
        return is_plain_program(arguments).then_some(Program::OwnScript);
    }
    let is_taker = match name {
        "awk" | "gawk" | "mawk" | "nawk" => {
            !awk_runs(arguments) && !awk_writes(arguments) && has_own_text(arguments)
        }
        "sed" | "gsed" => !sed_runs(arguments) && has_own_text(arguments),
        "jq" | "gojq" | "jaq" => has_own_text(arguments),
        "git" => subcommand(arguments, OF_GIT).is_some(),
        "gh" => subcommand(arguments, OF_GH).is_some(),
        "cargo" => subcommand(arguments, OF_CARGO).is_some(),
        "find" => !arguments.iter().any(|word| {
            // What is computed might be an action.
            let text = word.text();
            text.is_none() && word.prefix().is_empty()
                || text.is_some_and(|text| is_running_option(name, text))
        }),
        "test" | "[" | "[[" => true,
        _ if typed == Typed::Plain && OF_NAMES.contains(&name) => !runs_programs(arguments),
        _ => PLAIN.contains(&name) || WRITERS.contains(&name) || has_running_options(name),
    };
    if is_taker {
        return Some(Program::Taker(name));
    }
    let is_script = called.contains('/')
        && !is_of_system(called)
        && !SCRIPTED.contains(&name)
        && !is_for_running(name);
    is_script.then_some(Program::OwnScript)
}

/// Whether a word among the arguments makes a program of [`OF_NAMES`] run a program or read a script.
fn runs_programs(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| {
        word.text().is_none_or(|text| {
            matches!(text, "dlx" | "exec" | "x") || text.starts_with('-') && text != "--"
        })
    })
}

/// Whether a program takes any word as data that may stand among its arguments, options included.
pub(super) fn takes_any_word(name: &str) -> bool {
    PLAIN.contains(&name)
}

pub(super) fn writes_files(name: &str) -> bool {
    WRITERS.contains(&name) || matches!(name, "curl" | "sort" | "sed" | "gsed")
}

pub(super) fn has_running_options(name: &str) -> bool {
    WITH_OPTIONS.iter().any(|(own, _)| *own == name)
}

/// Whether a word is an option with which a program runs something or writes a file.
pub(super) fn is_running_option(name: &str, word: &str) -> bool {
    let listed = WITH_OPTIONS.iter().find(|(own, _)| *own == name);
    let Some((_, options)) = listed.filter(|_| word.starts_with('-')) else {
        return false;
    };
    let own = word.split_once('=').map_or(word, |(own, _)| own);
    let is_long = |option: &str| option.starts_with("--") || name == "find";
    options.iter().any(|option| match option.strip_prefix('-') {
        Some(letter) if !is_long(option) => {
            // Of `-5` and `-nOname`, all letters may be options.
            !word.starts_with("--") && word.contains(letter)
        }
        _ => own.len() > 2 && option.starts_with(own) || own.starts_with(option),
    })
}

/// Whether the word at a place among the arguments of a program is data for it.
pub(super) fn takes_word(name: &str, arguments: &[Word], at: usize) -> bool {
    let own = arguments.get(at).map_or("", Word::prefix);
    let before = at.checked_sub(1).and_then(|before| arguments.get(before));
    let before = before.and_then(Word::text).unwrap_or_default();
    if is_running_option(name, own) || is_running_option(name, before) {
        return false;
    }
    let first = match name {
        "git" => subcommand(arguments, OF_GIT),
        "gh" => subcommand(arguments, OF_GH),
        "cargo" => subcommand(arguments, OF_CARGO),
        // The file that is run, or the option before the program text.
        _ if SHELLS.contains(&name) || code_options(name).is_some() => Some(0),
        _ => return true,
    };
    first.is_some_and(|first| at > first)
}

/// Returns the place of a subcommand, if it is one of these.
fn subcommand(arguments: &[Word], known: &[&str]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let text = word.text()?;
        match text {
            "-C" => at += 2,
            "--no-pager" | "-P" | "--no-optional-locks" | "-q" => at += 1,
            _ => return known.contains(&text).then_some(at),
        }
    }
    None
}

/// Whether the program text of a call stands in the line and not in a file.
fn has_own_text(arguments: &[Word]) -> bool {
    let begins = |word: &Word| {
        let text = word.prefix();
        text.starts_with("-f") || text.starts_with("--f") || text.starts_with("-E") && text != "-E"
    };
    !arguments.iter().any(begins)
}

/// Whether the first argument of an interpreter is a file, or `-c` with a program text that starts no
/// other program and evaluates nothing.
fn is_plain_program(arguments: &[Word]) -> bool {
    let Some(first) = arguments.first().and_then(Word::text) else {
        return false;
    };
    if !first.starts_with('-') {
        return !first.is_empty() && !first.starts_with("/dev");
    }
    let code = arguments.get(1).and_then(Word::text);
    matches!(first, "-c" | "-e") && code.is_some_and(|code| !may_run(code))
}

/// Words of languages that start programs, evaluate texts or write files.
const RUNNING: &[&str] = &[
    "system",
    "exec",
    "popen",
    "spawn",
    "subprocess",
    "eval",
    "compile",
    "Function",
    "child_process",
    "process",
    "import_module",
    "__",
    "getattr",
    "pty",
    "ctypes",
    "open",
    "`",
    "%x",
    "qx",
    "fork",
    "require",
    "write",
    "pickle",
    "runpy",
    "shutil",
    "pathlib",
    "Path",
    "send",
    "instance_",
    "Kernel",
    "IO",
    "File",
    "/e",
    "do ",
    "|",
];

fn may_run(code: &str) -> bool {
    RUNNING.iter().any(|word| code.contains(word))
}
