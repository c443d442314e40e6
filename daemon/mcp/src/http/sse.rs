//! A body that is a stream of events.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};

use crate::port::HttpFailure;
use crate::tap::Tap;

/// The largest event.
const LARGEST_EVENT: usize = 16 * 1024 * 1024;

/// Reads the events of a body. The tap sees each of them first.
pub(super) fn events(
    body: BoxStream<'static, Result<Bytes, HttpFailure>>,
    tap: Arc<Tap>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let bounded = Bounded {
        body,
        since_event: 0,
    };
    let events = SseStream::from_bytes_stream(bounded);
    events
        .inspect(move |event| {
            if let Ok(Sse {
                data: Some(data), ..
            }) = event
            {
                tap.received(data.as_bytes());
            }
        })
        .boxed()
}

/// Ends a body in which an event does not end.
struct Bounded {
    body: BoxStream<'static, Result<Bytes, HttpFailure>>,
    since_event: usize,
}

impl Stream for Bounded {
    type Item = Result<Bytes, HttpFailure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.body.as_mut().poll_next(context);
        if let Poll::Ready(Some(Ok(chunk))) = &polled {
            // An event ends with an empty line.
            let end = memchr::memmem::rfind(chunk, b"\n\n")
                .or_else(|| memchr::memmem::rfind(chunk, b"\r\n\r\n"));
            self.since_event = match end {
                Some(end) => chunk.len() - end,
                None => self.since_event + chunk.len(),
            };
            if self.since_event > LARGEST_EVENT {
                let why = format!("an event is larger than {LARGEST_EVENT} bytes");
                return Poll::Ready(Some(Err(HttpFailure(why))));
            }
        }
        polled
    }
}
