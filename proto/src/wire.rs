//! Connections: framing, JSON-RPC 2.0 envelopes and the one outgoing queue of a connection, over any
//! `AsyncRead + AsyncWrite`. The daemon calls `serve`, clients call `connect`; both then hold a
//! `Peer`. This module knows no method name (except `$/cancelRequest`), no session and no socket
//! path, and spawns no task.

mod admission;
mod codec;
mod envelope;
mod frame_tracker;
mod handler;
mod outbox;
mod peer;
mod pump;
mod service;

use std::time::Duration;

pub use codec::{FrameError, FrameReader, Framing};
pub use envelope::{
    EnvelopeError, ErrorObject, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND,
    Message, Notification, OVERLOADED, PARSE_ERROR, REQUEST_CANCELLED, Request, RequestId,
    Response, notification, parse, refusal,
};
pub use frame_tracker::FrameTracker;
pub use outbox::{Class, Closed, LastWord, LogPlace};
pub use peer::{CallError, Peer, PeerId, PendingCall, RefuseUntil};
pub use pump::{connect, serve};
pub use service::{NoMethods, Reply, Service};

/// The notification with which either side cancels one of its requests.
const CANCEL_REQUEST: &str = "$/cancelRequest";

/// The limits of one connection: one for every buffer, queue and wait in this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest frame that is read, in bytes.
    pub frame_limit: usize,
    /// How deep arrays and objects of one message may nest.
    pub depth_limit: usize,
    /// Deltas are dropped while more than this many bytes of events wait.
    pub delta_limit: usize,
    /// The connection is cut when more than this many bytes of events wait.
    pub event_limit: usize,
    /// Nothing is read while more than this many bytes of replies wait.
    pub reply_limit: usize,
    /// Outgoing requests are refused while more than this many bytes of them wait.
    pub request_limit: usize,
    /// How many incoming requests may be unanswered before reading stops.
    pub incoming_limit: usize,
    /// How many bytes of unanswered incoming requests may be held before reading stops.
    pub incoming_bytes_limit: usize,
    /// How many incoming requests may wait for an event (see [`Service::awaits`]) before further
    /// ones are refused. These requests do not count as unanswered above.
    pub waiting_limit: usize,
    /// How many outgoing requests may be unanswered before further ones are refused.
    pub outgoing_limit: usize,
    /// The most bytes of the result of an outgoing request. A larger one is refused: the request fails,
    /// and the connection goes on.
    pub answer_limit: usize,
    /// How long a closing connection may take to write what is still queued.
    pub flush_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            frame_limit: 64 * MIB,
            depth_limit: 128,
            delta_limit: MIB,
            event_limit: 16 * MIB,
            reply_limit: 4 * MIB,
            request_limit: 16 * MIB,
            incoming_limit: 256,
            incoming_bytes_limit: 64 * MIB,
            waiting_limit: 1024,
            outgoing_limit: 1024,
            answer_limit: 64 * MIB,
            flush_time: Duration::from_secs(2),
        }
    }
}

/// Why a connection ended. The first reason is kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// This side closed the connection.
    #[error("closed by this side")]
    Done,
    /// The other side closed the stream, perhaps in the middle of a frame.
    #[error("the other side closed the stream")]
    EndOfStream,
    /// The other side read too slowly, so that too many events piled up for it.
    #[error("the other side reads too slowly: too many events were waiting for it")]
    TooSlow,
    /// The other side sent bytes that are not a JSON-RPC message.
    #[error("malformed message: {0}")]
    Malformed(String),
    /// This side refuses to serve the other one.
    #[error("refused: {0}")]
    Refused(String),
    /// Reading from or writing to the stream failed.
    #[error("the stream failed: {0}")]
    Failed(String),
    /// The future that drives the connection was dropped before it ended.
    #[error("the connection is no longer driven")]
    Abandoned,
}

impl CloseReason {
    /// Returns whether the other side may still read, so that queued messages should be written.
    fn allows_flush(&self) -> bool {
        match self {
            Self::Done | Self::EndOfStream | Self::Malformed(_) | Self::Refused(_) => true,
            Self::TooSlow | Self::Failed(_) | Self::Abandoned => false,
        }
    }
}
