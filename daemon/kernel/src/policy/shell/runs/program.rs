//! What programs do, as far as their names tell.

use crate::policy::shell::compiler;
use crate::policy::shell::coverage;
use crate::policy::shell::reader;
use crate::policy::shell::runner;
use crate::policy::shell::table;
use crate::policy::shell::word::{Word, base_name};

pub(super) const WRAPPERS: &str = include_str!("../tables/wrappers.txt");
pub(super) const INTERPRETERS: &str = include_str!("../tables/interpreters.txt");
const QUIET: &str = include_str!("../tables/quiet.txt");

/// What a program does with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The program runs nothing from its arguments.
    Quiet,
    /// The program copies files.
    Copying,
    /// The program runs the command in its arguments.
    Wrapper,
    /// The program has its own function in `special.rs`.
    Special,
    /// The program runs something because of the options in use.
    Running,
    Unknown,
}

/// Returns the name of a program, if its word contains it.
pub(super) fn name(word: &Word) -> Option<&str> {
    if let Some(text) = word.text() {
        return Some(base_name(text));
    }
    // `$HOME/bin/tool` is called tool, but `$x`, `/bin/$x` and even `$x/tool` can be anything.
    if word.may_be_several() && word.prefix().is_empty() {
        return None;
    }
    let end = word.ending()?;
    end.contains('/')
        .then(|| base_name(end))
        .filter(|name| !name.is_empty())
}

/// What the name of a program alone tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Wrapper,
    Special,
    /// The tables list its options.
    Listed,
    Quiet,
    Copying,
    Runner,
    Unknown,
}

pub(super) fn class(name: &str) -> Class {
    if table::lines(WRAPPERS).any(|line| line.is_for(name)) {
        Class::Wrapper
    } else if is_special(name) || is_interpreter(name) {
        Class::Special
    } else if coverage::is_listed(name) {
        Class::Listed
    } else if ["cp", "mv", "ln", "link", "install", "cat", "dd"].contains(&name) {
        Class::Copying
    } else if table::contains(QUIET, name) {
        Class::Quiet
    } else if runner::is_runner(name) {
        Class::Runner
    } else {
        Class::Unknown
    }
}

/// Returns what a program does with these arguments.
pub(super) fn kind(class: Class, name: &str, arguments: &[Word]) -> Kind {
    let runs_by_options = || {
        let literal = arguments.iter().filter_map(Word::text);
        let literal: Vec<String> = literal.map(str::to_owned).collect();
        runner::runs_by_options(name, &literal)
    };
    match class {
        Class::Wrapper => Kind::Wrapper,
        Class::Special => Kind::Special,
        Class::Listed if coverage::runs_nothing(name, arguments) => Kind::Quiet,
        Class::Listed | Class::Runner => Kind::Running,
        Class::Quiet | Class::Copying | Class::Unknown if runs_by_options() => Kind::Running,
        Class::Quiet => Kind::Quiet,
        Class::Copying => Kind::Copying,
        Class::Unknown => Kind::Unknown,
    }
}

fn is_special(name: &str) -> bool {
    SHELLS.contains(&name)
        || [
            ".",
            "source",
            "eval",
            "trap",
            "alias",
            "env",
            "genv",
            "find",
            "gfind",
            "busybox",
            "toybox",
            "ssh",
            "su",
            "runuser",
            "sg",
            "script",
            "flock",
            "parallel",
            "awk",
            "gawk",
            "mawk",
            "nawk",
            "sed",
            "gsed",
            "fc",
            "hash",
            "jobs",
            "export",
            "declare",
            "typeset",
            "local",
            "readonly",
            "at",
            "batch",
            "crontab",
            "enable",
            "complete",
            "compgen",
            "bind",
            "tee",
            "mapfile",
            "readarray",
        ]
        .contains(&name)
        || CONVERSING.contains(&name)
        || DATABASE_CLIENTS.contains(&name)
}

/// Whether a variable names a file that runs first, or holds options that make a program run
/// others.
pub(super) fn is_settings(name: &str) -> bool {
    let whole = [
        "BASH_ENV",
        "ENV",
        "TAR_OPTIONS",
        "GIT_CONFIG_PARAMETERS",
        "MAKEFLAGS",
        "GNUMAKEFLAGS",
        "PERL5OPT",
        "RUBYOPT",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "LD_PRELOAD",
        "LD_AUDIT",
        "LESSOPEN",
        "ZIPOPT",
    ];
    whole.contains(&name) || name.starts_with("GIT_CONFIG_")
}

