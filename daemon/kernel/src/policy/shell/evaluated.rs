//! Whether a line evaluates the text of a word again: as a command of a shell, or as code of another
//! language.

use super::handed_over::is_handed_over;
use super::reader::Script;
use super::runs::{Arguments, Runs};
use super::word::{Word, base_name};

/// Programs whose first operand is a script, unless an option has it.
pub(super) const SCRIPTED: &[&str] = &[
    "awk", "gawk", "mawk", "nawk", "sed", "gsed", "jq", "gojq", "jaq", "yq",
];

/// Options of these programs with one value that is data, and with two.
const WITH_DATA: &[(&str, usize)] = &[("-v", 1), ("-F", 1), ("--arg", 2), ("--argjson", 2)];

/// Programs that send what they are given to a database.
pub(super) const DATABASES: &[&str] = &["psql", "mysql", "mariadb", "sqlite3", "mongosh", "duckdb"];

/// Whether a line may run or evaluate a word that stands in it, beyond handing it to a program as data.
pub fn evaluates(line: &str, mark: &str) -> bool {
    let has = |word: &Word| word.texts().any(|text| text.contains(mark));
    if !is_handed_over(line, mark) {
        return true;
    }
    let script = Script::read(line);
    let is_written = |word: &Word| {
        let mut words = script.commands.iter().flat_map(|command| &command.words);
        words.any(|own| own == word)
    };
    let runs = Runs::of(line);
    runs.programs.iter().any(|run| {
        let mut words = run.words.iter().enumerate().filter(|(_, word)| has(word));
        words.any(|(at, word)| {
            run.arguments == Arguments::Code || !is_written(word) || is_script(&run.words, at)
        })
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
            assert!(!evaluates(line, "MARK"), "{line}");
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
            assert!(evaluates(line, "MARK"), "{line}");
        }
    }
}
