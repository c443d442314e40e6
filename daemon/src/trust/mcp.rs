//! Which MCP servers of files may be used.

use std::collections::{BTreeMap, BTreeSet};

use loopd_proto::params::discovery::McpSource;
use loopd_store::Store;

use super::{OwnContent, TrustedContent, shell_word};
use crate::discovery::content_hash::ContentHash;
use crate::discovery::mcp::{McpDefinition, McpPlaces, load};
use crate::discovery::{Discovered, Problem};

/// The servers of files, and what people should know about them.
#[derive(Debug, Clone, Default)]
pub struct GatedServers {
    /// The servers that may be used; each name is there once.
    pub usable: Vec<McpDefinition>,
    /// Servers whose folder is not trusted with them.
    pub untrusted: Vec<McpDefinition>,
    pub problems: Vec<Problem>,
    /// What the user's own files bring.
    pub own: Vec<OwnContent>,
}

impl GatedServers {
    /// Returns what people are told about the servers that are not used for want of trust.
    pub fn notices(&self) -> Vec<String> {
        let untrusted = self.untrusted.iter().map(|server| {
            let folder = server.folder.as_deref().unwrap_or(&server.base);
            Problem::new(
                &server.path,
                format!(
                    "the MCP server `{}` is not used: its folder is not trusted with it, or it has \
                     changed since; to look and to trust: loop trust {}",
                    server.name,
                    shell_word(folder)
                ),
            )
        });
        let problems = self.problems.iter().cloned();
        problems.chain(untrusted).map(|it| it.to_string()).collect()
    }

    fn decide(
        found: Discovered<McpDefinition>,
        trusted: &TrustedContent,
        plugins: &BTreeMap<String, ContentHash>,
    ) -> Self {
        let mut gated = Self {
            problems: found.problems,
            ..Self::default()
        };
        let mut names = BTreeSet::new();
        for server in found.items {
            for member in &server.entry.unknown {
                let what = format!(
                    "the server `{}` has a member `{member}`, which is not known",
                    server.name
                );
                gated.problems.push(Problem::new(&server.path, what));
            }
            let is_trusted = match &server.folder {
                Some(folder) if trusted.covers(folder, &server.hash) => true,
                // A client named the plugin, and with it what was in it then.
                Some(_) if server.source == McpSource::Plugin => plugins
                    .get(&server.name)
                    .is_none_or(|seen| *seen == server.hash),
                Some(_) => false,
                None => true,
            };
            if !is_trusted {
                gated.untrusted.push(server);
                continue;
            }
            if server.source == McpSource::User {
                gated.own.push(OwnContent {
                    file: server.path.clone(),
                    line: None,
                    what: format!("the MCP server `{}` ({})", server.name, server.shown()),
                    hash: server.hash.clone(),
                    may_allow: true,
                });
            }
            // The first one of a name counts. One that is not trusted does not stand in the way.
            if names.insert(server.name.clone()) {
                gated.usable.push(server);
            }
        }
        gated
    }
}

/// Loads the servers of files and decides which may be used. If the record of trust cannot be read,
/// nothing of a project is. `plugins` is what servers of plugins inside the project said when they were
/// first seen; one that says something else now needs trust.
pub async fn load_servers(
    store: &dyn Store,
    places: McpPlaces,
    plugins: &BTreeMap<String, ContentHash>,
) -> GatedServers {
    if !places.has_files() {
        // The usual case, in which nothing has to be read.
        return GatedServers::default();
    }
    let root = places.root.clone().unwrap_or_default();
    let mut problems = Vec::new();
    let trusted = TrustedContent::read(store).await.unwrap_or_else(|error| {
        let what =
            format!("its MCP servers are not used: what is trusted could not be read: {error}");
        problems.push(Problem::new(&root, what));
        TrustedContent::default()
    });
    let read = tokio::task::spawn_blocking(move || load(&places)).await;
    let found = read.unwrap_or_else(|error| {
        let what = format!("its MCP servers could not be read: {error}");
        problems.push(Problem::new(&root, what));
        Discovered::default()
    });
    let mut gated = GatedServers::decide(found, &trusted, plugins);
    gated.problems.append(&mut problems);
    gated
}
