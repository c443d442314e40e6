//! How much one request may carry. What is over a limit is refused with the limit in the error,
//! before anything is stored.

use loopd_proto::permission::PermissionRule;
use loopd_proto::session::{ClientTool, SystemMessageConfig};
use loopd_proto::wire::Limits;

use super::error::RpcError;

/// The most bytes of one request's parameters. A message with its attachments is one request. The
/// store keeps a message twice, as queued and as read by the model, in one write of at most 64 MiB.
const REQUEST: usize = 16 * MIB;
/// The most bytes of a client's answer to a request of ours. It is stored as a request is.
const ANSWER: usize = REQUEST;
/// The most bytes of the name of a session.
const NAME: usize = 1024;
const PLAN: usize = MIB;
const LOG_LINE: usize = MIB;
const SYSTEM_MESSAGE: usize = MIB;
/// The most bytes of the argument of a permission rule.
const RULE: usize = 16 * KIB;
/// The most permission rules in one request.
const RULES: usize = 1_000;
/// The most names in a list of tools to use or to leave out.
const TOOL_NAMES: usize = 4_096;
/// The most tools that one client offers, and the most bytes of one.
const TOOLS: usize = 512;
const TOOL: usize = 256 * KIB;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Returns the limits of a connection to a client.
pub(super) fn of_connection() -> Limits {
    Limits {
        answer_limit: ANSWER,
        ..Limits::default()
    }
}

fn at_most(what: &str, bytes: usize, limit: usize) -> Result<(), RpcError> {
    if bytes <= limit {
        return Ok(());
    }
    Err(RpcError::InvalidParams(format!(
        "{what}: {bytes} bytes are more than the limit of {limit} bytes"
    )))
}

fn count(member: &str, entries: usize, limit: usize) -> Result<(), RpcError> {
    if entries <= limit {
        return Ok(());
    }
    Err(RpcError::InvalidParams(format!(
        "{member}: {entries} entries are more than the limit of {limit}"
    )))
}

/// Checks a list of names of tools.
pub(super) fn tool_names(member: &str, names: Option<&[String]>) -> Result<(), RpcError> {
    count(member, names.map_or(0, <[String]>::len), TOOL_NAMES)
}

/// Checks the parameters of a request as they came.
pub(super) fn request(params: &str) -> Result<(), RpcError> {
    if params.len() <= REQUEST {
        return Ok(());
    }
    Err(RpcError::InvalidParams(format!(
        "the parameters have {} bytes, more than the limit of {REQUEST} bytes; put large texts into files and name the files",
        params.len()
    )))
}

pub(super) fn name(member: &str, name: &str) -> Result<(), RpcError> {
    at_most(member, name.len(), NAME)
}

pub(super) fn plan(content: &str) -> Result<(), RpcError> {
    at_most("content", content.len(), PLAN)
}

pub(super) fn log_line(message: &str) -> Result<(), RpcError> {
    at_most("message", message.len(), LOG_LINE)
}

pub(super) fn system_message(config: &SystemMessageConfig) -> Result<(), RpcError> {
    let own = config.content.as_deref().map_or(0, str::len);
    let sections = config.sections.iter().flatten();
    let sections = sections.filter_map(|(_, section)| section.content.as_deref());
    let bytes = sections.fold(own, |bytes, text| bytes.saturating_add(text.len()));
    at_most("systemMessage", bytes, SYSTEM_MESSAGE)
}

/// Checks instructions that a client gives as text.
pub(super) fn instructions(text: Option<&str>) -> Result<(), RpcError> {
    let bytes = text.map_or(0, str::len);
    at_most("organizationCustomInstructions", bytes, SYSTEM_MESSAGE)
}

pub(super) fn rules(member: &str, rules: &[PermissionRule]) -> Result<(), RpcError> {
    count(member, rules.len(), RULES)?;
    for (at, rule) in rules.iter().enumerate() {
        let bytes = rule.argument.as_deref().map_or(0, str::len);
        at_most(&format!("{member}[{at}].argument"), bytes, RULE)?;
    }
    Ok(())
}

pub(super) fn tools(tools: &[ClientTool]) -> Result<(), RpcError> {
    count("tools", tools.len(), TOOLS)?;
    for (at, tool) in tools.iter().enumerate() {
        let parameters = tool.parameters.as_ref().map(ToString::to_string);
        let bytes = tool.description.len() + parameters.map_or(0, |text| text.len());
        at_most(&format!("tools[{at}]"), bytes, TOOL)?;
    }
    Ok(())
}