/// Whether options make a program run what a file of options or its input says.
pub(super) fn is_told_elsewhere(name: &str, arguments: &[Word]) -> bool {
    let any = |test: &dyn Fn(&Word) -> bool| arguments.iter().any(test);
    if matches!(name, "make" | "gmake") {
        let chosen = |word: &Word| {
            ["-f", "--f", "--m"]
                .iter()
                .any(|it| word.prefix().starts_with(it))
        };
        let input = |word: &Word| {
            word.prefix().ends_with("f-") || word.prefix() == "-" || word.prefix().contains("/dev/")
        };
        // `--eval` and variables hold a text of make, which can read files and run programs.
        let is_text = |word: &Word| {
            let text = word.prefix();
            text.starts_with("--ev")
                || text.starts_with("-E")
                || text.contains("$(")
                || text.contains("${")
        };
        return (any(&chosen) && any(&input)) || any(&is_text);
    }
    compiler::is_compiler(name) && any(&|word: &Word| compiler::runs(word.prefix()))
}

/// Programs that accept commands while they run and can run others, or that run every file in a
/// directory.
pub(super) const CONVERSING: &[&str] = &[
    "ed",
    "red",
    "ex",
    "vi",
    "vim",
    "nvim",
    "view",
    "vimdiff",
    "emacs",
    "nano",
    "less",
    "more",
    "most",
    "gdb",
    "lldb",
    "ftp",
    "lftp",
    "telnet",
    "gnuplot",
    "mutt",
    "mail",
    "mc",
    "ranger",
    "tmux",
    "screen",
    "byobu",
    "dtach",
    "run-parts",
    "expect",
];

/// Clients of databases. They can do the same, but usually get a single query.
pub(super) const DATABASE_CLIENTS: &[&str] = &["sqlite3", "psql", "mysql", "mariadb"];

/// Shells by their names.
pub(in crate::policy::shell) const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "yash",
    "rzsh", "rksh", "lksh", "oksh", "pdksh", "posh", "hush",
];

/// Whether a program exists to run others: a wrapper, a shell, an interpreter, or a program that
/// accepts commands while it runs.
pub(in crate::policy::shell) fn is_for_running(name: &str) -> bool {
    SHELLS.contains(&name)
        || CONVERSING.contains(&name)
        || DATABASE_CLIENTS.contains(&name)
        || table::lines(WRAPPERS).any(|line| line.is_for(name))
        || is_interpreter(name)
}

/// Returns the table line of an interpreter. Its name may have a version: `python3.12`.
pub(super) fn interpreter(name: &str) -> Option<table::Line> {
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    table::lines(INTERPRETERS).find(|line| line.is_for(name) || line.is_for(family))
}

/// Returns the options of an interpreter whose value is a program text; `None` if it is no interpreter.
pub(in crate::policy::shell) fn code_options(
    name: &str,
) -> Option<impl Iterator<Item = &'static str> + Clone> {
    let listed = interpreter(name)?.listed;
    let options = listed.split(';').next().unwrap_or_default();
    Some(options.split_ascii_whitespace())
}

fn is_interpreter(name: &str) -> bool {
    interpreter(name).is_some()
}

/// Whether a builtin evaluates the names of variables in its arguments.
pub(super) fn evaluates_names(name: &str) -> bool {
    [
        "printf",
        "test",
        "[",
        "[[",
        "read",
        "unset",
        "let",
        "declare",
        "typeset",
        "local",
        "export",
        "readonly",
        "mapfile",
        "readarray",
        "wait",
        "getopts",
    ]
    .contains(&name)
}

/// Whether a variable means something to bash or to programs.
pub(in crate::policy::shell) fn is_special_variable(name: &str) -> bool {
    is_settings(name) || is_run_by_others(name) || reader::IS_NUMBER.contains(&name)
}

/// Whether other programs run the value of a variable.
pub(super) fn is_run_by_others(variable: &str) -> bool {
    variable.starts_with("GIT_")
        || reader::IS_ONE_WORD.contains(&variable)
        || [
            "BASH_ENV",
            "ENV",
            "PROMPT_COMMAND",
            "PS0",
            "PS1",
            "PS2",
            "PS4",
            "SHELLOPTS",
            "BASHOPTS",
            "EDITOR",
            "VISUAL",
            "FCEDIT",
            "PAGER",
            "MANPAGER",
            "SYSTEMD_PAGER",
            "LESSOPEN",
            "LESSCLOSE",
            "LD_PRELOAD",
            "LD_AUDIT",
            "RUSTC_WRAPPER",
            "RUSTC",
            "MAKEFLAGS",
            "SHELL",
            "PERL5OPT",
            "PERL5DB",
            "RUBYOPT",
            "NODE_OPTIONS",
            "PYTHONSTARTUP",
            "BROWSER",
            "TAR_OPTIONS",
            "SUDO_ASKPASS",
            "SSH_ASKPASS",
            "RSYNC_RSH",
            "CARGO_BUILD_RUSTC_WRAPPER",
            "npm_config_script_shell",
            "SUDO_EDITOR",
        ]
        .contains(&variable)
}
