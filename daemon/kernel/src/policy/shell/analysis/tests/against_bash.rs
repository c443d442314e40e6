//! Compares the commands that were read from a text with those that bash itself runs.

use crate::policy::shell::analysis::Syntax;
use crate::policy::shell::reader::Script;
use crate::policy::shell::word::Word;

/// Pieces of random commands: harmless ones, and every one that was once misread.
const PIECES: &[&str] = &[
    "foo",
    "bar",
    " ",
    " ",
    " ",
    "'",
    "\"",
    "&&",
    "||",
    ";",
    "|",
    "&",
    "$",
    "(",
    ")",
    "`",
    ">",
    "<",
    "{",
    "}",
    "*",
    "?",
    "[",
    "]",
    "~",
    "!",
    "#",
    "=",
    "\\",
    "\n",
    "\t",
    "\r",
    "-v",
    "%",
    "^",
    "a[$(pwn)]",
    "'a[$(pwn)]'",
    "printf ",
    "test ",
    "time ",
    "coproc ",
    "$(pwn)",
    "\"q r\"",
    "'s t'",
    "A=",
    "é",
    "\u{a0}",
    "-",
    "+",
    ",",
    "@",
    ":",
    "/",
    ".",
    "1",
    "2>",
    "<<E",
    "eval ",
    "if ",
    "then ",
    "fi",
    "[[ ",
    "read ",
    "x=y ",
];

/// For a plain text, bash must try to run exactly the programs that were read.
#[test]
fn bash_runs_nothing_that_was_not_read() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| unreachable!("{error}"));
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % bound as u64).unwrap_or_default()
    };
    let mut plain_texts = 0;
    for _ in 0..40_000 {
        let pieces = 1 + next(9);
        let text: String = (0..pieces)
            .map(|_| PIECES.get(next(PIECES.len())).copied().unwrap_or_default())
            .collect();
        let Syntax::Plain(commands) = Syntax::of(&text) else {
            continue;
        };
        plain_texts += 1;
        if plain_texts > 400 {
            break;
        }
        // The reader of whole scripts must read plain commands in the same way.
        let script = Script::read(&text);
        let words = script.commands.iter().map(|command| &command.words);
        let words: Vec<Vec<Option<&str>>> = words
            .map(|words| words.iter().map(Word::text).collect())
            .collect();
        let plain: Vec<Vec<Option<&str>>> = commands
            .iter()
            .map(|argv| argv.iter().map(|word| Some(word.as_str())).collect())
            .collect();
        assert_eq!(words, plain, "{text:?}");
        assert!(!script.doubt, "{text:?}");
        let read: Vec<String> = commands.iter().map(|argv| argv.join("\u{1f}")).collect();
        for ran in ran_by_bash(&text, folder.path()) {
            assert!(
                read.contains(&ran),
                "{text:?}: bash ran {ran:?}, read {read:?}"
            );
        }
        let left = std::fs::read_dir(folder.path()).map(Iterator::count);
        assert!(matches!(left, Ok(0)), "{text:?} wrote a file");
    }
    assert!(
        plain_texts > 100,
        "only {plain_texts} of the texts were plain"
    );
}

/// Runs a text where no program can be found, and lists the programs that bash looked for.
fn ran_by_bash(text: &str, folder: &std::path::Path) -> Vec<String> {
    let output = std::process::Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "-c", text])
        .current_dir(folder)
        .env_clear()
        .env("PATH", folder)
        .env(
            "BASH_FUNC_command_not_found_handle%%",
            "() { local IFS=$'\\x1f'; builtin echo \"ran:$*\" >&2; }",
        )
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap_or_else(|error| unreachable!("{error}"));
    String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter_map(|line| line.strip_prefix("ran:"))
        .map(str::to_owned)
        .collect()
}
