//! The names that Claude's format gives to tools of MCP servers: `mcp__server__tool`.

use loopd_kernel::tool_call::McpToolRef;

const START: &str = "mcp__";

/// Returns the name of a tool that payloads carry. Claude's names have only letters, digits, `_` and `-`.
pub fn claude_mcp_name(tool: &McpToolRef) -> String {
    format!("{START}{}__{}", plain(&tool.server), plain(&tool.tool))
}

/// Returns everything that names a tool in matchers and conditions: itself, its server, all servers.
pub(super) fn spellings(tool: &McpToolRef) -> [String; 5] {
    let server = plain(&tool.server);
    [
        claude_mcp_name(tool),
        format!("{START}{}__{}", tool.server, tool.tool),
        format!("{START}{server}"),
        // So that `mcp__server__*` and `mcp__*` cover them as well, whose star is none of a pattern.
        format!("{START}{server}__"),
        START.to_owned(),
    ]
}

/// Whether a name means one of the tools.
pub fn names_mcp_tool(name: &str, tools: &[McpToolRef]) -> bool {
    let mut tools = tools.iter();
    tools.any(|tool| spellings(tool).iter().any(|it| it == name))
}

/// Whether a text names tools of servers in Claude's way.
pub(super) fn is_meant(text: &str) -> bool {
    text.contains(START)
}

fn plain(name: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let letters = name.chars();
    letters
        .map(|letter| if allowed(letter) { letter } else { '_' })
        .collect()
}
