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
    ["system", "getline", "ARGV", "@", "|"]
        .iter()
        .any(|mark| without_or.contains(mark))
}

/// Whether a call of awk may write to a file whose name it makes.
pub(super) fn awk_names_files(arguments: &[Word]) -> bool {
    arguments.iter().filter_map(Word::text).any(|text| {
        text.match_indices("print").any(|(at, _)| {
            let after = text.get(at..).unwrap_or_default();
            makes_name(after)
        })
    })
}

/// Whether a `print` statement writes to something else than one text in quotes.
fn makes_name(statement: &str) -> bool {
    let (mut depth, mut is_quoted) = (0_usize, false);
    let mut letters = statement.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if is_quoted => {
                letters.next();
            }
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ';' | '}' | '\n' => return false,
            '>' if depth == 0 => {
                let target = statement.get(at..).unwrap_or_default();
                let target = target.trim_start_matches('>').trim_start();
                let name = target.strip_prefix('"').and_then(|it| it.split_once('"'));
                // Two texts beside each other are one name.
                return name.is_none_or(|(name, rest)| {
                    name.contains('\\')
                        || !rest
                            .trim_start_matches([' ', '\t'])
                            .starts_with([';', '}', '\n'])
                });
            }
            _ => {}
        }
    }
    false
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
