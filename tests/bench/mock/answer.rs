//! From a request to what the mock says, without reading more of it than that takes.

use serde_json::{Value, json};

/// The model's name.
pub(crate) const MODEL: &str = "instant";

/// What a request wants to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Text,
    /// The call with this number.
    Call(usize),
    /// One of so many calls that are counted by the mock.
    Long(usize),
    Look(usize),
    Burst(usize),
    Paced(usize),
}

/// Finds the last user message and what has happened since.
pub(super) fn wanted(body: &str) -> Wanted {
    if let Some((_, order)) = body.split_once("bench:long=") {
        let digits = order.bytes().take_while(u8::is_ascii_digit).count();
        let is_summary = body.contains(SUMMARY);
        return match order[..digits].parse() {
            Ok(calls) if !is_summary => Wanted::Long(calls),
            _ => Wanted::Text,
        };
    }
    let since = body.rfind("\"role\":\"user\"").map_or("", |at| &body[at..]);
    let Some((_, order)) = since.split_once("bench:") else {
        return Wanted::Text;
    };
    let number = |name: &str| {
        let rest = order.strip_prefix(name)?.strip_prefix('=')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse::<usize>().ok()
    };
    if let Some(calls) = number("tools") {
        let done = since.matches("\"role\":\"tool\"").count();
        return if done < calls {
            Wanted::Call(done)
        } else {
            Wanted::Text
        };
    }
    number("deltas")
        .map(Wanted::Burst)
        .or_else(|| number("paced").map(Wanted::Paced))
        .unwrap_or(Wanted::Text)
}

/// How a request for a summary begins.
const SUMMARY: &str = "Please create a detailed summary";

/// A look at a part of a file; each asks for another part.
fn look(number: usize) -> Value {
    let from = number % 40 + 1;
    let arguments = json!({"path": "notes.txt", "view_range": [from, from + 30]});
    json!({"index": 0, "id": format!("call_{number}"), "type": "function",
        "function": {"name": "view", "arguments": arguments.to_string()}})
}

const SENTENCE: &str = "Done, as you asked; nothing else was needed.";

fn call(number: usize) -> Value {
    json!({"index": 0, "id": format!("call_{number}"), "type": "function",
        "function": {"name": "bash", "arguments": "{\"command\":\"echo hi\"}"}})
}

fn usage() -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
}

/// A whole answer.
pub(super) fn whole(wanted: Wanted) -> String {
    let (message, finish) = match wanted {
        Wanted::Call(number) => (
            json!({"role": "assistant", "content": null, "tool_calls": [call(number)]}),
            "tool_calls",
        ),
        Wanted::Look(number) => (
            json!({"role": "assistant", "content": null, "tool_calls": [look(number)]}),
            "tool_calls",
        ),
        Wanted::Text | Wanted::Long(_) | Wanted::Burst(_) | Wanted::Paced(_) => {
            (json!({"role": "assistant", "content": SENTENCE}), "stop")
        }
    };
    json!({"id": "chatcmpl-instant", "object": "chat.completion", "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage()})
    .to_string()
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({"id": "chatcmpl-instant", "object": "chat.completion.chunk", "model": MODEL,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {chunk}\n\n")
}

/// One piece of text.
pub(super) fn piece(text: &str) -> String {
    chunk(&json!({"content": text}), None)
}

/// What comes before the pieces of a streamed answer.
pub(super) fn first(wanted: Wanted) -> String {
    match wanted {
        Wanted::Call(number) => chunk(
            &json!({"role": "assistant", "tool_calls": [call(number)]}),
            None,
        ),
        Wanted::Look(number) => chunk(
            &json!({"role": "assistant", "tool_calls": [look(number)]}),
            None,
        ),
        Wanted::Text | Wanted::Long(_) => piece(SENTENCE),
        Wanted::Burst(_) | Wanted::Paced(_) => chunk(&json!({"role": "assistant"}), None),
    }
}

/// What comes after the pieces of a streamed answer.
pub(super) fn last(wanted: Wanted) -> String {
    let finish = match wanted {
        Wanted::Call(_) | Wanted::Look(_) => "tool_calls",
        Wanted::Text | Wanted::Long(_) | Wanted::Burst(_) | Wanted::Paced(_) => "stop",
    };
    let usage = json!({"id": "chatcmpl-instant", "object": "chat.completion.chunk", "model": MODEL,
        "choices": [], "usage": usage()});
    let end = chunk(&json!({}), Some(finish));
    format!("{end}data: {usage}\n\ndata: [DONE]\n\n")
}

/// All pieces of a burst.
pub(super) fn burst(pieces: usize) -> String {
    (0..pieces)
        .map(|number| piece(&format!("word{number} ")))
        .collect()
}
