//! Parses the Markdown file of an agent.
//!
//! `discover` calls it for files on disk, `subagent/definitions` for those in the binary.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::definition::{
    AgentDefinition, AgentMode, AgentOrigin, Isolation, MemoryScope, ModelPolicy, PermissionMode,
};
use super::restrictions;
use crate::discovery::Problem;
use crate::discovery::front_matter::{self, Words};

/// The reasoning efforts that a vendor or an official client knows.
pub const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The maximum length of a name. Lists show it and models write it.
const LONGEST_NAME: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AgentFrontMatter {
    name: Option<String>,
    #[serde(alias = "display-name")]
    display_name: Option<String>,
    description: Option<String>,
    tools: Option<Words>,
    #[serde(alias = "disallowed-tools")]
    disallowed_tools: Option<Words>,
    model: Option<ModelPolicy>,
    effort: Option<String>,
    #[serde(alias = "permission-mode")]
    permission_mode: Option<PermissionMode>,
    background: bool,
    isolation: Option<Isolation>,
    #[serde(alias = "max-turns")]
    max_turns: Option<NonZeroU32>,
    color: Option<String>,
    memory: Option<MemoryScope>,
    #[serde(alias = "mcp-servers")]
    mcp_servers: Option<Value>,
    #[serde(alias = "required-mcp-servers")]
    required_mcp_servers: Option<Words>,
    hooks: Option<serde_json::Map<String, Value>>,
    skills: Option<Words>,
    #[serde(alias = "initial-prompt")]
    initial_prompt: Option<String>,
    mode: AgentMode,
    #[serde(alias = "user-invocable")]
    user_invocable: Option<bool>,
    infer: Option<bool>,
    #[serde(alias = "disable-model-invocation")]
    disable_model_invocation: bool,
}

/// The members of the front matter that are read, with their other spellings.
#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "name", "displayName", "display-name", "description", "tools", "disallowedTools", "disallowed-tools", "model",
    "effort", "permissionMode", "permission-mode", "background", "isolation", "maxTurns", "max-turns", "color",
    "memory", "mcpServers", "mcp-servers", "requiredMcpServers", "required-mcp-servers", "hooks", "skills",
    "initialPrompt", "initial-prompt", "mode", "userInvocable", "user-invocable", "infer",
    "disableModelInvocation", "disable-model-invocation",
];

/// Members that other programs read and that change nothing that we do.
pub(super) const KEYS_OF_OTHERS: &[&str] = &[
    "argument-hint",
    "handoffs",
    "metadata",
    "target",
    "temperature",
    "top_p",
];

/// Returns a remark for each member of the front matter that nothing reads, and for an effort that no
/// provider knows.
pub(super) fn without_effect(path: &Path, text: &str) -> Vec<Problem> {
    let Ok((front, _)) = front_matter::read::<BTreeMap<String, Value>>(path, text) else {
        // The file was read with its types before, and what is wrong was told.
        return Vec::new();
    };
    let is_unknown = |key: &&String| {
        let known = KEYS.iter().chain(KEYS_OF_OTHERS);
        !known.into_iter().any(|known| known == key)
    };
    let unknown = front.keys().filter(is_unknown);
    let remark = |key: &String| {
        let line = front_matter::line_of(text, &[key]).unwrap_or(1);
        let what = format!("`{key}` is unknown and has no effect; the rest of the file is used");
        Problem::at(path, line, what)
    };
    let effort = front.get("effort").and_then(Value::as_str);
    let wrong = effort
        .filter(|effort| !EFFORTS.contains(effort))
        .map(|effort| {
            let line = front_matter::line_of(text, &["effort"]).unwrap_or(1);
            let known = EFFORTS.join(", ");
            let what =
                format!("`effort: {effort}` is unknown and has no effect; use one of {known}");
            Problem::at(path, line, what)
        });
    unknown.map(remark).chain(wrong).collect()
}

/// Parses the text of a file. The agent has the file's name unless the front matter gives one.
pub fn parse(path: &Path, text: &str, origin: AgentOrigin) -> Result<AgentDefinition, Problem> {
    let (front, body) = front_matter::read::<AgentFrontMatter>(path, text)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.strip_suffix(".agent").unwrap_or(&stem).to_owned();
    let name = front.name.unwrap_or(stem);
    if let Some(what) = wrong_name(&name) {
        let line = front_matter::line_of(text, &["name"]).unwrap_or(1);
        return Err(Problem::at(path, line, what));
    }
    let Some(description) = front.description.filter(|text| !text.trim().is_empty()) else {
        let what =
            "the front matter has no `description`, so that nobody can know what the agent is for";
        return Err(Problem::at(path, 1, what));
    };
    let (tools, off) = match front.tools {
        // Switches only turn tools off; the other tools stay allowed.
        Some(Words::Switches(switches)) => {
            let off = switches.into_iter().filter(|(_, on)| !on);
            (None, off.map(|(name, _)| name).collect())
        }
        words => (words.map(Words::list), Vec::new()),
    };
    let disallowed = front.disallowed_tools.map(Words::list).unwrap_or_default();
    restrictions::check(path, text, &disallowed)?;
    Ok(AgentDefinition {
        name,
        display_name: front.display_name,
        description,
        prompt: body.trim().to_owned(),
        // A list with `*` allows every tool, as no list does.
        tools: tools.filter(|tools| !tools.iter().any(|tool| tool == "*")),
        disallowed_tools: disallowed.into_iter().chain(off).collect(),
        model: front.model.unwrap_or_default(),
        effort: front
            .effort
            .filter(|effort| EFFORTS.contains(&effort.as_str())),
        permission_mode: front.permission_mode,
        background: front.background,
        isolation: front.isolation,
        max_turns: front.max_turns.map(NonZeroU32::get),
        color: front.color,
        memory: front.memory,
        mcp_servers: front.mcp_servers,
        required_mcp_servers: front
            .required_mcp_servers
            .map(Words::list)
            .unwrap_or_default(),
        hooks: front.hooks.map(Value::Object),
        skills: front.skills.map(Words::list),
        initial_prompt: front.initial_prompt,
        mode: front.mode,
        user_invocable: front
            .user_invocable
            .unwrap_or(front.mode != AgentMode::Subagent),
        infer: front.infer.unwrap_or(!front.disable_model_invocation),
        origin,
        path: (origin != AgentOrigin::BuiltIn).then(|| path.to_owned()),
    })
}

/// Returns why a name is not valid; `None` if it is.
pub fn wrong_name(name: &str) -> Option<&'static str> {
    if name.trim().is_empty() {
        return Some("the agent has no name");
    }
    if name.chars().count() > LONGEST_NAME {
        return Some("the agent's name is longer than 100 characters; shorten it");
    }
    if name.contains(['/', '\\']) {
        return Some("the agent's name has a slash in it; a name is no path");
    }
    if name.chars().any(char::is_control) {
        return Some("the agent's name has a line break or another control character in it");
    }
    None
}
