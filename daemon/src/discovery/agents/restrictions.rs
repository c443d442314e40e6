//! What a file of an agent says to take something from the agent. Where that cannot be honoured, the agent
//! could do more than its author wants, so the file is not used.

use std::collections::BTreeMap;
use std::path::Path;

use loopd_kernel::policy::tool_list::{BUILT_IN, may_name_a_tool};
use loopd_proto::misspelt::{meant, plain};
use serde_json::Value;

use super::parse::{KEYS, KEYS_OF_OTHERS};
use crate::discovery::Problem;
use crate::discovery::front_matter;
use crate::discovery::tool_words::takes_out;

/// Members that restrict an agent, or who may start it.
const RESTRICTING: &[&str] = &[
    "tools",
    "disallowedTools",
    "permissionMode",
    "maxTurns",
    "isolation",
    "hooks",
    "infer",
    "disableModelInvocation",
    "userInvocable",
];

/// Words in the names of members by which other programs restrict agents.
const WORDS: &[&str] = &["tool", "permission", "allow", "deny", "readonly"];

/// Refuses a file with a restriction that cannot be honoured.
pub(super) fn check(path: &Path, text: &str, disallowed: &[String]) -> Result<(), Problem> {
    let Ok((front, _)) = front_matter::read::<BTreeMap<String, Value>>(path, text) else {
        // The file was read with its types before, and what is wrong was told.
        return Ok(());
    };
    for (key, value) in &front {
        if let Some(what) = wrong_key(key).or_else(|| wrong_list(key, value)) {
            let line = front_matter::line_of(text, &[key]).unwrap_or(1);
            return Err(Problem::at(path, line, what));
        }
    }
    let misspelt = disallowed
        .iter()
        .find_map(|name| Some((name, misspelt_tool(name)?)));
    if let Some((name, meant)) = misspelt {
        let what = format!(
            "`{name}` is to be taken away and is no tool; if it means `{meant}`, correct the name. Until then the \
             agent is not used"
        );
        return Err(Problem::new(path, what));
    }
    Ok(())
}

/// Returns why a member restricts nothing although its author wants it to.
fn wrong_key(key: &str) -> Option<String> {
    if KEYS.iter().chain(KEYS_OF_OTHERS).any(|known| *known == key) {
        return None;
    }
    let letters = plain(key);
    let meant = meant(key, RESTRICTING.iter().copied());
    if meant.is_none() && !WORDS.iter().any(|word| letters.contains(word)) {
        return None;
    }
    let hint = match meant {
        Some(meant) => format!("write `{meant}` if that is meant"),
        None => "use `tools`, `disallowedTools` or `permissionMode`".to_owned(),
    };
    Some(format!(
        "`{key}` is unknown and would restrict the agent, so the agent is not used; {hint}, or take the line out"
    ))
}

/// Returns why a list of tools cannot be honoured.
fn wrong_list(key: &str, value: &Value) -> Option<String> {
    if !["tools", "disallowedTools", "disallowed-tools"].contains(&key) {
        return None;
    }
    if value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty()) {
        return Some(format!(
            "`{key}` names no tool, so the agent is not used; name tools, or take the line out"
        ));
    }
    let words: Vec<&str> = match value {
        Value::String(text) => text.split([',', ' ']).collect(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let out = words.into_iter().find(|word| takes_out(word))?;
    Some(format!(
        "`{key}` takes tools out with `{out}`, which is not known here, so the agent is not used; name them in \
         `disallowedTools`"
    ))
}

/// Returns the tool that a name which is no tool is probably a mistake for.
fn misspelt_tool(name: &str) -> Option<&'static str> {
    let is_known = may_name_a_tool(name, |name| BUILT_IN.contains(&name));
    let name = name.split('(').next().unwrap_or_default().trim();
    if is_known || name.contains('*') {
        return None;
    }
    meant(name, BUILT_IN)
}

#[cfg(test)]
mod tests {
    use super::{misspelt_tool, wrong_key, wrong_list};
    use serde_json::json;

    #[test]
    fn members_that_were_meant_to_restrict_are_refused() {
        for key in [
            "tool",
            "Tools",
            "dissalowed-tools",
            "disallowed_tools",
            "allowed-tools",
            "excludedTools",
            "permission",
            "permision-mode",
            "hook",
        ] {
            assert!(wrong_key(key).is_some(), "{key}");
        }
        for key in [
            "tools",
            "disallowed-tools",
            "frobnicate",
            "handoffs",
            "version",
            "author",
        ] {
            assert_eq!(wrong_key(key), None, "{key}");
        }
    }

    #[test]
    fn lists_that_take_tools_out_or_name_none_are_refused() {
        for value in [
            json!(null),
            json!(" "),
            json!(["*", "!bash"]),
            json!("*, -bash"),
        ] {
            assert!(wrong_list("tools", &value).is_some(), "{value}");
        }
        for value in [
            json!([]),
            json!("view, Bash(git log:*)"),
            json!({"bash": false}),
        ] {
            assert_eq!(wrong_list("tools", &value), None, "{value}");
        }
    }

    #[test]
    fn names_that_are_nearly_those_of_tools_are_mistakes() {
        assert_eq!(misspelt_tool("bsh"), Some("bash"));
        assert_eq!(misspelt_tool("Bassh(rm:*)"), Some("bash"));
        for name in ["bash", "Bash", "mcp__x__y", "frobnicate", "b*"] {
            assert_eq!(misspelt_tool(name), None, "{name}");
        }
    }
}
