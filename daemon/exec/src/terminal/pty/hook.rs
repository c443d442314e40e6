//! The bash code that makes an interactive shell take its commands from our socket.
//!
//! The code runs when bash would print its prompt. Bash gets there again after a syntax error, an
//! interrupt or a failed expansion; only the end of the shell prevents it. Commands are never typed
//! into the terminal, so input for a program cannot become a command.
//!
//! The code contains no secret: every program can read it in the environment of the shell.
//! `channel.rs` says what keeps programs from reporting a result.

use crate::process::CONTROL;

/// What a shell prints that has to be closed because a function of the user replaces `builtin`.
const SHADOWED: &str = "loopd: this shell was closed, because it cannot work with a function named builtin that cannot be removed";

/// What a shell prints that has to be closed because it cannot take another command.
const LOST: &str = "loopd: this shell was closed, because the command took away what the shell needs to go on: functions, variables or descriptors; the exit code of the command is not known";

/// How often the code is begun again in one shell after it has failed or was left.
const BEGUN_AGAIN: usize = 8;

/// How many loops surround the commands, for a stray `break` to leave.
const LOOPS: usize = 12;

/// The value of `PROMPT_COMMAND`. It says on the socket when a command is done (`D` and its word), and
/// then follows the messages of `channel.rs`: it says the status (`S`) when it is asked for it. It prints
/// a marker with the word of the message when a command begins (`B`), when it is done (`D`), and when
/// the shell exits (`X`).
pub(super) fn prompt_command() -> String {
    let say_lost = format!("builtin printf \"%s\\n\" \"{LOST}\"");
    // In POSIX mode, no function can replace `exit`.
    let close = format!("{say_lost}; POSIXLY_CORRECT=1; exit 125");
    let read = format!("IFS= builtin read -r -d '' -u {CONTROL} __loopd_said");
    let setup = [
        "builtin export -n PROMPT_COMMAND".to_owned(),
        "builtin unset HISTFILE MAILCHECK TMOUT".to_owned(),
        "builtin set +o history +H".to_owned(),
        "PS1= PS2= __loopd_word=".to_owned(),
        "__loopd_mark() { builtin printf '\\033_%s;%s\\033\\\\' \"$1\" \"$2\" >/dev/tty; }"
            .to_owned(),
        // Sets `$?` to the status of the last command, except with `set -e`, where that would end
        // the shell.
        "__loopd_status() { case $- in *e*) ;; *) builtin return \"$1\" ;; esac; }".to_owned(),
        "__loopd_resume() { builtin local code=$__loopd_code; __loopd_code=0; __loopd_status \"$code\"; }"
            .to_owned(),
        // A function of the user may be named `builtin`. Only keywords and assignments cannot be
        // replaced, and in POSIX mode special builtins such as `unset` and `exec`. A function that
        // cannot be removed would keep the shell from ever answering, so the shell is closed.
        format!(
            "__loopd_guard() {{ __loopd_real=; builtin printf -v __loopd_real 1; \
             case $__loopd_real in 1) ;; *) unset -f builtin; builtin printf -v __loopd_real 1 ;; esac; \
             case $__loopd_real in 1) ;; *) __loopd_real=$BASHOPTS; POSIXLY_CORRECT=1; unset -f builtin; unset POSIXLY_CORRECT; \
             case $__loopd_real in *inherit_errexit*) ;; *) builtin shopt -u inherit_errexit ;; esac; \
             __loopd_real=; builtin printf -v __loopd_real 1 ;; esac; \
             case $__loopd_real in 1) ;; *) POSIXLY_CORRECT=1; \
             exec /bin/sh -c \"echo {SHADOWED}; exit 125\" >/dev/tty {CONTROL}<&- ;; esac; }}"
        ),
        // If the socket is gone, the shell exits and must not run the last command again. Empty
        // messages precede each message, because a late interrupt costs `read` a byte. A command
        // that came twice is skipped.
        format!(
            "__loopd_next() {{ __loopd_code=$1; __loopd_guard; builtin printf 'D%s\\n' \"$__loopd_word\" >&{CONTROL} || {{ {say_lost}; builtin exit 125; }}; \
             while {read} || builtin exit 125; do case $__loopd_said in \
             N*) __loopd_mark \"${{__loopd_said:1}}\" D; \
             builtin printf 'S%s %s\\n' \"${{__loopd_said:1}}\" \"$__loopd_code\" >&{CONTROL}; builtin jobs >/dev/null ;; \
             \"B$__loopd_word\") {read} || builtin exit 125 ;; \
             B*) __loopd_word=${{__loopd_said:1}}; {read} || builtin exit 125; \
             __loopd_mark \"$__loopd_word\" B; builtin break ;; esac; done; }}"
        ),
        "exit() { builtin set -- \"${1-$?}\"; case $BASH_SUBSHELL in 0) __loopd_mark \"$__loopd_word\" X ;; esac; builtin exit \"$1\"; }"
            .to_owned(),
    ];
    // The braces keep our code out of the trace of `set -x`. The socket is closed for the command:
    // bash keeps a copy that no program inherits, and restores it afterwards.
    // A shell whose code fails several times in a row cannot work any more and is closed. The count
    // is reset by `printf`, which fails without an effect if the command made the variable readonly.
    let body = format!(
        "while {{ __loopd_next \"$?\"; }} 2>/dev/null; do \
         {{ builtin printf -v __loopd_lost %s \"\"; __loopd_resume; }} 2>/dev/null; \
         builtin eval \"$__loopd_said\" {CONTROL}<&-; done; \
         __loopd_lost=1${{__loopd_lost-}}; case $__loopd_lost in 11111*) {close} ;; esac"
    );
    let around = format!(
        "__loopd_code=$?; {}{{ __loopd_resume; }} 2>/dev/null; {body}; {}[[ 1 ]]",
        "while [[ 1 ]]; do ".repeat(LOOPS),
        "done; ".repeat(LOOPS),
    );
    // An assignment to a variable that the command made readonly ends the code. It is begun again
    // then, a few times; when that fails, too, the shell is closed and does not read the terminal.
    let again = "builtin eval \"${PROMPT_COMMAND[63]}\"; ".repeat(BEGUN_AGAIN) + &close;
    // Stored in two array elements, because a command that sets the variable replaces only the
    // first.
    format!(
        "{}; PROMPT_COMMAND='{around}'; PROMPT_COMMAND[63]=$PROMPT_COMMAND; PROMPT_COMMAND[64]='{again}'; \
         builtin eval \"$PROMPT_COMMAND\"; {again}",
        setup.join("; ")
    )
}
