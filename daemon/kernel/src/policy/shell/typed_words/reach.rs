//! Where a word may come to in a line besides the command that it stands in: through pipes, variables,
//! substitutions, folders and files.

use super::place::is_covered;
use super::programs::{
    ABOUT_VARIABLES, DATA, PLAIN_BUILTINS, SCRIPTED, SHELLS, after_wrappers, is_condition,
    is_own_script, is_plain_condition, script_file,
};
use super::{Refusal, TypedLine, TypedText};
use crate::policy::shell::reader::{Script, Simple};
use crate::policy::shell::runs::{self, code_options};
use crate::policy::shell::script_text;
use crate::policy::shell::word::{Word, base_name};

/// Programs that write files which they are told to, besides those that redirections make.
const WRITERS: &[&str] = &[
    "cp", "curl", "dd", "install", "ln", "mv", "patch", "sed", "tar", "tee", "unzip", "wget",
];

/// Checks the commands that may get the word in other ways. `kept` tells that a variable has it, or a part
/// of the line that is no command.
pub(super) fn check(script: &Script, line: &TypedLine<'_>, kept: bool) -> Result<(), Refusal> {
    if writes(script) && script.commands.iter().any(runs_file) {
        return Err("the command writes a file and runs one".to_owned());
    }
    let goes_there = script.commands.iter().any(|command| {
        let name = command.words.first().and_then(Word::text);
        name == Some("cd") && command.words.iter().any(|word| line.has(word))
    });
    if goes_there {
        let other = script.commands.iter().find(|command| {
            let name = name_of(command);
            !matches!(name, Some("cd")) && !name.is_some_and(|name| DATA.contains(&name))
        });
        if let Some(other) = other {
            return Err(format!(
                "it would say in which folder `{}` runs",
                shown(other)
            ));
        }
    }
    if is_linear(script, line.marked) && !kept {
        return Ok(());
    }
    match script
        .commands
        .iter()
        .find(|command| !is_inert(command, line.typed))
    {
        Some(command) => Err(format!(
            "`{}` may evaluate what comes to it",
            shown(command)
        )),
        None => Ok(()),
    }
}

/// Whether the commands of a line get nothing from each other.
fn is_linear(script: &Script, line: &str) -> bool {
    let pipes = line.replace("||", "").contains('|');
    let substitutes = ["$(", "`", "<(", ">("].iter().any(|it| line.contains(it));
    let assigns = script.commands.iter().any(|it| !it.assignments.is_empty());
    !pipes && !substitutes && !assigns && !script.defines && script.written.is_empty()
}

fn name_of(command: &Simple) -> Option<&str> {
    command.words.first().and_then(Word::text).map(base_name)
}

fn shown(command: &Simple) -> &str {
    name_of(command).unwrap_or("a command that is not known")
}

/// Whether a command evaluates neither what it reads nor what it is given by other commands.
pub(super) fn is_inert(command: &Simple, typed: TypedText) -> bool {
    if command.words.is_empty() {
        return true;
    }
    let Some(from) = after_wrappers(&command.words) else {
        return false;
    };
    let words = command.words.get(from..).unwrap_or_default();
    let path = words.first().and_then(Word::text).unwrap_or_default();
    let name = base_name(path);
    let arguments = words.get(1..).unwrap_or_default();
    let is_known = !words.iter().any(Word::is_computed);
    if name == "printf" {
        let format = words.get(1).and_then(Word::text);
        return format.is_some_and(|format| !format.starts_with("-v"));
    }
    if is_condition(name) {
        // A plain word is a name or a number there.
        return typed == TypedText::Plain || is_known || is_plain_condition(words);
    }
    if name == "cd" || ABOUT_VARIABLES.contains(&name) {
        return is_known;
    }
    if PLAIN_BUILTINS.contains(&name) {
        return true;
    }
    if SHELLS.contains(&name) || code_options(name).is_some() {
        return is_known && script_file(words).is_some();
    }
    if name == "xargs" {
        let program = program_of_xargs(words).and_then(|at| words.get(at));
        let program = program.and_then(Word::text).map(base_name);
        return is_known && program.is_some_and(|it| DATA.contains(&it) && !SCRIPTED.contains(&it));
    }
    if SCRIPTED.contains(&name) {
        let runs = script_text::awk_runs(arguments) && name.ends_with("awk")
            || script_text::sed_runs(arguments) && name.ends_with("sed");
        return is_known && !runs;
    }
    DATA.contains(&name) && runs::is_quiet(name, arguments)
        || is_covered(name, arguments)
        || is_own_script(path)
}

/// Returns where the program begins that `xargs` runs.
pub(super) fn program_of_xargs(words: &[Word]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text()?;
        if !text.starts_with('-') {
            return Some(at);
        }
        let takes_value = matches!(text, "-I" | "-n" | "-P" | "-L" | "-d" | "-s" | "-E" | "-a");
        at += 1 + usize::from(takes_value);
    }
    None
}

/// Whether a line may write files.
pub(super) fn writes(script: &Script) -> bool {
    let is_file = |word: &Word| word.text() != Some("/dev/null");
    script.written.iter().any(is_file)
        || script.commands.iter().any(|command| {
            let names = command.words.iter().filter_map(Word::text).map(base_name);
            let mut names = names.take(2);
            names.any(|name| WRITERS.contains(&name))
        })
}

/// Whether a command runs a file that it names, or one whose name is not known.
pub(super) fn runs_file(command: &Simple) -> bool {
    let Some(path) = command.words.first() else {
        return false;
    };
    let mut words = command.words.iter();
    let is_run = |word: &Word| match word.text() {
        Some(text) => {
            let name = base_name(text);
            text.contains('/') && !text.starts_with("/usr/") && !text.starts_with("/bin/")
                || matches!(name, "." | "source")
                || SHELLS.contains(&name)
                || code_options(name).is_some()
        }
        None => false,
    };
    // Behind a wrapper, any word may be the program.
    path.is_computed()
        || is_run(path)
        || path
            .text()
            .is_some_and(|text| runs::is_for_running(base_name(text)))
            && words.any(is_run)
}
