//! Puts one assistant turn together from a whole chat completion or from the chunks of a stream.
//!
//! Servers differ in small ways, so it reads liberally: several choices become one turn, and
//! thinking has three names.

use loopd_proto::parse_error::plain;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::DeltaSink;
use crate::error::ProviderError;
use crate::vendor_api::{Progress, VendorReply, openai};
use loopd_kernel::model::{AssistantTurn, Finish, ModelReply, Reasoning, Usage};

use super::calls::{CallList, ReceivedCall};

/// Collects what has arrived of a reply.
#[derive(Debug, Default)]
pub(in crate::vendor_api) struct ChatReply {
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
struct ReceivedReply {
    id: Option<String>,
    choices: Option<Vec<ReceivedChoice>>,
    usage: Option<Value>,
    /// What the Copilot API charges for the call.
    copilot_usage: Option<Value>,
}

#[derive(Deserialize)]
struct ReceivedChoice {
    index: Option<usize>,
    /// What a whole reply has.
    message: Option<ReceivedTurn>,
    /// What a chunk has; some servers send both in a chunk.
    delta: Option<ReceivedTurn>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct ReceivedTurn {
    content: Option<Value>,
    refusal: Option<String>,
    reasoning_text: Option<Value>,
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    reasoning_opaque: Option<String>,
    tool_calls: Option<Vec<ReceivedCall>>,
}

impl VendorReply for ChatReply {
    const ENDS_AT_DONE_MARK: bool = true;

    fn take_whole(
        &mut self,
        document: Value,
        sink: &mut dyn DeltaSink,
    ) -> Result<(), ProviderError> {
        let reply = self.take_head(document)?;
        let choices = reply.choices.unwrap_or_default();
        if choices.is_empty() {
            return Err(ProviderError::malformed("the reply holds no choice"));
        }
        // Some servers give every choice the index 0; in a whole reply the position is certain.
        for (position, choice) in choices.into_iter().enumerate() {
            self.take_choice(position, choice, sink);
        }
        Ok(())
    }

    fn take_event(
        &mut self,
        event: Value,
        sink: &mut dyn DeltaSink,
    ) -> Result<Progress, ProviderError> {
        let chunk = self.take_head(event)?;
        for choice in chunk.choices.unwrap_or_default() {
            self.take_choice(choice.index.unwrap_or(0), choice, sink);
        }
        let has_ended = |choice: &Choice| choice.finish.is_some();
        Ok(
            if !self.choices.is_empty() && self.choices.values().all(has_ended) {
                Progress::Finished
            } else {
                Progress::Unfinished
            },
        )
    }

    fn has_begun(&self) -> bool {
        !self.choices.is_empty()
    }

    /// Merges the choices into one turn.
    fn build(self) -> ModelReply {
        let mut turn = AssistantTurn::default();
        let mut thinking = Reasoning::default();
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
            turn.calls.extend(choice.calls.build());
            match choice.finish.as_deref() {
                Some("length" | "max_tokens") => finish = Finish::Length,
                Some("content_filter") if finish == Finish::Stop => finish = Finish::ContentFilter,
                Some(reason) if finish == Finish::Stop && !is_usual(reason) => {
                    tracing::warn!(
                        reason,
                        "the provider gives a reason for the end that is not known"
                    );
                    finish = Finish::Unknown;
                }
                _ => {}
            }
        }
        turn.reasoning = Some(thinking);
        ModelReply {
            turn,
            usage: self.usage,
            finish,
            api_call_id: self.id,
            provider_call_id: None,
        }
    }
}

impl ChatReply {
    fn take_head(&mut self, document: Value) -> Result<ReceivedReply, ProviderError> {
        let mut reply: ReceivedReply = serde_json::from_value(document).map_err(|failure| {
            ProviderError::malformed(format!("not a chat completion: {}", plain(&failure)))
        })?;
        if let Some(id) = reply.id.take().filter(|id| !id.is_empty()) {
            self.id = Some(id);
        }
        openai::take_usage(
            &mut self.usage,
            reply.usage.as_ref(),
            reply.copilot_usage.as_ref(),
        );
        Ok(reply)
    }

    fn take_choice(&mut self, index: usize, wire: ReceivedChoice, sink: &mut dyn DeltaSink) {
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
            sink.reasoning(thinking);
        }
        if turn.reasoning_opaque.is_some() {
            choice.opaque = turn.reasoning_opaque;
        }
        let said = turn.content.as_ref().map(text_of).unwrap_or_default();
        for text in [said, turn.refusal.unwrap_or_default()] {
            choice.text.push_str(&text);
            sink.text(&text);
        }
        for call in turn.tool_calls.unwrap_or_default() {
            take_call(&mut choice.calls, call);
        }
        if wire.finish_reason.is_some() {
            choice.finish = wire.finish_reason;
        }
    }
}

/// Whether a reason says that an answer is complete. Servers that speak this format have words of their own.
fn is_usual(reason: &str) -> bool {
    let usual = [
        "",
        "stop",
        "tool_calls",
        "tool_call",
        "tool_use",
        "function_call",
        "content_filter",
        "end_turn",
        "stop_sequence",
        "eos",
        "eos_token",
        "end",
        "done",
        "complete",
        "completed",
    ];
    usual.contains(&reason.to_ascii_lowercase().as_str())
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

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
