//! Skills as slash commands.

use std::sync::Arc;

use loopd_proto::event::task::Execution;
use loopd_proto::params::command::{CommandInfo, CommandInput, CommandKind, Invoked};
use loopd_proto::run_scope::{RunLimits, RunScope, ScopedSkill};
use loopd_proto::session::Mode;

use super::command_subagent::{self, SubagentCommand};
use super::discover::shown;
use crate::discovery::skills::SkillPlace;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use crate::skill::{SessionSkill, SkillView};
use crate::subagent::SubagentOrder;

/// The skills that people may use, by the names of their commands.
pub(super) struct SkillCommands(Vec<SkillCommand>);

/// A skill as a slash command.
pub(super) struct SkillCommand {
    /// Its name, without a slash.
    pub(super) name: String,
    skill: Arc<SessionSkill>,
}

impl SkillCommands {
    /// Names the commands of skills. A skill whose name is `taken` is called `skill:…`.
    pub(super) fn of(skills: &SkillView, taken: &[&str]) -> Self {
        let commands = skills.for_people().map(|skill| {
            let own = skill.definition.command_name();
            let is_taken = taken.iter().any(|name| name.eq_ignore_ascii_case(&own));
            SkillCommand {
                name: if is_taken {
                    format!("skill:{own}")
                } else {
                    own
                },
                skill: skill.clone(),
            }
        });
        Self(commands.collect())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|command| command.name.as_str())
    }

    pub(super) fn find(&self, name: &str) -> Option<&SkillCommand> {
        let mut commands = self.0.iter();
        commands.find(|command| command.name.eq_ignore_ascii_case(name))
    }

    pub(super) fn describe(&self) -> impl Iterator<Item = CommandInfo> {
        self.0.iter().map(|command| {
            let definition = &command.skill.definition;
            let hint = definition.argument_hint.clone();
            CommandInfo {
                name: command.name.clone(),
                aliases: None,
                description: definition.description.clone(),
                kind: CommandKind::Skill,
                input: Some(CommandInput {
                    required: false,
                    hint: hint.unwrap_or_else(|| "[words]".to_owned()).into(),
                }),
                allow_during_agent_execution: true,
                source: Some("skill".to_owned()),
                path: definition.has_file().then(|| shown(&definition.path)),
                unavailable: None,
            }
        })
    }
}

impl SkillCommand {
    /// Returns the message that loads the skill, or runs it in a sub-agent if its file wants that.
    pub(super) async fn run(
        &self,
        context: &Context,
        session: &SessionHandle,
        input: &str,
        limits: Option<RunLimits>,
    ) -> Result<Invoked, RpcError> {
        let definition = &self.skill.definition;
        let typed = format!("/{} {input}", self.name).trim_end().to_owned();
        let scoped = ScopedSkill {
            name: definition.name.clone(),
            arguments: input.to_owned(),
            by_model: false,
        };
        if let SkillPlace::Subagent { agent, model } = &definition.place {
            let mode = session.state(|state| state.mode).await?;
            let waits = mode != Mode::Autopilot;
            let order = SubagentOrder {
                model: model.clone(),
                description: typed,
                tools: definition.allowed_tools.clone(),
                execution: Some(if waits {
                    Execution::Sync
                } else {
                    Execution::Background
                }),
                answers_person: waits,
                command: Some(command_subagent::begin(context, limits)),
                ..SubagentOrder::of_skill(agent.clone(), scoped)
            };
            let command = SubagentCommand {
                session,
                name: &self.name,
            };
            return command.run(order).await;
        }
        Ok(Invoked::AgentPrompt {
            prompt: if input.is_empty() {
                format!("Use the skill \"{}\".", definition.name)
            } else {
                input.to_owned()
            },
            display_prompt: typed,
            mode: None,
            notice: None,
            run_scope: Some(Box::new(RunScope {
                command: self.name.clone(),
                skill: Some(scoped),
                ..RunScope::default()
            })),
        })
    }
}
