//! A permission request as clients show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PermissionRequest;
use crate::id::ToolCallId;

/// A permission request in the form of a prompt, for clients that show one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum PermissionPrompt {
    Commands {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        full_command_text: String,
        intention: String,
        command_identifiers: Vec<String>,
        can_offer_session_approval: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
    },
    Mcp {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        server_name: String,
        tool_name: String,
        tool_title: String,
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "crate::json::present"
        )]
        args: Option<Value>,
    },
    /// Every other kind, unchanged.
    #[serde(untagged)]
    Same(PermissionRequest),
}

impl From<&PermissionRequest> for PermissionPrompt {
    fn from(request: &PermissionRequest) -> Self {
        match request {
            PermissionRequest::Shell {
                tool_call_id,
                full_command_text,
                intention,
                commands,
                can_offer_session_approval,
                warning,
                ..
            } => Self::Commands {
                tool_call_id: tool_call_id.clone(),
                full_command_text: full_command_text.clone(),
                intention: intention.clone(),
                command_identifiers: commands.iter().map(|c| c.identifier.clone()).collect(),
                can_offer_session_approval: *can_offer_session_approval,
                warning: warning.clone(),
            },
            PermissionRequest::Mcp {
                tool_call_id,
                server_name,
                tool_name,
                tool_title,
                args,
                read_only: _,
            } => Self::Mcp {
                tool_call_id: tool_call_id.clone(),
                server_name: server_name.clone(),
                tool_name: tool_name.clone(),
                tool_title: tool_title.clone(),
                args: args.clone(),
            },
            PermissionRequest::Write { .. }
            | PermissionRequest::Read { .. }
            | PermissionRequest::Url { .. }
            | PermissionRequest::CustomTool { .. }
            | PermissionRequest::Hook { .. } => Self::Same(request.clone()),
        }
    }
}
