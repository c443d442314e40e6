//! Keeps results as the server sent them.
//!
//! The library decodes results into its own types and drops members that it does not know, such as
//! `execution.taskSupport` of a tool. Both transports show what they send and receive here; the result of
//! a request can be fetched afterwards.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The most results that wait to be fetched.
const MOST_RESULTS: usize = 4_096;

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
    /// The highest number of a request that was handed to the transport.
    newest: Option<i64>,
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
        if let RequestId::Number(number) = &request.id {
            inner.newest = inner.newest.max(Some(*number));
        }
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

    /// Returns whether a request may have been handed to the transport. One that was not has never left.
    pub(crate) fn may_have_left(&self, id: &RequestId) -> bool {
        match id {
            RequestId::Number(number) => self.inner.lock().newest >= Some(*number),
            RequestId::String(_) => true,
        }
    }

    /// Forgets a request when the guard goes, however that happens.
    pub(crate) fn guard(self: &Arc<Self>, id: &RequestId) -> TapGuard {
        TapGuard {
            tap: self.clone(),
            id: id.clone(),
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

/// Forgets the result of a request that nobody fetches.
pub(crate) struct TapGuard {
    tap: Arc<Tap>,
    id: RequestId,
}

impl Drop for TapGuard {
    fn drop(&mut self) {
        self.tap.take(&self.id);
    }
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed step fails the test")]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(id: i64) -> ClientJsonRpcMessage {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {}});
        serde_json::from_value(request).expect("a request")
    }

    #[test]
    fn a_request_that_the_transport_never_saw_has_not_left() {
        let tap = Tap::default();
        assert!(!tap.may_have_left(&RequestId::Number(0)));
        tap.sent(&listing(3));
        assert!(tap.may_have_left(&RequestId::Number(3)));
        // It may have been overtaken.
        assert!(tap.may_have_left(&RequestId::Number(2)));
        assert!(!tap.may_have_left(&RequestId::Number(4)));
    }

    #[test]
    fn results_are_kept_as_they_came_and_forgotten_with_their_request() {
        let tap = Arc::new(Tap::default());
        for id in 0..100 {
            tap.sent(&listing(id));
        }
        tap.received(br#"{"jsonrpc": "2.0", "id": 7, "result": {"odd": [1]}}"#);
        assert_eq!(tap.take(&RequestId::Number(7)), Some(json!({"odd": [1]})));
        drop(tap.guard(&RequestId::Number(8)));
        tap.received(br#"{"jsonrpc": "2.0", "id": 8, "result": {}}"#);
        assert_eq!(tap.take(&RequestId::Number(8)), None);
    }
}
