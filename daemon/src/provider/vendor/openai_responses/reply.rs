//! Puts one assistant turn together from a whole response or from the events of a stream.
//!
//! Only `openai_responses` calls it. Items are kept by their place in the output; the response that
//! ends a stream repeats all of them and then counts. It does no IO and knows nothing of errors,
//! which `error_body` reads.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kernel::model::{
    AssistantTurn, Finish, ModelReply, ModelRequest, Reasoning, ToolCall, Usage,
};
use crate::provider::DeltaSink;
use crate::provider::call_ids::{CallIds, parse_arguments};
use crate::provider::error::ProviderError;
use crate::provider::opaque::{self, Format};

/// Stands between two paragraphs of a summary.
const PARAGRAPH: &str = "\n\n";

/// A piece of a streamed reply that a reader may see at once.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Thinking(&'a str),
}

/// Finds the error in an error event, a failed response or an error with a success status.
pub(super) fn error_in(document: &Value) -> Option<&Value> {
    let named =
        |holder: &'_ Value| -> bool { holder.get("error").is_some_and(|error| !error.is_null()) };
    if named(document) {
        return document.get("error");
    }
    let kind = document.get("type").and_then(Value::as_str);
    if kind == Some("error") {
        return Some(document);
    }
    let response = document.get("response")?;
    if named(response) {
        return response.get("error");
    }
    (kind == Some("response.failed")).then_some(response)
}

/// Collects what has arrived of a reply.
#[derive(Debug, Default)]
pub(super) struct ReplyBuilder {
    id: Option<String>,
    finish: Option<Finish>,
    usage: Usage,
    items: BTreeMap<u64, Item>,
}

#[derive(Debug)]
enum Item {
    Message(String),
    Thinking {
        text: String,
        /// The item as it goes back, once it is sealed.
        sealed: Option<Value>,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// A kind that we do not know, such as the server's own tools.
    Other,
}

impl ReplyBuilder {
    /// Takes a response that is complete.
    pub(super) fn take_whole(&mut self, response: &Value) -> Result<(), ProviderError> {
        self.take_head(response);
        let output = response.get("output").and_then(Value::as_array);
        match output {
            Some(output) if !output.is_empty() || self.items.is_empty() => {
                self.items = (0..).zip(output.iter().map(Item::read)).collect();
            }
            // Some servers do not repeat at the end what they have streamed.
            Some(_) | None if !self.items.is_empty() => {}
            Some(_) | None => return Err(malformed("the response has no `output`")),
        }
        let word = |pointer: &str| response.pointer(pointer).and_then(Value::as_str);
        self.finish = match (word("/status"), word("/incomplete_details/reason")) {
            (Some("queued" | "in_progress"), _) => {
                return Err(malformed("the response is not complete"));
            }
            (Some("cancelled"), _) => return Err(ProviderError::Cancelled),
            (_, Some("content_filter")) => Some(Finish::ContentFilter),
            (Some("incomplete"), _) | (_, Some(_)) => Some(Finish::Length),
            (_, None) => Some(Finish::Stop),
        };
        Ok(())
    }

