//! The right to run a tool call.

use loopd_proto::permission::{PermissionRequest, Permissions};

use super::{Verdict, Whereabouts, judge};

/// Proof that the rules or a person permitted exactly this request. A tool cannot run without a
/// grant. Only the kernel creates grants; code outside the kernel can get one only through the
/// rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    request: Option<PermissionRequest>,
}

impl Grant {
    /// Returns the permitted request, or `None` if the call needs no permission.
    pub fn request(&self) -> Option<&PermissionRequest> {
        self.request.as_ref()
    }

    /// Returns a grant if the rules allow the request. Without a request, the grant covers the call
    /// and nothing that needs a permission.
    pub fn by_rules<'a>(
        permissions: &Permissions,
        at: impl Into<Whereabouts<'a>>,
        request: Option<PermissionRequest>,
    ) -> Result<Self, NotGranted> {
        let Some(request) = request else {
            return Ok(Self { request: None });
        };
        match judge(permissions, at, &request) {
            Verdict::Allow => Ok(Self {
                request: Some(request),
            }),
            verdict @ (Verdict::Ask | Verdict::Deny(_)) => Err(NotGranted {
                verdict,
                request: Box::new(request),
            }),
        }
    }

    /// Returns the permitted request and gives the right up.
    pub(crate) fn into_request(self) -> Option<PermissionRequest> {
        self.request
    }

    /// Returns a grant to write the session's own plan, in plan mode.
    pub(super) fn of_own_plan(request: PermissionRequest) -> Self {
        Self {
            request: Some(request),
        }
    }

    /// Returns a grant for a request that a person permitted, or a hook in the place of one.
    pub(crate) fn by_person(request: PermissionRequest) -> Self {
        Self {
            request: Some(request),
        }
    }
}

/// A request that the rules alone do not permit.
#[derive(Debug)]
pub struct NotGranted {
    pub verdict: Verdict,
    pub request: Box<PermissionRequest>,
}
