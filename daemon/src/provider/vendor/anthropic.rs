//! The Anthropic messages format.
//!
//! `agent::route` builds one per configured endpoint; `retry` calls it. This file owns the order of
//! one exchange; `anthropic/request` writes the JSON that goes out, `anthropic/thinking` decides how
//! much the model may think, `anthropic/reply` puts a turn together from what comes back,
//! `anthropic/models` knows the models.

mod models;
mod reply;
mod request;
mod thinking;

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

/// The version of the format, which the server wants named.
const VERSION: &str = "2023-06-01";

/// How long we wait for the end of the stream after the model has said why it stopped.
const AFTER_FINISH: Duration = Duration::from_secs(5);

/// How many models one page of the list holds; there are far fewer.
const LISTED: &str = "1000";

/// Whether the model is to say where in a document it found something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Citations {
    Wanted,
    Unwanted,
}

/// A provider that speaks the messages format.
#[derive(Debug)]
pub struct Anthropic {
    name: String,
    endpoint: Endpoint,
    max_output_tokens: Option<u64>,
    citations: Citations,
}

impl Anthropic {
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> Self {
        Self {
            name: name.into(),
            endpoint,
            max_output_tokens: None,
            citations: Citations::Unwanted,
        }
    }

    /// Says whether documents are cited.
    #[must_use]
    pub fn with_citations(mut self, citations: Citations) -> Self {
        self.citations = citations;
        self
    }

    /// Limits the length of replies to something else than the model's usual limit.
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
        let document = request::body(request, self.max_output_tokens, self.citations)?;
        let path = self.path("messages");
        let outgoing = Outgoing {
            path: &path,
            query: &[],
            defaults: &headers(body::accept(request.delivery)),
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

    /// Some people write the version into the base address, some leave it to us.
    fn path<'a>(&self, last: &'a str) -> Vec<&'a str> {
        if self.endpoint.public_url().ends_with("/v1") {
            vec![last]
        } else {
            vec!["v1", last]
        }
    }
}

fn headers(accept: &str) -> [(&'static str, String); 2] {
    [
        ("accept", accept.to_owned()),
        ("anthropic-version", VERSION.to_owned()),
    ]
}

impl Provider for Anthropic {
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
            let path = self.path("models");
            let outgoing = Outgoing {
                path: &path,
                query: &[("limit", LISTED)],
                defaults: &headers("application/json"),
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
            provider_type: "anthropic",
            wire_api: None,
            base_url: Some(self.endpoint.public_url()),
            path: Some("/v1/messages"),
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
            // The turn is complete, however the stream ends.
            Ok(None) | Err(_) if builder.is_finished() => return Ok(builder),
            Ok(None) => return Err(body::truncated("the stream ended without a stop reason")),
            Err(error) => return Err(error),
        };
        if event.data.trim().is_empty() {
            continue;
        }
        let document = body::event_json(&event.data)?;
        if let Some(error) = answer::error_in(&document) {
            return Err(error_body::reported(error, &headers, &answer.redactor));
        }
        let went = builder.take_event(document, &mut |piece| match piece {
            Piece::Text(text) => sink.text(text),
            Piece::Thinking(text) => sink.reasoning(text),
        })?;
        if went == reply::Went::ToTheEnd {
            return Ok(builder);
        }
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
