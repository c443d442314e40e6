//! Server-sent events: bytes in any pieces go in, whole events come out.
//!
//! `vendor_api` reads streamed replies through [`EventReader`]. The decoder is our own
//! because the crate at hand panics on a byte order mark, scans a long line again for every chunk
//! and drops a last event without a blank line. It never interprets the data of an event.

use std::collections::VecDeque;
use std::time::Duration;

use super::DeltaSink;
use super::error::ProviderError;
use super::http::WatchedReply;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The event's type, where the stream names one.
    pub(super) name: Option<String>,
    /// The data lines, joined with line feeds.
    pub(super) data: String,
}

/// Cuts a byte stream into events; what it holds is bounded by the largest body of the call.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// Bytes of lines that are not complete yet.
    pending: Vec<u8>,
    /// How much of `pending` is known to hold no line end.
    scanned: usize,
    /// Whether the last line ended with a carriage return, so that a line feed belongs to it.
    after_return: bool,
    started: bool,
    name: Option<String>,
    data: Option<String>,
}

impl Decoder {
    /// Takes the next bytes and returns the events that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        self.pending.extend_from_slice(bytes);
        let mut pending = std::mem::take(&mut self.pending);
        let mut line_start = 0;
        let mut at = self.scanned;
        while let Some(byte) = pending.get(at) {
            if self.after_return && *byte == b'\n' && at == line_start {
                line_start += 1;
                self.after_return = false;
            } else if matches!(byte, b'\n' | b'\r') {
                let line = pending.get(line_start..at).unwrap_or_default();
                events.extend(self.line(&String::from_utf8_lossy(line)));
                self.after_return = *byte == b'\r';
                line_start = at + 1;
            } else {
                self.after_return = false;
            }
            at += 1;
        }
        pending.drain(..line_start);
        self.scanned = pending.len();
        self.pending = pending;
        events
    }

    /// Ends the stream; an event that only lacks its blank line still counts.
    pub(super) fn finish(&mut self) -> Option<Event> {
        let rest = std::mem::take(&mut self.pending);
        self.scanned = 0;
        let event = if rest.is_empty() {
            None
        } else {
            self.line(&String::from_utf8_lossy(&rest))
        };
        event.or_else(|| self.line(""))
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        let line = if self.started {
            line
        } else {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
        };
        self.started = true;
        if line.is_empty() {
            let name = self.name.take();
            return self.data.take().map(|data| Event { name, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.name = Some(value.to_owned()),
            // Comments (an empty field name), `id` and `retry` mean nothing to a single reply.
            _ => {}
        }
        None
    }
}

/// Reads the events of one reply under the time limits of its call.
pub(super) struct EventReader {
    reply: WatchedReply,
    decoder: Decoder,
    ready: VecDeque<Event>,
    at_end: bool,
}

impl EventReader {
    pub(super) fn new(reply: WatchedReply) -> Self {
        Self {
            reply,
            decoder: Decoder::default(),
            ready: VecDeque::new(),
            at_end: false,
        }
    }

    /// Waits for the next event; none at the end of the stream.
    pub(super) async fn next(
        &mut self,
        sink: &mut dyn DeltaSink,
    ) -> Result<Option<Event>, ProviderError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.at_end {
                return Ok(None);
            }
            if let Some(chunk) = self.reply.chunk().await? {
                sink.received(self.reply.received());
                self.ready.extend(self.decoder.push(&chunk));
            } else {
                self.at_end = true;
                self.ready.extend(self.decoder.finish());
            }
        }
    }

    /// Lowers the wait for further events once the reply itself is complete.
    pub(super) fn expect_end_within(&mut self, limit: Duration) {
        self.reply.expect_end_within(limit);
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "tests fail by panicking")]
mod tests;
