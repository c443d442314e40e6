//! Skills: what is loaded, and what clients put into use or out of use.

use loopd_proto::event::skill::{
    PreloadedSkill, SkillInvoked, SkillSwitched, SkillsLoaded, SkillsPreloaded,
};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::permission::PermissionRequest;

use crate::command::{CallOutcome, DecideEnv, Decision};
use crate::hook::HookVerdict;
use crate::policy::skill::{SkillVerdict, judge_by_skills};
use crate::state::State;
use crate::texts;
use crate::tool_call::ToolOrigin;

pub(super) fn switch(state: &State, switched: SkillSwitched) -> Decision {
    let mut decision = Decision::default();
    if state.skills.switch(&switched.name) != Some(switched.enabled) {
        decision.store(Durable::SkillSwitched(switched));
    }
    decision
}

/// Tells clients which skills the session has.
pub(super) fn found(loaded: SkillsLoaded) -> Decision {
    let mut decision = Decision::default();
    decision.tell(Ephemeral::SkillsLoaded(loaded));
    decision
}

/// Records a skill that a call of the model loads.
pub(super) fn loaded_by_model(state: &State, mut skill: SkillInvoked, decision: &mut Decision) {
    skill.model = state.model_in_force().map(str::to_owned);
    decision.store(Durable::SkillInvoked(skill));
}

/// Records the skills that a prepared message loads, and those that the system message has.
pub(super) fn prepared(
    state: &State,
    decision: &mut Decision,
    loaded: Vec<SkillInvoked>,
    preloaded: Vec<SkillInvoked>,
) {
    let now = SkillsPreloaded {
        skills: preloaded.iter().map(preloaded_skill).collect(),
    };
    if !state.skills.has_preloaded(&now.skills) {
        decision.store(Durable::SkillsPreloaded(now));
    }
    for skill in preloaded {
        let is_known = |known: &SkillInvoked| {
            known.name == skill.name
                && known.trigger == skill.trigger
                && known.content == skill.content
        };
        let mut known = state.skills.loaded().iter();
        if !known.any(|known| is_known(&known.invoked)) {
            decision.store(Durable::SkillInvoked(skill));
        }
    }
    for skill in loaded {
        decision.store(Durable::SkillInvoked(skill));
    }
}

fn preloaded_skill(skill: &SkillInvoked) -> PreloadedSkill {
    PreloadedSkill {
        name: skill.name.clone(),
        path: skill.path.clone(),
        folder: skill.folder.clone(),
        allowed_tools: skill.allowed_tools.clone(),
    }
}

/// What the active skills make of a call: the hooks' verdict, made stricter where a person has to
/// confirm the call, or the result of the call if it is refused.
pub(super) fn weigh(
    state: &State,
    tool: &str,
    origin: ToolOrigin,
    request: Option<&PermissionRequest>,
    hooks: HookVerdict,
    env: &DecideEnv<'_>,
) -> Result<HookVerdict, Box<CallOutcome>> {
    match judge_by_skills(state, env.whereabouts(state), tool, origin, request) {
        SkillVerdict::Allow => Ok(hooks),
        SkillVerdict::Refuse { skill, tools } => {
            let why = texts::skill::not_allowed(&skill, tool, &tools);
            Err(Box::new(CallOutcome::failure("denied", why)))
        }
        SkillVerdict::Confirm { skill } => Ok(match hooks {
            HookVerdict::None | HookVerdict::Allow => {
                HookVerdict::Ask(Some(texts::skill::beyond(&skill)))
            }
            asks @ (HookVerdict::Ask(_) | HookVerdict::Deny(_)) => asks,
        }),
    }
}

#[cfg(test)]
mod tests;
