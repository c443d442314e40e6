//! Restricts the agents of a folder that is not trusted: they may describe themselves, but not run or
//! grant anything.

use std::path::Path;

use crate::discovery::Problem;
use crate::discovery::agents::{AgentDefinition, AgentMode};

use super::{builtin, is_same};

/// How a person trusts a folder.
const HOW: &str = "look at what the folder brings and trust it with `loop trust` (or \
                   session.permissions.folderTrust.addTrusted)";

/// Returns a problem if an agent would replace a built-in one that people select by name. Such an
/// agent is left out: a person who selects `plan` must not get the agent of an untrusted folder.
pub(super) fn replaces_builtin(agent: &AgentDefinition) -> Option<Problem> {
    let mut primary = builtin::all().iter();
    let ours =
        primary.find(|own| own.mode == AgentMode::Primary && is_same(&own.name, &agent.name))?;
    let what = format!(
        "the agent `{}` has the name of the built-in `{}` and is left out, because this folder is not trusted with it; rename \
         it, or {HOW}",
        agent.name, ours.name
    );
    let file = agent.path.as_deref().unwrap_or(Path::new(&agent.name));
    Some(Problem::new(file, what))
}

/// Removes what needs trust from an agent; the problem says what that was and how to keep it.
pub(super) fn restrict(agent: &mut AgentDefinition) -> Option<Problem> {
    let powers = agent.powers();
    if powers.is_empty() {
        return None;
    }
    agent.remove_powers();
    let members: Vec<&str> = powers.into_iter().map(|(member, _)| member).collect();
    let what = format!(
        "`{}` of the agent `{}` is left out, because this folder is not trusted with it; {HOW}",
        members.join("`, `"),
        agent.name
    );
    let file = agent.path.as_deref().unwrap_or(Path::new(&agent.name));
    Some(Problem::new(file, what))
}
