//! Lines that change what patterns for names mean: with `nocaseglob`, `SEC*` matches `secret`.

use super::runs::{ProgramRun, Runs};
use super::word::{Word, base_name};

/// Options of `shopt` that have nothing to do with patterns.
#[rustfmt::skip]
const OTHERS: &[&str] = &[
    "-s", "-u", "-q", "-p", "autocd", "cdspell", "checkhash", "checkjobs", "checkwinsize", "cmdhist", "expand_aliases", "failglob", "globasciiranges",
    "histappend", "huponexit", "inherit_errexit", "lastpipe", "login_shell", "mailwarn", "nullglob", "progcomp", "sourcepath", "xpg_echo",
];

/// Variables that hold such options.
const VARIABLES: &[&str] = &["BASHOPTS=", "SHELLOPTS=", "GLOBIGNORE="];

/// Whether patterns of a line may match other names than those that they spell.
pub(super) fn changes_patterns(text: &str, runs: &Runs) -> bool {
    VARIABLES.iter().any(|name| text.contains(name)) || runs.programs.iter().any(changes)
}

fn changes(run: &ProgramRun) -> bool {
    let Some((program, arguments)) = run.words.split_first() else {
        return false;
    };
    match program.text().map_or("", base_name) {
        "shopt" => arguments
            .iter()
            .any(|word| word.text().is_none_or(|text| !OTHERS.contains(&text))),
        "setopt" | "unsetopt" | "emulate" => true,
        "sh" | "bash" | "rbash" | "zsh" | "ksh" | "mksh" => arguments.iter().any(is_option),
        _ => false,
    }
}

/// Whether a word is an option of a shell that names an option for patterns: `-O extglob`.
fn is_option(word: &Word) -> bool {
    let text = word.prefix();
    let letters = text
        .strip_prefix(['-', '+'])
        .filter(|it| !it.starts_with('-'));
    letters.is_some_and(|letters| letters.contains('O'))
}
