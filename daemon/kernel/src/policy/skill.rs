//! What skills allow: while a skill with `allowed-tools` is active, no other tool is used.
//!
//! The list only restricts. It approves nothing: what a tool needs a permission for without the skill,
//! it needs one for with it.

use loopd_proto::permission::{PermissionRequest, Permissions};

use super::settings::{self, RuleBase};
use super::tool_list::means;
use super::{Verdict, Whereabouts, judge, within};
use crate::state::State;
use crate::tool_call::ToolOrigin;

/// The tools that no skill takes away: by these the model speaks with people and with the session, and
/// changes nothing outside.
const ALWAYS: &[&str] = &[
    "ask_user",
    "exit_plan_mode",
    "report_intent",
    "skill",
    "task_complete",
    "todoread",
    "todowrite",
];

/// What the active skills say about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillVerdict {
    Allow,
    /// A person has to confirm the call: this skill allows the tool for certain arguments only, and
    /// the call may have others.
    Confirm {
        skill: String,
    },
    /// This skill does not allow the tool; it allows these.
    Refuse {
        skill: String,
        tools: Vec<String>,
    },
}

/// Judges a call by the skills that restrict the current run. The strictest counts.
pub fn judge_by_skills(
    state: &State,
    at: Whereabouts<'_>,
    tool: &str,
    origin: ToolOrigin,
    request: Option<&PermissionRequest>,
) -> SkillVerdict {
    let mut verdict = SkillVerdict::Allow;
    if origin == ToolOrigin::BuiltIn && ALWAYS.contains(&tool) || reads_own_file(state, request) {
        return verdict;
    }
    for (skill, tools) in state.restricting_skills() {
        let mut naming = tools
            .iter()
            .filter(|pattern| means(pattern, tool, origin))
            .peekable();
        if naming.peek().is_none() {
            return SkillVerdict::Refuse {
                skill: skill.to_owned(),
                tools: tools.to_vec(),
            };
        }
        if !naming.any(|pattern| covers(pattern, at, request)) {
            verdict = SkillVerdict::Confirm {
                skill: skill.to_owned(),
            };
        }
    }
    verdict
}

/// Whether the call reads a file that belongs to an active skill.
fn reads_own_file(state: &State, request: Option<&PermissionRequest>) -> bool {
    let Some(PermissionRequest::Read { path, .. }) = request else {
        return false;
    };
    state.skill_folders().any(|folder| within(&folder, path))
}

/// Whether a pattern that names the tool covers this call: it has no arguments, or the call has those.
fn covers(pattern: &str, at: Whereabouts<'_>, request: Option<&PermissionRequest>) -> bool {
    if !pattern.contains('(') {
        return true;
    }
    let base = RuleBase {
        folder: at.cwd,
        user: None,
    };
    // A pattern that is not understood covers nothing.
    let (Ok(rule), Some(request)) = (settings::read(pattern, base), request) else {
        return false;
    };
    let allowed = Permissions {
        approved: vec![rule],
        unrestricted_paths: true,
        ..Permissions::default()
    };
    judge(&allowed, at, request) == Verdict::Allow
}

#[cfg(test)]
mod tests;
