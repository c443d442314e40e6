//! Reads the body of a successful response: whole or as events, whatever the vendor.
//!
//! Only `vendor_api` calls it. It knows HTTP bodies and JSON in general, no vendor's fields.

use loopd_proto::parse_error::plain;
use std::time::Duration;

use serde_json::Value;

use crate::endpoint::Answer;
use crate::error::ProviderError;
use crate::http::{Expecting, WatchedReply};
use crate::secret::Redactor;
use crate::sse::EventReader;
use crate::{DeltaSink, error_body};
use loopd_kernel::model::Delivery;

use super::{Progress, VendorReply};

/// How long we wait for the rest of a stream after the model has stopped.
const AFTER_FINISH: Duration = Duration::from_secs(5);

impl From<Delivery> for Expecting {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::Streamed => Self::Stream,
            Delivery::Whole => Self::WholeReply,
        }
    }
}

/// Reads a reply to its end; deltas go to the sink if the request asked for a stream.
pub(super) async fn read<R: VendorReply>(
    answer: Answer,
    delivery: Delivery,
    sink: &mut dyn DeltaSink,
) -> Result<R, ProviderError> {
    let mut sink = DeliverySink { delivery, sink };
    let mut reply = R::default();
    if is_stream(&answer.reply, delivery) {
        read_stream(answer, &mut reply, &mut sink).await?;
    } else {
        read_whole(answer, &mut reply, &mut sink).await?;
    }
    Ok(reply)
}

/// Reads a body to its end.
pub(super) async fn whole_body(
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

/// Tells whether a reply is a stream. The server's word counts: some ignore what was asked.
fn is_stream(reply: &WatchedReply, asked: Delivery) -> bool {
    match reply.media_type().as_deref() {
        Some("text/event-stream") => true,
        // A page of a proxy is no stream, whatever was asked for.
        Some("application/json" | "text/html") => false,
        _ => asked == Delivery::Streamed,
    }
}

async fn read_whole(
    mut answer: Answer,
    reply: &mut impl VendorReply,
    sink: &mut DeliverySink<'_>,
) -> Result<(), ProviderError> {
    let body = whole_body(&mut answer.reply, sink).await?;
    let said = |error: ProviderError| match error {
        ProviderError::Malformed { detail } => {
            let beginning = beginning(&body, &answer.redactor);
            ProviderError::malformed(format!("{detail}; it begins with: {beginning}"))
        }
        other => other,
    };
    let document: Value =
        serde_json::from_slice(&body).map_err(|failure| said(unreadable("the body", &failure)))?;
    if let Some(error) = error_body::found_in(&document) {
        let headers = &answer.reply.headers;
        return Err(error_body::reported(error, headers, &answer.redactor));
    }
    reply.take_whole(document, sink).map_err(said)
}

/// How much of a body that cannot be used is shown, in characters.
const SHOWN: usize = 300;

/// Returns the beginning of a body on one line: it may say what is wrong.
fn beginning(body: &[u8], redactor: &Redactor) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> = text.split_whitespace().take(SHOWN).collect();
    redactor
        .clean(&words.join(" "))
        .chars()
        .take(SHOWN)
        .collect()
}

async fn read_stream<R: VendorReply>(
    answer: Answer,
    reply: &mut R,
    sink: &mut DeliverySink<'_>,
) -> Result<(), ProviderError> {
    let headers = answer.reply.headers.clone();
    let mut events = EventReader::new(answer.reply);
    let mut progress = Progress::Unfinished;
    while progress != Progress::Complete {
        let event = match events.next(sink).await {
            Ok(Some(event)) => event,
            // The reply is usable however the stream ends; only token counts may be missing.
            Ok(None) | Err(_) if progress == Progress::Finished => return Ok(()),
            Ok(None) => {
                return Err(ProviderError::truncated(
                    "the stream ended before the model said why it stopped",
                ));
            }
            Err(error) => return Err(error),
        };
        progress = match event.data.trim() {
            "[DONE]" if R::ENDS_AT_DONE_MARK && !reply.has_begun() => {
                return Err(ProviderError::truncated(
                    "the stream ended before anything of an answer had come",
                ));
            }
            "[DONE]" if R::ENDS_AT_DONE_MARK => return Ok(()),
            "" | "[DONE]" => continue,
            data => {
                let document: Value = serde_json::from_str(data)
                    .map_err(|failure| unreadable("an event", &failure))?;
                let named_error = event.name.as_deref() == Some("error");
                let error = error_body::found_in(&document);
                if let Some(error) = error.or(named_error.then_some(&document)) {
                    return Err(error_body::reported(error, &headers, &answer.redactor));
                }
                reply.take_event(document, sink)?
            }
        };
        if progress == Progress::Finished {
            events.expect_end_within(AFTER_FINISH);
        }
    }
    Ok(())
}

/// Tells JSON that breaks off from what is no JSON.
fn unreadable(what: &str, failure: &serde_json::Error) -> ProviderError {
    if failure.is_eof() {
        ProviderError::truncated(format!("{what} ends in the middle of its JSON"))
    } else {
        ProviderError::malformed(format!("{what} is not JSON: {}", plain(failure)))
    }
}

/// The caller's sink, which gets text only where the request asked for a stream.
struct DeliverySink<'a> {
    delivery: Delivery,
    sink: &'a mut dyn DeltaSink,
}

impl DeltaSink for DeliverySink<'_> {
    fn text(&mut self, delta: &str) {
        if self.delivery == Delivery::Streamed && !delta.is_empty() {
            self.sink.text(delta);
        }
    }

    fn reasoning(&mut self, delta: &str) {
        if self.delivery == Delivery::Streamed && !delta.is_empty() {
            self.sink.reasoning(delta);
        }
    }

    fn received(&mut self, total_bytes: u64) {
        self.sink.received(total_bytes);
    }
}
