//! Restricts the agents of a folder that is not trusted: they may describe themselves, but not run or
//! grant anything.

use std::path::Path;

use crate::discovery::Problem;
use crate::discovery::agents::{AgentDefinition, AgentMode, PermissionMode};

use super::{builtin, is_same};

/// Returns a problem if an agent would replace a built-in one that people select by name. Such an
/// agent is left out: a person who selects `plan` must not get the agent of an untrusted folder.
pub(super) fn replaces_builtin(agent: &AgentDefinition) -> Option<Problem> {
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

/// Removes what needs trust from an agent; the problem says what that was and how to keep it.
///
/// Permission modes that only restrict stay: without them the agent could do more.
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
