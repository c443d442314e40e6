//! Folders below which a command may write to names that do not stand on its line: copies of
//! folders, archives that are unpacked, and what git takes from its history.

use super::word::{Word, base_name};
use super::written_by_git as git;

/// Programs that unpack an archive or apply a patch where they are, or where an option says.
const UNPACKERS: &[&str] = &[
    "tar", "gtar", "bsdtar", "unzip", "7z", "7za", "7zr", "7zz", "unrar", "rar", "cpio", "pax",
    "jar", "unar", "patch", "ar", "dpkg-deb",
];

/// Words with which an unpacker only shows what it has.
const SHOWING: &[&str] = &[
    "-l",
    "-t",
    "-v",
    "-Z",
    "-p",
    "l",
    "t",
    "p",
    "tv",
    "--dry-run",
    "--list",
];

/// Programs that copy or move. Some do so with folders only if an option says so.
const COPYING: &[&str] = &["cp", "gcp", "rsync", "scp", "ditto", "mv", "gmv", "install"];

/// Returns the folders below which a command may write any name.
pub(super) fn folders(name: &str, arguments: &[Word], operands: &[&Word]) -> Vec<String> {
    if COPYING.contains(&name) && moves_folders(name, arguments) {
        return copied(arguments, operands);
    }
    if UNPACKERS.contains(&name) && unpacks(name, arguments) {
        return unpacked_to(arguments);
    }
    match name {
        "find" | "gfind" if has(arguments, "-delete") => starts(arguments),
        "git" => by_git(arguments),
        _ => Vec::new(),
    }
}

/// Whether a program copies or moves folders with what is in them.
fn moves_folders(name: &str, arguments: &[Word]) -> bool {
    match name {
        "mv" | "gmv" | "ditto" => true,
        "install" => false,
        _ => arguments.iter().any(|word| {
            let text = word.prefix();
            let letters = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
            word.is_computed()
                || letters.is_some_and(|letters| letters.contains(['r', 'R', 'a']))
                || (text.len() > 3
                    && ["--recursive", "--archive"]
                        .iter()
                        .any(|option| option.starts_with(text)))
        }),
    }
}

/// Returns the names that a copy of folders begins with.
fn copied(arguments: &[Word], operands: &[&Word]) -> Vec<String> {
    let mut targets: Vec<String> = values(arguments, &["-t", "--target-directory"]);
    let mut sources = operands.to_vec();
    if targets.is_empty()
        && let Some(last) = sources.pop()
    {
        targets.extend(last.text().map(str::to_owned));
    }
    let mut found = Vec::new();
    for target in targets {
        // A folder that does not exist becomes the copy itself.
        let exists = target.ends_with('/') || matches!(base_name(&target), "." | "..");
        let mut is_whole = !exists || has(arguments, "-T") || has_letter(arguments, 'T');
        for source in &sources {
            let text = source.text().unwrap_or_default();
            let name = base_name(text.trim_end_matches('/'));
            let is_inside = matches!(name, "" | "." | "..") || text.ends_with('/');
            is_whole |= is_inside;
            if !name.is_empty() {
                found.push(format!("{target}/{name}"));
            }
        }
        if is_whole {
            found.push(target);
        }
    }
    found
}

/// Returns the names that copies of files have in a folder.
pub(super) fn names_in_target(target: &str, sources: &[&Word]) -> Vec<String> {
    let texts = sources.iter().filter_map(|word| word.text());
    let names = texts.map(|text| base_name(text.trim_end_matches('/')));
    let names = names.filter(|name| !matches!(*name, "" | "." | ".."));
    names.map(|name| format!("{target}/{name}")).collect()
}

fn unpacks(name: &str, arguments: &[Word]) -> bool {
    if name.ends_with("tar") {
        let first = arguments.first();
        return arguments.iter().any(|word| {
            let text = word.prefix();
            let is_first = first.is_some_and(|first| std::ptr::eq(first, word));
            let letters = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
            let letters = letters.or((is_first && !text.starts_with('-')).then_some(text));
            word.is_computed()
                || letters.is_some_and(|letters| letters.contains('x'))
                || matches!(text, "--extract" | "--get")
        });
    }
    let is_showing = |word: &Word| word.text().is_some_and(|text| SHOWING.contains(&text));
    !arguments.iter().any(is_showing) || arguments.iter().any(Word::is_computed)
}

fn unpacked_to(arguments: &[Word]) -> Vec<String> {
    let options = ["-C", "-d", "-o", "--directory", "--one-top-level"];
    let mut found = values(arguments, &options);
    // An option may be for something else, so the folder of the line counts only without it.
    if found.is_empty() {
        found.push(".".to_owned());
    }
    found
}

/// Returns the folders that `find` begins with.
fn starts(arguments: &[Word]) -> Vec<String> {
    let is_option = |word: &&Word| matches!(word.text(), Some("-H" | "-L" | "-P"));
    let is_start = |word: &&Word| !word.prefix().starts_with(['-', '(', '!']);
    let starts = arguments.iter().skip_while(is_option).take_while(is_start);
    let mut found: Vec<String> = starts.map(|word| word.prefix().to_owned()).collect();
    if found.is_empty() {
        found.push(".".to_owned());
    }
    found
}

fn by_git(arguments: &[Word]) -> Vec<String> {
    let Some((command, rest)) = git::subcommand(arguments) else {
        return Vec::new();
    };
    if git::writes_only_its_own(arguments) && command != "reset" || is_trial(rest) {
        return Vec::new();
    }
    let named = || -> Vec<String> {
        let words = rest.iter().filter(|word| !word.prefix().starts_with('-'));
        words.map(|word| word.prefix().to_owned()).collect()
    };
    match command {
        "apply" | "am" => vec![".".to_owned()],
        "reset"
            if ["--hard", "--merge", "--keep"]
                .iter()
                .any(|it| has(rest, it)) =>
        {
            vec![".".to_owned()]
        }
        // Without a name it takes all files.
        "checkout" if has(rest, "--force") || has_letter(rest, 'f') => vec![".".to_owned()],
        "checkout" | "restore" => named(),
        "read-tree" if has_letter(rest, 'u') => vec![".".to_owned()],
        "clean" | "checkout-index" => {
            let named = named();
            if named.is_empty() {
                vec![".".to_owned()]
            } else {
                named
            }
        }
        _ => Vec::new(),
    }
}

/// Whether a command of git only says what it would do.
fn is_trial(arguments: &[Word]) -> bool {
    ["-n", "--dry-run", "--check"]
        .iter()
        .any(|option| has(arguments, option))
}

fn has(arguments: &[Word], option: &str) -> bool {
    arguments.iter().any(|word| word.text() == Some(option))
}

fn has_letter(arguments: &[Word], letter: char) -> bool {
    arguments.iter().any(|word| {
        let letters = word.prefix().strip_prefix('-');
        letters.is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
    })
}

/// Returns the values of options, in the next word or attached.
fn values(arguments: &[Word], options: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        for option in options {
            if word.text() == Some(option) {
                let next = arguments.get(at + 1);
                found.extend(next.map(|next| next.prefix().to_owned()));
            } else {
                let start = if option.starts_with("--") { "=" } else { "" };
                let attached = word.without_prefix(&format!("{option}{start}"));
                let attached = attached.map(|rest| rest.prefix().to_owned());
                found.extend(attached.filter(|rest| !rest.is_empty()));
            }
        }
    }
    found
}
