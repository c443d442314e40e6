//! The OpenAI chat completions format: also spoken by Ollama, llama.cpp, vLLM and the Copilot API.
//!
//! `app` builds one per configured endpoint; `retry` calls it. This file owns the order of one
//! exchange; `openai_chat/request` writes the JSON that goes out, `openai_chat/reply` puts a turn
//! together from what comes back, `openai_chat/models` reads the list of models.

mod calls;
mod models;
mod reply;
mod request;

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::kernel::model::{Delivery, ModelInfo, ModelReply, ModelRequest};

use super::endpoint::{Answer, Endpoint, Outgoing};
use super::error::ProviderError;
use super::http::{Expecting, WatchedReply};
use super::sse::EventReader;
use super::{DeltaSink, EndpointDescription, Provider, error_body};
use reply::{Piece, ReplyBuilder};

/// How long we wait for the token counts after the model has finished its turn.
const AFTER_FINISH: Duration = Duration::from_secs(5);

/// The dialects of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavor {
    /// What every compatible server understands.
    Plain,
    /// The Copilot API: its own headers, richer model list, thinking sent back.
    Copilot,
}

/// A provider that speaks chat completions.
#[derive(Debug)]
pub struct OpenAiChat {
    name: String,
    endpoint: Endpoint,
    flavor: Flavor,
}

impl OpenAiChat {
    pub fn new(name: impl Into<String>, endpoint: Endpoint, flavor: Flavor) -> Self {
        Self {
            name: name.into(),
            endpoint,
            flavor,
        }
    }

    async fn complete(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ProviderError> {
        let body = request::body(request, self.flavor)?;
        let expecting = match request.delivery {
            Delivery::Streamed => Expecting::Stream,
            Delivery::Whole => Expecting::WholeReply,
        };
        let outgoing = Outgoing {
            path: &["chat", "completions"],
            defaults: &request::headers(request, self.flavor),
            extra: &request.headers,
            expecting,
        };
        let answer = self.endpoint.post(outgoing, body).await?;
        let provider_call_id = error_body::call_id(&answer.reply.headers);
        // The server's word counts, not ours: some ignore `stream`, in either direction.
        let streams = match answer.reply.media_type().as_deref() {
            Some("text/event-stream") => true,
            Some("application/json") => false,
            _ => request.delivery == Delivery::Streamed,
        };
        let mut deltas = match request.delivery {
            Delivery::Streamed => Deltas::Wanted(sink),
            Delivery::Whole => Deltas::Unwanted(sink),
        };
        let builder = if streams {
            read_stream(answer, &mut deltas).await?
        } else {
            read_whole(answer, &mut deltas).await?
        };
        Ok(ModelReply {
            provider_call_id,
            ..builder.build(request)
        })
    }
}

impl Provider for OpenAiChat {
    fn name(&self) -> &str {
        &self.name
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a mut dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        self.complete(request, sink).boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        async move {
            let outgoing = Outgoing {
                path: &["models"],
                defaults: &request::listing_headers(self.flavor),
                extra: &[],
                expecting: Expecting::Listing,
            };
            let mut answer = self.endpoint.get(outgoing).await?;
            let body = whole_body(&mut answer.reply, &mut |_total| {}).await?;
            models::parse(&body)
        }
        .boxed()
    }

    fn describe(&self) -> EndpointDescription {
        EndpointDescription {
            provider_type: "openai",
            wire_api: Some("completions"),
            base_url: Some(self.endpoint.public_url()),
        }
    }
}

/// The caller's sink, with pieces passed on only where the request asked for them.
enum Deltas<'a> {
    Wanted(&'a mut dyn DeltaSink),
    Unwanted(&'a mut dyn DeltaSink),
}

impl DeltaSink for Deltas<'_> {
    fn text(&mut self, delta: &str) {
        if let Self::Wanted(sink) = self {
            sink.text(delta);
        }
    }

    fn reasoning(&mut self, delta: &str) {
        if let Self::Wanted(sink) = self {
            sink.reasoning(delta);
        }
    }

    fn received(&mut self, total_bytes: u64) {
        let (Self::Wanted(sink) | Self::Unwanted(sink)) = self;
        sink.received(total_bytes);
    }
}

async fn read_whole(
    mut answer: Answer,
    sink: &mut Deltas<'_>,
) -> Result<ReplyBuilder, ProviderError> {
    let body = whole_body(&mut answer.reply, &mut |total| sink.received(total)).await?;
    let document: Value = serde_json::from_slice(&body).map_err(|failure| {
        if failure.is_eof() {
            ProviderError::Truncated {
                detail: format!("{} bytes of JSON without an end", body.len()),
            }
        } else {
            ProviderError::Malformed {
                detail: format!("the body is not JSON: {failure}"),
            }
        }
    })?;
    if let Some(error) = reply::error_in(&document) {
        return Err(error_body::reported(
            error,
            &answer.reply.headers,
            &answer.redactor,
        ));
    }
    let mut builder = ReplyBuilder::default();
    builder.take_whole(document)?;
    builder.announce(sink);
    Ok(builder)
}

async fn read_stream(answer: Answer, sink: &mut Deltas<'_>) -> Result<ReplyBuilder, ProviderError> {
    let headers = answer.reply.headers.clone();
    let mut events = EventReader::new(answer.reply);
    let mut builder = ReplyBuilder::default();
    loop {
        let event = match events.next(sink).await {
            Ok(Some(event)) => event,
            // The turn is complete, however the stream ends; only the token counts may be missing.
            Ok(None) | Err(_) if builder.is_finished() => return Ok(builder),
            Ok(None) => return Err(truncated("the stream ended without a finish reason")),
            Err(error) => return Err(error),
        };
        let data = event.data.trim();
        if data == "[DONE]" {
            return Ok(builder);
        }
        if data.is_empty() {
            continue;
        }
        let chunk: Value = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(failure) if failure.is_eof() => {
                return Err(truncated("an event is cut in the middle"));
            }
            Err(failure) => {
                return Err(ProviderError::Malformed {
                    detail: format!("an event is not JSON: {failure}"),
                });
            }
        };
        if let Some(error) = reply::error_in(&chunk) {
            return Err(error_body::reported(error, &headers, &answer.redactor));
        }
        if event.name.as_deref() == Some("error") {
            return Err(error_body::reported(&chunk, &headers, &answer.redactor));
        }
        builder.take_chunk(chunk, &mut |piece| match piece {
            Piece::Text(text) => sink.text(text),
            Piece::Reasoning(text) => sink.reasoning(text),
        })?;
        if builder.is_finished() {
            events.expect_end_within(AFTER_FINISH);
        }
    }
}

async fn whole_body(
    reply: &mut WatchedReply,
    received: &mut (dyn FnMut(u64) + Send),
) -> Result<Vec<u8>, ProviderError> {
    let mut body = Vec::new();
    while let Some(chunk) = reply.chunk().await? {
        body.extend_from_slice(&chunk);
        received(reply.received());
    }
    Ok(body)
}

fn truncated(detail: &str) -> ProviderError {
    ProviderError::Truncated {
        detail: detail.to_owned(),
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
