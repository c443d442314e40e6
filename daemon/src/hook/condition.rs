//! The conditions of hooks: `if` says about which calls of a tool a hook is asked.
//!
//! A guard is asked unless the call is certainly another one. So it is compared with what a call does:
//! with the files that links lead to, with all tools that do what the named one does, and with the
//! folder of a search.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::input::patched_files;
use crate::discovery::hooks::{HookCondition, TYPING_TOOL, claude_names, names_mcp_tool};
use loopd_kernel::policy::shell::{self, LineFit};
use loopd_kernel::tool_call::McpToolRef;

/// The arguments of tools that conditions are compared with.
const MAIN_ARGUMENTS: [&str; 6] = ["command", "input", "path", "file_path", "url", "pattern"];

/// The tools that change files, by our names and Claude's.
const WRITING: [&str; 8] = [
    "create",
    "edit",
    "str_replace_editor",
    "apply_patch",
    "Write",
    "Edit",
    "MultiEdit",
    "NotebookEdit",
];

/// The tools that search in folders. What they show is read.
const SEARCHING: [&str; 3] = ["grep", "glob", "rg"];

/// Whether a condition holds for a call; for a guard, whether it may.
pub(super) fn condition_holds(
    condition: &HookCondition,
    (tool, of_servers): (&str, &[McpToolRef]),
    arguments: Option<&Value>,
    cwd: &Path,
    is_guard: bool,
) -> bool {
    let wanted = condition.tool.as_str();
    let types = tool == TYPING_TOOL;
    let searches = is_guard && SEARCHING.contains(&tool) && matches!(wanted, "Read" | "view");
    let is_tool = wanted == tool
        || claude_names(tool).contains(&wanted)
        || (types && wanted == "bash")
        || (is_guard && WRITING.contains(&tool) && WRITING.contains(&wanted))
        || searches
        || names_mcp_tool(wanted, of_servers);
    if !is_guard && matches!(tool, "read_bash" | "stop_bash") && matches!(wanted, "bash" | "Bash") {
        // The command is not known here. What takes something out of output has to see it.
        return true;
    }
    let Some(pattern) = condition.pattern.as_deref().filter(|_| is_tool) else {
        return is_tool;
    };
    if tool == "apply_patch" {
        // A text that is no patch is refused by the tool; a client's tool may read it otherwise.
        let Some(files) = arguments.and_then(patched_files) else {
            return is_guard;
        };
        return files.iter().any(|file| fits_path(pattern, file, cwd));
    }
    let named: Vec<&str> = MAIN_ARGUMENTS
        .iter()
        .filter_map(|name| arguments?.get(*name)?.as_str())
        .collect();
    if searches {
        return may_find(pattern, arguments, cwd);
    }
    let Some(main) = named.first() else {
        return is_guard || shell::fits(pattern, "");
    };
    if types && is_guard {
        // What is typed may be the end of a line that began before.
        return true;
    }
    if types || matches!(tool, "bash" | "powershell") {
        let line = main.replace("{enter}", "\n");
        return shell::fits(pattern, main)
            || match shell::fit(pattern, &line) {
                LineFit::Certain => true,
                LineFit::Possible => is_guard,
                LineFit::No => false,
            };
    }
    if is_guard {
        // A model may write arguments that the tool does not read.
        let mut named = named.iter();
        return named.any(|it| shell::fits(pattern, it) || fits_path(pattern, it, cwd));
    }
    shell::fits(pattern, main)
}

