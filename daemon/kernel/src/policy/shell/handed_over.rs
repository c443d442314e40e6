//! Whether a line only hands a word over to programs as data.
//!
//! This is a list of what is known to be safe: the word is an argument of a program, the text that a
//! known program reads, or the name of a file. Wherever else the word stands, bash may evaluate it,
//! even in quotes: `[[ $1 -eq 1 ]]`, `declare $1` and `x=$1; echo $((x))` run the command in
//! `a[$(command)]`. What another command of the line reads counts as well, because the word may come to
//! it through a pipe, a variable or a substitution.

use super::evaluated::{DATABASES, SCRIPTED};
use super::reader::{Input, Script, Simple};
use super::runs::code_options;
use super::word::{Word, base_name};

/// Builtins of bash that take plain words. All other builtins may evaluate what they are given.
const PLAIN_BUILTINS: &[&str] = &["cd", "echo", "false", "printf", "pwd", "true", "type"];

/// The other builtins of bash.
#[rustfmt::skip]
const BUILTINS: &[&str] = &[
    ".", ":", "alias", "bg", "bind", "break", "builtin", "caller", "compgen", "complete", "compopt", "continue",
    "declare", "dirs", "disown", "enable", "eval", "exec", "exit", "export", "fc", "fg", "getopts", "hash", "help",
    "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "pushd", "read", "readarray",
    "readonly", "return", "set", "shift", "shopt", "source", "suspend", "times", "trap", "typeset", "ulimit",
    "umask", "unalias", "unset", "wait",
];

/// Builtins that change variables by name. They are harmless while their words are known.
const DECLARE: &[&str] = &[
    "declare", "export", "local", "readonly", "set", "typeset", "unset",
];

/// Programs that evaluate what they read, or what they are given.
const EVALUATORS: &[&str] = &[
    ".",
    "alias",
    "at",
    "batch",
    "bc",
    "crontab",
    "dc",
    "ed",
    "eval",
    "ex",
    "getopts",
    "gmake",
    "let",
    "m4",
    "make",
    "mapfile",
    "parallel",
    "read",
    "readarray",
    "source",
    "trap",
];

const SHELLS: &[&str] = &["bash", "busybox", "dash", "fish", "ksh", "sh", "zsh"];

/// Programs that run another one with the rest of their words.
const WRAPPERS: &[&str] = &["command", "env", "nice", "nohup", "time"];

/// Programs that take their input as data.
#[rustfmt::skip]
const READERS: &[&str] = &[
    "awk", "base64", "cat", "column", "cut", "egrep", "fgrep", "fmt", "fold", "gawk", "grep", "head", "hexdump", "jq",
    "md5sum", "nl", "od", "rev", "rg", "sed", "sha1sum", "sha256sum", "sort", "tail", "tee", "tr", "uniq", "wc", "xxd",
];

/// Conditions about one word and about two words that take them as they are.
const ABOUT_ONE: &[&str] = &[
    "!", "-d", "-e", "-f", "-h", "-L", "-n", "-r", "-s", "-w", "-x", "-z",
];
const ABOUT_TWO: &[&str] = &["!=", "-ef", "-nt", "-ot", "=", "=="];

/// Whether every place of a word in a line is known to take it as data.
pub(super) fn is_handed_over(line: &str, mark: &str) -> bool {
    let script = Script::read(line);
    let count = |word: &Word| -> usize {
        let texts = word.texts();
        texts.map(|text| text.matches(mark).count()).sum()
    };
    if script.doubt || duplicates(line) || !script.commands.iter().all(is_harmless) {
        return false;
    }
    let mut known = 0;
    for command in &script.commands {
        let words = command.words.iter().enumerate();
        let taken = words.filter(|(at, _)| takes_data(&command.words, *at));
        known += taken.map(|(_, word)| count(word)).sum::<usize>();
        if let (Input::Text(text), Some(name)) = (&command.input, name_of(command))
            && READERS.contains(&name)
        {
            known += count(text);
        }
    }
    let files = script.opened.iter().chain(&script.written);
    known += files.map(count).sum::<usize>();
    known == line.matches(mark).count()
}

