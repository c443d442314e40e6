//! The folders that commands go through: searches, lists, copies, archives, and what git keeps.
//!
//! Whatever is not certain makes a walk larger: an operand may be a folder, an option that is not
//! known leaves nothing out.

mod left_out;

use self::left_out::{by_find, by_globs, by_grep};
use super::{LeftOut, Shows, Walk};
use crate::policy::shell::word::Word;
use crate::policy::shell::written_by_git;

/// The folder that stands for all.
const EVERYWHERE: &str = "/";

/// Commands of git that show what is in the files that it keeps.
#[rustfmt::skip]
const GIT_SHOWS: &[&str] = &[
    "diff", "show", "grep", "archive", "blame", "annotate", "format-patch", "whatchanged", "difftool", "cat-file", "diff-tree", "diff-index",
    "diff-files", "range-diff", "bundle", "fast-export", "checkout-index",
];

/// Commands of git that put files into its history.
const GIT_KEEPS: &[&str] = &[
    "add",
    "stage",
    "commit",
    "stash",
    "update-index",
    "hash-object",
];

/// Commands of git that take files which git does not keep yet.
const GIT_TAKES: &[&str] = &["add", "stage", "stash"];

/// Options of git after which only names or counts are shown.
#[rustfmt::skip]
const GIT_NAMES: &[&str] = &[
    "--name-only", "--name-status", "--stat", "--shortstat", "--numstat", "--summary", "--quiet",
];

/// Options of `grep` whose value is the next word.
#[rustfmt::skip]
const GREP_VALUES: &[&str] = &[
    "-e", "-f", "-m", "-A", "-B", "-C", "-d", "-D", "--regexp", "--file", "--max-count", "--after-context", "--before-context", "--context",
    "--include", "--exclude", "--exclude-dir", "--exclude-from", "--label", "--binary-files", "--directories", "--devices",
];

/// Options of `rg` whose value is the next word.
#[rustfmt::skip]
const RG_VALUES: &[&str] = &[
    "-e", "-f", "-m", "-A", "-B", "-C", "-g", "-t", "-T", "-j", "-E", "-r", "-M", "--regexp", "--file", "--max-count", "--after-context",
    "--before-context", "--context", "--glob", "--iglob", "--type", "--type-not", "--threads", "--encoding", "--replace", "--max-columns",
    "--max-depth", "--sort", "--sortr", "--color", "--colors",
];

/// Whether a search prints only the names of files.
pub(super) fn is_listing(name: &str, arguments: &[Word]) -> bool {
    matches!(name, "grep" | "egrep" | "fgrep" | "rg" | "ag")
        && has(arguments, &['l', 'L'], &["--files"])
}

/// Returns the folders that a command goes through.
pub(super) fn walks(name: &str, arguments: &[Word]) -> Vec<Walk> {
    let Some((walk, roots)) = found(name, arguments) else {
        return Vec::new();
    };
    let at = |root| Walk {
        root,
        ..walk.clone()
    };
    roots.into_iter().map(at).collect()
}

