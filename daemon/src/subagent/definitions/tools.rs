//! Which tools an agent may use: the second of the three layers of permission.

use crate::discovery::agents::AgentDefinition;
use crate::discovery::{Problem, not_built_in};
pub use loopd_kernel::policy::tool_list::allows;
use loopd_kernel::policy::tool_list::{may_name_a_tool, means};
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
    let unknown = named.filter(|pattern| !is_known(pattern, ours));
    let what = not_built_in(unknown.map(String::as_str))?;
    Some(Problem::new(path, what))
}

/// Tools of other programs that have no counterpart here, in lower case.
#[rustfmt::skip]
const NOT_OURS: &[&str] = &[
    "enterplanmode", "exitplanmode", "lsp", "notebookedit", "notebookread", "slashcommand", "websearch", "web_search",
];

fn is_known(pattern: &str, ours: &[&str]) -> bool {
    may_name_a_tool(pattern, |name| {
        ours.contains(&name) || NOT_OURS.contains(&name)
    })
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