/// Whether a search in a folder may show a file that fits a pattern.
fn may_find(pattern: &str, arguments: Option<&Value>, cwd: &Path) -> bool {
    let text = |name: &str| arguments?.get(name)?.as_str();
    let within = text("path").or_else(|| text("file_path")).unwrap_or(".");
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let known = pattern.split(['*', '?', '[', '{']).next();
    let known = known.unwrap_or_default();
    let Some((folder, _)) = known.rsplit_once('/') else {
        // The name of a file that may be in any folder.
        return true;
    };
    let folder = match folder.strip_prefix('/') {
        Some(_) if pattern.starts_with("//") => PathBuf::from(folder.trim_start_matches('/')),
        Some(below) => PathBuf::from(below),
        None => PathBuf::from(folder),
    };
    let folder = if pattern.starts_with("//") {
        Path::new("/").join(folder)
    } else {
        cwd.join(folder)
    };
    let names = |path: &Path| [plain(path), real(path)];
    names(&cwd.join(within)).iter().any(|within| {
        names(&folder)
            .iter()
            .any(|folder| folder.starts_with(within) || within.starts_with(folder))
    })
}

/// Whether a path fits a pattern in any spelling: absolute, relative, or the name of the file alone, and
/// also the file that it leads to.
fn fits_path(pattern: &str, path: &str, cwd: &Path) -> bool {
    let path = cwd.join(path);
    let places = [(plain(&path), cwd.to_owned()), (real(&path), real(cwd))];
    places
        .iter()
        .any(|(path, cwd)| fits_plain(pattern, path, cwd))
}

fn fits_plain(pattern: &str, path: &Path, cwd: &Path) -> bool {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    // Claude's rules write `//` for the root of the disk.
    let absolute = pattern.strip_prefix('/').filter(|it| it.starts_with('/'));
    let below = path.strip_prefix(cwd).ok().map(Path::to_string_lossy);
    let name = path.file_name().map(|name| name.to_string_lossy());
    let whole = path.to_string_lossy();
    shell::fits(absolute.unwrap_or(pattern), &whole)
        || below.is_some_and(|below| {
            shell::fits(pattern, &below) || shell::fits(pattern, &format!("/{below}"))
        })
        || name.is_some_and(|name| shell::fits(pattern, &name))
}

