//! The servers that the definition of an agent names or brings.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::entry::{McpEntry, check_name};
use super::named_files;
use crate::discovery::agents::AgentDefinition;
use crate::discovery::content_hash::ContentHash;

/// What the definition of an agent says about servers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentServers {
    /// The servers that it brings, each with its entry.
    pub own: Vec<(String, Value)>,
    /// Servers of the session that it names.
    pub named: Vec<String>,
    /// What is wrong with the rest.
    pub problems: Vec<String>,
}

impl AgentServers {
    /// Reads `mcpServers`: an object of servers, or a list whose items are names of servers of the
    /// session and objects of servers.
    pub fn of(agent: &AgentDefinition) -> Self {
        let mut servers = Self::default();
        match &agent.mcp_servers {
            None | Some(Value::Null) => {}
            Some(Value::Object(own)) => servers.add(own),
            Some(Value::String(names)) => servers.name(names),
            Some(Value::Array(items)) => {
                for item in items {
                    match item {
                        Value::String(names) => servers.name(names),
                        Value::Object(own) => servers.add(own),
                        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                            servers.problems.push(format!(
                                "`mcpServers` has the item {item}, which is neither a name nor a server"
                            ));
                        }
                    }
                }
            }
            Some(Value::Bool(_) | Value::Number(_)) => {
                let what = "`mcpServers` has to be an object of servers or a list";
                servers.problems.push(what.to_owned());
            }
        }
        servers
    }

    fn add(&mut self, own: &Map<String, Value>) {
        for (name, config) in own {
            if self.own.iter().any(|(known, _)| known == name) {
                let what = format!("the server `{name}` is there twice; the first one counts");
                self.problems.push(what);
            } else {
                self.own.push((name.clone(), config.clone()));
            }
        }
    }

    fn name(&mut self, names: &str) {
        let names = names.split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty());
        self.named.extend(names.map(str::to_owned));
    }
}

/// Returns the hashes of the servers of an agent that name files of the folder that the agent belongs
/// to, with what is in these files.
pub fn hashes_of_files(agent: &AgentDefinition, folder: &Path) -> Vec<ContentHash> {
    let servers = AgentServers::of(agent).own.into_iter();
    let hashes = servers.filter_map(|(name, config)| {
        check_name(&name).ok()?;
        let entry = McpEntry::read(config.as_object()?).ok()?;
        let said = json!({"server": name, "config": config});
        let hash = named_files::hash(&said, &entry, folder, folder);
        (hash != ContentHash::of_json(&said)).then_some(hash)
    });
    hashes.collect()
}
