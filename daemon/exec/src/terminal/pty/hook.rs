//! The bash code that makes an interactive shell read its commands from our pipe.
//!
//! The code runs when bash would print its prompt. Bash gets there again after a syntax error, an
//! interrupt or a failed expansion; only the end of the shell prevents it. Commands are never typed
//! into the terminal, so input for a program cannot become a command.

use std::path::Path;

/// How many loops surround the commands, for a stray `break` to leave.
const LOOPS: usize = 12;

/// The value of `PROMPT_COMMAND` for a shell that reads commands from `pipe`. It prints markers
/// that contain `word` when a command begins (`B`), when it is done (`D` and the status), and when
/// the shell exits (`X`).
pub(super) fn prompt_command(pipe: &Path, word: &str) -> String {
    let pipe = pipe.to_string_lossy().replace('\'', "'\\''");
    let setup = [
        "builtin export -n PROMPT_COMMAND".to_owned(),
        "builtin unset HISTFILE MAILCHECK TMOUT".to_owned(),
        "builtin set +o history +H".to_owned(),
        "PS1= PS2=".to_owned(),
        format!("__loopd_say() {{ builtin printf '\\033_{word};%s\\033\\\\' \"$1\" >/dev/tty; }}"),
        // Sets `$?` to the status of the last command, except with `set -e`, where that would end
        // the shell.
        "__loopd_status() { case $- in *e*) ;; *) builtin return \"$1\" ;; esac; }".to_owned(),
        "__loopd_resume() { builtin local code=$__loopd_code; __loopd_code=0; __loopd_status \"$code\"; }"
            .to_owned(),
        // If the pipe is gone, the shell exits and must not run the last command again. Empty
        // commands are skipped: they precede each command, because a late interrupt costs `read` a
        // byte.
        format!(
            "__loopd_next() {{ __loopd_code=$1; __loopd_say \"D$1\"; builtin jobs >/dev/null; __loopd_command=; while case $__loopd_command in '') ;; *) builtin false ;; esac; do IFS= builtin read -r -d '' __loopd_command <'{pipe}' || builtin exit 125; done; __loopd_say B; }}"
        ),
        "exit() { builtin set -- \"${1-$?}\"; case $BASH_SUBSHELL in 0) __loopd_say X ;; esac; builtin exit \"$1\"; }"
            .to_owned(),
    ];
    // The braces keep our code out of the trace of `set -x`.
    let body = "while { __loopd_next \"$?\"; } 2>/dev/null; do { __loopd_resume; } 2>/dev/null; builtin eval \"$__loopd_command\"; done";
    let around = format!(
        "__loopd_code=$?; {}{{ __loopd_resume; }} 2>/dev/null; {body}; {}:",
        "while :; do ".repeat(LOOPS),
        "done; ".repeat(LOOPS),
    );
    // Stored in two array elements, because a command that sets the variable replaces only the
    // first.
    format!(
        "{}; PROMPT_COMMAND='{around}'; PROMPT_COMMAND[63]=$PROMPT_COMMAND; builtin eval \"$PROMPT_COMMAND\"",
        setup.join("; ")
    )
}
