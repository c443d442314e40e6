//! Reads programs in awk and sed just far enough to show that they run nothing.

mod sed;

use super::word::Word;

pub(super) use self::sed::sed_runs;

/// Splits a text of bare and quoted words. Returns `None` if the split is not certain.
pub(super) fn plain_words(text: &str) -> Option<Vec<String>> {
    let commands = super::plain::words(text)?;
    (!commands.is_empty()).then_some(commands)
}

/// Whether a call of awk may run something.
pub(super) fn awk_runs(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.text() else {
            return true;
        };
        match text {
            "-F" | "-v" | "--field-separator" | "--assign" => {
                words.next();
            }
            // The program is in a file, whose contents are not judged.
            "-f" | "--file" => return false,
            "--" => return words.next().is_none_or(awk_text_runs),
            _ if text.starts_with("-F") || text.starts_with("-v") || text.starts_with("-f") => {}
            "--version" | "--help" | "-V" | "--posix" | "--traditional" | "--re-interval" => {}
            _ if text.starts_with('-') && text.len() > 1 => return true,
            _ => return awk_text_runs(word),
        }
    }
    false
}

fn awk_text_runs(word: &Word) -> bool {
    let Some(text) = word.text() else {
        return true;
    };
    let without_or = text.replace("||", "");
    ["system", "getline", "@", "|"]
        .iter()
        .any(|mark| without_or.contains(mark))
}

/// Whether an awk program writes files. [`awk_runs`] says whether it runs something.
pub(super) fn awk_writes(arguments: &[Word]) -> bool {
    // Before the first action, and in `>=`, the mark compares.
    let writes = |text: &str| {
        text.split_once('{')
            .is_some_and(|(_, actions)| actions.replace(">=", "").contains('>'))
    };
    arguments.iter().filter_map(Word::text).any(writes)
        || arguments
            .iter()
            .filter_map(Word::text)
            .any(|text| text.starts_with("-f") || text.starts_with("--file"))
}

/// Whether a program text of `jq` brings in another file.
pub(super) fn jq_imports(text: &str) -> bool {
    ["import", "include"].iter().any(|keyword| {
        let mut after = text.split(keyword).skip(1);
        after.any(|rest| rest.trim_start().starts_with(['"', '#']))
    })
}

#[cfg(test)]
use self::sed::is_plain_sed;

#[cfg(test)]
mod tests;
