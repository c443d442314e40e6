//! Lists of tools as people write them, and which tools they name.
//!
//! Agents, skills and commands are written for several programs, which have other names for the same
//! tools.

use crate::tool_call::ToolOrigin;

/// The names of our tools in other programs, in lower case.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("read", &["view"]),
    ("write", &["create"]),
    ("edit", &["edit", "create", "apply_patch"]),
    ("multiedit", &["edit"]),
    ("patch", &["apply_patch"]),
    ("search", &["grep", "glob"]),
    ("list", &["glob"]),
    ("ls", &["glob"]),
    ("execute", SHELL),
    ("shell", SHELL),
    ("bash", SHELL),
    ("bashoutput", &["read_bash"]),
    ("killshell", &["stop_bash"]),
    ("web", &["web_fetch"]),
    ("webfetch", &["web_fetch"]),
    ("askuserquestion", &["ask_user"]),
    ("todo", &["todowrite", "todoread"]),
    ("agent", AGENTS),
    ("task", AGENTS),
];

/// One permission: an agent that may run commands may also read, answer, list and stop them.
const SHELL: &[&str] = &["bash", "read_bash", "write_bash", "stop_bash", "list_bash"];
const AGENTS: &[&str] = &[
    "task",
    "read_agent",
    "write_agent",
    "list_agents",
    "stop_agent",
];

/// Returns whether a name in lower case is one that other programs have for our tools.
pub fn is_other_name(name: &str) -> bool {
    OTHER_NAMES.iter().any(|(other, _)| *other == name)
}

/// Returns whether lists of tools allow a tool. A tool in both lists is not allowed.
pub fn allows(
    tools: Option<&[String]>,
    disallowed: &[String],
    tool: &str,
    origin: ToolOrigin,
) -> bool {
    let named = |list: &[String]| list.iter().any(|pattern| means(pattern, tool, origin));
    tools.is_none_or(named) && !named(disallowed)
}

/// Returns whether a pattern matches a tool. A pattern is a name or `*`, alone or after `builtin:`
/// or `custom:`. Of `Bash(git *)` only the name counts: a list of tools cannot restrict arguments.
pub fn means(pattern: &str, tool: &str, origin: ToolOrigin) -> bool {
    let is = |name: &str| name == "*" || name == tool;
    match pattern.trim().split_once(':') {
        Some(("builtin", name)) => return origin == ToolOrigin::BuiltIn && is(name),
        Some(("custom", name)) => return origin == ToolOrigin::Client && is(name),
        Some(_) | None => {}
    }
    let name = pattern.split('(').next().unwrap_or_default().trim();
    if is(name) {
        return true;
    }
    let plain = name.to_ascii_lowercase();
    let others = OTHER_NAMES.iter().filter(|(other, _)| *other == plain);
    origin == ToolOrigin::BuiltIn
        && (plain == tool || others.flat_map(|(_, ours)| *ours).any(|ours| *ours == tool))
}
