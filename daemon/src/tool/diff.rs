//! Turns a change to a file into a git-style unified diff. A client shows it before it allows a
//! write, and the permission covers exactly that change. Reads and writes nothing.

use std::path::Path;

use similar::TextDiff;

/// What happens to the file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change<'a> {
    Create {
        new: &'a str,
    },
    Edit {
        old: &'a str,
        new: &'a str,
    },
    Delete {
        old: &'a str,
    },
    /// The file gets the name that the diff is printed for.
    Move {
        from: &'a Path,
        old: &'a str,
        new: &'a str,
    },
}

/// Prints a change with the header that git would print.
pub(super) fn git_style(path: &Path, change: Change<'_>) -> String {
    let name = header_name(path);
    let nothing = || "/dev/null".to_owned();
    let mut before = name.clone();
    let (mode, from, to, old, new) = match change {
        Change::Create { new } => {
            let mode = "new file mode 100644\n".to_owned();
            (mode, nothing(), format!("b/{name}"), "", new)
        }
        Change::Edit { old, new } => {
            let (from, to) = (format!("a/{name}"), format!("b/{name}"));
            (String::new(), from, to, old, new)
        }
        Change::Delete { old } => {
            let mode = "deleted file mode 100644\n".to_owned();
            (mode, format!("a/{name}"), nothing(), old, "")
        }
        Change::Move { from, old, new } => {
            before = header_name(from);
            let mode = format!("rename from {before}\nrename to {name}\n");
            let (from, to) = (format!("a/{before}"), format!("b/{name}"));
            (mode, from, to, old, new)
        }
    };
    if old == new {
        return format!("\ndiff --git a/{before} b/{name}\n{mode}");
    }
    // Split at \n only: a lone \r is part of a line for git, and CRLF stays visible.
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let diff = TextDiff::configure()
        .newline_terminated(true)
        .diff_slices(&old, &new);
    let hunks = diff.unified_diff().to_string();
    format!("\ndiff --git a/{before} b/{name}\n{mode}--- {from}\n+++ {to}\n{hunks}")
}

/// Escapes characters that could forge a header line.
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
