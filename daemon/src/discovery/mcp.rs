//! Finds MCP servers in configuration files, in the formats of several programs. Starts none and
//! connects to none.
//!
//! `places` names the files, `files` reads them, `entry` one entry of any format, `variables` replaces
//! names by values. A mistake in an entry is a [`Problem`] with the file and the entry; other entries
//! count.

pub mod entry;
mod files;
mod named_files;
pub mod of_agent;
mod places;
pub mod variables;

use std::path::{Path, PathBuf};

use loopd_proto::params::discovery::{McpSource, McpTransport};
use serde_json::{Map, Value, json};

pub use self::entry::{EntryTransport, McpEntry, check_name};
pub use self::files::disabled_names;
pub use self::places::{McpPlaces, PluginPlace};

use super::content_hash::ContentHash;
use super::{Discovered, Problem};

/// A server of a configuration file.
#[derive(Debug, Clone, PartialEq)]
pub struct McpDefinition {
    pub name: String,
    pub transport: McpTransport,
    pub source: McpSource,
    /// The name of the plugin that it belongs to.
    pub plugin: Option<String>,
    pub enabled: bool,
    pub path: PathBuf,
    /// The folder that has to be trusted with it; `None` if it is the user's own.
    pub folder: Option<PathBuf>,
    /// Where relative paths and `${workspaceFolder}` lead.
    pub base: PathBuf,
    /// Its entry in the file: command, arguments, address and the rest.
    pub config: Map<String, Value>,
    pub entry: McpEntry,
    /// A hash of what it says, and of the files of the project that it names.
    pub hash: ContentHash,
}

impl McpDefinition {
    /// Reads an entry of a file.
    fn new(name: String, config: Value, origin: &EntryOrigin) -> Result<Self, Problem> {
        let wrong = |what: &str| Problem::new(&origin.path, format!("the server `{name}` {what}"));
        check_name(&name).map_err(|what| wrong(&what))?;
        let Value::Object(config) = config else {
            return Err(wrong("has to be an object"));
        };
        let entry = McpEntry::read(&config).map_err(|what| wrong(&what))?;
        let said = json!({"server": name, "config": config});
        let hash = match &origin.folder {
            Some(folder) => named_files::hash(&said, &entry, folder, &origin.base),
            None => ContentHash::of_json(&said),
        };
        Ok(Self {
            transport: entry.kind,
            source: origin.source,
            plugin: origin.plugin.clone(),
            enabled: entry.enabled,
            path: origin.path.clone(),
            folder: origin.folder.clone(),
            base: origin.base.clone(),
            config,
            entry,
            hash,
            name,
        })
    }

    /// Says in a few words what it runs or reaches.
    pub fn shown(&self) -> String {
        match &self.entry.transport {
            EntryTransport::Stdio { command, args, .. } => {
                let words = std::iter::once(command).chain(args);
                words.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            EntryTransport::Http { url, .. } => url.clone(),
        }
    }
}

/// Where an entry stands.
#[derive(Debug, Clone)]
struct EntryOrigin {
    path: PathBuf,
    source: McpSource,
    plugin: Option<String>,
    folder: Option<PathBuf>,
    base: PathBuf,
}

/// Reads the servers of all places: those of the project, the nearest folder first, then those of the
/// user, then those of plugins. Of several with the same name all are returned.
pub fn load(places: &McpPlaces) -> Discovered<McpDefinition> {
    let mut found = Discovered::default();
    for folder in places.projects.iter().rev() {
        files::read_project(folder, places, &mut found);
    }
    files::read_user(places, &mut found);
    for plugin in &places.plugins {
        files::read_plugin(plugin, places, &mut found);
    }
    found
}

/// Reads the servers that one folder of a project brings.
pub fn load_folder(folder: &Path) -> Discovered<McpDefinition> {
    let mut found = Discovered::default();
    let places = McpPlaces {
        root: Some(folder.to_owned()),
        ..McpPlaces::default()
    };
    files::read_project(folder, &places, &mut found);
    found
}
