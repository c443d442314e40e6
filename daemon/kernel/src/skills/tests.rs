use loopd_proto::event::Durable;
use loopd_proto::event::skill::SkillTrigger::{AgentInvoked, ContextLoad, UserInvoked};
use loopd_proto::id::Seq;

use crate::decide::tests::prelude::*;

#[test]
fn what_a_compaction_has_to_bring_back() {
    let mut other = tidy(UserInvoked, None);
    other.name = "other".to_owned();
    other.content = "Other.".to_owned();
    let given = idle()
        .and(Durable::SkillInvoked(tidy(AgentInvoked, None)))
        .and(Durable::SkillInvoked(other))
        .and(Durable::SkillInvoked(tidy(ContextLoad, None)));
    let state = given.state();
    let active: Vec<_> = state
        .active_skills()
        .map(|skill| (&*skill.name, &*skill.path))
        .collect();
    // The system message has the text of `tidy` by now.
    assert_eq!(active, [("other", "/skills/tidy/SKILL.md")]);
    let all: Vec<_> = state
        .skills
        .loaded()
        .iter()
        .map(|it| &*it.invoked.name)
        .collect();
    assert_eq!(all, ["other", "tidy"]);
    let mut skills = state.skills.clone();
    skills.forgotten_from(Seq(1));
    let kept: Vec<_> = skills.loaded().iter().map(|it| &*it.invoked.name).collect();
    assert_eq!(kept, ["tidy"], "the system message still has its text");
}

#[test]
fn which_folders_may_be_read() {
    let folders = |path: &str, folder: Option<&str>| -> Vec<String> {
        let mut skill = tidy(AgentInvoked, None);
        skill.path = path.to_owned();
        skill.folder = folder.map(str::to_owned);
        idle()
            .and(Durable::SkillInvoked(skill))
            .state()
            .skill_folders()
            .collect()
    };
    assert_eq!(folders("/s/a/SKILL.md", None), ["/s/a"]);
    assert_eq!(
        folders("/s/a/SKILL.md", Some("/real/a")),
        ["/s/a", "/real/a"]
    );
    assert_eq!(folders("", None), [""; 0]);
    // The working directory is /work: a skill that is the project, or holds it, opens nothing.
    for path in ["/work/SKILL.md", "/SKILL.md"] {
        assert_eq!(folders(path, None), [""; 0]);
    }
    assert_eq!(
        folders("/work/.github/skills/a/SKILL.md", None),
        ["/work/.github/skills/a"]
    );
}
