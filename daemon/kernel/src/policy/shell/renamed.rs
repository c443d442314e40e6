//! Names that a line makes itself: after `mv sub zz`, what is written to `zz/x` was `sub/x` when the line was
//! read. Only that name can be looked up on the disk before the line runs.

use std::collections::BTreeSet;

use super::directories::below;
use super::runs::{ProgramRun, Runs};
use super::word::{Word, base_name};
use super::written::EXCLUDING;

/// Programs that give something another name, or make another name for it: the last word is the new one.
const RENAMERS: &[&str] = &["mv", "cp", "ln", "rsync", "install", "ditto", "link"];

/// How many words of a command are taken for the folder that `-t` names.
const MOST_FOLDERS: usize = 16;

/// How many names in a row are followed back: `mv a b; mv b c`.
const LONGEST_CHAIN: usize = 8;

/// Returns the names that these names have, or may have, when the line begins; `None` if there are more than
/// `most`.
pub(super) fn earlier(
    runs: &Runs,
    names: &BTreeSet<String>,
    most: usize,
) -> Option<BTreeSet<String>> {
    let pairs: Vec<(String, String)> = runs.programs.iter().flat_map(pairs).collect();
    let mut found = BTreeSet::new();
    if pairs.is_empty() {
        return Some(found);
    }
    let mut newest: BTreeSet<String> = names.iter().map(|name| tidy(name).to_owned()).collect();
    newest.extend(in_entered_folders(runs, &pairs, names));
    found.extend(newest.iter().cloned());
    for _ in 0..LONGEST_CHAIN {
        let mut next = BTreeSet::new();
        for name in &newest {
            for (before, after) in &pairs {
                let rest = name.strip_prefix(after.as_str());
                let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
                next.extend(rest.map(|rest| format!("{before}{rest}")));
            }
        }
        newest = next.difference(&found).cloned().collect();
        if newest.is_empty() {
            break;
        }
        found.extend(newest.iter().cloned());
        if found.len() > most {
            return None;
        }
    }
    Some(found)
}

/// Returns what a program renames, as the name before and the name after. What is put into a folder has its
/// own name there.
fn pairs(run: &ProgramRun) -> Vec<(String, String)> {
    let Some((program, arguments)) = run.words.split_first() else {
        return Vec::new();
    };
    let name = program.text().map_or("", base_name);
    let is_git_mv = name == "git" && arguments.iter().any(|word| word.text() == Some("mv"));
    if !RENAMERS.contains(&name) && !is_git_mv {
        return Vec::new();
    }
    let mut operands: Vec<&str> = Vec::new();
    let mut is_left_out = false;
    for text in arguments.iter().filter_map(Word::text) {
        if !is_left_out && !text.starts_with('-') && !text.is_empty() {
            operands.push(tidy(text));
        }
        is_left_out = EXCLUDING.contains(&text);
    }
    // With `-t`, the folder may be any of the words.
    let is_named = arguments.iter().any(|word| {
        let option = word.prefix();
        option.starts_with("-t") || option.starts_with("--target")
    });
    let last = if is_named { operands.len() } else { 1 };
    let mut pairs = Vec::new();
    for folder in operands.iter().rev().take(last.min(MOST_FOLDERS)) {
        for before in operands.iter().filter(|before| *before != folder) {
            pairs.push(((*before).to_owned(), (*folder).to_owned()));
            let inside = below(folder, base_name(before));
            pairs.push(((*before).to_owned(), inside));
        }
    }
    pairs
}

/// Returns the names as they are seen from a renamed folder that the line goes to.
fn in_entered_folders(
    runs: &Runs,
    pairs: &[(String, String)],
    names: &BTreeSet<String>,
) -> Vec<String> {
    let mut entered = Vec::new();
    for run in &runs.programs {
        let Some((program, arguments)) = run.words.split_first() else {
            continue;
        };
        if !matches!(program.text().map_or("", base_name), "cd" | "pushd") {
            continue;
        }
        let folders = arguments.iter().filter_map(Word::text).map(tidy);
        entered.extend(folders.filter(|folder| {
            let is_in = |after: &str| {
                let rest = folder.strip_prefix(after);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            pairs.iter().any(|(_, after)| is_in(after))
        }));
    }
    let relative = |name: &&String| !name.starts_with(['/', '-', '~']);
    let below_it = |folder: &&str| {
        let names = names.iter().filter(relative);
        names
            .map(|name| below(folder, tidy(name)))
            .collect::<Vec<_>>()
    };
    entered.iter().flat_map(below_it).collect()
}

/// Returns a name without what does not change its meaning at its ends.
fn tidy(name: &str) -> &str {
    let mut name = name;
    while let Some(rest) = name.strip_prefix("./").filter(|rest| !rest.is_empty()) {
        name = rest.trim_start_matches('/');
    }
    let short = name.trim_end_matches('/');
    if short.is_empty() { name } else { short }
}

#[cfg(test)]
mod tests {
    use super::super::written::names;

    #[test]
    fn a_name_that_the_line_made_is_followed_back() {
        for (line, earlier) in [
            ("mv sub zz; echo x >> zz/g/config", "sub/g/config"),
            ("mv sub zz && echo x >> ./zz/g/config", "sub/g/config"),
            ("mv ./sub/ zz/; tee zz/g/config", "sub/g/config"),
            ("mv sub dir; echo x > dir/sub/g/config", "sub/g/config"),
            ("mv a b; mv b c; echo x > c/config", "a/config"),
            ("ln -s sub zz; echo x > zz/g/config", "sub/g/config"),
            ("cp -a sub zz; echo x > zz/g/config", "sub/g/config"),
            ("mv sub zz; cd zz; echo x >> g/config", "sub/g/config"),
            ("mv sub zz; cd zz/g && echo x >> config", "sub/g/config"),
            ("mv -t dir sub; echo x > dir/sub/g/config", "sub/g/config"),
            ("git mv sub zz; echo x > zz/g/config", "sub/g/config"),
            ("sh -c 'mv sub zz; echo x > zz/g/config'", "sub/g/config"),
        ] {
            let found = names(line).unwrap_or_default();
            assert!(found.contains(earlier), "{line}: {found:?}");
        }
        let found = names("mv sub zz; echo x > zzz/g").unwrap_or_default();
        assert!(
            !found.contains("subz/g") && !found.contains("sub/g"),
            "{found:?}"
        );
    }
}
