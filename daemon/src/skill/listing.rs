//! The list of skills that models are shown: names and descriptions, within a bound.

use std::fmt::Write as _;

use super::SkillView;

/// The most bytes of the list, about 4,000 tokens.
const LONGEST_LIST: usize = 16_000;

impl SkillView {
    /// Returns the list for the model; `None` if there are no skills that it may load. Skills that do
    /// not fit are counted.
    pub fn listing(&self) -> Option<String> {
        let mut list = String::new();
        let mut left_out = 0_usize;
        for skill in self.for_models() {
            let skill = &skill.definition;
            let line = format!("\n- {}: {}", skill.name, skill.description);
            // Later skills may be shorter, but an order that depends on lengths would puzzle people.
            if left_out == 0 && list.len() + line.len() <= LONGEST_LIST {
                list.push_str(&line);
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            // Writing to a string cannot fail.
            write!(
                list,
                "\n- and {left_out} more that this list has no room for; the user may know their names"
            )
            .ok();
        }
        (!list.is_empty()).then_some(list)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use loopd_proto::params::discovery::SkillSource;

    use super::*;
    use crate::discovery::skills::{SkillDefinition, SkillPlace};
    use crate::skill::{SessionSkill, SkillSet};

    fn skill(name: &str, description: &str) -> Arc<SessionSkill> {
        Arc::new(SessionSkill {
            definition: SkillDefinition {
                name: name.to_owned(),
                description: description.to_owned(),
                argument_hint: None,
                user_invocable: true,
                model_invocable: name != "hidden",
                allowed_tools: None,
                place: SkillPlace::Conversation,
                source: SkillSource::Custom,
                path: PathBuf::from("/s/SKILL.md"),
                project: None,
                plugin: None,
            },
            unavailable: (name == "untrusted").then(|| "no".to_owned()),
            provider: None,
        })
    }

    fn listing(skills: Vec<Arc<SessionSkill>>, off: &str) -> Option<String> {
        let set = SkillSet {
            skills,
            ..SkillSet::default()
        };
        SkillView::new(Arc::new(set), |name| name == off).listing()
    }

    #[test]
    fn only_what_models_may_load_is_listed() {
        let skills = ["a", "hidden", "untrusted", "off"].map(|name| skill(name, "Does it."));
        let list = listing(skills.to_vec(), "off");
        assert_eq!(list.as_deref(), Some("\n- a: Does it."));
        assert_eq!(listing(vec![skill("hidden", "x")], ""), None);
    }

    #[test]
    fn the_list_is_bounded_and_says_how_many_are_left_out() {
        let long = "x".repeat(1_000);
        let skills: Vec<_> = (0..40).map(|n| skill(&format!("s{n}"), &long)).collect();
        let list = listing(skills, "").unwrap_or_default();
        assert!(list.len() < LONGEST_LIST + 200, "{}", list.len());
        assert_eq!(list.matches("\n- s").count(), 15);
        assert!(list.contains("and 25 more"), "{list}");
    }
}
