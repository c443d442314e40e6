//! Puts one assistant turn together from a whole message or from the events of a stream.
//!
//! Only `anthropic` calls it. It does no IO and knows nothing of errors, which `error_body` reads.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kernel::model::{
    AssistantTurn, Finish, ModelReply, ModelRequest, Reasoning, ToolCall, Usage,
};
use crate::provider::DeltaSink;
use crate::provider::call_ids::{CallIds, parse_arguments};
use crate::provider::error::ProviderError;
use crate::provider::opaque::{self, Format};

/// A piece of a streamed reply that a reader may see at once.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Thinking(&'a str),
}

/// How far an event brought the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Went {
    On,
    ToTheEnd,
}

/// Collects what has arrived of a reply.
#[derive(Debug, Default)]
pub(super) struct ReplyBuilder {
    id: Option<String>,
    stop: Option<String>,
    usage: Counts,
    /// By index, so that the turn is in order whatever order events came in.
    blocks: BTreeMap<u64, Block>,
}

/// The server's counts, of which later events repeat a part.
#[derive(Debug, Default)]
struct Counts {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

#[derive(Debug)]
enum Block {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    /// Thinking that only the server can read.
    Redacted(Value),
    Call {
        id: String,
        name: String,
        /// Arguments that came whole; pieces of a stream replace them.
        input: Value,
        pieces: String,
    },
    /// A kind that we do not know, such as the server's own tools.
    Other,
}

impl ReplyBuilder {
    /// Takes a reply that came at once.
    pub(super) fn take_whole(&mut self, document: Value) -> Result<(), ProviderError> {
        let Some(content) = document.get("content").and_then(Value::as_array) else {
            return Err(malformed("the reply has no `content`"));
        };
        for (index, block) in (0..).zip(content) {
            self.blocks.insert(index, Block::begin(block));
        }
        self.take_head(&document);
        if self.stop.is_none() {
            self.stop = Some("end_turn".to_owned());
        }
        Ok(())
    }

    /// Takes one event of a stream and passes on what a reader may see.
    pub(super) fn take_event(
        &mut self,
        event: Value,
        seen: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Went, ProviderError> {
        let kind = event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let index = event.get("index").and_then(Value::as_u64);
        match kind {
            "message_start" => {
                if let Some(message) = event.get("message") {
                    self.take_head(message);
                }
            }
            "content_block_start" => {
                let (Some(index), Some(block)) = (index, event.get("content_block")) else {
                    return Err(malformed("a block began without index or content"));
                };
                let block = Block::begin(block);
                block.show(seen);
                self.blocks.insert(index, block);
            }
            "content_block_delta" => {
                let (Some(index), Some(delta)) = (index, event.get("delta")) else {
                    return Err(malformed("a delta has no index or content"));
                };
                let block = self
                    .blocks
                    .get_mut(&index)
                    .ok_or_else(|| malformed("a delta belongs to no block"))?;
                block.grow(delta, seen);
            }
            "message_delta" => {
                if let Some(delta) = event.get("delta") {
                    self.take_stop(delta);
                }
                if let Some(usage) = event.get("usage") {
                    self.usage.take(usage);
                }
            }
            "message_stop" => {
                if self.stop.is_none() {
                    self.stop = Some("end_turn".to_owned());
                }
                return Ok(Went::ToTheEnd);
            }
            // `ping`, the end of a block, and what may be added later.
            _ => {}
        }
        Ok(Went::On)
    }

    /// Tells whether the model has said why it stopped.
    pub(super) fn is_finished(&self) -> bool {
        self.stop.is_some()
    }

    /// Passes the finished texts on in one piece, for readers who expected a stream.
    pub(super) fn announce(&self, sink: &mut dyn DeltaSink) {
        for block in self.blocks.values() {
            block.show(&mut |piece| match piece {
                Piece::Text(text) => sink.text(text),
                Piece::Thinking(text) => sink.reasoning(text),
            });
        }
    }

    /// Finishes the turn.
    pub(super) fn build(self, request: &ModelRequest) -> ModelReply {
        let mut turn = AssistantTurn::default();
        let mut ids = CallIds::of(request);
        let mut thoughts = Vec::new();
        let mut readable = String::new();
        for block in self.blocks.into_values() {
            match block {
                Block::Text(text) => turn.text.push_str(&text),
                Block::Thinking { text, signature } => {
                    readable.push_str(&text);
                    // Without its signature the server does not take thinking back.
                    if !signature.is_empty() {
                        thoughts.push(
                            json!({ "type": "thinking", "thinking": text, "signature": signature }),
                        );
                    }
                }
                Block::Redacted(block) => thoughts.push(block),
                Block::Call {
                    id,
                    name,
                    input,
                    pieces,
                } => turn.calls.push(ToolCall {
                    id: ids.take(&id),
                    name,
                    arguments: if pieces.trim().is_empty() {
                        input
                    } else {
                        parse_arguments(pieces)
                    },
                }),
                Block::Other => {}
            }
        }
        let reasoning = Reasoning {
            text: (!readable.is_empty()).then_some(readable),
            opaque: opaque::wrap(Format::Anthropic, thoughts),
        };
        if reasoning != Reasoning::default() {
            turn.reasoning = Some(reasoning);
        }
        let finish = match self.stop.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some("refusal") => Finish::ContentFilter,
            _ if !turn.calls.is_empty() => Finish::ToolCalls,
            _ => Finish::Stop,
        };
        ModelReply {
            turn,
            usage: self.usage.total(),
            finish,
            api_call_id: self.id,
            provider_call_id: None,
        }
    }

