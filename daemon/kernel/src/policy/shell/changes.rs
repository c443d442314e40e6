//! Whether a line may change the shell that runs it: functions, aliases, variables, options, traps,
//! the working directory. A program that is not part of the shell cannot change it.

use super::reader::{Script, Simple};
use super::word::Word;

/// Builtins of bash that can change the shell or run a text in it.
#[rustfmt::skip]
const CHANGING: &[&str] = &[
    ".", "alias", "bg", "bind", "break", "builtin", "cd", "compgen", "complete", "compopt", "continue", "declare",
    "dirs", "disown", "enable", "eval", "exec", "exit", "export", "fc", "fg", "getopts", "hash", "history", "let",
    "local", "logout", "mapfile", "popd", "pushd", "read", "readarray", "readonly", "return", "set", "shift",
    "shopt", "source", "suspend", "trap", "typeset", "ulimit", "umask", "unalias", "unset",
];

/// Whether a line may change its shell. What cannot be read with certainty may.
pub(crate) fn changes_shell(text: &str) -> bool {
    let script = Script::read(text);
    script.doubt
        || script.defines
        || script.calculates
        || !script.listed.is_empty()
        || has_assigning_braces(text)
        || script.commands.iter().any(changes)
}

fn changes(command: &Simple) -> bool {
    let Some((program, arguments)) = command.words.split_first() else {
        // Assignments without a program stay.
        return !command.assignments.is_empty();
    };
    let Some(name) = program.text() else {
        return true;
    };
    let starts = |start: &str| arguments.iter().any(|word| may_start(word, start));
    match name {
        // The option stores into a variable.
        "printf" => starts("-v"),
        "wait" => starts("-"),
        // The option runs a command, which may be part of the shell.
        "jobs" => arguments.iter().any(|word| {
            let is_option = may_start(word, "-");
            is_option && (word.is_computed() || word.prefix().contains('x'))
        }),
        // Bash evaluates the subscript of a name as an expression.
        "test" | "[" => arguments
            .iter()
            .any(|word| word.texts().any(|text| text.contains('['))),
        "command" => !arguments
            .first()
            .is_some_and(|first| matches!(first.text(), Some("-v" | "-V"))),
        other => CHANGING.contains(&other),
    }
}

fn may_start(word: &Word, start: &str) -> bool {
    word.prefix().starts_with(start) || (word.is_computed() && start.starts_with(word.prefix()))
}

/// Whether a `${…}` may assign, as `${x:=y}` does.
fn has_assigning_braces(text: &str) -> bool {
    let mut inside = text.split("${").skip(1);
    inside.any(|after| after.split('}').next().unwrap_or_default().contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_programs_leaves_its_shell_as_it_was() {
        let table = [
            "npm test",
            "cargo build 2>&1 | tail -20",
            "FOO=1 make -j4 && ./run.sh",
            "rm -rf build; mkdir build",
            "echo \"$HOME\" $(date) > out.txt",
            "if test -f a; then cat a; else touch a; fi",
            "[ -d x ] || mkdir x",
            "timeout 5 env A=b node x.js &",
            "printf '%s' a",
            "command -v node",
            "jobs -l",
            "echo \"${PORT:-3000}\"",
            "cat > a.py <<'EOF'\nimport os\nEOF",
            "/usr/bin/env bash -c 'cd x && export A=b'",
            "python3 -c 'x = 1'",
            "git commit -m 'a=b'",
        ];
        for line in table {
            assert!(!changes_shell(line), "{line:?}");
        }
    }

    #[test]
    fn a_line_that_may_change_its_shell_is_known() {
        let table = [
            "ls() { rm -rf x; }",
            "ls () (rm x)",
            "function ls { rm x; }",
            "alias ls=rm",
            "shopt -s expand_aliases",
            "set -e",
            "PATH=/tmp",
            "PATH+=:/tmp",
            "A=b ; ls",
            "export LD_PRELOAD=./x.so",
            "declare -x A=b",
            "trap 'rm x' DEBUG",
            "PROMPT_COMMAND=rm",
            "BASH_ENV=x",
            "cd sub",
            "cd sub && npm test",
            "source .venv/bin/activate",
            ". ./x",
            "eval \"$x\"",
            "$x",
            "hash -p /tmp/evil ls",
            "enable -n echo",
            "printf -v PATH x",
            "printf \"$a\" x",
            "read PATH",
            "for PATH in x; do :; done",
            "coproc ls",
            "(( PATH = 1 ))",
            "echo $((PATH=1))",
            "echo ${PATH:=x}",
            "exec 3> x",
            "ls {fd}> x",
            "command cd x",
            "builtin cd x",
            "jobs -x cd x",
            "umask 0",
            "a=(b c)",
            "echo 'open",
            "exit",
            "unset -f x",
        ];
        for line in table {
            assert!(changes_shell(line), "{line:?}");
        }
    }
}