fn found(name: &str, arguments: &[Word]) -> Option<(Walk, Vec<String>)> {
    let of_content = || Walk::through(Shows::Content);
    match name {
        // Which files match tells what is in them, so a list of these shows contents as well.
        "grep" | "egrep" | "fgrep" | "zgrep" | "rgrep" => {
            let is_deep = name == "rgrep"
                || has(arguments, &['r', 'R'], &["--recursive", "--dereference-r"])
                || has(arguments, &['d'], &["--directories"]);
            let (only, without) = by_grep(arguments);
            let walk = Walk {
                only,
                without,
                ..of_content()
            };
            is_deep.then(|| (walk, searched(arguments, GREP_VALUES)))
        }
        "rg" => {
            let (only, without) = by_globs(arguments);
            let lists = has_word(arguments, "--files");
            let shows = if lists { Shows::Names } else { Shows::Content };
            // A pattern that a name has to match also finds hidden names.
            let hidden = ["--hidden", "--no-ignore", "--unrestricted"];
            let shows_hidden = !only.is_empty() || has(arguments, &['u', '.'], &hidden);
            let walk = Walk {
                skips_hidden: !shows_hidden,
                only,
                without,
                ..Walk::through(shows)
            };
            let roots = if lists {
                or_here(operands(arguments, RG_VALUES))
            } else {
                searched(arguments, RG_VALUES)
            };
            Some((walk, roots))
        }
        "ag" | "ack" => Some((of_content(), and_here(operands(arguments, &[])))),
        "find" | "gfind" => Some(by_find(arguments)),
        "fd" | "fdfind" => {
            let runs = has(arguments, &['x', 'X'], &["--exec"]);
            let shows = if runs { Shows::Content } else { Shows::Names };
            Some((Walk::through(shows), and_here(operands(arguments, &[]))))
        }
        "ls" | "dir" | "tree" | "du" | "exa" | "eza" => {
            let is_whole = matches!(name, "tree" | "du");
            let walk = Walk {
                is_deep: is_whole || has(arguments, &['R', 'T'], &["--recursive", "--tree"]),
                skips_hidden: name != "du" && !has(arguments, &['a', 'A'], &["--all", "--almost"]),
                ..Walk::through(Shows::Names)
            };
            Some((walk, or_here(operands(arguments, &[]))))
        }
        "cp" | "gcp" | "scp" | "rsync" => copied(name, arguments).map(|it| (of_content(), it)),
        "diff" | "colordiff" if has(arguments, &['r'], &["--recursive"]) => {
            Some((of_content(), or_here(operands(arguments, &[]))))
        }
        "tar" | "gtar" | "bsdtar" | "zip" | "7z" | "7za" => {
            packed(name, arguments).map(|it| (of_content(), it))
        }
        // They read names from their input.
        "cpio" | "pax" => Some((of_content(), vec![EVERYWHERE.to_owned()])),
        "git" => by_git(arguments),
        _ => None,
    }
}

/// Returns the folders that a copy goes through.
fn copied(name: &str, arguments: &[Word]) -> Option<Vec<String>> {
    if name == "rsync" && has(arguments, &[], &["--files-from"]) {
        return Some(vec![EVERYWHERE.to_owned()]);
    }
    let is_deep = has(arguments, &['r', 'R', 'a'], &["--recursive", "--archive"]);
    if !is_deep {
        return None;
    }
    let mut named = operands(arguments, &[]);
    let names_target = has(arguments, &['t'], &["--target-directory"]);
    if !names_target {
        named.pop();
    }
    Some(named)
}

/// Returns the folders that an archive is made of.
fn packed(name: &str, arguments: &[Word]) -> Option<Vec<String>> {
    let first = arguments.first().map_or("", Word::prefix);
    let packs = match name {
        "zip" => true,
        "7z" | "7za" => matches!(first, "a" | "u"),
        _ => {
            let letters = first.trim_start_matches('-');
            (!first.starts_with("--")
                && letters.contains(['c', 'r', 'u'])
                && !letters.contains('x'))
                || has(
                    arguments,
                    &['c', 'r', 'u'],
                    &["--create", "--append", "--update"],
                )
        }
    };
    if !packs {
        return None;
    }
    // Names may come from a list, or begin in another folder.
    let elsewhere = match name {
        "zip" => has_word(arguments, "-@"),
        "7z" | "7za" => arguments.iter().any(|word| word.prefix().starts_with('@')),
        _ => has(arguments, &['C', 'T'], &["--directory", "--files-from"]),
    };
    if elsewhere {
        return Some(vec![EVERYWHERE.to_owned()]);
    }
    Some(operands(arguments, &[]))
}

