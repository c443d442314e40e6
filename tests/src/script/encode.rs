//! Encodes answers in the chat completions format, whole or as a stream of chunks.

use serde_json::{Value, json};

use super::turn::Call;

/// The model's name in answers and in the list of models.
pub(super) const MODEL: &str = "scripted";

/// Adds the cost of a request, in billionths of a credit, as the Copilot API reports it.
fn charge(answer: &mut Value, charged: Option<u64>) {
    if let Some(charged) = charged {
        answer["copilot_usage"] = json!({"total_nano_aiu": charged});
    }
}

fn usage(ending: &Ending) -> Value {
    let (input, output) = ending.used;
    ending.reported.clone().unwrap_or_else(
        || json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}),
    )
}

/// What an answer ends with: the model's reason, or else the usual one, and the cost.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    pub(super) finish: Option<&'static str>,
    pub(super) charged: Option<u64>,
    /// The input and output tokens.
    pub(super) used: (u64, u64),
    /// What the server writes instead of them.
    pub(super) reported: Option<Value>,
}

impl Ending {
    fn reason(&self, calls: &[Call]) -> &'static str {
        let usual = if calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        self.finish.unwrap_or(usual)
    }
}

/// Encodes a whole answer.
pub(super) fn whole(pieces: &[String], calls: &[Call], ending: &Ending) -> String {
    let text = pieces.concat();
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            json!({"id": call.id, "type": "function",
                   "function": {"name": call.name, "arguments": call.arguments}})
        });
        message["tool_calls"] = calls.collect();
        if text.is_empty() {
            message["content"] = Value::Null;
        }
    }
    let mut answer = json!({
        "id": "chatcmpl-scripted", "object": "chat.completion", "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": ending.reason(calls)}],
        "usage": usage(ending),
    });
    charge(&mut answer, ending.charged);
    answer.to_string()
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "model": MODEL,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    });
    format!("data: {chunk}\n\n")
}

/// Encodes the text as chunks.
pub(super) fn text_chunks(pieces: &[String]) -> Vec<String> {
    let pieces = pieces
        .iter()
        .map(|piece| chunk(&json!({"content": piece}), None));
    std::iter::once(chunk(&json!({"role": "assistant", "content": ""}), None))
        .chain(pieces)
        .collect()
}

/// Encodes the chunks after the text: tool calls (their arguments in two pieces), the finish reason
/// and the usage.
pub(super) fn last_chunks(calls: &[Call], ending: &Ending) -> Vec<String> {
    let mut chunks = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let middle = call.arguments.len() / 2;
        let middle = (middle..=call.arguments.len())
            .find(|at| call.arguments.is_char_boundary(*at))
            .unwrap_or(0);
        let (first, second) = call.arguments.split_at(middle);
        chunks.push(chunk(
            &json!({"tool_calls": [{"index": index, "id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": first}}]}),
            None,
        ));
        chunks.push(chunk(
            &json!({"tool_calls": [{"index": index, "function": {"arguments": second}}]}),
            None,
        ));
    }
    chunks.push(chunk(&json!({}), Some(ending.reason(calls))));
    let mut last = json!({"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "model": MODEL,
        "choices": [], "usage": usage(ending)});
    charge(&mut last, ending.charged);
    chunks.push(format!("data: {last}\n\n"));
    chunks.push("data: [DONE]\n\n".to_owned());
    chunks
}

/// Encodes the list of models.
pub(super) fn models() -> String {
    json!({"data": [
        {"id": MODEL, "name": "Scripted", "capabilities": {
            "supports": {"vision": true}, "limits": {"max_context_window_tokens": 64_000}}},
        {"id": "scripted-small", "name": "Scripted Small"},
    ]})
    .to_string()
}
