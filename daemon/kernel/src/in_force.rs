//! The settings in force: those of the session, restricted by what the messages of the current run
//! set for it.

use loopd_proto::event::agent::Stance;
use loopd_proto::run_scope::{LimitingSkill, RunScope, ScopedAgent, ToolLimits};

use crate::state::State;

impl State {
    /// Returns what the messages of the current run set for it.
    pub fn scopes(&self) -> &[RunScope] {
        self.run().map_or(&[], |run| &run.scopes)
    }

    /// Returns the model that the current run sets, if it sets one.
    pub fn scoped_model(&self) -> Option<&str> {
        let mut newest_first = self.scopes().iter().rev();
        newest_first.find_map(|scope| scope.model.as_deref())
    }

    /// Returns the model that answers now; `None` if none was chosen yet.
    pub fn model_in_force(&self) -> Option<&str> {
        self.scoped_model().or(self.model.as_deref())
    }

    /// Returns the agent that the current run sets, if it sets one.
    pub fn scoped_agent(&self) -> Option<&ScopedAgent> {
        let mut newest_first = self.scopes().iter().rev();
        newest_first.find_map(|scope| scope.agent.as_ref())
    }

    /// Returns the name of the agent that answers now; `None` for the default one.
    pub fn agent_in_force(&self) -> Option<&str> {
        let scoped = self.scoped_agent().map(|agent| agent.name.as_str());
        scoped.or(self.agent.as_deref())
    }

    /// Returns what narrowed the runs above in which this session was started, if it is a sub-agent.
    pub fn limits_from_above(&self) -> Option<&ToolLimits> {
        self.subagent.as_ref().map(|own| &own.profile.limits)
    }

    /// Returns what holds for every agent that this session starts: what holds for itself at all times.
    pub fn lasting_limits(&self) -> ToolLimits {
        let mut limits = self.limits_from_above().cloned().unwrap_or_default();
        let profile = self.subagent.as_ref().map(|own| &own.profile);
        if let Some(tools) = profile.and_then(|profile| profile.run_tools.as_ref()) {
            limits.add(ToolLimits {
                lists: vec![tools.clone()],
                ..ToolLimits::default()
            });
        }
        limits
    }

    /// Returns what the current run allows at most, for the agents that it starts. A research hands its
    /// questions to agents that have other tools than it has itself.
    pub fn limits_of_run(&self) -> ToolLimits {
        let scopes = self.scopes().iter();
        let scopes = scopes.filter(|scope| scope.research_report.is_none());
        let skills = self.restricting_skills();
        let skills = skills.map(|(name, tools)| LimitingSkill {
            name: name.to_owned(),
            tools: tools.to_vec(),
        });
        let mut limits = self.lasting_limits();
        limits.add(ToolLimits {
            lists: scopes.filter_map(|scope| scope.tools.clone()).collect(),
            skills: skills.collect(),
        });
        limits
    }

    /// Returns how calls that need a permission are treated now. A run cannot loosen what the selected
    /// agent demands.
    pub fn stance_in_force(&self) -> Stance {
        let scoped = self.scoped_agent().map(|agent| agent.stance);
        match (self.agent_stance, scoped) {
            (Stance::Inherit, Some(scoped)) => scoped,
            (own @ (Stance::Inherit | Stance::Plan | Stance::NeverAsk), _) => own,
        }
    }
}
