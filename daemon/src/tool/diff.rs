//! Turns a change to one file into a git-style unified diff: what a client shows before it allows
//! a write, and what ties the permission to exactly that change. Reads and writes nothing.

use std::path::Path;

use similar::TextDiff;

/// What happens to the file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change<'a> {
    Create { new: &'a str },
    Edit { old: &'a str, new: &'a str },
}

/// Prints a change with the header that git would print.
pub(super) fn git_style(path: &Path, change: Change<'_>) -> String {
    let name = header_name(path);
    let (mode, from, old, new) = match change {
        Change::Create { new } => ("new file mode 100644\n", "/dev/null".to_owned(), "", new),
        Change::Edit { old, new } => ("", format!("a/{name}"), old, new),
    };
    // Split at \n only: a lone \r is part of a line for git, and CRLF stays visible.
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let diff = TextDiff::configure()
        .newline_terminated(true)
        .diff_slices(&old, &new);
    let hunks = diff.unified_diff().to_string();
    format!("\ndiff --git a/{name} b/{name}\n{mode}--- {from}\n+++ b/{name}\n{hunks}")
}

/// Escapes what could forge a header line.
fn header_name(path: &Path) -> String {
    let name = path.display().to_string();
    let name = name.trim_start_matches('/');
    if name.contains(char::is_control) {
        name.escape_debug().to_string()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests;
