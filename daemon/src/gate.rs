//! The only maker of [`Grant`]: a tool cannot run without one, so the check has one place.

use loopd_proto::permission::PermissionRequest;

/// Proof that exactly this request was allowed, by policy or by a client.
#[derive(Debug)]
pub struct Grant {
    request: Option<PermissionRequest>,
}

impl Grant {
    /// What was allowed; `None` for tools that ask for nothing.
    pub fn request(&self) -> Option<&PermissionRequest> {
        self.request.as_ref()
    }

    /// Turns a decision recorded in the session's state into the right to run.
    pub(crate) fn allowed(request: Option<PermissionRequest>) -> Self {
        Self { request }
    }
}