    fn take_head(&mut self, message: &Value) {
        if let Some(id) = message.get("id").and_then(Value::as_str) {
            self.id = Some(id.to_owned());
        }
        if let Some(usage) = message.get("usage") {
            self.usage.take(usage);
        }
        self.take_stop(message);
    }

    fn take_stop(&mut self, holder: &Value) {
        if let Some(stop) = holder.get("stop_reason").and_then(Value::as_str) {
            self.stop = Some(stop.to_owned());
        }
    }
}

impl Block {
    fn begin(block: &Value) -> Self {
        let word = |name: &str| {
            block
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        match block.get("type").and_then(Value::as_str) {
            Some("text") => Self::Text(word("text")),
            Some("thinking") => Self::Thinking {
                text: word("thinking"),
                signature: word("signature"),
            },
            Some("redacted_thinking") => Self::Redacted(block.clone()),
            Some("tool_use") => Self::Call {
                id: word("id"),
                name: word("name"),
                input: block
                    .get("input")
                    .filter(|input| !input.is_null())
                    .cloned()
                    .unwrap_or_else(|| json!({})),
                pieces: String::new(),
            },
            _ => Self::Other,
        }
    }

    fn grow(&mut self, delta: &Value, seen: &mut dyn FnMut(Piece<'_>)) {
        let word = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        match self {
            Self::Text(text) => {
                let more = word("text");
                text.push_str(more);
                if !more.is_empty() {
                    seen(Piece::Text(more));
                }
            }
            Self::Thinking { text, signature } => {
                let more = word("thinking");
                text.push_str(more);
                signature.push_str(word("signature"));
                if !more.is_empty() {
                    seen(Piece::Thinking(more));
                }
            }
            Self::Call { pieces, .. } => pieces.push_str(word("partial_json")),
            Self::Redacted(_) | Self::Other => {}
        }
    }

    fn show(&self, seen: &mut dyn FnMut(Piece<'_>)) {
        match self {
            Self::Text(text) if !text.is_empty() => seen(Piece::Text(text)),
            Self::Thinking { text, .. } if !text.is_empty() => seen(Piece::Thinking(text)),
            Self::Text(_)
            | Self::Thinking { .. }
            | Self::Redacted(_)
            | Self::Call { .. }
            | Self::Other => {}
        }
    }
}

impl Counts {
    fn take(&mut self, usage: &Value) {
        let count = |name: &str, kept: &mut u64| {
            if let Some(number) = usage.get(name).and_then(Value::as_u64) {
                *kept = number;
            }
        };
        count("input_tokens", &mut self.input);
        count("output_tokens", &mut self.output);
        count("cache_read_input_tokens", &mut self.cache_read);
        count("cache_creation_input_tokens", &mut self.cache_write);
    }

    /// The server counts what came from or went to its cache apart; we count the whole input.
    fn total(&self) -> Usage {
        Usage {
            input_tokens: self.input + self.cache_read + self.cache_write,
            output_tokens: self.output,
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: 0,
            nano_credits: 0,
        }
    }
}

fn malformed(detail: &str) -> ProviderError {
    ProviderError::Malformed {
        detail: detail.to_owned(),
    }
}
