//! One HTTP exchange as providers see it, whatever carries the bytes, with a limit on every wait.
//!
//! `endpoint` builds a request and reads the reply through [`WatchedReply`]; `http_client` carries
//! it over the network, and a carrier that hands requests to a connected client fits beside it.
//! Nothing here knows a vendor's format, a key or a retry.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
pub use reqwest::Url;
pub use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::{Instant, timeout_at};

use super::error::{ProviderError, TimeoutPhase};

/// Stands for a limit too large to be added to the clock.
const FAR_AWAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// A request ready to be carried.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    pub method: HttpMethod,
    pub url: Url,
    /// Values that hold secrets are marked sensitive, so that Debug hides them.
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The methods that model APIs and MCP servers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    Get,
    Post,
    Delete,
}

/// A response whose body is still on its way.
pub struct HttpResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: BoxStream<'static, Result<Bytes, ProviderError>>,
}

/// Brings a request to a server and its response back; dropping the future or the body cancels it.
pub trait HttpCarrier: Send + Sync + 'static {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ProviderError>>;
}

/// How long a call may wait for what, and how much it may receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timeouts {
    /// Until the source of a token has answered.
    pub(super) token: Duration,
    /// From sending a streamed request to the first byte of the reply's body.
    pub(super) first_byte: Duration,
    /// The same for a reply that comes at once: the model finishes before the first byte is sent.
    pub(super) first_byte_of_whole_reply: Duration,
    /// The same for a list of models.
    pub(super) first_byte_of_listing: Duration,
    /// Between two chunks of the body.
    pub(super) between_chunks: Duration,
    /// The whole exchange, however busy: keep-alive comments may otherwise go on for ever.
    pub(super) whole_call: Duration,
    /// The largest body, in bytes.
    pub(super) largest_body: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            token: Duration::from_secs(30),
            first_byte: Duration::from_secs(120),
            first_byte_of_whole_reply: Duration::from_secs(300),
            first_byte_of_listing: Duration::from_secs(30),
            between_chunks: Duration::from_secs(60),
            whole_call: Duration::from_secs(1800),
            largest_body: 64 * 1024 * 1024,
        }
    }
}

/// Which of the first-byte limits holds for an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expecting {
    Stream,
    WholeReply,
    Listing,
}

impl Expecting {
    /// Names the media type to ask for.
    pub(super) fn accept(self) -> &'static str {
        match self {
            Self::Stream => "text/event-stream",
            Self::WholeReply | Self::Listing => "application/json",
        }
    }
}

/// A response that is read under the limits of its call.
pub(super) struct WatchedReply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    body: BoxStream<'static, Result<Bytes, ProviderError>>,
    /// When the next chunk must be here, and what to say if it is not.
    due: Deadline,
    end: Deadline,
    between_chunks: Duration,
    largest_body: u64,
    received: u64,
}

#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Instant,
    phase: TimeoutPhase,
    limit: Duration,
}

impl Deadline {
    fn starting_now(phase: TimeoutPhase, limit: Duration) -> Self {
        let now = Instant::now();
        // A limit beyond what the clock can hold means "very long", not a crash.
        let at = now.checked_add(limit).unwrap_or(now + FAR_AWAY);
        Self { at, phase, limit }
    }

    fn earlier(self, other: Self) -> Self {
        if other.at < self.at { other } else { self }
    }

    async fn guard<T>(self, work: impl Future<Output = T>) -> Result<T, ProviderError> {
        timeout_at(self.at, work)
            .await
            .map_err(|_elapsed| ProviderError::Timeout {
                phase: self.phase,
                limit: self.limit,
            })
    }
}

impl WatchedReply {
    /// Sends a request and waits for the head of its response.
    pub(super) async fn open(
        carrier: &dyn HttpCarrier,
        request: HttpRequest,
        timeouts: &Timeouts,
        expecting: Expecting,
    ) -> Result<Self, ProviderError> {
        let first_byte = match expecting {
            Expecting::Stream => timeouts.first_byte,
            Expecting::WholeReply => timeouts.first_byte_of_whole_reply,
            Expecting::Listing => timeouts.first_byte_of_listing,
        };
        let end = Deadline::starting_now(TimeoutPhase::WholeCall, timeouts.whole_call);
        let due = Deadline::starting_now(TimeoutPhase::FirstByte, first_byte).earlier(end);
        let response = due.guard(carrier.send(request)).await??;
        Ok(Self {
            status: response.status,
            headers: response.headers,
            body: response.body,
            due,
            end,
            between_chunks: timeouts.between_chunks,
            largest_body: timeouts.largest_body,
            received: 0,
        })
    }

    /// Waits for the next chunk; none at the end of the body.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, ProviderError> {
        loop {
            let Some(chunk) = self.due.guard(self.body.next()).await?.transpose()? else {
                return Ok(None);
            };
            if chunk.is_empty() {
                continue;
            }
            self.received += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            if self.received > self.largest_body {
                return Err(ProviderError::TooLarge {
                    limit: self.largest_body,
                });
            }
            self.due = Deadline::starting_now(TimeoutPhase::BetweenChunks, self.between_chunks)
                .earlier(self.end);
            return Ok(Some(chunk));
        }
    }

    /// Counts the bytes of the body that have arrived.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Lowers the wait for further chunks once all that matters has arrived.
    pub(super) fn expect_end_within(&mut self, limit: Duration) {
        self.between_chunks = self.between_chunks.min(limit);
        self.due = self
            .due
            .earlier(Deadline::starting_now(TimeoutPhase::BetweenChunks, limit));
    }

    /// Names the media type of the body, in lower case and without parameters.
    pub(super) fn media_type(&self) -> Option<String> {
        let value = self
            .headers
            .get(reqwest::header::CONTENT_TYPE)?
            .to_str()
            .ok()?;
        Some(
            value
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase(),
        )
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests;
