//! The environment of commands: the requested one, plus variables that keep programs from opening
//! pagers and editors or asking questions, and git from trusting a repository that lies about in a
//! folder. A command may unset them.

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
    refuse_found_bare_repositories(&mut quiet);
    quiet
}

/// Makes git refuse a bare repository that it was not pointed to. A project can hold one as ordinary
/// files, and its configuration names programs that even `git status` runs.
fn refuse_found_bare_repositories(env: &mut BTreeMap<String, String>) {
    const COUNT: &str = "GIT_CONFIG_COUNT";
    let known = env.get(COUNT).map_or("0", String::as_str);
    // Git itself refuses to run with a count that is no number.
    let Ok(index) = known.parse::<u32>() else {
        return;
    };
    let settings = [
        (format!("GIT_CONFIG_KEY_{index}"), "safe.bareRepository"),
        (format!("GIT_CONFIG_VALUE_{index}"), "explicit"),
    ];
    for (name, value) in settings {
        env.insert(name, value.to_owned());
    }
    env.insert(COUNT.to_owned(), index.saturating_add(1).to_string());
}
