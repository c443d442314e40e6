//! The few lines of bash that make an interactive shell take its commands from a pipe of ours.
//!
//! They run where bash would print its prompt. That place is reached again whatever a command does
//! short of ending the shell: a syntax error, an interrupt, a failed expansion. Commands are never
//! typed into the terminal, so nothing that was meant for a program can become a command.

use std::path::Path;

/// How many loops around the commands a stray `break` may leave.
const LOOPS: usize = 12;

/// The value of `PROMPT_COMMAND` for a shell that reads its commands from a pipe and says with
/// markers of a word when one begins (`B`), is done (`D` and the status) and when it leaves (`X`).
pub(super) fn prompt_command(pipe: &Path, word: &str) -> String {
    let pipe = pipe.to_string_lossy().replace('\'', "'\\''");
    let setup = [
        "builtin export -n PROMPT_COMMAND".to_owned(),
        "builtin unset HISTFILE MAILCHECK TMOUT".to_owned(),
        "builtin set +o history +H".to_owned(),
        "PS1= PS2=".to_owned(),
        format!("__loopd_say() {{ builtin printf '\\033_{word};%s\\033\\\\' \"$1\" >/dev/tty; }}"),
        // Gives the next command the status of the last one; with `set -e` that would end the shell.
        "__loopd_status() { case $- in *e*) ;; *) builtin return \"$1\" ;; esac; }".to_owned(),
        "__loopd_resume() { builtin local code=$__loopd_code; __loopd_code=0; __loopd_status \"$code\"; }"
            .to_owned(),
        // A pipe that is gone must not run the last command once more. Empty commands are passed
        // over: they stand before each, because an interrupt that comes late costs `read` a byte.
        format!(
            "__loopd_next() {{ __loopd_code=$1; __loopd_say \"D$1\"; builtin jobs >/dev/null; __loopd_command=; while case $__loopd_command in '') ;; *) builtin false ;; esac; do IFS= builtin read -r -d '' __loopd_command <'{pipe}' || builtin exit 125; done; __loopd_say B; }}"
        ),
        "exit() { builtin set -- \"${1-$?}\"; case $BASH_SUBSHELL in 0) __loopd_say X ;; esac; builtin exit \"$1\"; }"
            .to_owned(),
    ];
    // The braces keep the trace of `set -x` to what the command does.
    let body = "while { __loopd_next \"$?\"; } 2>/dev/null; do { __loopd_resume; } 2>/dev/null; builtin eval \"$__loopd_command\"; done";
    let around = format!(
        "__loopd_code=$?; {}{{ __loopd_resume; }} 2>/dev/null; {body}; {}:",
        "while :; do ".repeat(LOOPS),
        "done; ".repeat(LOOPS),
    );
    // In two places, because a command that sets the variable replaces only the first.
    format!(
        "{}; PROMPT_COMMAND='{around}'; PROMPT_COMMAND[63]=$PROMPT_COMMAND; builtin eval \"$PROMPT_COMMAND\"",
        setup.join("; ")
    )
}
