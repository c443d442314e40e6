//! The events that hooks are asked about or told of, with the members of their payloads. What a person
//! tries out is made here as well, so that a sample has the members of the real thing.

use serde::Serialize;
use serde_json::json;

use super::context::HookAgent;
use super::input::HookInput;
use crate::discovery::hooks::HookKind;
use loopd_kernel::model::ToolCall;
use loopd_kernel::tool_call::McpToolRef;

impl HookInput {
    pub(super) fn session_start(source: &str, prompt: &str) -> Self {
        let members = json!({"source": source, "initialPrompt": prompt});
        Self::new(HookKind::SessionStart, Some(source), members)
    }

    pub(super) fn subagent_start(agent: &HookAgent, prompt: &str) -> Self {
        let members = json!({"prompt": prompt, "agentDisplayName": agent.display_name});
        Self::new(HookKind::SubagentStart, Some(&agent.name), members)
    }

    pub(super) fn prompt_submitted(prompt: &str) -> Self {
        let members = json!({"prompt": prompt});
        Self::new(HookKind::UserPromptSubmitted, None, members)
    }

    pub(super) fn prompt_transformed(prompt: &str, transformed: &str) -> Self {
        let members = json!({"prompt": prompt, "transformedPrompt": transformed});
        Self::new(HookKind::UserPromptTransformed, None, members)
    }

    /// A call that has not started yet.
    pub fn pre_tool_use(call: &ToolCall) -> Self {
        Self::of_call(HookKind::PreToolUse, call, json!({}))
    }

    /// A question that a person would be asked.
    pub fn permission_request(call: &ToolCall, request: &impl Serialize) -> Self {
        let members = json!({"permissionRequest": request});
        Self::of_call(HookKind::PermissionRequest, call, members)
    }

    pub(super) fn pre_mcp_tool_call(call: &ToolCall, target: &McpToolRef) -> Self {
        let members = json!({
            "toolCallId": call.id,
            "serverName": target.server,
            "toolName": target.tool,
            "arguments": call.arguments,
            "toolArgs": call.arguments,
        });
        Self::new(HookKind::PreMcpToolCall, Some(&call.name), members)
    }

    pub(super) fn post_tool_use(call: &ToolCall, content: &str, detailed: Option<&str>) -> Self {
        let result = json!({"toolResult": {
            "resultType": "success",
            "textResultForLlm": content,
            "sessionLog": detailed,
        }});
        Self::of_call(HookKind::PostToolUse, call, result)
    }

    pub(super) fn post_tool_use_failure(call: &ToolCall, error: &str) -> Self {
        Self::of_call(HookKind::PostToolUseFailure, call, json!({"error": error}))
    }

    /// The loop is about to end. `blocks` counts how often hooks have kept it from that.
    pub(super) fn stop(agent: Option<&HookAgent>, answer: &str, blocks: u32) -> Self {
        let kind = match agent {
            Some(_) => HookKind::SubagentStop,
            None => HookKind::AgentStop,
        };
        let mut input = Self::new(
            kind,
            agent.map(|agent| agent.name.as_str()),
            json!({
                "stopReason": "end_turn",
                "stop_hook_active": blocks > 0,
                "stopBlocks": blocks,
                "response": answer,
            }),
        );
        if let Some(agent) = agent {
            input.add("agentDisplayName", json!(agent.display_name));
        }
        input
    }

    pub(super) fn session_end(reason: &str, error: Option<&str>) -> Self {
        let members = json!({"reason": reason, "error": error});
        Self::new(HookKind::SessionEnd, Some(reason), members)
    }

    pub(super) fn notification(kind: &str, title: &str, message: &str) -> Self {
        let members = json!({
            "hook_event_name": "Notification",
            "notification_type": kind,
            "title": title,
            "message": message,
        });
        Self::new(HookKind::Notification, Some(kind), members)
    }

    /// A model call failed.
    pub(super) fn error_occurred(error: &str, recoverable: bool) -> Self {
        let members = json!({
            "error": error,
            "errorContext": "model_call",
            "recoverable": recoverable,
        });
        Self::new(HookKind::ErrorOccurred, None, members)
    }
}
