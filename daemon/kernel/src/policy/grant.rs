//! The right to run a tool call.

use loopd_proto::permission::{PermissionRequest, Permissions};

use super::{Verdict, judge};

/// Proof that exactly this was permitted, by the rules or by a person. A tool cannot run without
/// one. Only decisions of the kernel make one; who is outside can but ask the rules for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    request: Option<PermissionRequest>,
}

impl Grant {
    /// The request that was permitted; none if the call touches nothing that needs a permission.
    pub fn request(&self) -> Option<&PermissionRequest> {
        self.request.as_ref()
    }

    /// What the rules say of a request, as a right if they allow it. Without a request it is the
    /// right to nothing else than the call itself.
    pub fn by_rules(
        permissions: &Permissions,
        cwd: &str,
        request: Option<PermissionRequest>,
    ) -> Result<Self, NotGranted> {
        let Some(request) = request else {
            return Ok(Self { request: None });
        };
        match judge(permissions, cwd, &request) {
            Verdict::Allow => Ok(Self {
                request: Some(request),
            }),
            verdict @ (Verdict::Ask | Verdict::Deny(_)) => Err(NotGranted { verdict, request }),
        }
    }

    /// A person permitted it.
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
    pub request: PermissionRequest,
}
