//! Puts one assistant turn together from a whole response or from the events of a stream.
//!
//! Items are kept by their place in the output. The response that ends a stream repeats all of them,
//! and then its items replace what was streamed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::DeltaSink;
use crate::call_ids::parse_arguments;
use crate::error::ProviderError;
use crate::opaque::{self, Format};
use crate::vendor_api::{Progress, VendorReply, openai, word};
use loopd_kernel::model::{AssistantTurn, Finish, ModelReply, Reasoning, ToolCall, Usage};

/// Stands between two paragraphs of a summary.
const PARAGRAPH: &str = "\n\n";

/// Collects what has arrived of a reply.
#[derive(Debug, Default)]
pub(in crate::vendor_api) struct ResponsesReply {
    id: Option<String>,
    finish: Finish,
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

impl VendorReply for ResponsesReply {
    fn take_whole(
        &mut self,
        document: Value,
        sink: &mut dyn DeltaSink,
    ) -> Result<(), ProviderError> {
        self.take_response(&document)?;
        for item in self.items.values() {
            match item {
                Item::Message(text) => sink.text(text),
                Item::Thinking { text, .. } => sink.reasoning(text),
                Item::Call { .. } | Item::Other => {}
            }
        }
        Ok(())
    }

    fn take_event(
        &mut self,
        event: Value,
        sink: &mut dyn DeltaSink,
    ) -> Result<Progress, ProviderError> {
        let index = event
            .get("output_index")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        match word(&event, "type") {
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
                let more = word(&event, "delta");
                let item = self
                    .items
                    .entry(index)
                    .or_insert(Item::Message(String::new()));
                if let Item::Message(text) = item {
                    text.push_str(more);
                }
                sink.text(more);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(index, word(&event, "delta"), sink);
            }
            "response.reasoning_summary_part.added"
                if event.get("summary_index").and_then(Value::as_u64) > Some(0) =>
            {
                self.think(index, PARAGRAPH, sink);
            }
            "response.function_call_arguments.delta" => {
                if let Some(Item::Call { arguments, .. }) = self.items.get_mut(&index) {
                    arguments.push_str(word(&event, "delta"));
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(Item::Call { arguments, .. }) = self.items.get_mut(&index)
                    && event.get("arguments").is_some()
                {
                    word(&event, "arguments").clone_into(arguments);
                }
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                let response = event
                    .get("response")
                    .ok_or_else(|| ProviderError::malformed("the last event has no `response`"))?;
                self.take_response(response)?;
                return Ok(Progress::Complete);
            }
            // Notices of progress, and what may be added later.
            _ => {}
        }
        Ok(Progress::Unfinished)
    }

    fn build(self) -> ModelReply {
        let mut turn = AssistantTurn::default();
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
                    id: id.into(),
                    name,
                    arguments: parse_arguments(arguments),
                }),
                Item::Other => {}
            }
        }
        turn.reasoning = Some(Reasoning {
            text: (!readable.is_empty()).then(|| readable.join(PARAGRAPH)),
            opaque: opaque::wrap(Format::Responses, sealed_items),
        });
        ModelReply {
            turn,
            usage: self.usage,
            finish: self.finish,
            api_call_id: self.id,
            provider_call_id: None,
        }
    }
}

impl ResponsesReply {
    /// Takes a response that is complete.
    fn take_response(&mut self, response: &Value) -> Result<(), ProviderError> {
        self.take_head(response);
        let output = response.get("output").and_then(Value::as_array);
        match output {
            Some(output) if !output.is_empty() || self.items.is_empty() => {
                self.items = (0..).zip(output.iter().map(Item::read)).collect();
            }
            // Some servers do not repeat at the end what they have streamed.
            Some(_) | None if !self.items.is_empty() => {}
            Some(_) | None => {
                return Err(ProviderError::malformed("the response has no `output`"));
            }
        }
        let word = |pointer: &str| response.pointer(pointer).and_then(Value::as_str);
        self.finish = match (word("/status"), word("/incomplete_details/reason")) {
            (Some("queued" | "in_progress"), _) => {
                return Err(ProviderError::malformed("the response is not complete"));
            }
            (Some("cancelled"), _) => return Err(ProviderError::Cancelled),
            (_, Some("content_filter")) => Finish::ContentFilter,
            (_, Some("max_output_tokens" | "max_tokens")) | (Some("incomplete"), None) => {
                Finish::Length
            }
            (_, Some(reason)) => {
                tracing::warn!(
                    reason,
                    "the provider gives a reason for the end that is not known"
                );
                Finish::Unknown
            }
            (Some("completed" | "") | None, None) => Finish::Stop,
            (Some(status), None) => {
                tracing::warn!(
                    status,
                    "the provider gives a status at the end that is not known"
                );
                Finish::Unknown
            }
        };
        Ok(())
    }

    fn think(&mut self, index: u64, more: &str, sink: &mut dyn DeltaSink) {
        let item = self.items.entry(index).or_insert(Item::Thinking {
            text: String::new(),
            sealed: None,
        });
        if let Item::Thinking { text, .. } = item {
            text.push_str(more);
        }
        sink.reasoning(more);
    }

    fn take_head(&mut self, response: &Value) {
        if let Some(id) = response.get("id").and_then(Value::as_str) {
            self.id = Some(id.to_owned());
        }
        let charged = response.get("copilot_usage");
        openai::take_usage(&mut self.usage, response.get("usage"), charged);
    }
}

impl Item {
    fn read(item: &Value) -> Self {
        let text = |name: &str| word(item, name).to_owned();
        match word(item, "type") {
            "message" => Self::Message(
                parts(item, "content")
                    .filter_map(|part| part.get("text").or_else(|| part.get("refusal")))
                    .filter_map(Value::as_str)
                    .collect(),
            ),
            "reasoning" => {
                let texts: Vec<&str> = parts(item, "summary")
                    .chain(parts(item, "content"))
                    .filter_map(|part| part.get("text").and_then(Value::as_str))
                    .collect();
                Self::Thinking {
                    text: texts.join(PARAGRAPH),
                    sealed: sealed(item),
                }
            }
            "function_call" => Self::Call {
                id: text("call_id"),
                name: text("name"),
                arguments: text("arguments"),
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
