//! Puts one assistant turn together from a whole chat completion or from the chunks of a stream.
//!
//! Only `openai_chat` calls it. Servers differ in small ways, so it reads liberally: several
//! choices become one turn, thinking has three names. `openai_chat/calls` collects the tool calls.
//! It does no IO and knows nothing of errors, which `error_body` reads.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::kernel::model::{AssistantTurn, Finish, ModelReply, ModelRequest, Reasoning, Usage};
use crate::provider::DeltaSink;
use crate::provider::call_ids::CallIds;
use crate::provider::error::ProviderError;

use super::calls::{CallList, WireCall};

/// A piece of a streamed reply that a reader may see at once.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Reasoning(&'a str),
}

/// Collects what has arrived of a reply.
#[derive(Debug, Default)]
pub(super) struct ReplyBuilder {
    id: Option<String>,
    usage: Usage,
    /// By the choice's index, so that the turn is in order whatever order chunks came in.
    choices: BTreeMap<usize, Choice>,
}

#[derive(Debug, Default)]
struct Choice {
    text: String,
    reasoning: String,
    opaque: Option<String>,
    calls: CallList,
    finish: Option<String>,
}

#[derive(Deserialize)]
struct WireReply {
    id: Option<String>,
    choices: Option<Vec<WireChoice>>,
    usage: Option<Value>,
    /// What the Copilot API charges for the call.
    copilot_usage: Option<Value>,
}

#[derive(Deserialize)]
struct WireChoice {
    index: Option<usize>,
    /// What a whole reply has.
    message: Option<WireTurn>,
    /// What a chunk has; some servers send both in a chunk.
    delta: Option<WireTurn>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct WireTurn {
    content: Option<Value>,
    refusal: Option<String>,
    reasoning_text: Option<Value>,
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    reasoning_opaque: Option<String>,
    tool_calls: Option<Vec<WireCall>>,
}

impl ReplyBuilder {
    /// Takes a reply that came at once.
    pub(super) fn take_whole(&mut self, document: Value) -> Result<(), ProviderError> {
        let reply = self.take_head(document)?;
        let choices = reply.choices.unwrap_or_default();
        if choices.is_empty() {
            return Err(ProviderError::Malformed {
                detail: "the reply holds no choice".to_owned(),
            });
        }
        // Some servers give every choice the index 0; in a whole reply the position is certain.
        for (position, choice) in choices.into_iter().enumerate() {
            self.take_choice(position, choice, &mut |_piece| {});
        }
        Ok(())
    }

