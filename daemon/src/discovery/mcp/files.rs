//! Reads the files of servers.

use std::path::Path;

use loopd_proto::params::discovery::McpSource;
use loopd_proto::parse_error::plain;
use serde_json::{Map, Value};

use super::places::{FileFormat, McpPlaces, PROJECT_FILES, PluginPlace};
use super::{EntryOrigin, McpDefinition};
use crate::discovery::files::FolderReader;
use crate::discovery::{Discovered, Problem};

/// The maximum number of servers in one file.
const MOST_SERVERS: usize = 500;
/// The member of the user's file that names servers which new sessions do without.
pub(super) const DISABLED: &str = "disabledServers";

/// Reads the files of one folder of a project.
pub(super) fn read_project(
    folder: &Path,
    places: &McpPlaces,
    found: &mut Discovered<McpDefinition>,
) {
    let reader = FolderReader::within(places.root.as_deref().unwrap_or(folder));
    for (file, format) in PROJECT_FILES {
        let path = folder.join(file);
        let origin = EntryOrigin {
            path: path.clone(),
            source: McpSource::Workspace,
            plugin: None,
            folder: Some(folder.to_owned()),
            base: folder.to_owned(),
        };
        add(entries(&reader, &path, format), &origin, found);
    }
}

/// Reads the files of the user.
pub(super) fn read_user(places: &McpPlaces, found: &mut Discovered<McpDefinition>) {
    for (path, format) in &places.user {
        let origin = EntryOrigin {
            path: path.clone(),
            source: McpSource::User,
            plugin: None,
            folder: None,
            base: path.parent().unwrap_or(path).to_owned(),
        };
        add(entries(&FolderReader::own(), path, *format), &origin, found);
    }
}

/// Reads the files of a plugin: its own file of servers, and what its description names.
pub(super) fn read_plugin(
    plugin: &PluginPlace,
    places: &McpPlaces,
    found: &mut Discovered<McpDefinition>,
) {
    let folder = &plugin.0;
    let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let inside = places.root.as_deref().filter(|root| real.starts_with(root));
    let reader = FolderReader::within(folder);
    let [description, claude, servers] = plugin.files();
    let mut about = Map::new();
    for path in [&description, &claude] {
        match object(&reader, path) {
            Ok(told) => {
                if let Some(told) = told {
                    about = told;
                    break;
                }
            }
            Err(problem) => found.problems.push(problem),
        }
    }
    let folder_name = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = about.get("name").and_then(Value::as_str).map(str::to_owned);
    let mut origin = EntryOrigin {
        path: servers.clone(),
        source: McpSource::Plugin,
        plugin: name.or(folder_name),
        folder: inside.map(|_| real.clone()),
        base: real.clone(),
    };
    let listed = match about.remove("mcpServers") {
        None => entries(&reader, &servers, FileFormat::Servers),
        Some(Value::Object(inline)) => {
            origin.path = description;
            Ok(inline)
        }
        Some(Value::String(file)) => {
            origin.path = folder.join(file);
            entries(&reader, &origin.path, FileFormat::Servers)
        }
        Some(_) => Err(Problem::new(
            &description,
            "`mcpServers` has to be an object of servers, or the name of a file with them",
        )),
    };
    add(listed, &origin, found);
}

fn add(
    entries: Result<Map<String, Value>, Problem>,
    origin: &EntryOrigin,
    found: &mut Discovered<McpDefinition>,
) {
    match entries {
        Ok(servers) => {
            for (name, entry) in servers {
                found.add(McpDefinition::new(name, entry, origin).map(Some));
            }
        }
        Err(problem) => found.problems.push(problem),
    }
}

/// Returns the servers of a file by name; none if there is no such file.
fn entries(
    reader: &FolderReader,
    path: &Path,
    format: FileFormat,
) -> Result<Map<String, Value>, Problem> {
    let file = match format {
        FileFormat::Codex => table(reader, path)?,
        FileFormat::Servers | FileFormat::VsCode | FileFormat::Opencode => object(reader, path)?,
    };
    let Some(mut file) = file else {
        return Ok(Map::new());
    };
    let member = match format {
        FileFormat::Servers => "mcpServers",
        FileFormat::VsCode => "servers",
        FileFormat::Codex => "mcp_servers",
        FileFormat::Opencode => "mcp",
    };
    let servers = match file.remove(member) {
        Some(Value::Object(servers)) => servers,
        Some(_) => {
            let what = format!("`{member}` has to be an object of servers by name");
            return Err(Problem::new(path, what));
        }
        None if format == FileFormat::Servers && is_bare(&file) => file,
        None => Map::new(),
    };
    if servers.len() > MOST_SERVERS {
        let what = format!("names more than {MOST_SERVERS} servers and is not used");
        return Err(Problem::new(path, what));
    }
    Ok(servers)
}

/// Whether the members of a file are servers themselves.
fn is_bare(file: &Map<String, Value>) -> bool {
    let is_server = |value: &Value| {
        let has = |member: &str| value.get(member).is_some();
        has("command") || has("url")
    };
    !file.is_empty() && file.values().all(is_server)
}

fn object(reader: &FolderReader, path: &Path) -> Result<Option<Map<String, Value>>, Problem> {
    let Some(text) = reader.text(path)? else {
        return Ok(None);
    };
    let mut json = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
    if json_strip_comments::strip(&mut json).is_err() {
        return Err(Problem::new(
            path,
            "is not valid JSON: a comment does not end",
        ));
    }
    if json.trim().is_empty() {
        return Ok(None);
    }
    let parsed = serde_json::from_str(&json).map_err(|error| {
        let what = format!("is not valid JSON: {}", plain(&error));
        Problem::at(path, error.line().max(1), what)
    });
    parsed.map(Some)
}

fn table(reader: &FolderReader, path: &Path) -> Result<Option<Map<String, Value>>, Problem> {
    let Some(text) = reader.text(path)? else {
        return Ok(None);
    };
    let parsed: Result<Map<String, Value>, _> = toml::from_str(&text);
    parsed.map(Some).map_err(|error| {
        let before = error.span().map_or(0, |span| span.start);
        let lines = text.bytes().take(before).filter(|byte| *byte == b'\n');
        let what = format!("is not valid TOML: {}", error.message());
        Problem::at(path, lines.count() + 1, what)
    })
}

/// Returns the names of the servers that new sessions do without, from a file of the user.
pub fn disabled_names(file: &Path) -> Vec<String> {
    let read = object(&FolderReader::own(), file).ok().flatten();
    let names = read.and_then(|mut file| file.remove(DISABLED));
    let names = names.as_ref().and_then(Value::as_array).cloned();
    let names = names.unwrap_or_default().into_iter();
    names
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}
