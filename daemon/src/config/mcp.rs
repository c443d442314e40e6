//! How sessions use MCP servers: the table `[mcp]` of `config.toml`.

use std::time::Duration;

use serde::Deserialize;

/// The longest time that the first prompt waits for servers.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How sessions use MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpSettings {
    /// Whether sessions use MCP servers at all.
    pub enabled: bool,
    /// A server that nobody calls for so many seconds is ended.
    idle_timeout: u32,
    /// How many seconds the first prompt waits for servers that were never started before.
    first_wait: f64,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            idle_timeout: 30 * 60,
            first_wait: 2.0,
        }
    }
}

impl McpSettings {
    pub fn idle(self) -> Duration {
        Duration::from_secs(u64::from(self.idle_timeout.max(1)))
    }

    pub fn first_wait(self) -> Duration {
        let wait = Duration::try_from_secs_f64(self.first_wait).unwrap_or_default();
        wait.min(LONGEST_WAIT)
    }
}