/// Whether a word that begins with a dash would be taken for an option in one of its places.
pub fn may_be_option(line: &str, mark: &str) -> bool {
    let script = Script::read(line);
    script.commands.iter().any(|command| {
        let name = name_of(command).unwrap_or_default();
        let mut words = command.words.iter().skip(1);
        let mut data = matches!(name, "echo" | "[" | "test" | "[[");
        words.any(|word| {
            let begins = word.prefix().starts_with(mark);
            let is_option = begins && !data;
            data |= word.text() == Some("--")
                || name == "printf" && !word.may_be_option() && !word.prefix().contains(mark);
            is_option
        })
    })
}

fn name_of(command: &Simple) -> Option<&str> {
    command.words.first().and_then(Word::text).map(base_name)
}

/// Whether a descriptor is duplicated that is no number. Bash expands such a word a second time.
fn duplicates(line: &str) -> bool {
    let duplications = line.match_indices(">&").chain(line.match_indices("<&"));
    let mut after = duplications.filter_map(|(at, found)| line.get(at + found.len()..));
    after.any(|after| {
        !after
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit() || c == '-')
    })
}

/// Whether a command evaluates neither what it reads nor what it is given by other commands.
fn is_harmless(command: &Simple) -> bool {
    let words = &command.words;
    if words.is_empty() {
        return true;
    }
    let Some(name) = name_of(command) else {
        return false;
    };
    let is_known = || !words.iter().any(Word::is_computed);
    if EVALUATORS.contains(&name) {
        return false;
    }
    if SHELLS.contains(&name) || code_options(name).is_some() {
        // Without an operand it runs what it reads.
        let mut operands = words.iter().skip(1);
        return is_known() && operands.any(|word| !word.may_be_option());
    }
    if SCRIPTED.contains(&name) || DATABASES.contains(&name) || name == "ssh" {
        return is_known();
    }
    if matches!(name, "[" | "test" | "[[") {
        return is_known() || is_plain_condition(words);
    }
    if name == "printf" {
        let format = words.get(1).and_then(Word::text);
        return format.is_some_and(|format| !format.starts_with("-v")) || is_known();
    }
    if name == "xargs" {
        return is_known() && runs_plain_program(words);
    }
    !DECLARE.contains(&name) || is_known()
}

/// Whether a word of a command is data for its program.
fn takes_data(words: &[Word], at: usize) -> bool {
    let mut from = 0;
    let name = loop {
        let Some(name) = words.get(from).and_then(Word::text).map(base_name) else {
            return false;
        };
        if !WRAPPERS.contains(&name) {
            break name;
        }
        let mut rest = words.iter().enumerate().skip(from + 1);
        let program = rest.find(|(_, word)| {
            let begins = word.prefix();
            !begins.starts_with('-') && !begins.contains('=')
        });
        let Some((program, _)) = program else {
            return false;
        };
        from = program;
    };
    if from >= at || (BUILTINS.contains(&name) && !PLAIN_BUILTINS.contains(&name)) {
        return false;
    }
    match name {
        "[" | "test" | "[[" => is_plain_condition(words),
        // The first word is the format, and `-v` names a variable.
        "printf" => {
            let format = words.get(from + 1).filter(|word| !word.may_be_option());
            at > from + 1 && format.and_then(Word::text).is_some()
        }
        _ => !EVALUATORS.contains(&name),
    }
}

/// Whether a condition compares its words as texts, or asks about a file of this name.
fn is_plain_condition(words: &[Word]) -> bool {
    let mut operands: Vec<&Word> = words.iter().skip(1).collect();
    if operands.last().and_then(|word| word.text()) == Some("]") {
        operands.pop();
    }
    if operands.first().and_then(|word| word.text()) == Some("!") {
        operands.remove(0);
    }
    // No word is split in `[[ … ]]`.
    let splits = words.first().and_then(Word::text) != Some("[[");
    let is_one = |word: &Word| !splits || !word.may_be_several();
    let is = |word: &Word, known: &[&str]| word.text().is_some_and(|text| known.contains(&text));
    match operands.as_slice() {
        [] | [_] => true,
        [about, word] => is(about, ABOUT_ONE) && is_one(word),
        [one, compared, other] => is(compared, ABOUT_TWO) && is_one(one) && is_one(other),
        _ => false,
    }
}

