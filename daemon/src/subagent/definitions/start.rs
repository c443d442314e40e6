//! Whether an agent may be started at all: the first of the three layers of permission.

use std::sync::Arc;

use super::{Roster, is_same};
use crate::discovery::agents::{AgentDefinition, AgentMode};

/// The maximum number of names in an error.
const MOST_NAMES: usize = 50;

/// Who asks to start an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBy {
    /// A model, which may only start the agents that it was offered.
    Model,
    /// A person, through a client.
    Person,
}

/// Why an agent is not started. No other agent is started in its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartRefusal {
    #[error("there is no agent `{wanted}`; the agents are: {valid}")]
    Unknown { wanted: String, valid: String },
    #[error("the file of the agent `{wanted}` cannot be used: {why}; the agents are: {valid}")]
    Broken {
        wanted: String,
        why: String,
        valid: String,
    },
    #[error("the agent `{0}` is switched off in this session; do the work without it")]
    Disabled(String),
    #[error(
        "the agent `{0}` answers people and cannot be started as a sub-agent; the agents are: {1}"
    )]
    Primary(String, String),
    #[error("only people may start the agent `{0}`; the agents are: {1}")]
    PeopleOnly(String, String),
}

impl Roster {
    /// Finds the agent to start; `disabled` has the names that the session has switched off.
    pub fn may_start(
        &self,
        wanted: &str,
        asked_by: AskedBy,
        disabled: &[String],
    ) -> Result<&Arc<AgentDefinition>, StartRefusal> {
        let Some(agent) = self.get(wanted) else {
            let broken = self.broken(wanted);
            if !broken.is_empty() {
                return Err(StartRefusal::Broken {
                    wanted: wanted.to_owned(),
                    why: broken.join("; "),
                    valid: self.valid(disabled),
                });
            }
            return Err(StartRefusal::Unknown {
                wanted: wanted.to_owned(),
                valid: self.valid(disabled),
            });
        };
        let name = || agent.name.clone();
        if is_named(disabled, &agent.name) {
            return Err(StartRefusal::Disabled(name()));
        }
        if agent.mode == AgentMode::Primary {
            return Err(StartRefusal::Primary(name(), self.valid(disabled)));
        }
        if asked_by == AskedBy::Model && !agent.infer {
            return Err(StartRefusal::PeopleOnly(name(), self.valid(disabled)));
        }
        Ok(agent)
    }

    /// Returns the names of the agents that could be started, for errors.
    fn valid(&self, disabled: &[String]) -> String {
        let names = self.startable().map(|agent| agent.name.as_str());
        let names: Vec<&str> = names.filter(|name| !is_named(disabled, name)).collect();
        listed(&names, MOST_NAMES)
    }
}

fn is_named(names: &[String], name: &str) -> bool {
    names.iter().any(|known| is_same(known, name))
}

/// Joins at most `most` names for an error, and says how many more there are.
pub(super) fn listed(names: &[&str], most: usize) -> String {
    match names.len().checked_sub(most) {
        _ if names.is_empty() => "none".to_owned(),
        None | Some(0) => names.join(", "),
        Some(more) => {
            let shown = names.get(..most).unwrap_or_default();
            format!("{} and {more} more", shown.join(", "))
        }
    }
}
