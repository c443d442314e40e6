//! Which tool, agent or notification a hook is for.

use std::fmt;

use loopd_kernel::tool_call::McpToolRef;
use regex::Regex;

use super::kind::PayloadForm;
use super::mcp_names::{names_mcp_tool, spellings};
use super::tool_names::claude_names;

/// Compares a hook's matcher with what happens.
#[derive(Debug, Clone)]
pub enum HookMatcher {
    /// The hook runs every time.
    Every,
    /// The hook runs for these names, in either spelling.
    Names(Vec<String>),
    /// The hook runs if the pattern covers the whole name.
    Pattern { pattern: Regex, form: PayloadForm },
}

/// The largest compiled pattern, in bytes.
const LARGEST_PATTERN: usize = 1024 * 1024;

impl HookMatcher {
    /// Reads a matcher as its form prescribes.
    pub(super) fn read(text: &str, form: PayloadForm) -> Result<Self, String> {
        // In a regular expression an empty matcher would match nothing and a star is a mistake. Who
        // writes them wants every name.
        if matches!(text.trim(), "" | "*" | "**") {
            return Ok(Self::Every);
        }
        let names: Vec<&str> = text.split('|').map(str::trim).collect();
        if form == PayloadForm::Claude && names.iter().all(|name| is_name(name)) {
            return Ok(Self::Names(names.into_iter().map(str::to_owned).collect()));
        }
        let pattern = regex::RegexBuilder::new(&format!("^(?:{text})$"))
            .size_limit(LARGEST_PATTERN)
            .build()
            .map_err(|error| last_line(&error.to_string()))?;
        Ok(Self::Pattern { pattern, form })
    }

    /// Returns whether a hook runs for a tool.
    pub fn matches_tool(&self, tool: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Names(names) => names.iter().map(String::as_str).any(|name| {
                name == tool || claude_names(tool).contains(&name) || does_as(tool).contains(&name)
            }),
            Self::Pattern { pattern, form } => match (form, claude_names(tool)) {
                (PayloadForm::Native, _) | (PayloadForm::Claude, []) => {
                    let mut names = std::iter::once(tool).chain(does_as(tool).iter().copied());
                    names.any(|name| pattern.is_match(name))
                }
                (PayloadForm::Claude, names) => names.iter().any(|name| pattern.is_match(name)),
            },
        }
    }

    /// Returns whether a hook runs for one of these tools of MCP servers, by their names in Claude's format.
    pub fn matches_mcp_tool(&self, tools: &[McpToolRef]) -> bool {
        match self {
            Self::Every => true,
            Self::Names(names) => names.iter().any(|name| names_mcp_tool(name, tools)),
            Self::Pattern { pattern, form } => match form {
                PayloadForm::Native => false,
                PayloadForm::Claude => {
                    let mut names = tools.iter().flat_map(spellings);
                    names.any(|name| pattern.is_match(&name))
                }
            },
        }
    }

    /// Returns whether a hook runs for anything else that has a name.
    pub fn matches(&self, subject: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Names(names) => names.iter().any(|name| name == subject),
            Self::Pattern { pattern, .. } => pattern.is_match(subject),
        }
    }
}

impl fmt::Display for HookMatcher {
    /// Writes the matcher as files have it; nothing if the hook runs every time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => Ok(()),
            Self::Names(names) => f.write_str(&names.join("|")),
            Self::Pattern { pattern, .. } => {
                let text = pattern.as_str();
                let inner = text
                    .strip_prefix("^(?:")
                    .and_then(|it| it.strip_suffix(")$"));
                f.write_str(inner.unwrap_or(text))
            }
        }
    }
}

/// Returns the tools whose work a tool does as well: a hook for one of them is for it, too.
fn does_as(tool: &str) -> &'static [&'static str] {
    match tool {
        "apply_patch" => &["create", "edit"],
        _ => &[],
    }
}

/// Whether this is a name and no pattern.
pub(super) fn is_name(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
    !text.is_empty() && text.chars().all(is_plain)
}

