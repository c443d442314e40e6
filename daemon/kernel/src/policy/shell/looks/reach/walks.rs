//! The folders that commands go through: searches, lists, copies, archives, and what git keeps.

use super::{Shows, Walk};
use crate::policy::shell::word::Word;
use crate::policy::shell::written_by_git;

/// Commands of git that show what is in the files that it keeps.
const GIT_SHOWS: &[&str] = &[
    "diff",
    "show",
    "grep",
    "archive",
    "blame",
    "annotate",
    "format-patch",
    "whatchanged",
    "difftool",
];

/// Whether a search prints only the names of files.
pub(super) fn is_listing(name: &str, arguments: &[Word]) -> bool {
    matches!(name, "grep" | "egrep" | "fgrep" | "rg" | "ag")
        && (has(arguments, &['l', 'L'], &["--files"]))
}

/// Returns the folders that a command goes through.
pub(super) fn walks(name: &str, arguments: &[Word]) -> Vec<Walk> {
    let plain = |shows| Walk {
        root: ".".to_owned(),
        shows,
        is_deep: true,
        skips_hidden: false,
        is_tracked: false,
        only: Vec::new(),
        without: values(
            arguments,
            &[
                "--exclude",
                "--exclude-dir",
                "--ignore",
                "--ignore-dir",
                "-x",
            ],
        ),
    };
    let found = match name {
        "grep" | "egrep" | "fgrep" | "zgrep" => {
            let is_deep = has(arguments, &['r', 'R'], &["--recursive", "--dereference-r"])
                || values(arguments, &["-d", "--directories"]).contains(&"recurse".to_owned());
            let walk = Walk {
                only: values(arguments, &["--include"]),
                ..plain(shown(name, arguments))
            };
            is_deep.then_some((walk, after_pattern(name, arguments)))
        }
        "rgrep" => Some((plain(Shows::Content), after_pattern("grep", arguments))),
        "rg" | "ag" | "ack" => {
            let globs = values(arguments, &["-g", "--glob", "--iglob"]);
            let (without, only): (Vec<String>, Vec<String>) =
                globs.into_iter().partition(|glob| glob.starts_with('!'));
            let without = without
                .iter()
                .map(|glob| last_part(glob.trim_start_matches('!')));
            let walk = Walk {
                skips_hidden: !has(
                    arguments,
                    &['u', '.'],
                    &["--hidden", "--no-ignore", "--unrestricted"],
                ),
                only: only.iter().map(|glob| last_part(glob)).collect(),
                without: without.collect(),
                ..plain(shown(name, arguments))
            };
            let roots = if has(arguments, &[], &["--files"]) {
                operands(arguments)
            } else {
                after_pattern(name, arguments)
            };
            Some((walk, roots))
        }
        "find" | "gfind" | "fd" | "fdfind" => Some(found_by_find(name, arguments, &plain)),
        "ls" | "dir" | "tree" | "du" | "exa" | "eza" => {
            let is_deep = name == "tree"
                || name == "du"
                || has(arguments, &['R'], &["--recursive", "--tree"]);
            let walk = Walk {
                is_deep,
                skips_hidden: name != "du" && !has(arguments, &['a', 'A'], &["--all", "--almost"]),
                ..plain(Shows::Names)
            };
            Some((walk, operands(arguments)))
        }
        "cp" | "gcp" | "scp" | "rsync"
            if has(arguments, &['r', 'R', 'a'], &["--recursive", "--archive"]) =>
        {
            let mut sources = operands(arguments);
            sources.pop();
            Some((plain(Shows::Content), sources))
        }
        "diff" | "colordiff" if has(arguments, &['r'], &["--recursive"]) => {
            Some((plain(Shows::Content), operands(arguments)))
        }
        "tar" | "gtar" | "bsdtar" | "zip" | "7z" | "7za" if packs(name, arguments) => {
            Some((plain(Shows::Content), operands(arguments)))
        }
        "git" => by_git(arguments, &plain),
        _ => None,
    };
    let Some((walk, roots)) = found else {
        return Vec::new();
    };
    let roots = if roots.is_empty() {
        vec![".".to_owned()]
    } else {
        roots
    };
    let at = |root| Walk {
        root,
        ..walk.clone()
    };
    roots.into_iter().map(at).collect()
}

fn shown(name: &str, arguments: &[Word]) -> Shows {
    if is_listing(name, arguments) {
        Shows::Names
    } else {
        Shows::Content
    }
}

fn found_by_find(
    name: &str,
    arguments: &[Word],
    plain: &dyn Fn(Shows) -> Walk,
) -> (Walk, Vec<String>) {
    let runs = [
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-x",
        "-X",
        "--exec",
        "--exec-batch",
    ];
    let shows = if arguments.iter().any(|word| runs.contains(&word.prefix())) {
        Shows::Content
    } else {
        Shows::Names
    };
    if name.starts_with("fd") {
        let walk = Walk {
            skips_hidden: !has(arguments, &['H', 'u'], &["--hidden", "--unrestricted"]),
            ..plain(shows)
        };
        // The first operand is a pattern.
        return (walk, operands(arguments).into_iter().skip(1).collect());
    }
    let is_option = |word: &&Word| matches!(word.text(), Some("-H" | "-L" | "-P"));
    let is_start = |word: &&Word| !word.prefix().starts_with(['-', '(', '!']);
    let starts = arguments.iter().skip_while(is_option).take_while(is_start);
    let starts = starts.map(|word| word.prefix().to_owned()).collect();
    let mut walk = plain(shows);
    let negated = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| arguments.get(before));
        before.is_some_and(|word| matches!(word.text(), Some("!" | "-not")))
    };
    let is_pruned = arguments.iter().any(|word| word.text() == Some("-prune"));
    for (at, word) in arguments.iter().enumerate() {
        let Some(value) = arguments.get(at + 1).map(gaps) else {
            continue;
        };
        match word.text() {
            Some("-name" | "-iname") if negated(at) => walk.without.push(value),
            Some("-path" | "-wholename") if negated(at) || is_pruned => {
                walk.without.push(last_part(&value));
            }
            Some("-name" | "-iname") if is_pruned => walk.without.push(value),
            Some("-name" | "-iname") => walk.only.push(value),
            _ => {}
        }
    }
    (walk, starts)
}

