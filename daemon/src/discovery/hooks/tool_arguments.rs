//! The names that Claude's format gives to the arguments of tools.
//!
//! A guard in Claude's format looks at `file_path`. If it got `path`, it would find nothing to object
//! to.

use std::path::Path;

use serde_json::{Map, Value, json};

/// Tool, and its arguments that have another name: ours, Claude's. All others have the same name.
const NAMES: [(&str, &[(&str, &str)]); 7] = [
    ("create", &[("path", "file_path"), ("file_text", "content")]),
    ("edit", EDIT),
    ("str_replace_editor", EDIT),
    ("task", &[("agent_type", "subagent_type")]),
    ("view", &[("path", "file_path")]),
    ("write_bash", &[("input", "command")]),
    ("apply_patch", &[]),
];

const EDIT: &[(&str, &str)] = &[
    ("path", "file_path"),
    ("old_str", "old_string"),
    ("new_str", "new_string"),
];

/// What begins the lines of a patch that name a file.
const PATCHED: [&str; 6] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "+++ b/",
    "--- a/",
];

fn names(tool: &str) -> &'static [(&'static str, &'static str)] {
    let mut all = NAMES.iter();
    all.find(|(name, _)| *name == tool)
        .map_or(&[], |(_, names)| names)
}

/// Returns the arguments of a call as Claude's format has them. Paths are absolute there. `patched` are
/// the files that a patch changes, if it could be read.
pub(super) fn claude_arguments(
    tool: &str,
    arguments: Value,
    patched: Option<&[String]>,
    cwd: &Path,
) -> Value {
    let Value::Object(members) = arguments else {
        // A patch may come as a text.
        return match (tool, arguments.as_str()) {
            ("apply_patch", Some(patch)) => {
                with_patched_files(json!({"patch": patch}), patched, cwd)
            }
            _ => arguments,
        };
    };
    let mut renamed = renamed(members, |name| {
        let mut names = names(tool).iter();
        names.find(|(own, _)| *own == name).map(|(_, other)| *other)
    });
    if let Some(Value::String(path)) = renamed.get_mut("file_path") {
        *path = absolute(path, cwd);
    }
    let renamed = Value::Object(renamed);
    match tool {
        "apply_patch" => with_patched_files(renamed, patched, cwd),
        _ => renamed,
    }
}

/// Returns arguments that are in Claude's format, or in ours, in ours.
pub fn own_arguments(tool: &str, mut members: Map<String, Value>) -> Map<String, Value> {
    if tool == "apply_patch" {
        // The hook was told them; the tool reads them in the patch.
        members.remove("file_path");
        members.remove("file_paths");
    }
    if tool == "view" {
        take_lines(&mut members);
    }
    renamed(members, |name| {
        let mut names = names(tool).iter();
        names.find(|(_, other)| *other == name).map(|(own, _)| *own)
    })
}

/// Makes a range of the first line and the number of lines that Claude's format has. What is no number
/// stays, so that it is told.
fn take_lines(members: &mut Map<String, Value>) {
    let number = |name| match members.get(name) {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or(()),
    };
    let range = match (number("offset"), number("limit")) {
        (Ok(None), Ok(None)) | (Err(()), _) | (_, Err(())) => return,
        (Ok(first), Ok(limit)) => {
            let first = first.unwrap_or(1).max(1);
            let last = limit.map_or(-1, |limit| first.saturating_add(limit.max(1) - 1));
            json!([first, last])
        }
    };
    members.remove("offset");
    members.remove("limit");
    members.insert("view_range".to_owned(), range);
}

/// Returns what arguments of the tool that types into a shell type, as a command.
pub fn typed_command(arguments: &Value) -> Option<String> {
    let typed = arguments.get("input")?.as_str()?.replace("{enter}", "\n");
    Some(typed.trim_end_matches('\n').to_owned())
}

fn renamed(
    members: Map<String, Value>,
    new: impl Fn(&str) -> Option<&'static str> + Copy,
) -> Map<String, Value> {
    let members = members.into_iter().map(|(name, value)| {
        let value = match (name.as_str(), value) {
            // Several changes of one file.
            ("edits", Value::Array(edits)) => {
                let edits = edits.into_iter().map(|edit| match edit {
                    Value::Object(edit) => Value::Object(renamed(edit, new)),
                    other => other,
                });
                Value::Array(edits.collect())
            }
            (_, value) => value,
        };
        (new(&name).map_or(name, str::to_owned), value)
    });
    members.collect()
}

