//! Whether a line evaluates the text of a word again: as a command of a shell, or as code of another
//! language.

use super::handed_over::why_not_handed_over;
use super::reader::{Input, Script};
use super::runs::{Arguments, Runs};
use super::word::{Word, base_name};
use super::word_takers::Typed;

/// Programs whose first operand is a script, unless an option has it.
pub(super) const SCRIPTED: &[&str] = &[
    "awk", "gawk", "mawk", "nawk", "sed", "gsed", "jq", "gojq", "jaq", "yq",
];

/// Options of these programs with one value that is data, and with two.
const WITH_DATA: &[(&str, usize)] = &[("-v", 1), ("-F", 1), ("--arg", 2), ("--argjson", 2)];

/// Programs that send what they are given to a database.
const DATABASES: &[&str] = &["psql", "mysql", "mariadb", "sqlite3", "mongosh", "duckdb"];

/// Returns why a line may run or evaluate a word that stands in it, beyond handing it to a program as
/// data.
pub fn why_evaluated(line: &str, mark: &str, typed: Typed) -> Option<String> {
    let has = |word: &Word| word.texts().any(|text| text.contains(mark));
    if let Some(why) = why_not_handed_over(line, mark, typed) {
        return Some(why);
    }
    let script = Script::read(line);
    let is_written = |word: &Word| {
        let mut words = script.commands.iter().flat_map(|command| &command.words);
        words.any(|own| own == word)
    };
    let runs = Runs::of(line);
    let evaluating = runs.programs.iter().find(|run| {
        let mut words = run.words.iter().enumerate().filter(|(_, word)| has(word));
        words.any(|(at, word)| {
            run.arguments == Arguments::Code || !is_written(word) || is_script(&run.words, at)
        })
    })?;
    let name = evaluating.words.first().map_or("", Word::prefix);
    Some(format!("`{name}` reads it as a program"))
}

/// Whether two lines are the same to bash, but for the words that the marks in the first stand for.
pub fn differ_in_words_only(marked: &str, filled: &str, values: &[(String, String)]) -> bool {
    let (marked, filled) = (Script::read(marked), Script::read(filled));
    let put_in = |word: &Word| {
        let mut word = word.clone();
        for (mark, value) in values {
            word.replace(mark, value);
        }
        word
    };
    let are_same = |one: &[Word], other: &[Word]| {
        one.len() == other.len()
            && one
                .iter()
                .zip(other)
                .all(|(one, other)| put_in(one) == *other)
    };
    let mut commands = marked.commands.iter().zip(&filled.commands);
    !marked.doubt
        && !filled.doubt
        && marked.commands.len() == filled.commands.len()
        && are_same(&marked.written, &filled.written)
        && are_same(&marked.opened, &filled.opened)
        && commands.all(|(one, other)| {
            are_same(&one.words, &other.words)
                && match (&one.input, &other.input) {
                    (Input::Text(one), Input::Text(other))
                    | (Input::File(one), Input::File(other)) => put_in(one) == *other,
                    (one, other) => one == other,
                }
        })
}

/// Whether a word of a command is a text in the language of its program.
fn is_script(words: &[Word], at: usize) -> bool {
    let name = words.first().and_then(Word::text).map_or("", base_name);
    if DATABASES.contains(&name) {
        return true;
    }
    let before = at.checked_sub(1).and_then(|before| words.get(before));
    let before = before.and_then(Word::text).unwrap_or_default();
    let own = words.get(at).map_or("", Word::prefix);
    if let Some(mut options) = super::runs::code_options(name) {
        return options.any(|option| before == option || own.starts_with(option));
    }
    SCRIPTED.contains(&name) && (before == "-e" || first_operand(words) == Some(at))
}

/// Returns the place of the first word that is neither an option nor its data.
fn first_operand(words: &[Word]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let option = word.prefix();
        if !option.starts_with('-') {
            return Some(at);
        }
        let data = WITH_DATA.iter().find(|(known, _)| *known == option);
        at += 1 + data.map_or(0, |(_, values)| *values);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_in_more_than_words_are_told_apart() {
        for (marked, filled, same) in [
            ("echo MARK", "echo 'a; b'", true),
            ("echo \"x MARK\"", "echo \"x \"'a; b'\"\"", true),
            ("cat <<< MARK", "cat <<< 'a; b'", true),
            ("echo \"$(echo MARK)\"", "echo \"$(echo 'a; b')\"", true),
            ("echo MARK", "echo a; b", false),
            ("echo MARK", "echo \"$(a; b)\"", false),
            ("cat < MARK", "cat < a; b", false),
            ("echo MARK", "echo a\\; b", false),
        ] {
            let values = [("MARK".to_owned(), "a; b".to_owned())];
            assert_eq!(
                differ_in_words_only(marked, filled, &values),
                same,
                "{filled}"
            );
        }
    }

    #[test]
    fn what_is_only_handed_over_is_not_evaluated() {
        for line in [
            "git log MARK",
            "git commit -m 'fix: MARK'",
            "env nice cat \"a MARK\"",
            "echo $(git show MARK)",
            "grep -rn MARK src | head -3",
            "cat MARK > out",
            "gh issue view MARK",
            "python3 script.py 'a MARK'",
            "python3 -c 'import sys; print(sys.argv[1])' MARK",
            "awk -v x='MARK y' '{print x}' file",
            "awk '{print}' MARK",
            "jq --arg x 'a MARK' .a file",
            "sh script.sh 'a MARK'",
        ] {
            let why = why_evaluated(line, "MARK", Typed::Anything);
            assert_eq!(why, None, "{line}");
        }
        for line in [
            "sh -c 'echo MARK'",
            "bash -c \"ls MARK\"",
            "eval \"echo MARK\"",
            "env sh -c 'ls MARK'",
            "xargs sh -c 'ls MARK'",
            "find . -exec sh -c 'ls MARK' ';'",
            "ssh host 'ls MARK'",
            "awk '/MARK/ {print}' file",
            "sed 's/a/MARK/e' file",
            "sed -n -e MARK file",
            "sed -n MARK file",
            "jq '.MARK' file",
            "psql -c 'select MARK'",
            "python3 -c 'print(\"MARK\")'",
            "perl -e 'print \"MARK\"'",
            "node -e 'x(\"MARK\")'",
        ] {
            assert!(
                why_evaluated(line, "MARK", Typed::Anything).is_some(),
                "{line}"
            );
        }
    }
}
