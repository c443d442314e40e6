//! Turns the payload of a hook into the form that Claude's files expect.

use std::path::PathBuf;

use loopd_proto::time::Timestamp;
use serde_json::{Map, Value, json};

use super::kind::HookKind;
use super::tool_arguments::claude_arguments;
use super::tool_names::{claude_names, shows_output};

/// Turns a native payload into Claude's form: the name of the event, members in snake_case, the time
/// in ISO 8601, Claude's names of tools and of their arguments. `patched` are the files that a patch
/// changes, if it could be read.
pub fn claude_payload(
    kind: HookKind,
    native: Map<String, Value>,
    patched: Option<Vec<String>>,
    now: Timestamp,
) -> Value {
    let mut payload = Map::new();
    payload.insert("hook_event_name".to_owned(), json!(kind.claude_name()));
    let text = |name: &str| native.get(name).and_then(Value::as_str).map(str::to_owned);
    let tool = text("toolName").unwrap_or_default();
    let cwd = PathBuf::from(text("cwd").unwrap_or_default());
    for (name, value) in native {
        let (name, value) = match (name.as_str(), value) {
            ("timestamp", _) => (name, json!(now.to_string())),
            ("toolName", Value::String(tool)) => {
                let claude = claude_names(&tool).first().copied();
                // What is read of a command's output is reviewed like the command.
                let reviews = kind == HookKind::PostToolUse && shows_output(&tool);
                let claude = claude.or(reviews.then_some("Bash"));
                let tool = claude.map_or(tool.clone(), str::to_owned);
                ("tool_name".to_owned(), json!(tool))
            }
            ("toolArgs", args) => {
                let args = claude_arguments(&tool, args, patched.as_deref(), &cwd);
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