/// Returns a path without `.` and `..`, as it is written.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Returns where a path leads. What is not there yet is looked for in the folder that is.
fn real(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors();
    let found = ancestors.find_map(|above| Some((above.canonicalize().ok()?, above)));
    match found {
        Some((real, above)) => match path.strip_prefix(above) {
            Ok(rest) if !rest.as_os_str().is_empty() => plain(&real.join(rest)),
            _ => real,
        },
        None => plain(path),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_guard_with_a_condition_is_asked_unless_the_call_is_something_else() {
        let table = [
            (
                "Bash(touch *)",
                "bash",
                json!({"command": "echo x; touch b"}),
                true,
                true,
            ),
            (
                "Bash(touch *)",
                "bash",
                json!({"command": " touch b"}),
                true,
                true,
            ),
            (
                "Bash(touch *)",
                "bash",
                json!({"command": "ls"}),
                false,
                false,
            ),
            (
                "Bash(touch *)",
                "bash",
                json!({"command": "$x"}),
                true,
                false,
            ),
            (
                "Bash(touch *)",
                "write_bash",
                json!({"input": "uch x{enter}"}),
                true,
                false,
            ),
            (
                "bash(touch *)",
                "write_bash",
                json!({"input": "touch x{enter}"}),
                true,
                true,
            ),
            (
                "Bash(touch *)",
                "view",
                json!({"path": "touch x"}),
                false,
                false,
            ),
            (
                "Write(.env)",
                "create",
                json!({"path": "/app/.env"}),
                true,
                false,
            ),
            (
                "Write(./.env)",
                "create",
                json!({"path": "sub/../.env"}),
                true,
                false,
            ),
            (
                "Write(*.env)",
                "create",
                json!({"path": "/app/.env"}),
                true,
                true,
            ),
            (
                "Write(//app/src/**)",
                "create",
                json!({"path": "src/a"}),
                true,
                false,
            ),
            (
                "Write(src/*)",
                "create",
                json!({"path": "/app/src/a"}),
                true,
                false,
            ),
            (
                "Write(.env)",
                "create",
                json!({"path": "other"}),
                false,
                false,
            ),
            (
                "Edit(.env)",
                "apply_patch",
                json!({"patch": "x"}),
                true,
                false,
            ),
            (
                "Edit(.env)",
                "apply_patch",
                json!({"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch", "path": ".env"}),
                false,
                false,
            ),
            (
                "Edit(.env)",
                "apply_patch",
                json!({"patch": "--- a/x\n+++ .env\t2026\n@@ -1 +1 @@\n-a\n+b", "path": "a"}),
                true,
                true,
            ),
            (
                "Edit(*.env)",
                "create",
                json!({"path": "b.env", "command": "ls"}),
                true,
                false,
            ),
            (
                "Write(*.env)",
                "edit",
                json!({"path": "b.env"}),
                true,
                false,
            ),
            (
                "Read(secrets/**)",
                "grep",
                json!({"pattern": "x", "path": "secrets"}),
                true,
                false,
            ),
            (
                "Read(secrets/**)",
                "grep",
                json!({"pattern": "x"}),
                true,
                false,
            ),
            (
                "Read(secrets/**)",
                "glob",
                json!({"pattern": "*", "path": "src"}),
                false,
                false,
            ),
            (
                "Read(*.env)",
                "grep",
                json!({"pattern": "x", "path": "src"}),
                true,
                false,
            ),
            (
                "Edit(*.env)",
                "view",
                json!({"path": "b.env"}),
                false,
                false,
            ),
            (
                "mcp__srv__wr(/x*)",
                "srv-wr",
                json!({"path": "/x/y"}),
                true,
                true,
            ),
            (
                "mcp__other__wr(/x*)",
                "srv-wr",
                json!({"path": "/x/y"}),
                false,
                false,
            ),
            (
                "WebFetch(https://a/*)",
                "web_fetch",
                json!({"url": "https://a/b"}),
                true,
                true,
            ),
        ];
        for (condition, tool, arguments, guard, other) in table {
            let (name, pattern) = condition.split_once('(').unwrap_or_default();
            let read = HookCondition {
                tool: name.to_owned(),
                pattern: pattern.strip_suffix(')').map(str::to_owned),
            };
            let server = McpToolRef {
                server: "srv".to_owned(),
                tool: "wr".to_owned(),
            };
            let of_servers = [server];
            let of_servers = of_servers.get(usize::from(tool != "srv-wr")..);
            let tool = (tool, of_servers.unwrap_or_default());
            let holds = |is_guard| {
                condition_holds(&read, tool, Some(&arguments), Path::new("/app"), is_guard)
            };
            let found = (holds(true), holds(false));
            assert_eq!(found, (guard, other), "{condition} {tool:?} {arguments}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_condition_of_a_guard_holds_for_the_file_that_a_link_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path();
        std::fs::create_dir(cwd.join("secrets")).unwrap();
        std::fs::write(cwd.join("prod.env"), "x").unwrap();
        std::os::unix::fs::symlink("prod.env", cwd.join("lnk")).unwrap();
        std::os::unix::fs::symlink("secrets", cwd.join("notsecret")).unwrap();
        let table = [
            ("Edit", "*.env", "edit", json!({"path": "lnk"}), true),
            (
                "Read",
                "secrets/**",
                "view",
                json!({"path": "notsecret/key"}),
                true,
            ),
            (
                "Read",
                "secrets/**",
                "grep",
                json!({"pattern": "x", "path": "notsecret"}),
                true,
            ),
            (
                "Read",
                "secrets/**",
                "view",
                json!({"path": "prod.env"}),
                false,
            ),
        ];
        for (tool, pattern, called, arguments, wanted) in table {
            let condition = HookCondition {
                tool: tool.to_owned(),
                pattern: Some(pattern.to_owned()),
            };
            let holds = condition_holds(&condition, (called, &[]), Some(&arguments), cwd, true);
            assert_eq!(holds, wanted, "{tool}({pattern}) {called} {arguments}");
        }
    }
}
