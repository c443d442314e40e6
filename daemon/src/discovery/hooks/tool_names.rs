//! The names that Claude's format gives to tools.

/// Tool, its names in Claude's format; the first is the one that payloads carry.
const NAMES: [(&str, &[&str]); 19] = [
    // A patch changes files and makes new ones.
    ("apply_patch", &["Edit", "Write"]),
    ("ask_user", &["AskUserQuestion"]),
    ("bash", &["Bash"]),
    ("create", &["Write"]),
    ("edit", &["Edit"]),
    ("glob", &["Glob"]),
    ("grep", &["Grep"]),
    ("powershell", &["Bash"]),
    ("rg", &["Grep"]),
    ("skill", &["Skill"]),
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

/// The other built-in tools, which have only their own names.
const OWN_NAMES: [&str; 12] = [
    "exit_plan_mode",
    "list_agents",
    "list_bash",
    "read_agent",
    "read_bash",
    "report_intent",
    "context_board",
    "sql",
    "stop_agent",
    "stop_bash",
    "task_complete",
    "write_agent",
];

/// Returns the names of all tools that files of hooks may be about without a client or a server.
pub fn known_tools() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name).chain(OWN_NAMES)
}

/// The tool that types into a shell.
pub const TYPING_TOOL: &str = "write_bash";

/// Whether what a tool is given runs as a command. A guard of `bash` guards all of these.
pub fn runs_commands(tool: &str) -> bool {
    matches!(tool, "bash" | "powershell" | TYPING_TOOL)
}

/// Whether the result of a tool is what a command has printed. A hook that reviews `bash` reviews all of
/// these.
pub fn shows_output(tool: &str) -> bool {
    runs_commands(tool) || matches!(tool, "read_bash" | "stop_bash")
}

/// Returns the names that a tool has in Claude's format; none if it has only its own.
pub fn claude_names(tool: &str) -> &'static [&'static str] {
    NAMES
        .iter()
        .find(|(name, _)| *name == tool)
        .map_or(&[], |(_, names)| names)
}
