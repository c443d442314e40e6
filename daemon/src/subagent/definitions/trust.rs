//! What an agent of a folder that nobody said to be trusted may still say: who it is, but nothing
//! that runs or grants.

use std::path::Path;

use crate::discovery::Problem;
use crate::discovery::agents::{AgentDefinition, AgentMode, PermissionMode};

use super::{builtin, is_same};

/// Says why an agent is left out that would stand in for one of ours which people choose by name to
/// answer: whoever asks for `plan` must not get what a folder calls so.
pub(super) fn stands_in(agent: &AgentDefinition) -> Option<Problem> {
    let mut primary = builtin::all().iter();
    let ours =
        primary.find(|own| own.mode == AgentMode::Primary && is_same(&own.name, &agent.name))?;
    let what = format!(
        "the agent `{}` has the name of the built-in `{}` and is left out, because this folder is not trusted; rename it, or \
         trust the folder with session.permissions.folderTrust.addTrusted if you know who wrote it",
        agent.name, ours.name
    );
    let file = agent.path.as_deref().unwrap_or(Path::new(&agent.name));
    Some(Problem::new(file, what))
}

/// Takes out what needs trust, and says what that was and how to keep it.
///
/// Modes that only restrict stay: without them the agent could do more.
pub(super) fn restrict(agent: &mut AgentDefinition) -> Option<Problem> {
    let mut dropped = Vec::new();
    let mut note = |was_there: bool, member: &'static str| {
        if was_there {
            dropped.push(member);
        }
    };
    note(agent.hooks.take().is_some(), "hooks");
    note(agent.mcp_servers.take().is_some(), "mcpServers");
    let required = std::mem::take(&mut agent.required_mcp_servers);
    note(!required.is_empty(), "requiredMcpServers");
    if agent.permission_mode.is_some_and(PermissionMode::grants) {
        agent.permission_mode = None;
        note(true, "permissionMode");
    }
    note(agent.memory.take().is_some(), "memory");
    note(agent.isolation.take().is_some(), "isolation");
    if dropped.is_empty() {
        return None;
    }
    let what = format!(
        "`{}` of the agent `{}` is left out, because this folder is not trusted; \
         trust it with session.permissions.folderTrust.addTrusted if you know who wrote it",
        dropped.join("`, `"),
        agent.name
    );
    let file = agent.path.as_deref().unwrap_or(Path::new(&agent.name));
    Some(Problem::new(file, what))
}
