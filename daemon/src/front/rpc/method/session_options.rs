//! Checks the options that a client names when it opens or changes a session. An option that would
//! be ignored or misread is refused; the error names the member and its valid values.

use std::path::Path;

use loopd_proto::misspelt::meant;
use loopd_proto::params::tool::SubagentSettings;
use loopd_proto::session::{ClientTool, CustomAgent, SessionOptions, WithoutEffect};
use serde_json::Value;

use super::permission_path::check_absolute;
use crate::discovery::agents::{EFFORTS, wrong_name};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::limit;
use crate::session::{SessionHandle, names_tool};
use crate::subagent::definitions::is_same;
use loopd_kernel::command::{Command, LogLevel};
use loopd_kernel::policy::tool_list;
use loopd_kernel::tool_call::ToolOrigin;

/// How reasoning is summarised.
const SUMMARIES: [&str; 4] = ["none", "auto", "concise", "detailed"];
/// The sizes of a context window in the public schema.
const CONTEXT_TIERS: [&str; 2] = ["default", LONG_CONTEXT];
pub(super) const LONG_CONTEXT: &str = "long_context";
const SYSTEM_MESSAGE_MODES: [&str; 3] = ["append", "replace", "customize"];
const PRECEDENCES: [&str; 2] = ["available", "excluded"];
/// The longest name of a tool.
const TOOL_NAME: usize = 128;

/// Checks everything but the directories.
pub(super) fn check(options: &SessionOptions) -> Result<(), RpcError> {
    if let Some(effort) = &options.reasoning_effort {
        check_effort(effort)?;
    }
    check_summary(options.reasoning_summary.as_deref())?;
    check_context_tier("contextTier", options.context_tier.as_deref())?;
    check_subagents(options.subagents.as_ref())?;
    let precedence = options.tool_filter_precedence.as_deref();
    one_of("toolFilterPrecedence", precedence, &PRECEDENCES)?;
    if let Some(config) = &options.system_message {
        let mode = config.mode.as_deref();
        one_of("systemMessage.mode", mode, &SYSTEM_MESSAGE_MODES)?;
        limit::system_message(config)?;
    }
    let mut chain = options.fallback_models.iter().flatten();
    if chain.any(|model| model.trim().is_empty()) {
        return Err(RpcError::InvalidParams(
            "fallbackModels: a name is empty; name a model, or remove it".to_owned(),
        ));
    }
    check_compaction(options.infinite_sessions.as_ref())?;
    check_agents(options.custom_agents.as_deref().unwrap_or_default())?;
    for folder in options.additional_directories.iter().flatten() {
        check_absolute("additionalDirectories", folder)?;
    }
    limit::instructions(options.organization_custom_instructions.as_deref())?;
    limit::tool_names("availableTools", options.available_tools.as_deref())?;
    limit::tool_names("excludedTools", options.excluded_tools.as_deref())
}

