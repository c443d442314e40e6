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
const SHOWING: &[(&[&str], &[&str])] = &[
    (&["unzip"], &["-l", "-t", "-v", "-Z", "-p", "-z", "-c"]),
    (&["7z", "7za", "7zr", "7zz"], &["l", "t"]),
    (
        &["unrar", "rar"],
        &["l", "lb", "lt", "t", "v", "vb", "vt", "p"],
    ),
    (&["ar"], &["t", "tv", "p"]),
    (&["cpio", "pax", "unar"], &["-t", "--list"]),
    (&["jar"], &["t", "tf", "tvf", "-t", "--list"]),
    (&["patch"], &["--dry-run"]),
    (&["dpkg-deb"], &["-c", "-I", "--contents", "--info"]),
];

/// Options of unpackers whose value is the folder to unpack in.
const INTO: &[(&[&str], &[&str])] = &[
    (&["unzip"], &["-d"]),
    (&["7z", "7za", "7zr", "7zz"], &["-o"]),
    (
        &["tar", "gtar", "bsdtar"],
        &["-C", "--directory", "--one-top-level"],
    ),
    (&["cpio"], &["-D", "--directory"]),
    (&["patch"], &["-d", "--directory"]),
    (&["jar"], &["-C", "--dir"]),
    (&["unar"], &["-o", "--output-directory"]),
];

/// Programs that give files names which they make of a pattern.
const RENAMERS: &[&str] = &[
    "rename",
    "rename.ul",
    "prename",
    "file-rename",
    "perl-rename",
    "mmv",
    "mcp",
    "zmv",
    "vidir",
    "detox",
    "convmv",
];

/// Modules of Python that unpack an archive.
const UNPACKING_MODULES: &[&str] = &["zipfile", "tarfile", "gzip", "shutil", "zipapp"];

/// The folder that stands for all.
const EVERYWHERE: &str = "/";

/// Programs that copy or move. Some do so with folders only if an option says so.
const COPYING: &[&str] = &["cp", "gcp", "rsync", "scp", "ditto", "mv", "gmv", "install"];

/// Returns the folders below which a command may write any name.
pub(super) fn folders(name: &str, arguments: &[Word], operands: &[&Word]) -> Vec<String> {
    if COPYING.contains(&name) && moves_folders(name, arguments) {
        return copied(arguments, operands);
    }
    if UNPACKERS.contains(&name) && unpacks(name, arguments) {
        return unpacked_to(name, arguments);
    }
    if removes_packed(name, arguments) {
        let is_list = has(arguments, "-@")
            || has_letter(arguments, 'T')
            || has_long(arguments, "--files-from");
        let named = operands.iter().map(|word| word.prefix().to_owned());
        return if is_list {
            vec![EVERYWHERE.to_owned()]
        } else {
            named.collect()
        };
    }
    let goes_deep = has_letter(arguments, 'r') || has_long(arguments, "--recursive");
    match name {
        "gzip" | "gunzip" | "pigz" | "unpigz" | "compress" | "uncompress" | "zstd" | "unzstd"
            if goes_deep =>
        {
            operands
                .iter()
                .map(|word| word.prefix().to_owned())
                .collect()
        }
        "curl" if has_letter(arguments, 'J') || has_long(arguments, "--remote-header-name") => {
            vec![".".to_owned()]
        }
        "wget" | "wget2"
            if goes_deep
                || has_letter(arguments, 'i')
                || has_letter(arguments, 'm')
                || [
                    "--mirror",
                    "--content-disposition",
                    "--trust-server-names",
                    "--input-file",
                ]
                .iter()
                .any(|option| has_long(arguments, option)) =>
        {
            vec![".".to_owned()]
        }
        _ if RENAMERS.contains(&name) => {
            let mut found: Vec<String> = operands.iter().map(|word| above(word.prefix())).collect();
            found.push(".".to_owned());
            found
        }
        _ if name.starts_with("python") && unpacks_by_module(arguments) => vec![".".to_owned()],
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
    let shown = listed(SHOWING, name);
    let is_showing = |word: &Word| word.text().is_some_and(|text| shown.contains(&text));
    !arguments.iter().any(is_showing) || arguments.iter().any(Word::is_computed)
}

/// Returns the words that a table has for a program.
fn listed(table: &[(&[&str], &'static [&'static str])], name: &str) -> &'static [&'static str] {
    let mut lines = table.iter();
    let line = lines.find(|(names, _)| names.contains(&name));
    line.map_or(&[], |(_, words)| words)
}

/// Whether a program removes the files that it has put into an archive.
fn removes_packed(name: &str, arguments: &[Word]) -> bool {
    match name {
        "zip" => has_letter(arguments, 'm') || has_long(arguments, "--move"),
        "tar" | "gtar" | "bsdtar" => has_long(arguments, "--remove-files"),
        "7z" | "7za" | "7zz" => arguments
            .iter()
            .any(|word| word.prefix().starts_with("-sdel")),
        "rsync" => has_long(arguments, "--remove-source-files"),
        _ => false,
    }
}

fn unpacks_by_module(arguments: &[Word]) -> bool {
    arguments.windows(2).any(|pair| match pair {
        [option, module] => {
            option.prefix().ends_with('m')
                && option.prefix().starts_with('-')
                && module
                    .text()
                    .is_none_or(|module| UNPACKING_MODULES.contains(&module))
        }
        _ => false,
    }) || arguments.iter().any(|word| {
        let module = word.prefix().strip_prefix("-m").unwrap_or_default();
        UNPACKING_MODULES.contains(&module)
    })
}

/// Returns the folder that a path lies in.
fn above(path: &str) -> String {
    match path.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => ".".to_owned(),
    }
}

fn unpacked_to(name: &str, arguments: &[Word]) -> Vec<String> {
    let mut found = values(arguments, listed(INTO, name));
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
        // Patterns and `:/` are read by git, and a list may name any file.
        "rm" | "mv" | "restore" | "checkout" | "clean" if has_patterns(rest) => {
            vec![EVERYWHERE.to_owned()]
        }
        "apply" | "am" => vec![".".to_owned()],
        "reset"
            if ["--hard", "--merge", "--keep"]
                .iter()
                .any(|it| has(rest, it)) =>
        {
            vec![".".to_owned()]
        }
        // A prefix makes other names of those that are named.
        "checkout-index" if has_long(rest, "--prefix") => vec![EVERYWHERE.to_owned()],
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

/// Whether words of git are patterns, or a list of them is elsewhere.
fn has_patterns(arguments: &[Word]) -> bool {
    let is_pattern = |word: &Word| {
        let text = word.prefix();
        let is_path = !text.starts_with('-');
        text.starts_with("--pathspec-from")
            || (is_path && (text.starts_with(':') || text.contains(['*', '?', '['])))
    };
    arguments.iter().any(is_pattern)
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

/// Whether a long option is among the words, in full or shortened.
fn has_long(arguments: &[Word], option: &str) -> bool {
    arguments.iter().any(|word| {
        let given = word.prefix().split('=').next().unwrap_or_default();
        given.len() > 3 && option.starts_with(given)
    })
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
