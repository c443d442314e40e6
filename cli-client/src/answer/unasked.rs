//! Permissions that are needed where nobody can be asked.
//!
//! The daemon denies such a request only if no other client of the session can answer it, so what
//! became of it is known from its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use loopd_sdk::proto::id::RequestId;
use loopd_sdk::proto::permission::PermissionOutcome;
use loopd_sdk::{Body, Durable, Event};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::terminal::Terminal;

/// How long a request is open before a person learns that another client is waited for.
const BEFORE_NOTICE: Duration = Duration::from_secs(1);

/// The permissions that could not be asked for here. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct DeniedUnasked(Arc<Mutex<Unasked>>);

#[derive(Default)]
struct Unasked {
    /// What is said if the request is denied.
    open: HashMap<RequestId, String>,
    was_denied: bool,
    /// What waits to tell that a request stays open.
    notices: JoinSet<()>,
}

impl DeniedUnasked {
    /// Returns whether a permission was denied because nobody could be asked.
    pub(crate) fn happened(&self) -> bool {
        self.0.lock().was_denied
    }

    /// Remembers a request until its end, and tells if it stays open for others.
    pub(super) fn asked(
        &self,
        terminal: &Terminal,
        request: RequestId,
        what: &str,
        denied: String,
    ) {
        let notice = format!(
            "loop: {what} needs a permission; nobody can be asked here, another client of the session is"
        );
        let (shared, terminal) = (Arc::downgrade(&self.0), terminal.clone());
        let mut unasked = self.0.lock();
        unasked.open.insert(request.clone(), denied);
        unasked.notices.spawn(async move {
            tokio::time::sleep(BEFORE_NOTICE).await;
            let shared = shared.upgrade();
            if shared.is_some_and(|shared| shared.lock().open.contains_key(&request)) {
                terminal.notice(&notice);
            }
        });
    }

    /// Forgets a request that ends with this event: it belongs to the run of another client.
    pub(crate) fn forget(&self, event: &Event) {
        if let Body::Durable(Durable::PermissionCompleted(completed)) = &event.body {
            self.0.lock().open.remove(&completed.request_id);
        }
    }

    /// Returns what is to be said about an event: that a request of this client was denied.
    pub(crate) fn denial(&self, event: &Event) -> Option<String> {
        let Body::Durable(Durable::PermissionCompleted(completed)) = &event.body else {
            return None;
        };
        let mut unasked = self.0.lock();
        let denied = unasked.open.remove(&completed.request_id)?;
        let PermissionOutcome::DeniedNoApprovalRuleAndCouldNotRequestFromUser {} = completed.result
        else {
            return None;
        };
        unasked.was_denied = true;
        Some(denied)
    }
}
