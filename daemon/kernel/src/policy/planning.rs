//! Plan mode: a session that looks, thinks and changes nothing.
//!
//! No rule, hook or approval lifts it, and neither does a launch that allows everything: it is judged
//! beside the rules, and the stricter of both counts. Tools that write files are refused, except for
//! the session's own plan. Tools that run elsewhere ask, unless they only read: what an app says of its own
//! tools is believed, what a server says only if a rule names the server or the tool.
//! Commands are not judged here: the daemon runs them in a sandbox, where they can change nothing.

use loopd_proto::event::agent::Stance;
use loopd_proto::permission::{PermissionRequest, Permissions};
use loopd_proto::session::Mode;

use super::Verdict;
use super::grant::{Grant, NotGranted};
use crate::state::State;

/// Whether a session may only look and plan, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Planning {
    #[default]
    No,
    /// The session is in plan mode.
    Mode,
    /// A session above it is in plan mode, or its parent is an agent that only plans.
    Parent,
    /// Its agent only plans.
    Agent,
}

impl Planning {
    /// What the session itself says.
    pub fn of(state: &State) -> Self {
        let profile = state.subagent.as_ref().map(|own| own.profile.stance);
        if state.mode == Mode::Plan {
            Self::Mode
        } else if profile == Some(Stance::Plan) || state.stance_in_force() == Stance::Plan {
            Self::Agent
        } else {
            Self::No
        }
    }

    /// Adds what the parent of a session hands down.
    #[must_use]
    pub fn below(self, parent: Self) -> Self {
        match (self, parent) {
            (Self::No, Self::Mode | Self::Parent | Self::Agent) => Self::Parent,
            (own, _) => own,
        }
    }

    pub fn is_on(self) -> bool {
        self != Self::No
    }
}

/// What a tool says about itself that is not in its request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolClaim {
    #[default]
    Nothing,
    /// The tool of a client says that it changes nothing.
    ReadOnly,
}

/// Whether plan mode refuses a request, whatever the rules say.
pub(crate) fn refuses(request: &PermissionRequest, plan_file: &str) -> bool {
    matches!(request, PermissionRequest::Write { .. }) && !is_plan(request, plan_file)
}

/// Whether a request writes the session's plan and nothing else.
fn is_plan(request: &PermissionRequest, plan_file: &str) -> bool {
    match request {
        PermissionRequest::Write {
            file_name,
            other_files,
            ..
        } => file_name == plan_file && other_files.is_empty(),
        PermissionRequest::Shell { .. }
        | PermissionRequest::Read { .. }
        | PermissionRequest::Url { .. }
        | PermissionRequest::Mcp { .. }
        | PermissionRequest::CustomTool { .. }
        | PermissionRequest::Hook { .. } => false,
    }
}

/// Whether a tool may change something where nothing confines it.
fn is_unconfined(request: &PermissionRequest, claim: ToolClaim, permissions: &Permissions) -> bool {
    match request {
        PermissionRequest::Mcp {
            read_only,
            server_name,
            tool_name,
            ..
        } => !read_only || !is_named(permissions, server_name, tool_name),
        PermissionRequest::CustomTool { .. } => claim != ToolClaim::ReadOnly,
        PermissionRequest::Shell { .. }
        | PermissionRequest::Write { .. }
        | PermissionRequest::Read { .. }
        | PermissionRequest::Url { .. }
        | PermissionRequest::Hook { .. } => false,
    }
}

/// Whether a rule that allows names a server, or one of its tools. Who approves everything has not said that
/// a server is to be believed.
fn is_named(permissions: &Permissions, server: &str, tool: &str) -> bool {
    let rules = permissions.approved.iter();
    let mut named = rules.filter(|rule| rule.kind == "mcp");
    named.any(|rule| {
        let argument = rule.argument.as_deref().unwrap_or_default();
        argument == server || argument == format!("{server}/{tool}")
    })
}

/// Whether a hook may answer a request in the place of a person while the session plans: only if the
/// sandbox of commands covers it, or it only looks at files.
pub(crate) fn lets_hooks_answer(request: &PermissionRequest, plan_file: &str) -> bool {
    match request {
        PermissionRequest::Shell { .. } | PermissionRequest::Read { .. } => true,
        PermissionRequest::Write { .. } => is_plan(request, plan_file),
        PermissionRequest::Url { .. }
        | PermissionRequest::Mcp { .. }
        | PermissionRequest::CustomTool { .. }
        | PermissionRequest::Hook { .. } => false,
    }
}

/// Returns what plan mode makes of the rules' verdict on a request that it does not refuse.
pub(crate) fn weigh(
    granted: Result<Grant, NotGranted>,
    claim: ToolClaim,
    permissions: &Permissions,
    plan_file: &str,
) -> Result<Grant, NotGranted> {
    match granted {
        Ok(grant) => match grant.request() {
            Some(request) if is_unconfined(request, claim, permissions) => Err(NotGranted {
                verdict: Verdict::Ask,
                request: Box::new(request.clone()),
            }),
            Some(_) | None => Ok(grant),
        },
        Err(NotGranted {
            verdict: Verdict::Ask,
            request,
        }) if is_plan(&request, plan_file) => Ok(Grant::of_own_plan(*request)),
        Err(not_granted) => Err(not_granted),
    }
}

#[cfg(test)]
mod tests;