/// Refuses to look for configuration elsewhere than the client names it: hooks that guard may be there.
pub(super) fn check_configuration(
    options: &SessionOptions,
    without: &[WithoutEffect],
) -> Result<(), RpcError> {
    let discovers = options.enable_config_discovery == Some(true) || options.wants_file_hooks();
    if discovers && without.iter().any(|it| it.name == "configDir") {
        return Err(RpcError::InvalidParams(
            "configDir: configuration that is discovered is looked for where the app's environment says, as with \
             COPILOT_HOME; leave one of them out"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Checks from which parts of the context window on a conversation is summarised.
fn check_compaction(given: Option<&Value>) -> Result<(), RpcError> {
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return Ok(());
    };
    let refuse = |member: &str, why: &str| {
        let text = format!("infiniteSessions{member}: {why}");
        Err(RpcError::InvalidParams(text))
    };
    if !given.is_object() {
        return refuse("", "it is not an object");
    }
    let part = |name: &str| given.get(name).filter(|value| !value.is_null());
    if part("enabled").is_some_and(|value| !value.is_boolean()) {
        return refuse(".enabled", "it is not true or false");
    }
    for name in ["backgroundCompactionThreshold", "bufferExhaustionThreshold"] {
        let fits = |value: &Value| {
            value
                .as_f64()
                .is_some_and(|part| (0.0..=1.0).contains(&part))
        };
        if let Some(value) = part(name).filter(|value| !fits(value)) {
            let why = format!("{value} is not a part of the context window, from 0 to 1");
            return refuse(&format!(".{name}"), &why);
        }
    }
    Ok(())
}

/// Checks the agents that a client defines.
fn check_agents(agents: &[CustomAgent]) -> Result<(), RpcError> {
    for (at, agent) in agents.iter().enumerate() {
        let refuse = |member: &str, why: String| {
            let text = format!("customAgents[{at}].{member}: {why}");
            Err(RpcError::InvalidParams(text))
        };
        if let Some(why) = wrong_name(&agent.name) {
            return refuse("name", why.to_owned());
        }
        let mut before = agents.iter().take(at);
        if before.any(|other| is_same(&other.name, &agent.name)) {
            return refuse(
                "name",
                format!("there are two agents named `{}`", agent.name),
            );
        }
        if agent.prompt.trim().is_empty() {
            let why = format!(
                "the agent `{}` has no prompt; say what it is to do",
                agent.name
            );
            return refuse("prompt", why);
        }
        if let Some(effort) = &agent.reasoning_effort {
            one_of(
                &format!("customAgents[{at}].reasoningEffort"),
                Some(effort),
                &EFFORTS,
            )?;
        }
    }
    Ok(())
}

pub(super) fn check_effort(effort: &str) -> Result<(), RpcError> {
    one_of("reasoningEffort", Some(effort), &EFFORTS)
}

pub(super) fn check_summary(summary: Option<&str>) -> Result<(), RpcError> {
    one_of("reasoningSummary", summary, &SUMMARIES)
}

/// Checks the size of a context window.
pub(super) fn check_context_tier(member: &str, tier: Option<&str>) -> Result<(), RpcError> {
    one_of(member, tier, &CONTEXT_TIERS)
}

/// Tells the clients of a session which members of a request have no effect.
pub(super) async fn warn_of_members(session: &SessionHandle, without: &[WithoutEffect]) {
    if without.is_empty() {
        return;
    }
    let told = without.iter().map(|it| format!("{}: {}", it.name, it.why));
    let told: Vec<String> = told.collect();
    let message = format!("These have no effect here. {}.", told.join("; "));
    warn(session, "option_without_effect", message).await;
}

/// Tells the clients of a session which names in its lists of tools are probably mistakes. A tool of that
/// name may come later, from a client or a server, so that they count all the same.
pub(super) async fn warn_of_tools(
    context: &Context,
    session: &SessionHandle,
    options: &SessionOptions,
    offered: &[ClientTool],
) -> Result<(), RpcError> {
    let lists = [
        ("availableTools", &options.available_tools),
        ("excludedTools", &options.excluded_tools),
    ];
    let named = options.default_agent.as_ref();
    let named = named.map(|agent| ("defaultAgent.excludedTools", &agent.excluded_tools));
    let lists = lists.into_iter().chain(named);
    let lists: Vec<(&str, &[String])> = lists
        .filter_map(|(member, list)| Some((member, list.as_deref()?)))
        .collect();
    if lists.is_empty() {
        return Ok(());
    }
    let offered_now = session.view(|view| {
        let tools = (view.tools)();
        tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect::<Vec<String>>()
    });
    let offered_now = offered_now.await?;
    let catalog = &context.app.services.catalog;
    let built_in = catalog.names().into_iter();
    let known = built_in.map(|name| (name.to_owned(), ToolOrigin::BuiltIn));
    let offered = offered.iter().map(|tool| tool.name.clone());
    let others = offered.chain(offered_now);
    let others = others.map(|name| (name, ToolOrigin::Client));
    let known: Vec<(String, ToolOrigin)> = known.chain(others).collect();
    let told: Vec<String> = lists
        .into_iter()
        .flat_map(|(member, list)| list.iter().map(move |name| (member, name)))
        .filter_map(|(member, name)| {
            let meant = meant_tool(name, &known)?;
            Some(format!("{member}: `{name}` may be meant as {meant}"))
        })
        .collect();
    if !told.is_empty() {
        let message = format!(
            "There are no such tools now: {}. The names count if tools of these names come.",
            told.join("; ")
        );
        warn(session, "tool_unknown", message).await;
    }
    Ok(())
}

/// Returns what a name in a list of tools is probably meant to be, if it names none.
fn meant_tool(pattern: &str, known: &[(String, ToolOrigin)]) -> Option<String> {
    const ORIGINS: [&str; 3] = ["builtin", "custom", "mcp"];
    let mut all = known.iter();
    if all.any(|(name, origin)| names_tool(pattern, name, *origin)) {
        return None;
    }
    let names = || known.iter().map(|(name, _)| name.as_str());
    let quoted = |name: &str| format!("`{name}`");
    match pattern.split_once(':') {
        Some((origin, name)) if ORIGINS.contains(&origin) => meant(name, names()).map(quoted),
        Some((origin, name)) => {
            meant(origin, ORIGINS).map(|origin| quoted(&format!("{origin}:{name}")))
        }
        None if pattern.trim() == "*" => Some("`builtin:*`, `custom:*` or `mcp:*`".to_owned()),
        // Names of servers, and of their tools, which nobody may know yet.
        None if pattern.contains('/') || pattern.starts_with("mcp__") => None,
        None => {
            let of_others = known.iter().find(|(name, origin)| {
                *origin == ToolOrigin::BuiltIn && tool_list::means(pattern, name, *origin)
            });
            let of_others = of_others.map(|(name, _)| name.as_str());
            meant(pattern, names()).or(of_others).map(quoted)
        }
    }
}

async fn warn(session: &SessionHandle, kind: &str, message: String) {
    let warning = Command::Log {
        level: LogLevel::Warning,
        kind: kind.to_owned(),
        message,
        url: None,
        tip: None,
        stored: true,
    };
    if let Err(error) = session.command(warning).await {
        tracing::warn!(%error, "a session could not be told about its options");
    }
}

/// Tells the clients of a session that a longer context window was asked for, which the daemon cannot ask
/// a provider for. Apps send it to every model, so that it is not refused.
pub(super) async fn warn_of_context_tier(session: &SessionHandle, options: &SessionOptions) {
    let own = options.context_tier.as_deref();
    let own = (own == Some(LONG_CONTEXT)).then(|| "contextTier".to_owned());
    let agents = options.subagents.iter().flat_map(|it| &it.agents).flatten();
    let agents = agents.filter(|(_, agent)| agent.context_tier.as_deref() == Some(LONG_CONTEXT));
    let agents = agents.map(|(name, _)| format!("subagents.agents.{name}.contextTier"));
    let members: Vec<String> = own.into_iter().chain(agents).collect();
    if !members.is_empty() {
        warn_of_long_context(session, &members.join(", ")).await;
    }
}

/// Tells the clients of a session that this member has no effect.
pub(super) async fn warn_of_long_context(session: &SessionHandle, members: &str) {
    let message = format!(
        "{members}: \"{LONG_CONTEXT}\" has no effect; the context window is that of the model, so choose a model with a larger one"
    );
    warn(session, "option_without_effect", message).await;
}

/// Checks the settings of sub-agents: their limits, and what is set for single agents.
pub(super) fn check_subagents(settings: Option<&SubagentSettings>) -> Result<(), RpcError> {
    let Some(settings) = settings else {
        return Ok(());
    };
    for (field, limit) in [
        ("maxConcurrency", settings.max_concurrency),
        ("maxDepth", settings.max_depth),
    ] {
        if limit == Some(0) {
            return Err(RpcError::InvalidParams(format!(
                "subagents.{field}: must be at least 1"
            )));
        }
    }
    for (name, entry) in settings.agents.iter().flatten() {
        let member = |field| format!("subagents.agents.{name}.{field}");
        let effort = entry.effort_level.as_deref();
        one_of(&member("effortLevel"), effort, &EFFORTS)?;
        check_context_tier(&member("contextTier"), entry.context_tier.as_deref())?;
    }
    Ok(())
}

fn one_of(member: &str, value: Option<&str>, valid: &[&str]) -> Result<(), RpcError> {
    match value {
        Some(value) if !valid.contains(&value) => Err(RpcError::InvalidParams(format!(
            "{member}: {value:?} is none of {}",
            valid.join(", ")
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Checks the names and sizes of the tools that a client offers. Vendors take letters, digits, `_`
/// and `-`; clients also group their tools with `.`, `/` and `:`.
pub(super) fn check_tools(tools: &[ClientTool]) -> Result<(), RpcError> {
    limit::tools(tools)?;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    for (at, tool) in tools.iter().enumerate() {
        if tool.name.len() > TOOL_NAME || !tool.name.chars().all(plain) {
            return Err(RpcError::InvalidParams(format!(
                "tools[{at}].name: use 1 to {TOOL_NAME} letters, digits, `_`, `-`, `.`, `/` or `:`"
            )));
        }
    }
    Ok(())
}

/// Makes the folders that a client names absolute: they stay where they are when the session moves.
pub(super) fn resolve_folders(options: &mut SessionOptions, cwd: &Path) {
    let lists = [
        &mut options.agent_directories,
        &mut options.instruction_directories,
        &mut options.plugin_directories,
        &mut options.skill_directories,
    ];
    for folder in lists.into_iter().flatten().flatten() {
        *folder = cwd.join(&folder).to_string_lossy().into_owned();
    }
}

/// Refuses a working directory that is not there, so that nothing runs elsewhere than was meant.
pub(super) fn check_directory(named: Option<&str>, resolved: &Path) -> Result<(), RpcError> {
    let Some(named) = named else {
        return Ok(());
    };
    if named.is_empty() {
        return Err(RpcError::InvalidParams(
            "workingDirectory: it is empty; name an existing directory, or leave it out for that of the caller"
                .to_owned(),
        ));
    }
    let why = match std::fs::metadata(resolved) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => "is not a directory".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        Err(error) => format!("cannot be used: {error}"),
    };
    Err(RpcError::InvalidParams(format!(
        "workingDirectory: {named} {why}; name an existing directory"
    )))
}
