//! Finds MCP servers in configuration files. Starts none and connects to none.

use loopd_proto::parse_error::plain;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use loopd_proto::params::discovery::{McpSource, McpTransport};

use super::files::FolderReader;
use super::{Discovered, Host, Problem};

/// The files of a workspace, and the member that holds the servers.
const WORKSPACE_FILES: [(&str, &str); 2] =
    [(".mcp.json", "mcpServers"), (".vscode/mcp.json", "servers")];
/// The user's own file, in the home of the daemon.
const USER_FILE: (&str, &str) = ("mcp-config.json", "mcpServers");
/// The maximum number of servers in one file.
const MOST_SERVERS: usize = 500;

/// A server of a configuration file.
#[derive(Debug, Clone, PartialEq)]
pub struct McpDefinition {
    pub name: String,
    pub transport: McpTransport,
    pub source: McpSource,
    pub enabled: bool,
    pub path: PathBuf,
    /// Its entry in the file: command, arguments, address and the rest.
    pub config: Map<String, Value>,
}

/// Reads the servers of a workspace, then those of the user. The first one of a name counts.
pub fn discover(host: &Host, workspace: Option<&Path>) -> Discovered<McpDefinition> {
    let mut found = Discovered::default();
    if let Some(folder) = workspace {
        let reader = FolderReader::within(folder);
        for (file, member) in WORKSPACE_FILES {
            let path = folder.join(file);
            read(&reader, &path, member, McpSource::Workspace, &mut found);
        }
    }
    let (file, member) = USER_FILE;
    let path = host.home.join(file);
    read(
        &FolderReader::own(),
        &path,
        member,
        McpSource::User,
        &mut found,
    );
    let mut seen = HashSet::new();
    found
        .items
        .retain(|server| seen.insert(server.name.clone()));
    found
}

fn read(
    reader: &FolderReader,
    path: &Path,
    member: &str,
    source: McpSource,
    found: &mut Discovered<McpDefinition>,
) {
    match entries(reader, path, member) {
        Ok(servers) => {
            for (name, entry) in servers {
                found.add(server(name, entry, path, source).map(Some));
            }
        }
        Err(problem) => found.problems.push(problem),
    }
}

fn entries(
    reader: &FolderReader,
    path: &Path,
    member: &str,
) -> Result<Map<String, Value>, Problem> {
    let Some(text) = reader.text(path)? else {
        return Ok(Map::new());
    };
    let mut file: Map<String, Value> = serde_json::from_str(&text).map_err(|error| {
        Problem::at(
            path,
            error.line().max(1),
            format!("is not valid JSON: {}", plain(&error)),
        )
    })?;
    match file.remove(member) {
        None => Ok(Map::new()),
        Some(Value::Object(servers)) if servers.len() <= MOST_SERVERS => Ok(servers),
        Some(Value::Object(_)) => {
            let what = format!("names more than {MOST_SERVERS} servers and is not used");
            Err(Problem::new(path, what))
        }
        Some(_) => {
            let what = format!("`{member}` has to be an object of servers by name");
            Err(Problem::new(path, what))
        }
    }
}

fn server(
    name: String,
    entry: Value,
    path: &Path,
    source: McpSource,
) -> Result<McpDefinition, Problem> {
    let wrong = |what: &str| Problem::new(path, format!("the server `{name}` {what}"));
    let Value::Object(config) = entry else {
        return Err(wrong("has to be an object"));
    };
    let has = |member: &str| config.get(member).is_some_and(Value::is_string);
    let transport = match config.get("type").and_then(Value::as_str) {
        Some("stdio" | "local") => McpTransport::Stdio,
        Some("http" | "streamable-http") => McpTransport::Http,
        Some("sse") => McpTransport::Sse,
        Some(_) => return Err(wrong("has a `type` other than stdio, http and sse")),
        None if has("command") => McpTransport::Stdio,
        None if has("url") => McpTransport::Http,
        None => return Err(wrong("has neither a `command` nor a `url`")),
    };
    let is_on = |member: &str| config.get(member).and_then(Value::as_bool);
    let enabled = is_on("enabled").unwrap_or(true) && is_on("disabled") != Some(true);
    Ok(McpDefinition {
        name,
        transport,
        source,
        enabled,
        path: path.to_owned(),
        config,
    })
}