/// Whether the program that `xargs` runs is named, and evaluates nothing.
fn runs_plain_program(words: &[Word]) -> bool {
    let is_evaluator = |word: &Word| {
        let name = base_name(word.text().unwrap_or_default());
        EVALUATORS.contains(&name)
            || SHELLS.contains(&name)
            || SCRIPTED.contains(&name)
            || DATABASES.contains(&name)
            || code_options(name).is_some()
            || matches!(name, "env" | "find" | "ssh" | "sudo" | "xargs")
    };
    let mut rest = words.iter().skip(1).peekable();
    while let Some(word) = rest.next_if(|word| word.may_be_option()) {
        let text = word.text().unwrap_or_default();
        if matches!(text, "-I" | "-n" | "-P" | "-L" | "-d" | "-s" | "-E" | "-a") {
            rest.next();
        }
    }
    let is_name = |word: &&Word| {
        let name = word.text().unwrap_or_default();
        let usual = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(usual)
    };
    rest.peek().is_none_or(is_name) && !words.iter().skip(1).any(is_evaluator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_places_take_a_word_as_data() {
        for line in [
            "git log MARK",
            "git diff --name-only MARK | xargs -n 1 cat",
            "git diff MARK | xargs wc -l",
            "echo $(git show MARK)",
            "printf '%s' MARK | sort",
            "cat < MARK > out-MARK",
            "cat <<< MARK 2>&1",
            "[ \"x\" = MARK ] && echo yes",
            "[[ MARK == *.rs ]] && cargo check",
            "[ ! -f MARK ] || cat MARK",
            "test -n MARK && gh issue view MARK",
            "n=3; git log -n \"$n\" MARK",
            "export PAGER=cat; git log MARK",
            "git log MARK | python3 -c 'import sys; print(sys.stdin.read())'",
            "env A=b nice cat MARK",
            "if git show MARK; then echo yes; fi",
        ] {
            assert!(is_handed_over(line, "MARK"), "{line}");
        }
        for line in [
            "MARK",
            "[[ MARK -eq 1 ]] && echo y",
            "n=MARK; [[ $n -gt 0 ]]",
            "n=MARK; if [ \"$n\" -gt 0 ]; then echo y; fi",
            "echo MARK | { read n; [[ $n -gt 0 ]]; }",
            "test -v MARK",
            "x=MARK; [ -v \"$x\" ]",
            "[ MARK MARK ]",
            "let x=MARK",
            "declare MARK",
            "declare -i n=MARK",
            "local n=MARK",
            "unset MARK",
            "printf -v MARK x",
            "printf MARK a b",
            "x=MARK; echo $((x))",
            "x=MARK; ((y = x))",
            "x=MARK; echo ${!x}",
            "x=MARK; echo ${x@P}",
            "x=MARK git log",
            "arr[MARK]=3",
            "arr=(MARK)",
            "for x in MARK; do echo $((x)); done",
            "read v <<< MARK; eval echo $v",
            "export A=MARK; bash -c \"echo $A\"",
            "git log MARK; bash -c \"echo $A\"",
            "xargs -I{} sh -c {} <<< MARK",
            "echo MARK | xargs -I{} sh -c {}",
            "echo MARK | xargs -I{} {}",
            "echo MARK | xargs \"$x\"",
            "echo MARK | sh",
            "echo MARK | bash -s",
            "echo MARK | python3",
            "echo MARK | bc",
            "bash <<< MARK",
            "bc <<< MARK",
            "$(echo MARK)",
            "eval \"$(echo MARK)\"",
            "awk \"$(echo MARK)\" file",
            "ssh host \"$(echo MARK)\"",
            "source MARK",
            ". MARK",
            "trap MARK EXIT",
            "alias z=MARK",
            "make MARK",
            "env MARK true",
            "command MARK",
            "echo {a,MARK}",
            "echo hi >& MARK",
            "case MARK in a) ls ;; esac",
        ] {
            assert!(!is_handed_over(line, "MARK"), "{line}");
        }
    }

    #[test]
    fn places_of_options_are_known() {
        for (line, expected) in [
            ("ssh MARK ls", true),
            ("git log MARK", true),
            ("git log 'MARK x'", true),
            ("git log -- MARK", false),
            ("git log --since=MARK", false),
            ("echo MARK", false),
            ("printf '%s' MARK", false),
            ("printf MARK", true),
            ("cat <<< MARK", false),
            ("echo $(git show MARK)", true),
        ] {
            assert_eq!(may_be_option(line, "MARK"), expected, "{line}");
        }
    }
}
