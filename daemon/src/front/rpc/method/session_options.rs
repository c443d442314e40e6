//! Checks the options that a client names when it opens or changes a session. An option that would
//! be ignored or misread is refused; the error names the member and its valid values.

use std::path::Path;

use loopd_proto::session::{ClientTool, SessionOptions};

use super::permission_path::check_absolute;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::limit;

/// The reasoning efforts that a vendor or an official client knows.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const SYSTEM_MESSAGE_MODES: [&str; 3] = ["append", "replace", "customize"];
const PRECEDENCES: [&str; 2] = ["available", "excluded"];
/// The longest name of a tool.
const TOOL_NAME: usize = 128;

/// Checks everything but the directories.
pub(super) fn check(options: &SessionOptions) -> Result<(), RpcError> {
    if let Some(effort) = &options.reasoning_effort {
        check_effort(effort)?;
    }
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
