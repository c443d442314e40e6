//! `session.options.update`.

use loopd_proto::params::options::OptionsParams;
use loopd_proto::params::session::Success;
use serde_json::{Map, Value};

use super::{permission_path, session_options};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::Command;

/// Members that have the same effect as in `session.create`.
const HONOURED: &[&str] = &[
    "agentDirectories",
    "askUserDisabled",
    "autopilot",
    "availableTools",
    "clientName",
    "contextTier",
    "disabledInstructionSources",
    "disabledMcpServers",
    "disabledSkills",
    "enableOnDemandInstructionDiscovery",
    "enableSkills",
    "enableStreaming",
    "envValueMode",
    "excludedBuiltinAgents",
    "excludedTools",
    "fallbackModels",
    "model",
    "modelCapabilitiesOverrides",
    "organizationCustomInstructions",
    "reasoningEffort",
    "reasoningSummary",
    "sessionLimits",
    "skillDirectories",
    "skipCustomInstructions",
    "toolFilterPrecedence",
    "workingDirectory",
];

/// Members that describe the caller to services that the daemon does not use; they change nothing.
const LABELS: &[&str] = &[
    "agentContext",
    "featureFlags",
    "integrationId",
    "isExperimentalMode",
    "lspClientName",
    "runningInInteractiveMode",
];

/// Changes all options that the request names, or none.
pub(super) async fn update(context: Context, params: OptionsParams) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    check(&params.members).map_err(RpcError::InvalidParams)?;
    let patch = params.patch;
    session_options::check(&patch.options)?;
    if let Some(directory) = &patch.options.working_directory {
        permission_path::checked("workingDirectory", directory)?;
    }
    let named = patch.options.clone();
    let change = Command::UpdateOptions(Box::new(patch));
    session.command(change).await?;
    session_options::warn_of_context_tier(&session, &named).await;
    Ok(Success::YES)
}

/// Refuses options that would be ignored; the error names the option.
fn check(members: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in members {
        let known = HONOURED.contains(&name.as_str()) || LABELS.contains(&name.as_str());
        if !known && !is_so_already(name, value) {
            return Err(format!(
                "{name}: cannot be changed in a session, or not to {value}; nothing was changed"
            ));
        }
    }
    Ok(())
}

/// Returns whether an option asks for what this daemon always does.
fn is_so_already(name: &str, value: &Value) -> bool {
    match name {
        // Sub-agents always run on this machine, and no skills are built in.
        "customAgentsLocalOnly" | "includedBuiltinSkills" => true,
        // The daemon has no co-author trailer and no schedule tool.
        "coauthorEnabled" | "manageScheduleEnabled" => *value == Value::Bool(false),
        "skipEmbeddingRetrieval" => *value == Value::Bool(true),
        // Nothing is installed: plugins are folders that a launch or a session names.
        "installedPlugins" => value.as_array().is_some_and(Vec::is_empty),
        _ => false,
    }
}
