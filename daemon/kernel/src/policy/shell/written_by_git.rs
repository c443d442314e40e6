//! Which commands of git write to the paths that they name. The others write only into the folder of
//! the repository itself, such as the index and the history.

use super::word::Word;

/// Commands that write only into the folder of the repository, or where the history says and not
/// the line. A command that is not here, which may be an alias, can write to what it names.
const OWN: &[&str] = &[
    "add",
    "branch",
    "cherry-pick",
    "commit",
    "fetch",
    "gc",
    "hash-object",
    "merge",
    "notes",
    "prune",
    "pull",
    "push",
    "rebase",
    "remote",
    "replace",
    "reset",
    "revert",
    "stage",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
];

/// Options before the subcommand whose value is the next word.
const WITH_VALUE: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace"];

/// Whether a command of git writes only what belongs to the repository itself.
pub(super) fn writes_only_its_own(arguments: &[Word]) -> bool {
    let Some((name, rest)) = subcommand(arguments) else {
        return false;
    };
    // After `--` come paths.
    let end = rest.iter().position(|word| word.text() == Some("--"));
    let rest = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
    let has = |test: &dyn Fn(&str) -> bool| rest.iter().any(|word| test(word.prefix()));
    let is_open = rest.iter().any(|word| word.prefix().is_empty());
    match name {
        // Without a file of its own, it writes to the settings of git.
        "config" => {
            let is_file =
                |text: &str| text.starts_with("--f") || (is_letters(text) && text.contains('f'));
            !is_open && !has(&is_file)
        }
        // Only the index is changed.
        "rm" => has(&|text| text == "--cached"),
        "restore" => {
            let is_staged = has(&|text| text == "--staged" || text == "-S");
            let is_worktree =
                |text: &str| text.starts_with("--w") || (is_letters(text) && text.contains('W'));
            is_staged && !is_open && !has(&is_worktree)
        }
        other => OWN.contains(&other),
    }
}

/// Whether the value of an option is a message and no path.
pub(super) fn takes_message(arguments: &[Word], option: &str) -> bool {
    matches!(option, "-m" | "--message")
        && subcommand(arguments).is_some_and(|(name, _)| name == "stash")
}

fn is_letters(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--")
}

/// Returns the subcommand and the words after it, if they are known.
pub(in crate::policy) fn subcommand(arguments: &[Word]) -> Option<(&str, &[Word])> {
    let mut rest = arguments;
    loop {
        let (first, after) = rest.split_first()?;
        let text = first.text()?;
        if !text.starts_with('-') {
            return Some((text, after));
        }
        let skipped = usize::from(WITH_VALUE.contains(&text));
        rest = after.get(skipped..)?;
    }
}
