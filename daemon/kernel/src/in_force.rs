//! The settings in force: those of the session, restricted by what the messages of the current run
//! set for it.

use loopd_proto::event::agent::Stance;
use loopd_proto::run_scope::{RunScope, ScopedAgent};

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
