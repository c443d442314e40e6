//! Waits for the servers that an agent cannot work without.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{join_all, select_ok};
use loopd_mcp::Server;

use super::cell::{McpCell, ServerState};
use crate::subagent::definitions::refresh::RosterCell;

/// The servers that agents of a session cannot work without.
pub struct RequiredServers {
    pub cell: McpCell,
    pub(crate) roster: RosterCell,
    /// The names of the agents that the session works as.
    pub agents: Vec<String>,
    /// Whether sessions use servers at all.
    pub enabled: bool,
    /// How long they are waited for.
    pub limit: Duration,
}

impl RequiredServers {
    /// Waits until all of them are connected. The error names those that are not, and says why.
    pub async fn connected(self) -> Result<(), String> {
        let roster = self.roster.get();
        let agents = self.agents.iter().filter_map(|name| roster.get(name));
        let wanted = agents.flat_map(|agent| {
            let required = agent.required_mcp_servers.iter();
            required.map(move |server| (agent.shown_name(), server.as_str()))
        });
        let wanted: Vec<(&str, &str)> = wanted.collect();
        let waits = wanted.iter().map(|(_, server)| self.one(server));
        let outcomes = join_all(waits).await;
        let missing = wanted.iter().zip(outcomes);
        let missing = missing.filter_map(|((agent, server), outcome)| {
            let why = outcome.err()?;
            Some(format!(
                "The agent `{agent}` needs the MCP server `{server}`, which cannot be used: {why}."
            ))
        });
        let missing: Vec<String> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        let what = missing.join(" ");
        Err(format!(
            "{what} Mend the server, or leave it out of `requiredMcpServers` of the agent"
        ))
    }

    /// Waits until one of the servers is connected that are meant by this name.
    async fn one(&self, wanted: &str) -> Result<(), String> {
        let servers = self.cell.servers().into_iter();
        let meant: Vec<Arc<Server>> = servers.filter(|it| is_meant(wanted, &it.name)).collect();
        if meant.is_empty() {
            return Err(self.absent(wanted));
        }
        let connected = meant.iter().map(|server| server.connected().boxed());
        match tokio::time::timeout(self.limit, select_ok(connected)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!(
                "it did not start within {} s",
                self.limit.as_secs_f64()
            )),
        }
    }

    /// Says why no server that is used has this name.
    fn absent(&self, wanted: &str) -> String {
        if !self.enabled {
            return "servers are turned off with `[mcp] enabled` of config.toml".to_owned();
        }
        let known = self.cell.all_known();
        match known.iter().find(|known| is_meant(wanted, &known.name)) {
            Some(known) => match &known.state {
                ServerState::Used => "it has ended".to_owned(),
                ServerState::Disabled => "it is turned off; see `loop mcp`".to_owned(),
                ServerState::NotTrusted => {
                    "its folder is not trusted with it; see `loop trust`".to_owned()
                }
                ServerState::Invalid(why) => why.clone(),
            },
            None if known.is_empty() => "the session has no servers".to_owned(),
            None => {
                let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
                format!("the session has only {}", names.join(", "))
            }
        }
    }
}

/// Whether a server is meant by a name: case does not matter, and a part of the name is enough.
fn is_meant(wanted: &str, name: &str) -> bool {
    name.to_lowercase().contains(&wanted.trim().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::is_meant;

    #[test]
    fn a_part_of_a_name_is_enough_and_case_does_not_matter() {
        assert!(is_meant("GitHub", "my-github"));
        assert!(is_meant(" docs ", "docs"));
        assert!(!is_meant("docs", "doc"));
    }
}
