//! `session.options.update`.

use loopd_proto::params::options::OptionsParams;
use loopd_proto::params::session::Success;
use serde_json::{Map, Value};

use super::permission_path;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::Command;

/// Members that are honoured as `session.create` honours them.
const HONOURED: &[&str] = &[
    "askUserDisabled",
    "availableTools",
    "clientName",
    "enableStreaming",
    "excludedBuiltinAgents",
    "excludedTools",
    "model",
    "modelCapabilitiesOverrides",
    "reasoningEffort",
    "sessionLimits",
    "skipCustomInstructions",
    "toolFilterPrecedence",
    "workingDirectory",
];

/// Members that label the caller for services that are not used here; they change nothing.
const LABELS: &[&str] = &[
    "agentContext",
    "featureFlags",
    "integrationId",
    "isExperimentalMode",
    "lspClientName",
    "runningInInteractiveMode",
];

/// Changes all that is named, or nothing.
pub(super) async fn update(context: Context, params: OptionsParams) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    check(&params.members).map_err(RpcError::InvalidParams)?;
    let patch = params.patch;
    if let Some(directory) = &patch.options.working_directory {
        permission_path::checked("workingDirectory", directory)?;
    }
    let change = Command::UpdateOptions(Box::new(patch));
    session.command(change).await?;
    Ok(Success::YES)
}

/// Refuses, by name, what would be ignored.
fn check(members: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in members {
        let known = HONOURED.contains(&name.as_str()) || LABELS.contains(&name.as_str());
        if !known && !is_so_already(name, value) {
            return Err(format!(
                "{name}: cannot be changed in a session, or not to {value}; nothing was changed"
            ));
        }
    }
    match members.get("toolFilterPrecedence").and_then(Value::as_str) {
        None | Some("available" | "excluded") => Ok(()),
        Some(other) => Err(format!(
            "toolFilterPrecedence: {other} is neither `available` nor `excluded`"
        )),
    }
}

/// Whether an option asks for what is always so here.
fn is_so_already(name: &str, value: &Value) -> bool {
    match name {
        // Subagents always run on this machine, and no skills are built in.
        "customAgentsLocalOnly" | "includedBuiltinSkills" => true,
        // There is no trailer, no schedule tool, no hook file and no skill for the model.
        "coauthorEnabled" | "manageScheduleEnabled" | "enableFileHooks" | "enableSkills" => {
            *value == Value::Bool(false)
        }
        "skipEmbeddingRetrieval" => *value == Value::Bool(true),
        // Plugins are folders that a launch or a session names.
        "installedPlugins" => value.as_array().is_some_and(Vec::is_empty),
        _ => false,
    }
}
