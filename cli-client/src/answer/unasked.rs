//! Permissions that are needed where nobody can be asked.
//!
//! The daemon denies such a request only if no other client of the session can answer it, so what
//! became of it is known from its end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use loopd_sdk::proto::id::{RequestId, ToolCallId};
use loopd_sdk::proto::permission::PermissionOutcome;
use loopd_sdk::{Body, Durable, Event};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::terminal::Terminal;

/// The code of the result of a call that ends the run, because somebody rejected it.
const REJECTED: &str = "rejected";
/// The type of the warning that a hook stopped the agent.
const STOPPED_BY_HOOK: &str = "hook_stopped";
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
    /// The calls that a person rejected.
    rejected: HashSet<ToolCallId>,
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

    /// Notes an event of the own run: whether it ended because of a hook. What people rejected themselves is
    /// an answer.
    pub(crate) fn note(&self, event: &Event) {
        if event.head.agent_id.is_some() {
            // An agent goes on after a rejection.
            return;
        }
        let Body::Durable(body) = &event.body else {
            return;
        };
        let mut unasked = self.0.lock();
        match body {
            Durable::PermissionCompleted(completed) => {
                if let PermissionOutcome::DeniedInteractivelyByUser { .. } = completed.result {
                    unasked.rejected.extend(completed.tool_call_id.clone());
                }
            }
            Durable::ToolComplete(complete) => {
                let code = complete.error.as_ref().and_then(|it| it.code.as_deref());
                if code == Some(REJECTED) && !unasked.rejected.remove(&complete.tool_call_id) {
                    unasked.was_denied = true;
                }
            }
            Durable::SessionWarning(warning) if warning.warning_type == STOPPED_BY_HOOK => {
                unasked.was_denied = true;
            }
            _ => {}
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
