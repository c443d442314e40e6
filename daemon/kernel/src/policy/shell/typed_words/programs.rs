//! Programs by what they do with their words.

use crate::policy::shell::word::Word;
use crate::policy::shell::word::base_name;

/// Builtins of bash that take plain words.
pub(super) const PLAIN_BUILTINS: &[&str] = &["echo", "false", "printf", "pwd", "true", "type"];

/// The other builtins of bash: they may evaluate what they are given.
#[rustfmt::skip]
pub(super) const BUILTINS: &[&str] = &[
    ".", ":", "alias", "bg", "bind", "break", "builtin", "caller", "compgen", "complete", "compopt", "continue",
    "declare", "dirs", "disown", "enable", "eval", "exec", "exit", "export", "fc", "fg", "getopts", "hash", "help",
    "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "pushd", "read", "readarray",
    "readonly", "return", "set", "shift", "shopt", "source", "suspend", "times", "trap", "typeset", "ulimit",
    "umask", "unalias", "unset", "wait",
];

/// Builtins that are about variables by name. A plain word is a name or a number there, and nothing else.
pub(super) const ABOUT_VARIABLES: &[&str] = &[
    "declare", "export", "let", "local", "readonly", "typeset", "unset",
];

/// Programs that take every word as data and run nothing, whatever their options are.
#[rustfmt::skip]
pub(super) const DATA: &[&str] = &[
    "awk", "b2sum", "base32", "base64", "basename", "cat", "cksum", "cmp", "column", "comm", "cut", "date", "diff",
    "dirname", "du", "echo", "egrep", "expand", "false", "fgrep", "file", "fmt", "fold", "gawk", "grep", "head",
    "hexdump", "jq", "ls", "md5sum", "mkdir", "nl", "od", "paste", "printf", "ps", "pwd", "readlink", "realpath",
    "rev", "rg", "rmdir", "sed", "seq", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "sort", "stat",
    "strings", "tac", "tail", "tee", "touch", "tr", "tree", "true", "type", "uniq", "wc", "which", "xxd",
];

/// Programs whose subcommands here take words as data.
pub(super) const DATA_SUBCOMMANDS: &[(&str, &[&str])] = &[
    (
        "gh",
        &[
            "issue", "label", "pr", "release", "repo", "run", "search", "workflow",
        ],
    ),
    ("glab", &["issue", "label", "mr", "release", "repo"]),
];

/// Those whose subcommands here take plain words as names.
pub(super) const NAMING_SUBCOMMANDS: &[(&str, &[&str])] = &[
    (
        "docker",
        &[
            "history", "images", "inspect", "logs", "port", "ps", "stats", "top",
        ],
    ),
    ("kubectl", &["describe", "explain", "get", "logs", "top"]),
];

/// Programs of which the tables know that they run nothing else, and that hand words to shells.
pub(super) const HANDING_ON: &[&str] = &[
    "ctest", "gmake", "just", "make", "ninja", "npm", "pnpm", "yarn",
];

/// Programs whose first operand is a text in a language of their own, unless an option has it.
pub(super) const SCRIPTED: &[&str] = &[
    "awk", "gawk", "mawk", "nawk", "sed", "gsed", "jq", "gojq", "jaq", "yq",
];

/// Options of these programs with one value that is data, and with two.
const WITH_DATA: &[(&str, usize)] = &[("-v", 1), ("-F", 1), ("--arg", 2), ("--argjson", 2)];

/// Programs that send what they are given to a database.
pub(super) const DATABASES: &[&str] = &["psql", "mysql", "mariadb", "sqlite3", "mongosh", "duckdb"];

pub(super) const SHELLS: &[&str] = &["bash", "dash", "ksh", "sh", "zsh"];

/// Options whose value says where a program finds what it runs.
pub(super) const LEADING: &[&str] = &[
    "-C",
    "--cwd",
    "--dir",
    "--directory",
    "--exec-path",
    "--file",
    "--git-dir",
    "--manifest-path",
    "--makefile",
    "--prefix",
    "--work-tree",
];

/// Conditions about one word and about two words that take them as they are.
const ABOUT_ONE: &[&str] = &[
    "!", "-d", "-e", "-f", "-h", "-L", "-n", "-r", "-s", "-w", "-x", "-z",
];
const ABOUT_TWO: &[&str] = &["!=", "-ef", "-nt", "-ot", "=", "=="];