    /// Takes one chunk of a stream and passes on what a reader may see.
    pub(super) fn take_chunk(
        &mut self,
        chunk: Value,
        seen: &mut dyn FnMut(Piece<'_>),
    ) -> Result<(), ProviderError> {
        let chunk = self.take_head(chunk)?;
        for choice in chunk.choices.unwrap_or_default() {
            self.take_choice(choice.index.unwrap_or(0), choice, seen);
        }
        Ok(())
    }

    /// Tells whether the model has said why it stopped, in every choice that began.
    pub(super) fn is_finished(&self) -> bool {
        !self.choices.is_empty() && self.choices.values().all(|choice| choice.finish.is_some())
    }

    /// Passes the finished text on in one piece, for readers who expected a stream.
    pub(super) fn announce(&self, sink: &mut dyn DeltaSink) {
        for choice in self.choices.values() {
            if !choice.reasoning.is_empty() {
                sink.reasoning(&choice.reasoning);
            }
            if !choice.text.is_empty() {
                sink.text(&choice.text);
            }
        }
    }

    /// Merges the choices into one turn.
    pub(super) fn build(self, request: &ModelRequest) -> ModelReply {
        let mut turn = AssistantTurn::default();
        let mut thinking = Reasoning::default();
        let mut ids = CallIds::of(request);
        let mut finish = Finish::Stop;
        for choice in self.choices.into_values() {
            turn.text.push_str(&choice.text);
            if !choice.reasoning.is_empty() {
                thinking
                    .text
                    .get_or_insert_default()
                    .push_str(&choice.reasoning);
            }
            thinking.opaque = thinking.opaque.or(choice.opaque);
            turn.calls.extend(choice.calls.build(&mut ids));
            match choice.finish.as_deref() {
                Some("length" | "max_tokens") => finish = Finish::Length,
                Some("content_filter") if finish == Finish::Stop => finish = Finish::ContentFilter,
                _ => {}
            }
        }
        if finish == Finish::Stop && !turn.calls.is_empty() {
            finish = Finish::ToolCalls;
        }
        if thinking != Reasoning::default() {
            turn.reasoning = Some(thinking);
        }
        ModelReply {
            turn,
            usage: self.usage,
            finish,
            api_call_id: self.id,
            provider_call_id: None,
        }
    }

    fn take_head(&mut self, document: Value) -> Result<WireReply, ProviderError> {
        let mut reply: WireReply =
            serde_json::from_value(document).map_err(|failure| ProviderError::Malformed {
                detail: format!("not a chat completion: {failure}"),
            })?;
        if let Some(id) = reply.id.take().filter(|id| !id.is_empty()) {
            self.id = Some(id);
        }
        if let Some(usage) = reply.usage.as_ref().filter(|usage| usage.is_object()) {
            self.usage = Usage {
                nano_credits: self.usage.nano_credits,
                ..read_usage(usage)
            };
        }
        if let Some(charged) = reply.copilot_usage.as_ref().and_then(nano_credits) {
            self.usage.nano_credits = charged;
        }
        Ok(reply)
    }

    fn take_choice(&mut self, index: usize, wire: WireChoice, seen: &mut dyn FnMut(Piece<'_>)) {
        let choice = self.choices.entry(index).or_default();
        let take_call = match wire.delta {
            Some(_) => CallList::take_piece,
            None => CallList::take_whole,
        };
        let turn = wire.delta.or(wire.message).unwrap_or_default();
        if let Some(thinking) = [turn.reasoning_text, turn.reasoning_content, turn.reasoning]
            .iter()
            .flatten()
            .filter_map(Value::as_str)
            .find(|text| !text.is_empty())
        {
            choice.reasoning.push_str(thinking);
            seen(Piece::Reasoning(thinking));
        }
        if turn.reasoning_opaque.is_some() {
            choice.opaque = turn.reasoning_opaque;
        }
        let said = turn.content.as_ref().map(text_of).unwrap_or_default();
        for text in [said, turn.refusal.unwrap_or_default()] {
            if !text.is_empty() {
                choice.text.push_str(&text);
                seen(Piece::Text(&text));
            }
        }
        for call in turn.tool_calls.unwrap_or_default() {
            take_call(&mut choice.calls, call);
        }
        if wire.finish_reason.is_some() {
            choice.finish = wire.finish_reason;
        }
    }
}

/// Reads content that is a text or a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        _ => String::new(),
    }
}

/// What a Copilot API says about the price of a call.
fn nano_credits(usage: &Value) -> Option<u64> {
    usage.get("total_nano_aiu").and_then(Value::as_u64)
}

fn read_usage(usage: &Value) -> Usage {
    let count = |pointers: &[&str]| {
        pointers
            .iter()
            .find_map(|pointer| usage.pointer(pointer).and_then(Value::as_u64))
            .unwrap_or(0)
    };
    Usage {
        input_tokens: count(&["/prompt_tokens"]),
        output_tokens: count(&["/completion_tokens"]),
        cache_read_tokens: count(&[
            "/prompt_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
        ]),
        cache_write_tokens: count(&[
            "/prompt_tokens_details/cache_write_tokens",
            "/prompt_tokens_details/cache_creation_input_tokens",
            "/cache_creation_input_tokens",
        ]),
        reasoning_tokens: count(&[
            "/completion_tokens_details/reasoning_tokens",
            "/reasoning_tokens",
        ]),
        nano_credits: 0,
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
