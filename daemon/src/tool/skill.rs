//! `skill`: loads a skill. Its text follows the results of the turn.

use schemars::JsonSchema;
use serde::Deserialize;

use loopd_proto::event::skill::SkillTrigger;
use loopd_proto::event::task::Execution;
use loopd_proto::run_scope::ScopedSkill;

use super::{AssessContext, Need, Outcome, Tool, ToolContext, resolved_path, task};
use crate::discovery::skills::SkillPlace;
use crate::skill::{LoadRequest, SessionSkill};
use crate::subagent::SubagentOrder;
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::texts;

/// The name of the tool. Its description lists the skills that there are.
pub const SKILL: &str = "skill";

/// The tool `skill`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadSkill;

/// The arguments of `skill`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct SkillArgs {
    /// The name of the skill.
    skill: String,
    /// What the skill is to work on, if it takes arguments.
    #[serde(default)]
    args: Option<String>,
}

impl Tool for LoadSkill {
    type Args = SkillArgs;
    const NAME: &'static str = SKILL;
    const DESCRIPTION: &'static str = "Loads a skill: instructions, and often scripts and reference files, for one kind of task. \
        When a skill below fits what you are about to do, load it before you begin, and follow it. \
        The files that it mentions are in its base directory; read them when they are needed. Load a skill once.";

    async fn need(&self, args: &SkillArgs, context: &AssessContext) -> Need {
        let found = context.skills.find(&args.skill, SkillTrigger::AgentInvoked);
        let skill = match found {
            Ok(skill) => skill,
            Err(error) => return Need::Refused(Outcome::failure(error.to_string())),
        };
        if !skill.definition.has_file() {
            return Need::Nothing;
        }
        // A rule about the file counts here, too.
        let path = skill.definition.path.to_string_lossy().into_owned();
        let place = {
            let context = context.clone();
            super::disk::blocking(move || resolved_path::asked_about(&context, &path)).await
        };
        match place {
            Ok(place) if place.is_named_by_rules() => {
                place.read_need(context, place.intention("Load the skill"))
            }
            Ok(_) => Need::Nothing,
            Err(outcome) => Need::Refused(outcome),
        }
    }

    async fn run(&self, _grant: &Grant, args: SkillArgs, context: &ToolContext) -> Outcome {
        let arguments = args.args.unwrap_or_default();
        let found = context.skills.find(&args.skill, SkillTrigger::AgentInvoked);
        if let Ok(skill) = &found
            && let SkillPlace::Subagent { agent, model } = &skill.definition.place
        {
            let order = order(skill, agent.clone(), model.clone(), arguments);
            return in_subagent(order, context).await;
        }
        let request = LoadRequest {
            session: &context.session,
            name: &args.skill,
            arguments: &arguments,
            trigger: SkillTrigger::AgentInvoked,
        };
        match context.skills.load(request).await {
            Ok(skill) => Outcome {
                skill: Some(Box::new(skill.clone())),
                ..Outcome::success(texts::skill::loaded(&skill.name))
            },
            Err(error) => Outcome::failure(error.to_string()),
        }
    }
}

/// Makes the order for the sub-agent that carries out a skill.
fn order(
    skill: &SessionSkill,
    agent: Option<String>,
    model: Option<String>,
    arguments: String,
) -> SubagentOrder {
    let name = &skill.definition.name;
    SubagentOrder {
        model,
        tools: skill.definition.allowed_tools.clone(),
        ..SubagentOrder::of_skill(
            agent,
            ScopedSkill {
                name: name.clone(),
                arguments,
                by_model: true,
            },
        )
    }
}

/// Lets a sub-agent carry out the skill; its answer is the result.
async fn in_subagent(mut order: SubagentOrder, context: &ToolContext) -> Outcome {
    order.call = Some(context.call.clone());
    let started = match context.agents.start(order).await {
        Ok(started) => started,
        Err(error) => return Outcome::failure(error.to_string()),
    };
    if started.work.execution == Execution::Background {
        return task::launched(&started);
    }
    task::result(&started, context).await
}
