//! The OpenAI responses format, used without any state on the server.
//!
//! `agent::route` builds one per configured endpoint; `retry` calls it. This file owns the order of
//! one exchange; `openai_responses/request` writes the JSON that goes out, `openai_responses/reply`
//! puts a turn together from what comes back.

mod reply;
mod request;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::kernel::model::{ModelInfo, ModelReply, ModelRequest};

use super::openai_chat;
use crate::provider::body::{self, Deltas};
use crate::provider::endpoint::{Answer, Endpoint, Outgoing};
use crate::provider::error::ProviderError;
use crate::provider::http::Expecting;
use crate::provider::sse::EventReader;
use crate::provider::{DeltaSink, EndpointDescription, Provider, answer, error_body};
use reply::{Piece, ReplyBuilder};

/// A provider that speaks the responses format.
#[derive(Debug)]
pub struct OpenAiResponses {
    name: String,
    endpoint: Endpoint,
    max_output_tokens: Option<u64>,
}

impl OpenAiResponses {
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> Self {
        Self {
            name: name.into(),
            endpoint,
            max_output_tokens: None,
        }
    }

    /// Limits the length of replies, thinking included.
    #[must_use]
    pub fn with_max_output_tokens(mut self, limit: Option<u64>) -> Self {
        self.max_output_tokens = limit;
        self
    }

    async fn complete(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ProviderError> {
        let document = request::body(request, self.max_output_tokens)?;
        let outgoing = Outgoing {
            path: &["responses"],
            query: &[],
            defaults: &[("accept", body::accept(request.delivery).to_owned())],
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

impl Provider for OpenAiResponses {
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
                defaults: &[("accept", "application/json".to_owned())],
                extra: &[],
                expecting: Expecting::Listing,
            };
            let list = answer::listing(&self.endpoint, outgoing).await?;
            openai_chat::models::parse(&list)
        }
        .boxed()
    }

    fn describe(&self) -> EndpointDescription {
        EndpointDescription {
            provider_type: "openai",
            wire_api: Some("responses"),
            base_url: Some(self.endpoint.public_url()),
            path: Some("/responses"),
        }
    }
}

async fn read_whole(answer: Answer, sink: &mut Deltas<'_>) -> Result<ReplyBuilder, ProviderError> {
    let document = answer::document(answer, sink, reply::error_in).await?;
    let mut builder = ReplyBuilder::default();
    builder.take_whole(&document)?;
    builder.announce(sink);
    Ok(builder)
}

async fn read_stream(answer: Answer, sink: &mut Deltas<'_>) -> Result<ReplyBuilder, ProviderError> {
    let headers = answer.reply.headers.clone();
    let mut events = EventReader::new(answer.reply);
    let mut builder = ReplyBuilder::default();
    while let Some(event) = events.next(sink).await? {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            continue;
        }
        let document = body::event_json(data)?;
        if let Some(error) = reply::error_in(&document) {
            return Err(error_body::reported(error, &headers, &answer.redactor));
        }
        builder.take_event(&document, &mut |piece| match piece {
            Piece::Text(text) => sink.text(text),
            Piece::Thinking(text) => sink.reasoning(text),
        })?;
        if builder.is_finished() {
            return Ok(builder);
        }
    }
    Err(body::truncated(
        "the stream ended before the response was completed",
    ))
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
