//! The OpenAI chat completions format: also spoken by Ollama, llama.cpp, vLLM and the Copilot API.
//!
//! `app` builds one per configured endpoint; `retry` calls it. This file owns the order of one
//! exchange; `openai_chat/request` writes the JSON that goes out, `openai_chat/reply` puts a turn
//! together from what comes back, `openai_chat/models` reads the list of models.

mod calls;
pub(super) mod models;
mod reply;
mod request;

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::kernel::model::{ModelInfo, ModelReply, ModelRequest};

use crate::provider::body::{self, Deltas};
use crate::provider::endpoint::{Answer, Endpoint, Outgoing};
use crate::provider::error::ProviderError;
use crate::provider::http::Expecting;
use crate::provider::sse::EventReader;
use crate::provider::{DeltaSink, EndpointDescription, Provider, answer, error_body};
use reply::{Piece, ReplyBuilder};
use request::Limit;

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
    max_output_tokens: Option<u64>,
}

impl OpenAiChat {
    pub fn new(name: impl Into<String>, endpoint: Endpoint, flavor: Flavor) -> Self {
        Self {
            name: name.into(),
            endpoint,
            flavor,
            max_output_tokens: None,
        }
    }

    /// Limits the length of replies; without it the server decides.
    #[must_use]
    pub fn with_max_output_tokens(mut self, limit: Option<u64>) -> Self {
        self.max_output_tokens = limit;
        self
    }

    /// OpenAI and Azure renamed the limit; other servers know the old name only.
    fn limit(&self) -> Option<Limit> {
        let tokens = self.max_output_tokens?;
        let address = self.endpoint.public_url();
        let renamed = ["api.openai.com", ".azure.com"]
            .iter()
            .any(|host| address.contains(host));
        Some(if renamed {
            Limit::Completion(tokens)
        } else {
            Limit::Plain(tokens)
        })
    }

    async fn complete(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ProviderError> {
        let document = request::body(request, self.flavor, self.limit())?;
        let outgoing = Outgoing {
            path: &["chat", "completions"],
            query: &[],
            defaults: &request::headers(request, self.flavor),
            extra: &request.headers,
            expecting: request.delivery.into(),
        };
        let answer = self.endpoint.post(outgoing, document).await?;
        let provider_call_id = error_body::call_id(&answer.reply.headers);
        let mut deltas = Deltas::for_delivery(request.delivery, sink);
        let builder = if body::streams(&answer.reply, request.delivery) {
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
                query: &[],
                defaults: &request::listing_headers(self.flavor),
                extra: &[],
                expecting: Expecting::Listing,
            };
            let list = answer::listing(&self.endpoint, outgoing).await?;
            models::parse(&list)
        }
        .boxed()
    }

    fn describe(&self) -> EndpointDescription {
        EndpointDescription {
            provider_type: "openai",
            wire_api: Some("completions"),
            base_url: Some(self.endpoint.public_url()),
            path: Some("/chat/completions"),
        }
    }
}

async fn read_whole(answer: Answer, sink: &mut Deltas<'_>) -> Result<ReplyBuilder, ProviderError> {
    let document = answer::document(answer, sink, answer::error_in).await?;
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
            Ok(None) => return Err(body::truncated("the stream ended without a finish reason")),
            Err(error) => return Err(error),
        };
        let data = event.data.trim();
        if data == "[DONE]" {
            return Ok(builder);
        }
        if data.is_empty() {
            continue;
        }
        let chunk = body::event_json(data)?;
        if let Some(error) = answer::error_in(&chunk) {
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

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
