//! Finds names in matchers and conditions that no tool has. Clients and MCP servers may bring tools of
//! any name, so that this is a notice and no mistake.

use super::kind::{PayloadForm, similarity};
use super::matcher::{HookMatcher, is_name};
use super::mcp_names::is_meant;
use super::tool_names::{claude_names, known_tools};

/// How similar a name has to be to that of a tool to be taken for a misspelling of it.
const MISSPELT: f32 = 0.7;

/// Says which names of a matcher for tools match no tool that loopd knows.
pub(super) fn in_matcher(text: &str, matcher: &HookMatcher, form: PayloadForm) -> Option<String> {
    if form == PayloadForm::Native && is_meant(text) {
        return Some(format!(
            "its `matcher` `{text}` names tools of MCP servers as Claude's format does; for an event that \
             is spelled like this one they are called `server-tool`, and the hook does not run for them"
        ));
    }
    if matches!(matcher, HookMatcher::Every) || text.contains("mcp") {
        return None;
    }
    let matches_some = known_tools().any(|tool| matcher.matches_tool(tool));
    let names: Vec<&str> = text.split('|').map(str::trim).collect();
    if !names.iter().all(|name| is_name(name)) {
        return (!matches_some).then(|| {
            format!(
                "its `matcher` `{text}` covers the name of no built-in tool; it is compared with the whole \
                 name, such as `{}`; {ELSEWHERE}",
                spelling("bash", form)
            )
        });
    }
    let unknown = names.into_iter().filter(|name| {
        let is_it = |tool: &str| of_name(name, tool, form);
        !known_tools().any(is_it)
    });
    let wrong = unknown.filter_map(|name| {
        let (nearest, similarity) = nearest(name, form);
        let told = !matches_some || similarity >= MISSPELT;
        told.then(|| describe("matcher", name, &nearest))
    });
    let wrong: Vec<String> = wrong.collect();
    (!wrong.is_empty()).then(|| wrong.join("; "))
}

/// Says that a condition names no tool that loopd knows.
pub(super) fn in_condition(tool: &str) -> Option<String> {
    let is_it = |known: &str| known == tool || claude_names(known).contains(&tool);
    if tool.contains("mcp") || known_tools().any(is_it) {
        return None;
    }
    let (nearest, _) = nearest(tool, PayloadForm::Claude);
    Some(describe("if", tool, &nearest))
}

const ELSEWHERE: &str =
    "the hook runs only if a client or an MCP server brings a tool of that name";

fn describe(member: &str, name: &str, nearest: &str) -> String {
    format!(
        "`{name}` in `{member}` is no built-in tool; did you mean `{nearest}`? Else {ELSEWHERE}"
    )
}

fn of_name(name: &str, tool: &str, form: PayloadForm) -> bool {
    name == tool || (form == PayloadForm::Claude && claude_names(tool).contains(&name))
}

/// Returns the name that a tool has in files of this form.
fn spelling(tool: &'static str, form: PayloadForm) -> &'static str {
    match form {
        PayloadForm::Native => tool,
        PayloadForm::Claude => claude_names(tool).first().unwrap_or(&tool),
    }
}

/// Returns the name of the nearest tool, and how similar it is.
fn nearest(name: &str, form: PayloadForm) -> (String, f32) {
    if form == PayloadForm::Native {
        // The name is Claude's.
        let meant = known_tools().filter(|tool| claude_names(tool).contains(&name));
        let same = name.to_lowercase();
        if let Some(meant) = meant.max_by_key(|tool| *tool == same) {
            return (meant.to_owned(), 1.0);
        }
    }
    let likeness = |tool: &&'static str| similarity(name, spelling(tool, form));
    let nearest = known_tools().max_by(|left, right| likeness(left).total_cmp(&likeness(right)));
    let nearest = nearest.unwrap_or("bash");
    (spelling(nearest, form).to_owned(), likeness(&nearest))
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_tool_has_are_told_with_the_nearest_one() {
        use PayloadForm::{Claude, Native};
        let table = [
            ("bash", Native, None),
            ("bash|edit", Native, None),
            ("ba.*", Native, None),
            ("*", Native, None),
            ("stop_agent", Native, None),
            ("Bash", Native, Some("`bash`")),
            ("Write", Native, Some("`create`")),
            ("bsah|edit", Native, Some("`bash`")),
            ("Bash|Edit", Claude, None),
            ("bash", Claude, None),
            ("Edit|MultiEdit|Write", Claude, None),
            ("MultiEdit", Claude, Some("`Edit`")),
            ("Bahs", Claude, Some("`Bash`")),
            ("Wriet|Read", Claude, Some("`Write`")),
            ("mcp__github__.*", Claude, None),
            ("mcp__github__get|Bash", Claude, None),
            ("mcp__github", Claude, None),
            ("mcp__github__.*", Native, Some("`server-tool`")),
            ("mcp_tool", Native, None),
            ("shell.*", Native, Some("`bash`")),
            ("shell.*", Claude, Some("`Bash`")),
        ];
        for (text, form, expected) in table {
            let matcher = HookMatcher::read(text, form).expect("a matcher");
            let told = in_matcher(text, &matcher, form);
            match expected {
                None => assert_eq!(told, None, "{text}"),
                Some(name) => {
                    let told = told.expect("a notice");
                    assert!(told.contains(name), "{text}: {told}");
                }
            }
        }
        assert_eq!(in_condition("Bash"), None);
        assert_eq!(in_condition("edit"), None);
        let told = in_condition("Bsh").expect("a notice");
        assert!(told.contains("did you mean `Bash`?"), "{told}");
    }
}
