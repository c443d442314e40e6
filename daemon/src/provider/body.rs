//! Reading a reply's body: whole or as events, with deltas only for those who asked for them.
//!
//! The wire formats share it. It knows HTTP bodies and JSON in general, no vendor's fields.

use serde_json::Value;

use loopd_kernel::model::Delivery;

use super::DeltaSink;
use super::error::ProviderError;
use super::http::{Expecting, WatchedReply};

impl From<Delivery> for Expecting {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::Streamed => Self::Stream,
            Delivery::Whole => Self::WholeReply,
        }
    }
}

/// The media type to ask for.
pub(super) fn accept(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Streamed => "text/event-stream",
        Delivery::Whole => "application/json",
    }
}

/// Tells whether a reply is a stream: the server's word counts, since some ignore what was asked.
pub(super) fn streams(reply: &WatchedReply, asked: Delivery) -> bool {
    match reply.media_type().as_deref() {
        Some("text/event-stream") => true,
        Some("application/json") => false,
        _ => asked == Delivery::Streamed,
    }
}

/// The caller's sink, with pieces passed on only where the request asked for them.
pub(super) enum Deltas<'a> {
    Wanted(&'a mut dyn DeltaSink),
    Unwanted(&'a mut dyn DeltaSink),
}

impl<'a> Deltas<'a> {
    pub(super) fn for_delivery(delivery: Delivery, sink: &'a mut dyn DeltaSink) -> Self {
        match delivery {
            Delivery::Streamed => Self::Wanted(sink),
            Delivery::Whole => Self::Unwanted(sink),
        }
    }
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

/// Reads a body to its end.
pub(super) async fn whole(
    reply: &mut WatchedReply,
    sink: &mut dyn DeltaSink,
) -> Result<Vec<u8>, ProviderError> {
    let mut body = Vec::new();
    while let Some(chunk) = reply.chunk().await? {
        body.extend_from_slice(&chunk);
        sink.received(reply.received());
    }
    Ok(body)
}

/// Reads a body that is one JSON document.
pub(super) async fn whole_json(
    reply: &mut WatchedReply,
    sink: &mut dyn DeltaSink,
) -> Result<Value, ProviderError> {
    let body = whole(reply, sink).await?;
    serde_json::from_slice(&body).map_err(|failure| {
        if failure.is_eof() {
            truncated(&format!("{} bytes of JSON without an end", body.len()))
        } else {
            ProviderError::Malformed {
                detail: format!("the body is not JSON: {failure}"),
            }
        }
    })
}

/// Reads the data of one event.
pub(super) fn event_json(data: &str) -> Result<Value, ProviderError> {
    serde_json::from_str(data).map_err(|failure| {
        if failure.is_eof() {
            truncated("an event is cut in the middle")
        } else {
            ProviderError::Malformed {
                detail: format!("an event is not JSON: {failure}"),
            }
        }
    })
}

pub(super) fn truncated(detail: &str) -> ProviderError {
    ProviderError::Truncated {
        detail: detail.to_owned(),
    }
}
