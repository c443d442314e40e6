//! How sessions use MCP servers: the table `[mcp]` of `config.toml`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

/// The longest time that the first prompt waits for servers.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How sessions use MCP servers.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpSettings {
    /// Whether sessions use MCP servers at all.
    pub enabled: bool,
    /// A server that nobody calls for so many seconds is ended.
    idle_timeout: u32,
    /// How many seconds the first prompt waits for servers that were never started before; 0: it does not
    /// wait.
    first_wait: f64,
    /// How many seconds the servers that an agent cannot work without are waited for.
    required_wait: f64,
    /// How many seconds a call that its server carries out as a task is waited for, before it goes on in
    /// the background.
    task_wait: f64,
    /// The address of a description of this program, as authorization servers may take it instead of a
    /// registration. It has to list the address that people are sent back to.
    pub client_metadata_url: Option<String>,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            idle_timeout: 30 * 60,
            first_wait: 2.0,
            required_wait: 30.0,
            task_wait: 10.0,
            client_metadata_url: None,
        }
    }
}

impl McpSettings {
    pub fn idle(&self) -> Duration {
        Duration::from_secs(u64::from(self.idle_timeout.max(1)))
    }

    pub fn first_wait(&self) -> Duration {
        let wait = Duration::try_from_secs_f64(self.first_wait).unwrap_or_default();
        wait.min(LONGEST_WAIT)
    }

    pub fn required_wait(&self) -> Duration {
        let wait = Duration::try_from_secs_f64(self.required_wait).unwrap_or_default();
        wait.min(LONGEST_WAIT)
    }

    pub fn task_wait(&self) -> Duration {
        let wait = Duration::try_from_secs_f64(self.task_wait).unwrap_or_default();
        wait.min(LONGEST_WAIT)
    }
}
