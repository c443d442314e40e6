//! Puts one assistant turn together from a whole message or from the events of a stream.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::DeltaSink;
use crate::call_ids::parse_arguments;
use crate::error::ProviderError;
use crate::opaque::{self, Format};
use crate::vendor_api::{Progress, VendorReply, word};
use loopd_kernel::model::{AssistantTurn, Finish, ModelReply, Reasoning, ToolCall, Usage};

/// Collects what has arrived of a reply.
#[derive(Debug, Default)]
pub(in crate::vendor_api) struct MessagesReply {
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

impl VendorReply for MessagesReply {
    fn take_whole(
        &mut self,
        document: Value,
        sink: &mut dyn DeltaSink,
    ) -> Result<(), ProviderError> {
        let Some(content) = document.get("content").and_then(Value::as_array) else {
            return Err(ProviderError::malformed("the reply has no `content`"));
        };
        for (index, block) in (0..).zip(content) {
            self.begin_block(index, block, sink);
        }
        self.take_head(&document);
        Ok(())
    }

    fn take_event(
        &mut self,
        event: Value,
        sink: &mut dyn DeltaSink,
    ) -> Result<Progress, ProviderError> {
        let index = event.get("index").and_then(Value::as_u64);
        match word(&event, "type") {
            "message_start" => {
                if let Some(message) = event.get("message") {
                    self.take_head(message);
                }
            }
            "content_block_start" => {
                let (Some(index), Some(block)) = (index, event.get("content_block")) else {
                    return Err(ProviderError::malformed(
                        "a block began without index or content",
                    ));
                };
                self.begin_block(index, block, sink);
            }
            "content_block_delta" => {
                let (Some(index), Some(delta)) = (index, event.get("delta")) else {
                    return Err(ProviderError::malformed("a delta has no index or content"));
                };
                let block = self
                    .blocks
                    .get_mut(&index)
                    .ok_or_else(|| ProviderError::malformed("a delta belongs to no block"))?;
                block.grow(delta, sink);
            }
            "message_delta" => {
                if let Some(delta) = event.get("delta") {
                    self.take_stop(delta);
                }
                if let Some(usage) = event.get("usage") {
                    self.usage.take(usage);
                }
            }
            "message_stop" => return Ok(Progress::Complete),
            // `ping`, the end of a block, and what may be added later.
            _ => {}
        }
        Ok(if self.stop.is_some() {
            Progress::Finished
        } else {
            Progress::Unfinished
        })
    }

    fn build(self) -> ModelReply {
        let mut turn = AssistantTurn::default();
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
                    id: id.into(),
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
        turn.reasoning = Some(Reasoning {
            text: (!readable.is_empty()).then_some(readable),
            opaque: opaque::wrap(Format::Anthropic, thoughts),
        });
        let finish = match self.stop.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some("refusal") => Finish::ContentFilter,
            Some("end_turn" | "stop_sequence" | "tool_use" | "") | None => Finish::Stop,
            Some(reason) => {
                tracing::warn!(
                    reason,
                    "the provider gives a reason for the end that is not known"
                );
                Finish::Unknown
            }
        };
        ModelReply {
            turn,
            usage: self.usage.total(),
            finish,
            api_call_id: self.id,
            provider_call_id: None,
        }
    }
}

impl MessagesReply {
    fn begin_block(&mut self, index: u64, block: &Value, sink: &mut dyn DeltaSink) {
        let block = Block::begin(block);
        match &block {
            Block::Text(text) => sink.text(text),
            Block::Thinking { text, .. } => sink.reasoning(text),
            Block::Redacted(_) | Block::Call { .. } | Block::Other => {}
        }
        self.blocks.insert(index, block);
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
        let text = |name: &str| word(block, name).to_owned();
        match word(block, "type") {
            "text" => Self::Text(text("text")),
            "thinking" => Self::Thinking {
                text: text("thinking"),
                signature: text("signature"),
            },
            "redacted_thinking" => Self::Redacted(block.clone()),
            "tool_use" => Self::Call {
                id: text("id"),
                name: text("name"),
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

    fn grow(&mut self, delta: &Value, sink: &mut dyn DeltaSink) {
        match self {
            Self::Text(text) => {
                let more = word(delta, "text");
                text.push_str(more);
                sink.text(more);
            }
            Self::Thinking { text, signature } => {
                let more = word(delta, "thinking");
                text.push_str(more);
                signature.push_str(word(delta, "signature"));
                sink.reasoning(more);
            }
            Self::Call { pieces, .. } => pieces.push_str(word(delta, "partial_json")),
            Self::Redacted(_) | Self::Other => {}
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
            input_tokens: [self.cache_read, self.cache_write]
                .into_iter()
                .fold(self.input, u64::saturating_add),
            output_tokens: self.output,
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: 0,
            nano_credits: 0,
        }
    }
}
