//! What a model provider is: one call in, one reply out, pieces of it on the way.
//!
//! The daemon makes every call through `retry`. Vendor JSON, HTTP, keys and stream formats stay
//! below this module. Nothing here knows sessions, events or tools beyond the vendor-free types of
//! `kernel::model`.
//!
//! Where things go: a vendor is a folder in `vendor_api`, another way to carry HTTP is one more
//! [`http::HttpCarrier`], another way to obtain a key is one more [`endpoint::Credential`].

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests spawn helpers and read the clock as they like"
    )
)]

mod built_in;
mod call_ids;
pub mod client_http;
pub mod endpoint;
pub mod error;
mod error_body;
pub mod http;
pub mod http_client;
pub mod model_lists;
pub mod offline;
mod opaque;
pub mod replay;
pub mod retry;
pub mod secret;
mod sse;
#[cfg(any(test, feature = "test-server"))]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test server that cannot start fails the test"
)]
pub mod test_server;
pub mod vendor_api;
mod wait_hint;

use futures::future::BoxFuture;

pub use error::{ErrorKind, ProviderError};

use loopd_kernel::model::{ModelInfo, ModelReply, ModelRequest};

/// A source of models: an HTTP endpoint or something built in.
pub trait Provider: Send + Sync + 'static {
    /// Names the provider in logs and lists.
    fn name(&self) -> &str;

    /// Makes one model call; deltas go to `sink` while it streams, dropping the future cancels it.
    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a mut dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>>;

    /// Lists the models on offer, the provider's own default first where it has one.
    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>>;

    /// Says where calls go, without any secret.
    fn describe(&self) -> EndpointDescription;
}

/// Takes the pieces of a reply while it arrives.
pub trait DeltaSink: Send {
    /// Takes a piece of the answer's text.
    fn text(&mut self, delta: &str);
    /// Takes a piece of the model's readable thinking.
    fn reasoning(&mut self, delta: &str);
    /// Learns how many bytes of the response body have arrived so far.
    fn received(&mut self, total_bytes: u64);
}

/// A sink for callers who only want the whole reply.
#[derive(Debug, Default)]
pub struct NoDeltas;

impl DeltaSink for NoDeltas {
    fn text(&mut self, _delta: &str) {}
    fn reasoning(&mut self, _delta: &str) {}
    fn received(&mut self, _total_bytes: u64) {}
}

/// Where a provider sends its calls, fit to be shown to anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointDescription {
    /// The vendor family, such as `openai` or `offline`.
    pub provider_type: &'static str,
    /// The format within the family, such as `completions`.
    pub wire_api: Option<&'static str>,
    /// The base address without user name, password or query.
    pub base_url: Option<String>,
    /// What follows the base address in a model call.
    pub path: Option<&'static str>,
}