/// The regex crate draws the pattern before it says what is wrong.
fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    fn fires(matcher: &str, form: PayloadForm, tool: &str) -> bool {
        HookMatcher::read(matcher, form)
            .expect("a matcher")
            .matches_tool(tool)
    }

    #[test]
    fn a_matcher_is_read_as_its_form_says() {
        use PayloadForm::{Claude, Native};
        let table = [
            ("", Native, "bash", true),
            ("*", Native, "bash", true),
            ("bash", Native, "bash", true),
            ("bash", Native, "bash_output", false),
            ("bash|edit", Native, "edit", true),
            ("ba.*", Native, "bash", true),
            ("Bash", Native, "bash", false),
            ("Bash", Claude, "bash", true),
            ("bash", Claude, "bash", true),
            ("Edit|Write", Claude, "create", true),
            ("Edit | Write", Claude, "apply_patch", true),
            ("Edit|Write", Claude, "view", false),
            ("Write", Claude, "apply_patch", true),
            ("^Wri.*", Claude, "apply_patch", true),
            ("create", Claude, "apply_patch", true),
            ("create", Native, "apply_patch", true),
            ("edit|bash", Native, "apply_patch", true),
            ("view", Native, "apply_patch", false),
            ("create", Native, "edit", false),
            ("Task", Claude, "task", true),
            ("Agent", Claude, "task", true),
            ("**", Claude, "anything", true),
            ("mcp__.*", Claude, "mcp__github__get", true),
            ("mcp__.*", Claude, "bash", false),
            ("(Read|Grep)", Claude, "view", true),
            ("vi.*", Claude, "view", false),
        ];
        for (matcher, form, tool, expected) in table {
            assert_eq!(
                fires(matcher, form, tool),
                expected,
                "{matcher:?} {form:?} {tool}"
            );
        }
    }

    #[test]
    fn a_matcher_names_tools_of_servers_as_claude_does() {
        use PayloadForm::{Claude, Native};
        let table = [
            ("mcp__srv__wr", Claude, true),
            ("mcp__srv__wr|Bash", Claude, true),
            ("Bash | mcp__srv__wr", Claude, true),
            ("mcp__srv__.*", Claude, true),
            ("mcp__srv__*", Claude, true),
            ("mcp__.*", Claude, true),
            ("mcp__*", Claude, true),
            ("mcp__.*__w.*", Claude, true),
            ("mcp__srv", Claude, true),
            ("mcp__srv|Bash", Claude, true),
            ("^mcp__srv__wr$", Claude, true),
            ("^mcp__srv", Claude, true),
            ("^(mcp__srv__(wr|rd)|Bash)$", Claude, true),
            ("mcp__srv__w", Claude, false),
            ("mcp__srv__rd", Claude, false),
            ("mcp__sr", Claude, false),
            ("mcp__other", Claude, false),
            ("mcp__other__.*", Claude, false),
            ("Bash", Claude, false),
            ("(Bash|Edit)", Claude, false),
            ("mcp__.*", Native, false),
            ("*", Claude, true),
        ];
        let tool = |server: &str, tool: &str| McpToolRef {
            server: server.to_owned(),
            tool: tool.to_owned(),
        };
        for (text, form, expected) in table {
            let matcher = HookMatcher::read(text, form).expect("a matcher");
            let found = matcher.matches_mcp_tool(&[tool("srv", "wr")]);
            assert_eq!(found, expected, "{text:?} {form:?}");
        }
        let matcher = HookMatcher::read("mcp__my_srv__read_it", Claude).expect("a matcher");
        assert!(matcher.matches_mcp_tool(&[tool("my.srv", "read it")]));
        assert!(!matcher.matches_mcp_tool(&[]));
    }

    #[test]
    fn a_pattern_that_is_no_regex_says_what_is_wrong() {
        let error = HookMatcher::read("bash(", PayloadForm::Native).expect_err("no regex");
        assert_eq!(error, "unclosed group");
    }
}