pub(super) fn is_condition(name: &str) -> bool {
    matches!(name, "[" | "test" | "[[")
}

/// Whether a condition compares its words as texts, or asks about a file of this name.
pub(super) fn is_plain_condition(words: &[Word]) -> bool {
    let mut operands: Vec<&Word> = words.iter().skip(1).collect();
    if operands.last().and_then(|word| word.text()) == Some("]") {
        operands.pop();
    }
    if operands.first().and_then(|word| word.text()) == Some("!") {
        operands.remove(0);
    }
    // No word is split in `[[ … ]]`.
    let splits = words.first().and_then(Word::text) != Some("[[");
    let is_one = |word: &Word| !splits || !word.may_be_several();
    let is = |word: &Word, known: &[&str]| word.text().is_some_and(|text| known.contains(&text));
    match operands.as_slice() {
        [] | [_] => true,
        [about, word] => is(about, ABOUT_ONE) && is_one(word),
        [one, compared, other] => is(compared, ABOUT_TWO) && is_one(one) && is_one(other),
        _ => false,
    }
}

/// Returns the place of the first word that is neither an option nor its data.
pub(super) fn first_operand(words: &[Word]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let option = word.prefix();
        if !option.starts_with('-') || option == "-" {
            return Some(at);
        }
        let data = WITH_DATA.iter().find(|(known, _)| *known == option);
        at += 1 + data.map_or(0, |(_, values)| *values);
    }
    None
}

/// Whether a program is called with one of the subcommands that a list has for it.
pub(super) fn has_subcommand(list: &[(&str, &[&str])], words: &[Word]) -> bool {
    let name = words.first().and_then(Word::text).map_or("", base_name);
    let second = words.get(1).and_then(Word::text).unwrap_or_default();
    let mut listed = list.iter();
    listed.any(|(program, subcommands)| *program == name && subcommands.contains(&second))
}

/// Returns where the program begins that a line runs at last: after `nice -n 5` and the like. `None` if
/// that is not certain.
pub(super) fn after_wrappers(words: &[Word]) -> Option<usize> {
    let mut at = 0;
    loop {
        let text = |at: usize| words.get(at).and_then(Word::text);
        let name = base_name(text(at)?);
        let mut next = at + 1;
        match name {
            "command" | "nohup" => {}
            "time" => next += usize::from(text(next) == Some("-p")),
            "env" => {
                while let Some((variable, _)) = text(next)?.split_once('=') {
                    if variable.starts_with('-') || super::super::runs::is_told_by(variable) {
                        return None;
                    }
                    next += 1;
                }
            }
            "nice" => {
                if text(next) == Some("-n") {
                    text(next + 1)?.parse::<i32>().ok()?;
                    next += 2;
                }
            }
            "timeout" => {
                while matches!(
                    text(next),
                    Some("--foreground" | "--preserve-status" | "-v")
                ) {
                    next += 1;
                }
                if matches!(text(next), Some("-k" | "-s")) {
                    next += 2;
                }
                let time = text(next)?;
                time.starts_with(|c: char| c.is_ascii_digit())
                    .then_some(())?;
                next += 1;
            }
            _ => return Some(at),
        }
        if text(next)?.starts_with('-') {
            return None;
        }
        at = next;
    }
}

/// Whether a path names a script of the author: a file of the project or of the user, and no program that
/// was installed.
pub(super) fn is_own_script(path: &str) -> bool {
    let installed = ["node_modules/", ".bin/", "/bin/", "/sbin/", "venv/"];
    let is_relative = !path.starts_with('/');
    path.contains('/') && is_relative && !installed.iter().any(|part| path.contains(part))
}

/// Returns the place of the script that a shell or an interpreter runs with these words; `None` if it runs
/// a text or its input, or if that is not certain.
pub(super) fn script_file(words: &[Word]) -> Option<usize> {
    let place = 1;
    let text = words.get(place)?.text()?;
    let is_file =
        !text.starts_with('-') && !text.starts_with("/dev/") && !text.starts_with("/proc/");
    is_file.then_some(place)
}
