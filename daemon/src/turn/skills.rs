//! The skills of a message and of an agent, read when messages are prepared.

use loopd_proto::event::fact::PendingMessage;
use loopd_proto::event::skill::{SkillInvoked, SkillTrigger};
use loopd_proto::run_scope::ScopedSkill;

use super::prepare::{PrepareInput, SelectedAgent};
use crate::skill::LoadRequest;
use loopd_kernel::command::ModelFailure;

/// The skills that the definition of an agent names.
#[derive(Debug, Default)]
pub(super) struct AgentSkills {
    pub(super) loaded: Vec<SkillInvoked>,
    /// Why others are not loaded.
    pub(super) problems: Vec<String>,
}

/// Loads the skill of a message. A message whose skill cannot be loaded fails: without it, the model
/// would do something else than was asked for.
pub(super) async fn of_message(
    input: &PrepareInput,
    index: usize,
    message: &PendingMessage,
) -> Result<Option<SkillInvoked>, ModelFailure> {
    let scoped = message
        .scope
        .as_ref()
        .and_then(|scope| scope.skill.as_ref());
    let of_task = input.task_skill.as_ref().filter(|_| index == 0);
    let Some(ScopedSkill {
        name,
        arguments,
        by_model,
    }) = scoped.or(of_task)
    else {
        return Ok(None);
    };
    let request = LoadRequest {
        session: &input.session,
        name,
        arguments,
        trigger: if *by_model {
            SkillTrigger::AgentInvoked
        } else {
            SkillTrigger::UserInvoked
        },
    };
    let skill = input.skills.load(request).await;
    let skill = skill.map_err(|error| ModelFailure {
        kind: "skill".to_owned(),
        code: Some("skill_unavailable".to_owned()),
        message: format!("The message was not given to a model: {error}."),
        status: None,
        provider_call_id: None,
        model: None,
        retry_after_seconds: None,
    })?;
    Ok(Some(SkillInvoked {
        // The message has the text, whoever asked for the skill.
        trigger: Some(SkillTrigger::UserInvoked),
        ..skill
    }))
}

/// Loads the skills that the definition of the agent in force names.
pub(super) async fn of_agent(
    input: &PrepareInput,
    selected: Option<&SelectedAgent>,
) -> AgentSkills {
    let (names, agent) = match (&input.profile, selected) {
        (Some(profile), _) => (
            profile.skills.as_deref().unwrap_or_default(),
            profile.agent_type.as_str(),
        ),
        (None, Some(selected)) => (
            selected.skills.as_slice(),
            input.agent.as_deref().unwrap_or_default(),
        ),
        (None, None) => return AgentSkills::default(),
    };
    let mut skills = AgentSkills::default();
    for name in names {
        let request = LoadRequest {
            session: &input.session,
            name,
            arguments: "",
            trigger: SkillTrigger::ContextLoad,
        };
        match input.skills.load(request).await {
            Ok(skill) => skills.loaded.push(skill),
            Err(error) => {
                let problem =
                    format!("the agent `{agent}` goes without the skill `{name}`: {error}");
                skills.problems.push(problem);
            }
        }
    }
    skills
}
