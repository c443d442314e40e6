//! Payloads to try a hook with: what it gets when its event happens, with made-up values.

use std::path::{Path, PathBuf};

use loopd_proto::time::Timestamp;
use serde_json::{Map, Value, json};

use super::kind::{HookKind, PayloadForm};
use super::tool_arguments::claude_arguments;
use super::tool_names::claude_names;

/// Returns a payload of a kind, in the form that the spelling of its event selects.
pub fn sample(kind: HookKind, form: PayloadForm, cwd: &Path, now: Timestamp) -> Value {
    let mut payload = Map::new();
    payload.insert("sessionId".to_owned(), json!("sample"));
    payload.insert("timestamp".to_owned(), json!(now.0));
    payload.insert("cwd".to_owned(), json!(cwd.to_string_lossy()));
    if form == PayloadForm::Claude {
        payload.insert("permissionMode".to_owned(), json!("default"));
    }
    if form == PayloadForm::Claude || has_transcript(kind) {
        payload.insert("transcriptPath".to_owned(), json!("/dev/null"));
    }
    if let Value::Object(own) = own_members(kind) {
        payload.extend(own);
    }
    match form {
        PayloadForm::Native => Value::Object(payload),
        PayloadForm::Claude => claude_payload(kind, payload, now),
    }
}

fn has_transcript(kind: HookKind) -> bool {
    match kind {
        HookKind::AgentStop
        | HookKind::SubagentStart
        | HookKind::SubagentStop
        | HookKind::PreCompact => true,
        HookKind::SessionStart
        | HookKind::SessionEnd
        | HookKind::UserPromptSubmitted
        | HookKind::UserPromptTransformed
        | HookKind::PreToolUse
        | HookKind::PermissionRequest
        | HookKind::PostToolUse
        | HookKind::PostToolUseFailure
        | HookKind::PreMcpToolCall
        | HookKind::ErrorOccurred
        | HookKind::Notification => false,
    }
}

/// Returns the members that only payloads of this kind have.
fn own_members(kind: HookKind) -> Value {
    let call = json!({"toolName": "bash", "toolArgs": {"command": "echo sample", "description": "Says sample"}});
    let with = |mut members: Value, more: Value| {
        if let (Value::Object(members), Value::Object(more)) = (&mut members, more) {
            members.extend(more);
        }
        members
    };
    match kind {
        HookKind::SessionStart => json!({"source": "new", "initialPrompt": "Say sample."}),
        HookKind::SessionEnd => json!({"reason": "complete"}),
        HookKind::UserPromptSubmitted => json!({"prompt": "Say sample."}),
        HookKind::UserPromptTransformed => {
            json!({"prompt": "Say sample.", "transformedPrompt": "Say sample."})
        }
        HookKind::PreToolUse | HookKind::PermissionRequest => call,
        HookKind::PreMcpToolCall => json!({
            "toolName": "mcp__sample__search", "serverName": "sample", "toolArgs": {"query": "sample"},
        }),
        HookKind::PostToolUse => {
            let result = json!({"resultType": "success", "textResultForLlm": "sample\n"});
            with(call, json!({"toolResult": result}))
        }
        HookKind::PostToolUseFailure => with(call, json!({"error": "The command failed."})),
        HookKind::PreCompact => json!({"trigger": "manual", "customInstructions": ""}),
        HookKind::SubagentStart => json!({
            "agentName": "explore", "agentDisplayName": "Explore", "agentDescription": "Looks around.",
        }),
        HookKind::SubagentStop => json!({
            "agentId": "explore-1", "agentType": "explore", "agentName": "explore",
            "agentDisplayName": "Explore", "response": "Nothing was found.", "stopReason": "end_turn",
        }),
        HookKind::AgentStop => json!({"stopReason": "end_turn", "stop_hook_active": false}),
        HookKind::ErrorOccurred => json!({
            "error": {"message": "The model did not answer.", "name": "Error"},
            "errorContext": "model_call", "recoverable": true,
        }),
        HookKind::Notification => json!({
            "message": "The command has ended.", "title": "Shell completed",
            "notification_type": "shell_completed",
        }),
    }
}

/// Turns a native payload into Claude's form: the name of the event, members in snake_case, the time
/// in ISO 8601, Claude's names of tools and of their arguments.
pub fn claude_payload(kind: HookKind, native: Map<String, Value>, now: Timestamp) -> Value {
    let mut payload = Map::new();
    payload.insert("hook_event_name".to_owned(), json!(kind.claude_name()));
    let text = |name: &str| native.get(name).and_then(Value::as_str).map(str::to_owned);
    let tool = text("toolName").unwrap_or_default();
    let cwd = PathBuf::from(text("cwd").unwrap_or_default());
    for (name, value) in native {
        let (name, value) = match (name.as_str(), value) {
            ("timestamp", _) => (name, json!(now.to_string())),
            ("toolName", Value::String(tool)) => {
                let claude = claude_names(&tool).first();
                let tool = claude.map_or(tool.clone(), |claude| (*claude).to_owned());
                ("tool_name".to_owned(), json!(tool))
            }
            ("toolArgs", args) => {
                let args = claude_arguments(&tool, args, &cwd);
                ("tool_input".to_owned(), args)
            }
            ("toolCallId", call) => ("tool_use_id".to_owned(), call),
            ("toolResult", Value::Object(result)) => {
                let members = result.into_iter();
                let members = members.map(|(name, value)| (snake_case(&name), value));
                let result = Value::Object(members.collect());
                // Claude's own name for it.
                payload.insert("tool_response".to_owned(), result.clone());
                ("tool_result".to_owned(), result)
            }
            ("response", response) => ("last_assistant_message".to_owned(), response),
            (other, value) => (snake_case(other), value),
        };
        payload.insert(name, value);
    }
    Value::Object(payload)
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_its_names() {
        let now = Timestamp(1_700_000_000_000);
        let of = |kind, form| sample(kind, form, Path::new("/app"), now);
        let native = of(HookKind::PostToolUse, PayloadForm::Native);
        assert_eq!(
            native,
            json!({
                "sessionId": "sample", "timestamp": 1_700_000_000_000_i64, "cwd": "/app",
                "toolName": "bash",
                "toolArgs": {"command": "echo sample", "description": "Says sample"},
                "toolResult": {"resultType": "success", "textResultForLlm": "sample\n"},
            })
        );
        let claude = of(HookKind::PostToolUse, PayloadForm::Claude);
        assert_eq!(
            claude,
            json!({
                "hook_event_name": "PostToolUse",
                "permission_mode": "default", "transcript_path": "/dev/null",
                "session_id": "sample", "timestamp": "2023-11-14T22:13:20.000Z", "cwd": "/app",
                "tool_name": "Bash",
                "tool_input": {"command": "echo sample", "description": "Says sample"},
                "tool_result": {"result_type": "success", "text_result_for_llm": "sample\n"},
                "tool_response": {"result_type": "success", "text_result_for_llm": "sample\n"},
            })
        );
        let stop = of(HookKind::SubagentStop, PayloadForm::Claude);
        assert_eq!(
            stop.get("last_assistant_message"),
            Some(&json!("Nothing was found."))
        );
        assert_eq!(stop.get("response"), None);
        for kind in HookKind::ALL {
            let claude = of(kind, PayloadForm::Claude);
            let members = claude.as_object().into_iter().flatten();
            for (name, _) in members {
                let snake = name.chars().all(|letter| !letter.is_ascii_uppercase());
                assert!(snake, "{kind}: {name}");
            }
            assert_eq!(
                claude.get("hook_event_name"),
                Some(&json!(kind.claude_name()))
            );
        }
    }
}
