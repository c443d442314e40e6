//! The `[agents]` settings of the configuration file; see `config`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use loopd_proto::params::tool::SubagentSettings;
use serde::{Deserialize, Deserializer};

use super::is_same;

/// The range of the depth to which agents may start agents.
const DEPTHS: (u32, u32) = (1, 32);
/// The range of the number of agents that run at once.
const CONCURRENT: (u32, u32) = (1, 256);
/// The range of the number of todos that one fleet carries out.
const FLEET_TODOS: (u32, u32) = (1, 10_000);

/// The settings of agents.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentSettings {
    /// For agents that want a small and fast model.
    pub small_model: Option<String>,
    /// For agents that want a model of another family.
    pub critic_model: Option<String>,
    /// Models that a call may request only if the session's own model is one of them; `*` stands for
    /// any text. Providers report no prices, so people have to list these models.
    pub costly_models: Vec<String>,
    #[serde(deserialize_with = "depth")]
    pub max_depth: u32,
    #[serde(deserialize_with = "concurrent")]
    pub max_concurrent: u32,
    /// How many todos one fleet carries out. Its workers may add todos, and without a bound they could
    /// do so for ever.
    #[serde(deserialize_with = "fleet_todos")]
    pub max_fleet_todos: u32,
    /// How many runs notifications start between two messages. Each may start agents, whose ends are
    /// notifications; without a bound a session could go on for ever while nobody types.
    #[serde(deserialize_with = "wakes")]
    pub max_wakes: u32,
    /// Whether a call without an agent continues a copy of the caller's conversation.
    pub fork: bool,
    /// Whether agents wait for further messages after they have answered.
    pub multi_turn: bool,
    /// The models of individual agents, by the agent's name.
    pub models: BTreeMap<String, String>,
}

/// How many cores this process may use. The system is asked once: it reads a dozen files to find out.
static CORES: LazyLock<u32> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(4, std::num::NonZero::get);
    u32::try_from(cores).unwrap_or(CONCURRENT.1)
});

impl Default for AgentSettings {
    fn default() -> Self {
        let cores = *CORES;
        Self {
            small_model: None,
            critic_model: None,
            costly_models: Vec::new(),
            max_depth: 6,
            max_concurrent: cores.clamp(4, CONCURRENT.1),
            max_fleet_todos: 1_000,
            max_wakes: 100,
            fork: false,
            multi_turn: true,
            models: BTreeMap::new(),
        }
    }
}

fn within<'de, D: Deserializer<'de>>(
    deserializer: D,
    (least, most): (u32, u32),
) -> Result<u32, D::Error> {
    let number = i64::deserialize(deserializer)?;
    let fits = u32::try_from(number).ok();
    fits.filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{number} is out of range: give a number from {least} to {most}"
            ))
        })
}

fn depth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, DEPTHS)
}

fn concurrent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, CONCURRENT)
}

fn fleet_todos<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, FLEET_TODOS)
}

fn wakes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    within(deserializer, FLEET_TODOS)
}

impl AgentSettings {
    /// Returns the settings of one launch: its variables override the file. A number out of range is
    /// clamped; a value that is not a number or a switch is ignored.
    #[must_use]
    pub fn with<'a>(&self, variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let number = |names: [&str; 2], (least, most): (u32, u32)| {
            let values = names.into_iter().filter_map(&variable);
            let mut numbers = values.filter_map(|text| text.trim().parse::<i64>().ok());
            let number = numbers.next()?.clamp(least.into(), most.into());
            u32::try_from(number).ok()
        };
        let depth = number(
            ["LOOPD_AGENTS_MAX_DEPTH", "COPILOT_SUBAGENT_MAX_DEPTH"],
            DEPTHS,
        );
        let concurrent = number(
            [
                "LOOPD_AGENTS_MAX_CONCURRENT",
                "COPILOT_SUBAGENT_MAX_CONCURRENT",
            ],
            CONCURRENT,
        );
        let fork = variable("LOOPD_AGENTS_FORK").and_then(switch);
        Self {
            max_depth: depth.unwrap_or(self.max_depth),
            max_concurrent: concurrent.unwrap_or(self.max_concurrent),
            fork: fork.unwrap_or(self.fork),
            ..self.clone()
        }
    }

    /// Returns the settings of one session: the limits of its client override those of the launch.
    #[must_use]
    pub fn of_session(&self, session: Option<&SubagentSettings>) -> Self {
        let limit = |own: u32, wanted: Option<u32>, (least, most): (u32, u32)| {
            wanted.map_or(own, |wanted| wanted.clamp(least, most))
        };
        let depth = session.and_then(|it| it.max_depth);
        let concurrent = session.and_then(|it| it.max_concurrency);
        Self {
            max_depth: limit(self.max_depth, depth, DEPTHS),
            max_concurrent: limit(self.max_concurrent, concurrent, CONCURRENT),
            ..self.clone()
        }
    }

    /// Returns the model that is set for an agent, in the session or else in the file.
    pub fn preferred<'a>(
        &'a self,
        agent: &str,
        session: Option<&'a SubagentSettings>,
    ) -> Option<&'a str> {
        let entries = session.into_iter().filter_map(|it| it.agents.as_ref());
        let mut entries = entries.flatten().filter(|(name, _)| is_same(name, agent));
        let own = entries.find_map(|(_, entry)| entry.model.as_deref());
        own.or_else(|| {
            let mut models = self.models.iter();
            let found = models.find(|(name, _)| is_same(name, agent));
            found.map(|(_, model)| model.as_str())
        })
    }
}

/// Returns the reasoning effort that a session sets for an agent.
pub fn preferred_effort<'a>(
    agent: &str,
    session: Option<&'a SubagentSettings>,
) -> Option<&'a String> {
    let entries = session.into_iter().filter_map(|it| it.agents.as_ref());
    let mut entries = entries.flatten().filter(|(name, _)| is_same(name, agent));
    entries.find_map(|(_, entry)| entry.effort_level.as_ref())
}

fn switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" => Some(true),
        "0" | "false" | "off" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
