//! The names that Claude's format gives to tools.

/// Tool, its names in Claude's format; the first is the one that payloads carry.
const NAMES: [(&str, &[&str]); 18] = [
    ("apply_patch", &["Edit"]),
    ("ask_user", &["AskUserQuestion"]),
    ("bash", &["Bash"]),
    ("create", &["Write"]),
    ("edit", &["Edit"]),
    ("glob", &["Glob"]),
    ("grep", &["Grep"]),
    ("powershell", &["Bash"]),
    ("rg", &["Grep"]),
    ("str_replace_editor", &["Edit"]),
    ("task", &["Agent", "Task"]),
    ("todoread", &["TodoRead"]),
    ("todowrite", &["TodoWrite"]),
    ("update_todo", &["TodoWrite"]),
    ("view", &["Read"]),
    ("web_fetch", &["WebFetch"]),
    ("web_search", &["WebSearch"]),
    // What is typed into a shell runs there.
    ("write_bash", &["Bash"]),
];

/// Returns the names that a tool has in Claude's format; none if it has only its own.
pub fn claude_names(tool: &str) -> &'static [&'static str] {
    NAMES
        .iter()
        .find(|(name, _)| *name == tool)
        .map_or(&[], |(_, names)| names)
}
