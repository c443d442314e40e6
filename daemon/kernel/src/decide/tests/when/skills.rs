//! Skills that are loaded.

use loopd_proto::event::skill::{SkillInvoked, SkillSwitched, SkillTrigger};

use crate::command::{CallOutcome, Command};

/// The skill `tidy` in `/skills/tidy`, with the only tools that it allows.
pub(crate) fn tidy(trigger: SkillTrigger, tools: Option<&[&str]>) -> SkillInvoked {
    SkillInvoked {
        name: "tidy".to_owned(),
        model: None,
        path: "/skills/tidy/SKILL.md".to_owned(),
        folder: None,
        content: "Tidy up.\n".to_owned(),
        allowed_tools: tools.map(|tools| tools.iter().map(|it| (*it).to_owned()).collect()),
        disable_model_invocation: None,
        source: None,
        plugin_name: None,
        description: None,
        trigger: Some(trigger),
    }
}

/// A result of the tool `skill`.
pub(crate) fn loads(skill: SkillInvoked) -> CallOutcome {
    CallOutcome {
        skill: Some(Box::new(skill)),
        ..super::ok()
    }
}

/// A message is prepared that loads a skill.
pub(crate) fn prepared_with(loaded: &[SkillInvoked], preloaded: &[SkillInvoked]) -> Command {
    let Command::Prepared(mut prepared) = super::prepared(&["m1"]) else {
        unreachable!("made just now");
    };
    prepared.skills = loaded.to_vec();
    prepared.preloaded = preloaded.to_vec();
    Command::Prepared(prepared)
}

pub(crate) fn switch_skill(name: &str, enabled: bool) -> Command {
    Command::SwitchSkill(SkillSwitched {
        name: name.to_owned(),
        enabled,
    })
}
