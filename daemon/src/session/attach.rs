//! What a connection brings to a session and how it takes it away again.

use std::sync::Arc;

use loopd_proto::id::Seq;
use loopd_proto::session::{ClientOffer, SessionOptions};

use crate::provider::secret::Secret;
use crate::rpc::context::Connection;

/// A connection that listens to a session and answers for it.
#[derive(Clone)]
pub struct Attachment {
    pub connection: Arc<Connection>,
    pub offer: ClientOffer,
    /// The configuration as the client gave it, secrets included; kept in memory only.
    pub options: SessionOptions,
    pub api_token: Option<Secret>,
    /// Durable events after this one are sent first.
    pub from: Seq,
}

/// How a connection leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goodbye {
    /// It said so: the last one out ends the session.
    Destroy,
    /// It vanished: the session goes on as far as it can without anybody.
    Vanish,
}
