//! Lists of tools as people write them, and which tools they name.
//!
//! Agents, skills and commands are written for several programs, which have other names for the same
//! tools. Editors put the name of a set before some: `search/codebase`.

use crate::tool_call::ToolOrigin;

/// The names of the built-in tools.
pub const BUILT_IN: [&str; 26] = [
    "apply_patch",
    "ask_user",
    "bash",
    "context_board",
    "create",
    "edit",
    "exit_plan_mode",
    "glob",
    "grep",
    "list_agents",
    "list_bash",
    "read_agent",
    "read_bash",
    "report_intent",
    "skill",
    "sql",
    "stop_agent",
    "stop_bash",
    "task",
    "task_complete",
    "todoread",
    "todowrite",
    "view",
    "web_fetch",
    "write_agent",
    "write_bash",
];

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
    ("todo", TODOS),
    ("agent", AGENTS),
    ("task", AGENTS),
    // Those of editors.
    ("askquestions", &["ask_user"]),
    ("codebase", &["grep", "glob"]),
    ("createfile", &["create"]),
    ("editfiles", &["edit", "create", "apply_patch"]),
    ("fetch", &["web_fetch"]),
    ("filesearch", &["glob"]),
    ("findfiles", &["glob"]),
    ("findtextinfiles", &["grep"]),
    ("getterminaloutput", &["read_bash"]),
    ("listdirectory", &["glob"]),
    ("readfile", &["view"]),
    ("runcommands", SHELL),
    ("runinterminal", SHELL),
    ("runsubagent", AGENTS),
    ("textsearch", &["grep"]),
    ("todos", TODOS),
];

/// The sets of tools of editors, which may stand before the name of a tool.
const SETS: &[&str] = &[
    "agent", "browser", "edit", "execute", "read", "search", "todo", "vscode", "web",
];

const TODOS: &[&str] = &["todowrite", "todoread"];

/// One permission: an agent that may run commands may also read, answer, list and stop them.
const SHELL: &[&str] = &["bash", "read_bash", "write_bash", "stop_bash", "list_bash"];
const AGENTS: &[&str] = &[
    "task",
    "read_agent",
    "write_agent",
    "list_agents",
    "stop_agent",
];

/// Returns whether a pattern names a tool that is there, or one that a client or a server may bring.
/// `is_ours` knows the built-in tools.
pub fn may_name_a_tool(pattern: &str, is_ours: impl Fn(&str) -> bool) -> bool {
    let name = pattern.trim();
    if name.starts_with("custom:") || name.starts_with("mcp__") {
        return true;
    }
    let name = name.strip_prefix("builtin:").unwrap_or(name);
    let plain = plain(name);
    let is_other = OTHER_NAMES.iter().any(|(other, _)| *other == plain);
    // What is left of `server/tool` is a tool of a server.
    name == "*" || plain.contains('/') || is_other || is_ours(&plain)
}

/// Returns the name in a pattern in lower case, without arguments and the name of a set.
fn plain(pattern: &str) -> String {
    let name = pattern.split('(').next().unwrap_or_default().trim();
    let name = name.to_ascii_lowercase();
    match name.split_once('/') {
        Some((set, tool)) if SETS.contains(&set) && tool != "*" => tool.to_owned(),
        Some((set, "*")) if SETS.contains(&set) => set.to_owned(),
        Some(_) | None => name,
    }
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
    let plain = plain(name);
    let others = OTHER_NAMES.iter().filter(|(other, _)| *other == plain);
    origin == ToolOrigin::BuiltIn
        && (plain == tool || others.flat_map(|(_, ours)| *ours).any(|ours| *ours == tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_editors_mean_our_tools() {
        let table: &[(&str, &[&str])] = &[
            ("codebase", &["grep", "glob"]),
            ("search/codebase", &["grep", "glob"]),
            ("search/*", &["grep", "glob"]),
            ("editFiles", &["edit", "create", "apply_patch"]),
            ("edit/createFile", &["create"]),
            ("runCommands", &["bash", "read_bash", "stop_bash"]),
            ("execute/runInTerminal", &["bash", "write_bash"]),
            ("execute/getTerminalOutput", &["read_bash"]),
            ("fetch", &["web_fetch"]),
            ("web/fetch", &["web_fetch"]),
            ("read/readFile", &["view"]),
            ("fileSearch", &["glob"]),
            ("textSearch", &["grep"]),
            ("search/listDirectory", &["glob"]),
            ("agent/runSubagent", &["task", "read_agent"]),
            ("todos", &["todowrite", "todoread"]),
            ("vscode/askQuestions", &["ask_user"]),
        ];
        for (pattern, tools) in table {
            for tool in *tools {
                assert!(
                    means(pattern, tool, ToolOrigin::BuiltIn),
                    "{pattern}: {tool}"
                );
            }
            assert!(may_name_a_tool(pattern, |_| false), "{pattern}");
        }
        // A search is no command, and nothing but a name of ours stands for it.
        for (pattern, tool) in [
            ("search/codebase", "bash"),
            ("github/codebase", "grep"),
            ("fetch", "bash"),
            ("usages", "grep"),
        ] {
            assert!(!means(pattern, tool, ToolOrigin::BuiltIn), "{pattern}");
        }
        assert!(!means("search/codebase", "grep", ToolOrigin::Client));
    }

    #[test]
    fn what_no_tool_has_is_known() {
        let ours = |name: &str| name == "bash";
        for pattern in [
            "Bsh",
            "usages",
            "problems",
            "changes",
            "githubRepo",
            "read/problems",
            "vscode/runCommand",
            "runTests",
            "builtin:nothing",
            "Bsh(git *)",
        ] {
            assert!(!may_name_a_tool(pattern, ours), "{pattern}");
        }
        for pattern in [
            "*",
            "Bash",
            "Bash(git *)",
            "builtin:bash",
            "custom:any",
            "mcp__a__b",
            "github/search_code",
            "github/*",
        ] {
            assert!(may_name_a_tool(pattern, ours), "{pattern}");
        }
    }
}
