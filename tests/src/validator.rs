//! The strict validator of conversations: it refuses what the strictest provider would refuse.
//!
//! The scripted model checks every request with it, and the property tests check every conversation
//! that the kernel builds. It knows the chat completions format. Of the daemon's types it knows
//! only the model messages, which it can convert to that format.

use std::collections::BTreeSet;

use loopd_kernel::model::{ModelMessage, Part};
use serde_json::{Value, json};

/// Checks the body of a chat completions request.
pub fn check_request(body: &Value) -> Result<(), String> {
    let messages = body["messages"]
        .as_array()
        .ok_or("the request has no list of messages")?;
    check_conversation(messages)?;
    match messages.last().and_then(|message| message["role"].as_str()) {
        Some("user" | "tool") => {}
        other => {
            return Err(format!(
                "the last message is from {other:?}, nobody waits for an answer"
            ));
        }
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("the request names no model".to_owned());
    }
    let mut names = BTreeSet::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        if name.is_empty() || !names.insert(name) {
            return Err(format!("the tool name {name:?} is empty or given twice"));
        }
        if tool["function"]["parameters"]["type"] != "object" {
            return Err(format!("the parameters of {name} are not an object schema"));
        }
    }
    Ok(())
}

/// Checks that every tool call has exactly one result, right after it and in order, and that every
/// other message is valid where it is.
pub fn check_conversation(messages: &[Value]) -> Result<(), String> {
    let mut rest = messages.iter().enumerate().peekable();
    while let Some((index, message)) = rest.next() {
        let wrong = |what: &str| format!("message {index} {what}: {message}");
        match message["role"].as_str() {
            Some("system") if index == 0 && is_text(&message["content"]) => {}
            Some("system") => {
                return Err(wrong("is a system message that is empty or not the first"));
            }
            Some("user") if is_user_content(&message["content"]) => {}
            Some("user") => return Err(wrong("is a user message without content")),
            Some("tool") => return Err(wrong("is a result that no call just before it asked for")),
            Some("assistant") => {
                let calls = check_assistant(message).map_err(|what| wrong(&what))?;
                for id in calls {
                    match rest.next() {
                        Some((_, result)) if is_result_of(result, &id) => {}
                        other => {
                            return Err(wrong(&format!(
                                "calls {id}, whose result is not where it belongs; there is {other:?}"
                            )));
                        }
                    }
                }
            }
            _ => return Err(wrong("has an unknown role")),
        }
    }
    Ok(())
}

/// Checks an assistant message and returns the ids of its tool calls.
fn check_assistant(message: &Value) -> Result<Vec<String>, String> {
    let mut ids = Vec::new();
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let id = call["id"].as_str().unwrap_or_default();
        if id.is_empty() || ids.iter().any(|known| known == id) {
            return Err(format!("has a call whose id {id:?} is empty or used twice"));
        }
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        if serde_json::from_str::<Value>(arguments).is_err() {
            return Err(format!(
                "has a call whose arguments are not JSON: {arguments:?}"
            ));
        }
        if call["type"] != "function" || !is_text(&call["function"]["name"]) {
            return Err("has a call that is no function call".to_owned());
        }
        ids.push(id.to_owned());
    }
    if ids.is_empty() && message.get("tool_calls").is_some() {
        return Err("has an empty list of calls".to_owned());
    }
    if ids.is_empty() && !is_text(&message["content"]) {
        return Err("says nothing and calls nothing".to_owned());
    }
    Ok(ids)
}

fn is_result_of(message: &Value, id: &str) -> bool {
    message["role"] == "tool" && message["tool_call_id"] == id && message["content"].is_string()
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_user_content(content: &Value) -> bool {
    is_text(content)
        || content.as_array().is_some_and(|parts| {
            !parts.is_empty()
                && parts
                    .iter()
                    .all(|part| is_text(&part["text"]) || is_text(&part["image_url"]["url"]))
        })
}

/// Returns the text of a message, whether it is a plain string or a list of parts.
pub fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Converts the kernel's conversation to the chat completions format.
pub fn as_chat(messages: &[ModelMessage]) -> Vec<Value> {
    messages
        .iter()
        .map(|message| match message {
            ModelMessage::System(text) => json!({"role": "system", "content": text}),
            ModelMessage::User(parts) => {
                let parts: Vec<Value> = parts.iter().map(part).collect();
                json!({"role": "user", "content": parts})
            }
            ModelMessage::Assistant(turn) => {
                let calls: Vec<Value> = turn
                    .calls
                    .iter()
                    .map(|call| {
                        json!({"id": call.id, "type": "function", "function": {
                            "name": call.name, "arguments": call.arguments.to_string()}})
                    })
                    .collect();
                let mut message = json!({"role": "assistant", "content": turn.text});
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                message
            }
            ModelMessage::ToolResult { call, text } => {
                json!({"role": "tool", "tool_call_id": call, "content": text})
            }
        })
        .collect()
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image { media_type, base64 } => json!({"type": "image_url", "image_url": {
            "url": format!("data:{media_type};base64,{base64}")}}),
        Part::Document {
            title,
            media_type,
            base64,
        } => json!({"type": "file", "file": {"filename": title,
            "file_data": format!("data:{media_type};base64,{base64}")}}),
    }
}
