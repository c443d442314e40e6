//! Checks the options that a client names when it opens or changes a session. An option that would
//! be ignored or misread is refused; the error names the member and its valid values.

use std::path::Path;

use loopd_proto::params::tool::SubagentSettings;
use loopd_proto::session::{ClientTool, SessionOptions};

use super::permission_path::check_absolute;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::limit;
use crate::session::SessionHandle;
use loopd_kernel::command::{Command, LogLevel};

/// The reasoning efforts that a vendor or an official client knows.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
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
    for folder in options.additional_directories.iter().flatten() {
        check_absolute("additionalDirectories", folder)?;
    }
    limit::instructions(options.organization_custom_instructions.as_deref())?;
    limit::tool_names("availableTools", options.available_tools.as_deref())?;
    limit::tool_names("excludedTools", options.excluded_tools.as_deref())
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
    let warning = Command::Log {
        level: LogLevel::Warning,
        kind: "option_without_effect".to_owned(),
        message: format!(
            "{members}: \"{LONG_CONTEXT}\" has no effect; the context window is that of the model, so choose a model with a larger one"
        ),
        url: None,
        tip: None,
        stored: true,
    };
    if let Err(error) = session.command(warning).await {
        tracing::warn!(%error, "a session could not be told about its context tier");
    }
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