    /// Takes one event of a stream and passes on what a reader may see.
    pub(super) fn take_event(
        &mut self,
        event: &Value,
        seen: &mut dyn FnMut(Piece<'_>),
    ) -> Result<(), ProviderError> {
        let word = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        let index = event
            .get("output_index")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        match word("type") {
            "response.created" | "response.in_progress" => {
                if let Some(response) = event.get("response") {
                    self.take_head(response);
                }
            }
            "response.output_item.added" | "response.output_item.done" => {
                if let Some(item) = event.get("item") {
                    self.items.insert(index, Item::read(item));
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                let more = word("delta");
                let item = self
                    .items
                    .entry(index)
                    .or_insert(Item::Message(String::new()));
                if let Item::Message(text) = item {
                    text.push_str(more);
                }
                if !more.is_empty() {
                    seen(Piece::Text(more));
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(index, word("delta"), seen);
            }
            "response.reasoning_summary_part.added"
                if event.get("summary_index").and_then(Value::as_u64) > Some(0) =>
            {
                self.think(index, PARAGRAPH, seen);
            }
            "response.function_call_arguments.delta" => {
                if let Some(Item::Call { arguments, .. }) = self.items.get_mut(&index) {
                    arguments.push_str(word("delta"));
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(Item::Call { arguments, .. }) = self.items.get_mut(&index)
                    && event.get("arguments").is_some()
                {
                    word("arguments").clone_into(arguments);
                }
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                let response = event
                    .get("response")
                    .ok_or_else(|| malformed("the last event has no `response`"))?;
                self.take_whole(response)?;
            }
            // Notices of progress, and what may be added later.
            _ => {}
        }
        Ok(())
    }

    /// Tells whether the response is complete.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Passes the finished texts on in one piece, for readers who expected a stream.
    pub(super) fn announce(&self, sink: &mut dyn DeltaSink) {
        for item in self.items.values() {
            match item {
                Item::Message(text) if !text.is_empty() => sink.text(text),
                Item::Thinking { text, .. } if !text.is_empty() => sink.reasoning(text),
                Item::Message(_) | Item::Thinking { .. } | Item::Call { .. } | Item::Other => {}
            }
        }
    }

    /// Finishes the turn.
    pub(super) fn build(self, request: &ModelRequest) -> ModelReply {
        let mut turn = AssistantTurn::default();
        let mut ids = CallIds::of(request);
        let mut readable: Vec<String> = Vec::new();
        let mut sealed_items = Vec::new();
        for item in self.items.into_values() {
            match item {
                Item::Message(text) => turn.text.push_str(&text),
                Item::Thinking { text, sealed } => {
                    if !text.is_empty() {
                        readable.push(text);
                    }
                    sealed_items.extend(sealed);
                }
                Item::Call {
                    id,
                    name,
                    arguments,
                } => turn.calls.push(ToolCall {
                    id: ids.take(&id),
                    name,
                    arguments: parse_arguments(arguments),
                }),
                Item::Other => {}
            }
        }
        let reasoning = Reasoning {
            text: (!readable.is_empty()).then(|| readable.join(PARAGRAPH)),
            opaque: opaque::wrap(Format::Responses, sealed_items),
        };
        if reasoning != Reasoning::default() {
            turn.reasoning = Some(reasoning);
        }
        let finish = match self.finish.unwrap_or_default() {
            Finish::Stop if !turn.calls.is_empty() => Finish::ToolCalls,
            finish => finish,
        };
        ModelReply {
            turn,
            usage: self.usage,
            finish,
            api_call_id: self.id,
            provider_call_id: None,
        }
    }

    fn think(&mut self, index: u64, more: &str, seen: &mut dyn FnMut(Piece<'_>)) {
        let item = self.items.entry(index).or_insert(Item::Thinking {
            text: String::new(),
            sealed: None,
        });
        if let Item::Thinking { text, .. } = item {
            text.push_str(more);
        }
        if !more.is_empty() {
            seen(Piece::Thinking(more));
        }
    }

    fn take_head(&mut self, response: &Value) {
        if let Some(id) = response.get("id").and_then(Value::as_str) {
            self.id = Some(id.to_owned());
        }
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Usage {
                nano_credits: self.usage.nano_credits,
                ..read_usage(usage)
            };
        }
        let charged = response.pointer("/copilot_usage/total_nano_aiu");
        if let Some(charged) = charged.and_then(Value::as_u64) {
            self.usage.nano_credits = charged;
        }
    }
}

impl Item {
    fn read(item: &Value) -> Self {
        let word = |name: &str| {
            item.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        match item.get("type").and_then(Value::as_str) {
            Some("message") => Self::Message(
                parts(item, "content")
                    .filter_map(|part| part.get("text").or_else(|| part.get("refusal")))
                    .filter_map(Value::as_str)
                    .collect(),
            ),
            Some("reasoning") => {
                let texts: Vec<&str> = parts(item, "summary")
                    .chain(parts(item, "content"))
                    .filter_map(|part| part.get("text").and_then(Value::as_str))
                    .collect();
                Self::Thinking {
                    text: texts.join(PARAGRAPH),
                    sealed: sealed(item),
                }
            }
            Some("function_call") => Self::Call {
                id: word("call_id"),
                name: word("name"),
                arguments: word("arguments"),
            },
            _ => Self::Other,
        }
    }
}

fn parts<'a>(item: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    item.get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// The item in the form in which it goes back; without its sealed part the server cannot use it.
fn sealed(item: &Value) -> Option<Value> {
    let content = item
        .get("encrypted_content")
        .filter(|sealed| sealed.is_string())?;
    let summary = item.get("summary").cloned().unwrap_or_else(|| json!([]));
    let mut kept = json!({ "type": "reasoning", "summary": summary, "encrypted_content": content });
    if let (Some(id), Some(kept)) = (item.get("id"), kept.as_object_mut()) {
        kept.insert("id".to_owned(), id.clone());
    }
    Some(kept)
}

fn read_usage(usage: &Value) -> Usage {
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    Usage {
        input_tokens: count("/input_tokens"),
        output_tokens: count("/output_tokens"),
        cache_read_tokens: count("/input_tokens_details/cached_tokens"),
        cache_write_tokens: 0,
        reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
        nano_credits: 0,
    }
}

fn malformed(detail: &str) -> ProviderError {
    ProviderError::Malformed {
        detail: detail.to_owned(),
    }
}
