//! The names that a walk is limited to, and those that it leaves out. Only what cannot be undone by
//! another word of the same command counts.

use super::{EVERYWHERE, LeftOut, Shows, Walk, has, or_here};
use crate::policy::shell::word::Word;

/// Which names `grep -r` reads, and which not. Of options that contradict each other the last counts, so
/// files are left out only if no option names those to read.
pub(super) fn by_grep(arguments: &[Word]) -> (Vec<String>, Vec<LeftOut>) {
    let only = only(&values(arguments, &["--include"]));
    let folders = values(arguments, &["--exclude-dir"]);
    let folders = folders.iter().filter_map(plain);
    let mut without: Vec<LeftOut> = folders
        .map(|folder| LeftOut::Folder(folder.trim_end_matches('/').to_owned()))
        .collect();
    if only.is_empty() {
        let files = values(arguments, &["--exclude"]);
        without.extend(files.iter().filter_map(plain).map(LeftOut::File));
    }
    // A name with a slash is compared in another way.
    without.retain(|it| !it.pattern().contains('/'));
    (only, without)
}

/// Which names `rg` reads, and which not. The last pattern that matches counts.
pub(super) fn by_globs(arguments: &[Word]) -> (Vec<String>, Vec<LeftOut>) {
    let globs = values(arguments, &["-g", "--glob"]);
    if has(arguments, &[], &["--iglob", "--glob-case-insensitive"]) || has_attached(arguments) {
        return (vec!["*".to_owned()], Vec::new());
    }
    let is_negative = |word: &&Word| word.prefix().starts_with('!');
    if globs.iter().all(|word| is_negative(&word)) {
        let negative = globs.iter().filter_map(plain);
        let without = negative.filter_map(|glob| {
            let glob = glob.trim_start_matches('!').to_owned();
            match glob
                .strip_prefix("**/")
                .and_then(|it| it.strip_suffix("/**"))
            {
                Some(folder) if !folder.contains('/') => Some(LeftOut::Folder(folder.to_owned())),
                _ => (!glob.contains('/')).then_some(LeftOut::Any(glob)),
            }
        });
        return (Vec::new(), without.collect());
    }
    let positive: Vec<Word> = globs
        .iter()
        .filter(|it| !is_negative(it))
        .cloned()
        .collect();
    (only(&positive), Vec::new())
}

/// Whether a glob stands in the same word as its option: `-g*.rs`.
fn has_attached(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| {
        let text = word.prefix();
        text.starts_with('-') && !text.starts_with("--") && text != "-g" && text.contains('g')
    })
}

/// What `find` goes through. Conditions count if all of them have to hold for a file.
pub(super) fn by_find(arguments: &[Word]) -> (Walk, Vec<String>) {
    let runs = ["-exec", "-execdir", "-ok", "-okdir"];
    let shows = if arguments.iter().any(|word| runs.contains(&word.prefix())) {
        Shows::Content
    } else {
        Shows::Names
    };
    let is_option = |word: &&Word| matches!(word.text(), Some("-H" | "-L" | "-P"));
    let is_start = |word: &&Word| !word.prefix().starts_with(['-', '(', '!']);
    let before = arguments.iter().take_while(is_option).count();
    let words = arguments.get(before..).unwrap_or_default();
    let count = words.iter().take_while(is_start).count();
    let (starts, mut tests) = words.split_at_checked(count).unwrap_or((words, &[]));
    let starts: Vec<String> = starts
        .iter()
        .map(|word| match word.text() {
            Some(text) => text.to_owned(),
            None => EVERYWHERE.to_owned(),
        })
        .collect();
    let mut walk = Walk::through(shows);
    let is = |word: Option<&Word>, texts: &[&str]| {
        word.and_then(Word::text)
            .is_some_and(|text| texts.contains(&text))
    };
    // `-name x -prune -o` and `-path ./x -prune -o` leave out a name or a folder for good.
    while let [test, value, rest @ ..] = tests
        && is(rest.first(), &["-prune"])
        && is(rest.get(1), &["-o", "-or"])
    {
        match (test.text(), value.text()) {
            (Some("-name"), Some(name)) => walk.without.push(LeftOut::Any(name.to_owned())),
            (Some("-path" | "-wholename"), Some(path)) if path.starts_with("./") => {
                let path = path.trim_start_matches("./");
                if starts == ["."] && !path.contains(['*', '?', '[', '\\']) {
                    walk.without.push(LeftOut::Path(path.to_owned()));
                }
            }
            (Some("-type"), _) => {}
            _ => break,
        }
        tests = rest.get(2..).unwrap_or_default();
    }
    let is_depth_first = arguments
        .iter()
        .any(|word| matches!(word.text(), Some("-depth" | "-d" | "-delete")));
    if is_depth_first {
        walk.without.clear();
    }
    let is_simple = tests.iter().all(|word| {
        !matches!(
            word.text(),
            Some("-o" | "-or" | "," | "(" | ")" | "-iname" | "-prune")
        ) && !word.expands()
    });
    if is_simple {
        for (at, word) in tests.iter().enumerate() {
            let Some(value) = tests.get(at + 1) else {
                break;
            };
            let negated = at
                .checked_sub(1)
                .is_some_and(|before| is(tests.get(before), &["!", "-not"]));
            match (word.text(), negated) {
                (Some("-name"), true) => {
                    walk.without.extend(plain(value).map(LeftOut::File));
                }
                (Some("-name"), false) => walk.only = only(std::slice::from_ref(value)),
                (Some("-path" | "-wholename"), true) => {
                    let folder = value.text().and_then(|path| {
                        let folder = path.strip_prefix("*/")?.strip_suffix("/*")?;
                        (!folder.contains(['/', '*', '?', '[', '\\'])).then_some(folder)
                    });
                    walk.without
                        .extend(folder.map(|it| LeftOut::Folder(it.to_owned())));
                }
                _ => {}
            }
        }
    }
    (walk, or_here(starts))
}

/// What a path of git with `:!` leaves out.
pub(super) fn by_pathspec(word: &Word) -> Option<LeftOut> {
    let text = word.text()?;
    let path = text
        .strip_prefix(":!")
        .or_else(|| text.strip_prefix(":^"))
        .or_else(|| text.strip_prefix(":(exclude)"))?;
    let ending = path.strip_prefix('*')?;
    let is_ending = !ending.is_empty() && !ending.contains(['*', '?', '[', '\\', '/']);
    is_ending.then(|| LeftOut::File(path.to_owned()))
}

/// Returns the patterns of which a name has to fit one; empty if any name may.
fn only(words: &[Word]) -> Vec<String> {
    let patterns: Option<Vec<String>> = words.iter().map(wide).collect();
    patterns.unwrap_or_default()
}

/// Returns a pattern that every name fits which a word may mean.
fn wide(word: &Word) -> Option<String> {
    let text = word.text()?;
    let name = text.rsplit('/').next().unwrap_or_default();
    (!name.is_empty() && !name.contains(['[', '{', '\\', '!'])).then(|| name.to_owned())
}

/// Returns a pattern that fits only names which the word means.
fn plain(word: &Word) -> Option<String> {
    let text = word.text()?;
    (!text.contains(['[', '{', '\\'])).then(|| text.to_owned())
}

/// Returns the values of options, in the next word or attached.
fn values(arguments: &[Word], options: &[&str]) -> Vec<Word> {
    let mut found = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        for option in options {
            if word.text() == Some(option) {
                found.extend(arguments.get(at + 1).cloned());
            } else if let Some(value) = word.without_prefix(&format!("{option}=")) {
                found.push(value);
            }
        }
    }
    found
}
