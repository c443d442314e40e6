//! Folding what is loaded of skills.

use loopd_proto::event::skill::{SkillInvoked, SkillTrigger};

use super::runs;
use crate::skills::RunSkill;
use crate::state::State;
use crate::texts;

/// Takes a skill that was loaded. The text of one that the model loaded follows the results of the
/// turn; that of the others is in a message or in the system message.
pub(super) fn invoked(state: &mut State, invoked: &SkillInvoked) {
    let is_known = state.active_skills().any(|known| {
        (&known.name, &known.path, &known.content)
            == (&invoked.name, &invoked.path, &invoked.content)
    });
    let turn = state.turn().map_or(0, |turn| turn.key.number);
    state.skills.invoked(invoked, turn, state.seq);
    if invoked.trigger == Some(SkillTrigger::ContextLoad) {
        return;
    }
    if let Some(run) = runs::current(state) {
        run.skills.retain(|skill| skill.name != invoked.name);
        run.skills.push(RunSkill {
            name: invoked.name.clone(),
            tools: invoked.allowed_tools.clone(),
        });
    }
    // The model has read the same text already.
    if invoked.trigger != Some(SkillTrigger::UserInvoked) && !is_known {
        let context = texts::skill::context(&invoked.name, &invoked.path, &invoked.content);
        state.added_context.push(context);
    }
}