fn by_git(arguments: &[Word]) -> Option<(Walk, Vec<String>)> {
    let (command, rest) = written_by_git::subcommand(arguments)?;
    let names_only = has(rest, &[], GIT_NAMES);
    // What a repository elsewhere keeps is not known, and whatever is added to it can be taken out there.
    let before = arguments.len().saturating_sub(rest.len() + 1);
    let before = arguments.get(..before).unwrap_or_default();
    let is_elsewhere = has(before, &[], &["--work-tree", "--git-dir"]);
    let shows = match command {
        _ if is_elsewhere && GIT_KEEPS.contains(&command) => Shows::Content,
        "ls-files" | "ls-tree" => Shows::Names,
        _ if GIT_SHOWS.contains(&command) && !names_only => Shows::Content,
        "log" | "reflog" if has(rest, &['p', 'L', 'G', 'S'], &["--patch"]) && !names_only => {
            Shows::Content
        }
        "stash" if has(rest, &['p'], &["--patch"]) => Shows::Content,
        "stash" if takes_untracked(rest) => Shows::Content,
        // What is added in spite of `.gitignore` is shown later by any command of git.
        "add" | "stage" if has(rest, &['f'], &["--force"]) => Shows::Content,
        _ => return None,
    };
    let others = [
        "--no-index",
        "--untracked",
        "--others",
        "--no-exclude-standard",
    ];
    if is_elsewhere {
        return Some((Walk::through(shows), vec![EVERYWHERE.to_owned()]));
    }
    let walk = Walk {
        is_tracked: !has(rest, &['o'], &others) && !GIT_TAKES.contains(&command),
        ..Walk::through(shows)
    };
    let end = rest.iter().position(|word| word.text() == Some("--"));
    let named = end.and_then(|end| rest.get(end + 1..)).unwrap_or_default();
    let is_plain = |word: &Word| {
        word.text()
            .is_some_and(|path| !path.contains([':', '*', '?', '[', '\\']))
    };
    // Without paths, git shows all that it keeps, wherever it was called.
    if named.is_empty() || !named.iter().all(is_plain) {
        let without = named.iter().filter_map(left_out::by_pathspec).collect();
        let only_without = named
            .iter()
            .all(|word| left_out::by_pathspec(word).is_some());
        let walk = Walk {
            without: if only_without { without } else { Vec::new() },
            ..walk
        };
        return Some((walk, vec![EVERYWHERE.to_owned()]));
    }
    let roots = named.iter().map(|word| word.prefix().to_owned()).collect();
    Some((walk, roots))
}

/// Whether `git stash` also takes files that git does not keep.
fn takes_untracked(arguments: &[Word]) -> bool {
    has(arguments, &['a', 'u'], &["--all", "--include-untracked"])
}

impl Walk {
    /// A walk through all below a folder.
    fn through(shows: Shows) -> Self {
        Self {
            root: ".".to_owned(),
            shows,
            is_deep: true,
            skips_hidden: false,
            is_tracked: false,
            only: Vec::new(),
            without: Vec::new(),
        }
    }
}

/// Whether an option is among the words: one of these letters, or a long option that begins so.
fn has(arguments: &[Word], letters: &[char], long: &[&str]) -> bool {
    arguments.iter().any(|word| {
        let text = word.prefix();
        if text.starts_with("--") {
            return text.len() > 3
                && long.iter().any(|option| {
                    let name = text.split('=').next().unwrap_or_default();
                    option.starts_with(name) || name.starts_with(option)
                });
        }
        text.starts_with('-') && text.len() > 1 && text.contains(letters)
    })
}

fn has_word(arguments: &[Word], option: &str) -> bool {
    arguments.iter().any(|word| word.text() == Some(option))
}

/// Returns the words that may be files or folders. `with_value` are options whose value is the next
/// word and no file.
fn operands(arguments: &[Word], with_value: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_value = false;
    for word in arguments {
        let is_operand = !std::mem::take(&mut is_value) && !word.prefix().starts_with('-');
        if is_operand && word.expands() {
            found.push(EVERYWHERE.to_owned());
        } else if is_operand {
            found.push(folder_of(word));
        }
        is_value = word.text().is_some_and(|text| with_value.contains(&text));
    }
    found
}

/// Returns the folder in which a word with gaps lies, or the word.
fn folder_of(word: &Word) -> String {
    match word.text() {
        Some(text) => text.to_owned(),
        None => match word.prefix().rsplit_once('/') {
            Some(("", _)) => EVERYWHERE.to_owned(),
            Some((folder, _)) => folder.to_owned(),
            None => ".".to_owned(),
        },
    }
}

/// Returns what a search goes through: its operands after the pattern.
fn searched(arguments: &[Word], with_value: &[&str]) -> Vec<String> {
    let by_option = arguments.iter().any(|word| {
        let text = word.prefix();
        let is_letters = text.starts_with('-') && !text.starts_with("--");
        is_letters && text.contains(['e', 'f'])
            || text.starts_with("--reg")
            || matches!(text.split('=').next(), Some("--file"))
    });
    let named = operands(arguments, with_value);
    match (by_option, named.len()) {
        (false, _) => or_here(named.into_iter().skip(1).collect()),
        // The letter may belong to a value: then the one operand is the pattern.
        (true, 0 | 1) => and_here(named),
        (true, _) => named,
    }
}

fn or_here(roots: Vec<String>) -> Vec<String> {
    if roots.is_empty() {
        return vec![".".to_owned()];
    }
    roots
}

fn and_here(mut roots: Vec<String>) -> Vec<String> {
    roots.push(".".to_owned());
    roots
}
