//! The environment of commands: the requested one, plus variables that keep programs from opening
//! pagers and editors or asking questions. A command may unset them.

use std::collections::BTreeMap;

/// A command in place of an editor, which prints why no editor opens.
const NO_EDITOR: &str = "sh -c 'echo \"No editor is opened for this command: pass the text by an option such as -m, or set EDITOR yourself.\" >&2; exit 1'";

/// Adds variables that keep programs from waiting for a user.
pub(super) fn quiet(env: &BTreeMap<String, String>, term: &str) -> BTreeMap<String, String> {
    let mut quiet = env.clone();
    let settings = [
        ("TERM", term),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("MANPAGER", "cat"),
        ("SYSTEMD_PAGER", "cat"),
        ("AWS_PAGER", ""),
        ("LESS", "-FRX"),
        ("EDITOR", NO_EDITOR),
        ("VISUAL", NO_EDITOR),
        ("GIT_EDITOR", NO_EDITOR),
        ("GIT_SEQUENCE_EDITOR", NO_EDITOR),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("DEBIAN_FRONTEND", "noninteractive"),
    ];
    for (name, value) in settings {
        quiet.insert(name.to_owned(), value.to_owned());
    }
    quiet
}