fn by_git(arguments: &[Word], plain: &dyn Fn(Shows) -> Walk) -> Option<(Walk, Vec<String>)> {
    let (command, rest) = written_by_git::subcommand(arguments)?;
    let names_only = has(
        rest,
        &[],
        &[
            "--name-only",
            "--name-status",
            "--stat",
            "--shortstat",
            "--numstat",
            "--summary",
            "--quiet",
        ],
    );
    let shows = match command {
        "ls-files" | "ls-tree" => Shows::Names,
        "grep" if is_listing("grep", rest) => Shows::Names,
        _ if GIT_SHOWS.contains(&command) && !names_only => Shows::Content,
        "log" | "reflog" if has(rest, &['p', 'L', 'G', 'S'], &["--patch"]) && !names_only => {
            Shows::Content
        }
        "stash" if has(rest, &['p'], &["--patch"]) => Shows::Content,
        _ => return None,
    };
    let end = rest.iter().position(|word| word.text() == Some("--"));
    let named = end.and_then(|end| rest.get(end + 1..)).unwrap_or_default();
    let (without, roots): (Vec<String>, Vec<String>) = named
        .iter()
        .map(|word| word.prefix().to_owned())
        .partition(|path| {
            path.starts_with(":!") || path.starts_with(":^") || path.starts_with(":(exclude)")
        });
    let walk = Walk {
        is_tracked: true,
        without: without.iter().map(|path| last_part(path)).collect(),
        ..plain(shows)
    };
    Some((walk, roots))
}

fn packs(name: &str, arguments: &[Word]) -> bool {
    let first = arguments.first().map_or("", Word::prefix);
    match name {
        "zip" => has(arguments, &['r', 'R'], &["--recurse"]),
        "7z" | "7za" => matches!(first, "a" | "u"),
        _ => {
            let letters = first.trim_start_matches('-');
            (!first.starts_with("--")
                && letters.contains(['c', 'r', 'u'])
                && !letters.contains('x'))
                || has(arguments, &['c'], &["--create", "--append", "--update"])
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

/// Returns the values of options, in the next word or attached, by their last part.
fn values(arguments: &[Word], options: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        for option in options {
            if word.text() == Some(option) {
                found.extend(arguments.get(at + 1).map(gaps));
            } else if let Some(value) = word.without_prefix(&format!("{option}=")) {
                found.push(gaps(&value));
            }
        }
    }
    found
        .into_iter()
        .map(|value| value.trim_end_matches('/').to_owned())
        .collect()
}

/// Returns a word with a `*` for each gap.
fn gaps(word: &Word) -> String {
    if let Some(text) = word.text() {
        return text.to_owned();
    }
    let pieces: Vec<&str> = word.texts().collect();
    let start = if word.prefix().is_empty() { "*" } else { "" };
    let end = if word.ending().is_some() { "" } else { "*" };
    format!("{start}{}{end}", pieces.join("*"))
}

/// Returns the last part of a pattern that is more than stars.
fn last_part(path: &str) -> String {
    let mut parts = path.rsplit('/');
    let part = parts.find(|part| !part.is_empty() && !part.chars().all(|c| c == '*'));
    part.unwrap_or(path).to_owned()
}

/// Options of searches whose value is no file.
const WITH_VALUE: &[&str] = &[
    "-e",
    "-f",
    "-m",
    "-A",
    "-B",
    "-C",
    "-g",
    "-t",
    "-T",
    "--include",
    "--exclude",
    "--exclude-dir",
    "--glob",
    "--iglob",
    "--type",
    "-j",
    "--max-count",
    "-d",
    "-D",
    "--context",
    "-I",
    "-L",
    "--max-depth",
    "-E",
];

fn operands(arguments: &[Word]) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_value = false;
    for word in arguments {
        let text = word.prefix();
        if !std::mem::take(&mut is_value) && !text.starts_with('-') && !word.expands() {
            found.push(folder_of(word));
        }
        is_value = word.text().is_some_and(|text| WITH_VALUE.contains(&text));
    }
    found
}

/// Returns the folder in which a word with gaps lies, or the word.
fn folder_of(word: &Word) -> String {
    match word.text() {
        Some(text) => text.to_owned(),
        None => match word.prefix().rsplit_once('/') {
            Some((folder, _)) if !folder.is_empty() => folder.to_owned(),
            _ => ".".to_owned(),
        },
    }
}

/// Returns the operands of a search after its pattern.
fn after_pattern(name: &str, arguments: &[Word]) -> Vec<String> {
    let by_option = super::super::names_pattern_by_option(arguments) && name != "rg"
        || has(arguments, &['e', 'f'], &["--regexp", "--file"]) && name == "rg";
    let skipped = usize::from(!by_option);
    operands(arguments).into_iter().skip(skipped).collect()
}
