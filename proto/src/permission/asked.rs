//! Why a person is asked although everything is approved, and what such an answer covers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PermissionRequest, PermissionRule};

/// Exactly what a person approved for a session although a rule asks about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmedRequest {
    /// The kind of the request; `tool` for a call that needs no permission otherwise.
    pub kind: String,
    /// The text of a command, the paths of files, an address, or the name of a tool.
    pub what: Vec<String>,
    /// The directory in which a command runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

impl ConfirmedRequest {
    /// Returns what an approval for the session covers; `None` if the same request may come to
    /// something else the next time.
    pub fn of(request: &PermissionRequest) -> Option<Self> {
        let one = |kind: &str, what: Vec<String>| {
            Some(Self {
                kind: kind.to_owned(),
                what,
                directory: None,
            })
        };
        match request {
            PermissionRequest::Shell {
                full_command_text,
                resolved_working_directory,
                changed_shell,
                shell_directories,
                shell_directory_unknown,
                writes_protected,
                typed_before,
                ..
            } => {
                let is_moved = !shell_directories.is_empty()
                    || *shell_directory_unknown == Some(true)
                    || *changed_shell == Some(true);
                let is_once = *writes_protected == Some(true) || !typed_before.is_empty();
                (!is_moved && !is_once).then(|| Self {
                    kind: "shell".to_owned(),
                    what: vec![full_command_text.clone()],
                    directory: resolved_working_directory.clone(),
                })
            }
            PermissionRequest::Write {
                file_name,
                other_files,
                can_offer_session_approval: true,
                ..
            } => {
                let files = std::iter::once(file_name).chain(other_files);
                one("write", files.cloned().collect())
            }
            PermissionRequest::Write { .. } => None,
            PermissionRequest::Read { path, .. } => one("read", vec![path.clone()]),
            PermissionRequest::Url { url, .. } => one("url", vec![url.clone()]),
            PermissionRequest::Mcp {
                server_name,
                tool_name,
                ..
            } => one("mcp", vec![server_name.clone(), tool_name.clone()]),
            PermissionRequest::CustomTool { tool_name, .. } => {
                one("custom-tool", vec![tool_name.clone()])
            }
            PermissionRequest::Hook { tool_name, .. } => Some(Self::of_tool(tool_name)),
        }
    }

    /// Returns what an approval of a call covers that needs no permission otherwise.
    pub fn of_tool(tool: &str) -> Self {
        Self {
            kind: "tool".to_owned(),
            what: vec![tool.to_owned()],
            directory: None,
        }
    }
}

/// Why a person has to decide, whatever rules, approvals and hooks allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedBecause {
    pub reason: AskReason,
    /// The rules that are the reason, or some of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PermissionRule>,
    /// Whether an approval for the session covers the same thing again.
    #[serde(default)]
    pub session_approval: bool,
    /// Which hook wants it, and why it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AskReason {
    /// A rule of settings asks about it.
    AskRule,
    /// A rule may deny it, and before it runs that is not known.
    MayBeDenied,
    /// An app decided so for its users.
    Managed,
    /// A hook wants it.
    Hook,
}

/// Who decided about a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionSource {
    AssistedApproval,
    HumanResponse,
    /// What the session approves without asking.
    HostPolicy,
    UnattendedFallback,
    AuthorizationCarryForward,
}