/// Returns the patch in the arguments of `apply_patch`.
pub fn patch_text(arguments: &Value) -> Option<&str> {
    let patch = arguments.get("patch").or_else(|| arguments.get("input"));
    patch.unwrap_or(arguments).as_str()
}

/// Adds which files a patch changes. Claude has no tool that changes several.
fn with_patched_files(mut arguments: Value, patched: Option<&[String]>, cwd: &Path) -> Value {
    let mut files: Vec<String> = match patched {
        Some(files) => files.iter().map(|file| absolute(file, cwd)).collect(),
        None => lines_with_files(patch_text(&arguments).unwrap_or_default())
            .map(|file| absolute(file, cwd))
            .collect(),
    };
    files.dedup();
    if let (Some(first), Value::Object(members)) = (files.first(), &mut arguments) {
        members.insert("file_path".to_owned(), json!(first));
        members.insert("file_paths".to_owned(), json!(files));
    }
    arguments
}

/// Returns the files that are named in a text that could not be read as a patch.
fn lines_with_files(patch: &str) -> impl Iterator<Item = &str> {
    patch.lines().filter_map(|line| {
        let mut starts = PATCHED.iter();
        let file = starts.find_map(|start| line.trim_start().strip_prefix(start))?;
        Some(file.trim())
    })
}

fn absolute(path: &str, cwd: &Path) -> String {
    cwd.join(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_format_become_a_range() {
        let table = [
            (
                json!({"offset": 10, "limit": 5}),
                json!({"view_range": [10, 14]}),
            ),
            (json!({"offset": 10}), json!({"view_range": [10, -1]})),
            (json!({"limit": 5}), json!({"view_range": [1, 5]})),
            (
                json!({"offset": "x", "limit": 5}),
                json!({"offset": "x", "limit": 5}),
            ),
        ];
        for (theirs, ours) in table {
            let members = theirs.as_object().cloned().unwrap_or_default();
            assert_eq!(Value::Object(own_arguments("view", members)), ours);
        }
    }

    #[test]
    fn arguments_have_the_names_of_the_format_and_come_back() {
        let table = [
            (
                "create",
                json!({"path": ".env", "file_text": "x"}),
                json!({"file_path": "/app/.env", "content": "x"}),
            ),
            (
                "edit",
                json!({"path": "/a", "old_str": "o", "new_str": "n", "replace_all": true}),
                json!({"file_path": "/a", "old_string": "o", "new_string": "n", "replace_all": true}),
            ),
            (
                "edit",
                json!({"path": "/a", "edits": [{"old_str": "o", "new_str": "n"}]}),
                json!({"file_path": "/a", "edits": [{"old_string": "o", "new_string": "n"}]}),
            ),
            (
                "view",
                json!({"path": "/a", "view_range": [1, 2]}),
                json!({"file_path": "/a", "view_range": [1, 2]}),
            ),
            (
                "bash",
                json!({"command": "ls", "description": "d"}),
                json!({"command": "ls", "description": "d"}),
            ),
            (
                "write_bash",
                json!({"shellId": "1", "input": "ls{enter}"}),
                json!({"shellId": "1", "command": "ls{enter}"}),
            ),
            (
                "grep",
                json!({"pattern": "x", "path": "src", "glob": "*.rs"}),
                json!({"pattern": "x", "path": "src", "glob": "*.rs"}),
            ),
            ("glob", json!({"pattern": "*"}), json!({"pattern": "*"})),
            (
                "web_fetch",
                json!({"url": "https://a"}),
                json!({"url": "https://a"}),
            ),
            (
                "task",
                json!({"prompt": "p", "agent_type": "explore"}),
                json!({"prompt": "p", "subagent_type": "explore"}),
            ),
            (
                "apply_patch",
                json!({"patch": "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n"}),
                json!({"patch": "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n",
                    "file_path": "/app/a", "file_paths": ["/app/a", "/app/b"]}),
            ),
            ("apply_patch", json!("none"), json!({"patch": "none"})),
        ];
        for (tool, own, claude) in table {
            let told = claude_arguments(tool, own.clone(), None, Path::new("/app"));
            assert_eq!(told, claude, "{tool}");
            let (Value::Object(members), Value::Object(_)) = (told, &own) else {
                continue;
            };
            let mut back = Value::Object(own_arguments(tool, members));
            if own.get("path") == Some(&json!(".env"))
                && let Some(path) = back.get_mut("path")
            {
                assert_eq!(path, &json!("/app/.env"));
                *path = json!(".env");
            }
            assert_eq!(back, own, "{tool}");
        }
    }
}
