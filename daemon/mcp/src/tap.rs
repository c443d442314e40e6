//! Keeps results as the server sent them.
//!
//! The library decodes results into its own types and drops members that it does not know, such as
//! `execution.taskSupport` of a tool. Both transports show what they send and receive here; the result of
//! a request can be fetched afterwards.

use std::collections::HashMap;

use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The most results that wait to be fetched.
const MOST_RESULTS: usize = 64;

/// The raw results of one connection.
#[derive(Default)]
pub(crate) struct Tap {
    inner: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    /// What became of requests.
    results: HashMap<RequestId, Option<Value>>,
    greeting: Option<RequestId>,
}

impl Tap {
    /// Sees a message before it is sent.
    pub(crate) fn sent(&self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(request) = message else {
            return;
        };
        let is_greeting = matches!(
            &request.request,
            ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_)
        );
        let mut inner = self.inner.lock();
        if is_greeting {
            inner.greeting = Some(request.id.clone());
        }
        if inner.results.len() >= MOST_RESULTS {
            // Requests that nobody waits for any more.
            inner.results.clear();
        }
        inner.results.insert(request.id.clone(), None);
    }

    /// Sees a message before anybody else does.
    pub(crate) fn received(&self, text: &[u8]) {
        #[derive(Deserialize)]
        struct Reply<'a> {
            id: Option<RequestId>,
            #[serde(borrow)]
            result: Option<&'a RawValue>,
        }
        if self.inner.lock().results.values().all(Option::is_some) {
            return;
        }
        let Ok(Reply {
            id: Some(id),
            result: Some(result),
        }) = serde_json::from_slice(text)
        else {
            return;
        };
        let mut inner = self.inner.lock();
        if let Some(slot) = inner.results.get_mut(&id) {
            *slot = serde_json::from_str(result.get()).ok();
        }
    }

    /// Returns the result of a request, once.
    pub(crate) fn take(&self, id: &RequestId) -> Option<Value> {
        self.inner.lock().results.remove(id).flatten()
    }

    /// Returns how the server answered the greeting, once.
    pub(crate) fn take_greeting(&self) -> Option<Value> {
        let mut inner = self.inner.lock();
        let id = inner.greeting.take()?;
        inner.results.remove(&id).flatten()
    }
}
