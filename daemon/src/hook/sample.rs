//! Events to try a hook with: what it gets when the event happens, with made-up values.

use loopd_proto::id::ToolCallId;
use serde_json::json;

use super::context::HookAgent;
use super::input::HookInput;
use crate::discovery::hooks::HookKind;
use loopd_kernel::model::ToolCall;
use loopd_kernel::tool_call::McpToolRef;

const PROMPT: &str = "Say sample.";
const COMMAND: &str = "echo sample";

impl HookInput {
    /// Returns an event of a kind with made-up values.
    pub(super) fn sample(kind: HookKind) -> Self {
        let call = ToolCall {
            id: ToolCallId::new("call_sample"),
            name: "bash".to_owned(),
            arguments: json!({"command": COMMAND, "description": "Says sample"}),
        };
        match kind {
            HookKind::SessionStart => Self::session_start("new", PROMPT),
            HookKind::SessionEnd => Self::session_end("user_exit", None),
            HookKind::UserPromptSubmitted => Self::prompt_submitted(PROMPT),
            HookKind::UserPromptTransformed => Self::prompt_transformed(PROMPT, PROMPT),
            HookKind::PreToolUse => Self::pre_tool_use(&call),
            HookKind::PermissionRequest => {
                let request = json!({
                    "kind": "shell",
                    "toolCallId": call.id,
                    "fullCommandText": COMMAND,
                    "intention": "Says sample",
                    "commands": [{"identifier": "echo", "readOnly": false}],
                    "possiblePaths": [],
                    "possibleUrls": [],
                    "hasWriteFileRedirection": false,
                    "canOfferSessionApproval": true,
                });
                Self::permission_request(&call, &request)
            }
            HookKind::PreMcpToolCall => {
                let call = ToolCall {
                    name: "sample-search".to_owned(),
                    arguments: json!({"query": "sample"}),
                    ..call
                };
                let target = McpToolRef {
                    server: "sample".to_owned(),
                    tool: "search".to_owned(),
                };
                Self::pre_mcp_tool_call(&call, &target)
            }
            HookKind::PostToolUse => Self::post_tool_use(&call, "sample\n", None),
            HookKind::PostToolUseFailure => {
                Self::post_tool_use_failure(&call, "The command failed.")
            }
            HookKind::PreCompact => {
                let members = json!({"trigger": "manual", "customInstructions": ""});
                Self::new(kind, Some("manual"), members)
            }
            HookKind::SubagentStart => Self::subagent_start(&HookAgent::sample(), PROMPT),
            HookKind::SubagentStop => {
                Self::stop(Some(&HookAgent::sample()), "Nothing was found.", 0)
            }
            HookKind::AgentStop => Self::stop(None, "Here it is.", 0),
            HookKind::ErrorOccurred => Self::error_occurred("The model did not answer.", true),
            HookKind::Notification => Self::notification(
                "shell_completed",
                "Background work",
                "The command has ended.",
            ),
        }
    }
}

impl HookAgent {
    /// Returns the agent that a sample of this kind happens in.
    pub(super) fn of_sample(kind: HookKind) -> Option<Self> {
        let is_agents = matches!(kind, HookKind::SubagentStart | HookKind::SubagentStop);
        is_agents.then(Self::sample)
    }

    fn sample() -> Self {
        Self {
            id: "explore-1".to_owned(),
            name: "explore".to_owned(),
            display_name: "Explore".to_owned(),
        }
    }
}
