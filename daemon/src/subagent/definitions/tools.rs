//! Which tools an agent may use: the second of the three layers of permission.

use crate::discovery::Problem;
use crate::discovery::agents::AgentDefinition;
pub use loopd_kernel::policy::tool_list::allows;
use loopd_kernel::policy::tool_list::{is_other_name, means};
pub use loopd_kernel::tool_call::ToolOrigin;

impl AgentDefinition {
    /// Returns whether the agent may use a tool.
    pub fn allows(&self, tool: &str, origin: ToolOrigin) -> bool {
        allows(self.tools.as_deref(), &self.disallowed_tools, tool, origin)
    }
}

/// Returns a remark for a file whose lists name tools that are not built in. Names of other programs
/// for tools that we do not have are known, too.
pub(super) fn unknown(agent: &AgentDefinition, ours: &[&str]) -> Option<Problem> {
    let path = agent.path.as_deref()?;
    let named = agent.tools.iter().flatten();
    let named = named.chain(&agent.disallowed_tools);
    let unknown: Vec<String> = named
        .filter(|pattern| !is_known(pattern, ours))
        .map(|name| format!("`{name}`"))
        .collect();
    let what = match unknown.as_slice() {
        [] => return None,
        [one] => format!("{one} is no built-in tool"),
        several => format!("{} are no built-in tools", several.join(", ")),
    };
    let what = format!("{what}; it counts only where a client or an MCP server brings it");
    Some(Problem::new(path, what))
}

/// Tools of other programs that have no counterpart here, in lower case.
#[rustfmt::skip]
const NOT_OURS: &[&str] = &[
    "enterplanmode", "exitplanmode", "lsp", "notebookedit", "notebookread", "slashcommand", "websearch", "web_search",
];

/// Returns whether a pattern names a tool that we have, or may name one of a server.
fn is_known(pattern: &str, ours: &[&str]) -> bool {
    let of_server = |name: &str| name.contains('/') || name.starts_with("mcp__");
    let name = pattern.trim();
    if name.starts_with("custom:") || of_server(name) {
        return true;
    }
    let name = name.strip_prefix("builtin:").unwrap_or(name);
    let name = name.split('(').next().unwrap_or_default().trim();
    let plain = name.to_ascii_lowercase();
    name == "*"
        || ours.contains(&plain.as_str())
        || NOT_OURS.contains(&plain.as_str())
        || is_other_name(&plain)
}

/// The tools that a sub-agent has only if its list names them: a list of its own to work through.
const ONLY_IF_NAMED: [&str; 2] = ["todowrite", "todoread"];

/// Returns whether a sub-agent with these lists has a tool.
pub fn allows_subagent(
    tools: Option<&[String]>,
    disallowed: &[String],
    tool: &str,
    origin: ToolOrigin,
) -> bool {
    let is_named = || {
        let mut patterns = tools.unwrap_or_default().iter();
        patterns.any(|pattern| !pattern.contains('*') && means(pattern, tool, origin))
    };
    let must_be_named = origin == ToolOrigin::BuiltIn && ONLY_IF_NAMED.contains(&tool);
    allows(tools, disallowed, tool, origin) && (!must_be_named || is_named())
}
