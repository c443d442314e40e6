//! The servers of one session. Its sub-agents use the same ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loopd_mcp::{Host, OfferedTool, Server, ServerStatus, naming};
use loopd_proto::event::mcp::{LoadedServer, McpSource, McpStatus, McpTransport, ServerMetadata};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::discovery::content_hash::ContentHash;
use crate::discovery::mcp::McpDefinition;
use crate::trust::OwnContent;
use loopd_kernel::tool_call::McpToolRef;

/// A server that a session knows, whether it is used or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownServer {
    pub name: String,
    pub transport: McpTransport,
    /// `None` if a client brought it.
    pub source: Option<McpSource>,
    pub plugin: Option<String>,
    pub display_name: Option<String>,
    pub state: ServerState,
}

/// Whether a server is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    Used,
    Disabled,
    /// Its folder is not trusted with it.
    NotTrusted,
    /// Its entry cannot be used.
    Invalid(String),
}

/// The servers of a session and its sub-agents.
#[derive(Clone, Default)]
pub struct McpCell(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The servers of the session above, and of those above it.
    parent: Option<McpCell>,
    own: Mutex<Own>,
    /// One lookup at a time.
    looking: tokio::sync::Mutex<()>,
    /// Whether somebody has looked for servers.
    looked: AtomicBool,
    /// Whether a turn has waited for servers that start.
    waited: AtomicBool,
    /// Lets a turn go on that waits for servers.
    go_on: Notify,
    waits: AtomicBool,
}

#[derive(Default)]
struct Own {
    host: Option<Arc<Host>>,
    known: Vec<KnownServer>,
    /// What people were told.
    told: Vec<String>,
    told_unknown: Vec<String>,
    seen: Vec<OwnContent>,
    /// What servers of plugins said when they were first seen.
    plugins: BTreeMap<String, ContentHash>,
}

impl McpCell {
    /// Makes the cell of a sub-agent: it has the servers of its parents, and its own beside them.
    #[must_use]
    pub fn below(&self) -> Self {
        Self(Arc::new(Inner {
            parent: Some(self.clone()),
            ..Inner::default()
        }))
    }

    /// Lets one lookup go on at a time.
    pub(super) async fn lock(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.looking.lock().await
    }

    /// Returns whether somebody has looked for the servers of this session.
    pub fn was_looked_up(&self) -> bool {
        self.0.looked.load(Ordering::Acquire)
    }

    pub(super) fn note_lookup(&self) {
        self.0.looked.store(true, Ordering::Release);
    }

    /// Lets the next turn wait for servers as the first one did.
    pub(super) fn wait_again(&self) {
        self.0.waited.store(false, Ordering::Release);
    }

    /// Returns what runs the servers; `None` if there were never any.
    pub fn host(&self) -> Option<Arc<Host>> {
        self.0.own.lock().host.clone()
    }

    pub(super) fn set_host(&self, host: Arc<Host>) {
        self.0.own.lock().host = Some(host);
    }

    /// Returns the servers that the session knows, without those of its parents.
    pub fn known(&self) -> Vec<KnownServer> {
        self.0.own.lock().known.clone()
    }

    /// Returns the servers that the session and those above it know.
    pub fn all_known(&self) -> Vec<KnownServer> {
        let above = self.0.parent.as_ref();
        let mut known = self.known();
        known.extend(above.map(Self::all_known).unwrap_or_default());
        known
    }

    /// Takes what is known now; returns whether it is something else than before.
    pub(super) fn set_known(&self, known: Vec<KnownServer>) -> bool {
        let mut own = self.0.own.lock();
        let changed = own.known != known;
        own.known = known;
        changed
    }

    /// Returns what servers of plugins said when they were first seen.
    pub(super) fn plugins(&self) -> BTreeMap<String, ContentHash> {
        self.0.own.lock().plugins.clone()
    }

    /// Keeps what servers of plugins say now, unless they were seen before.
    pub(super) fn see_plugins(&self, servers: &[McpDefinition]) {
        let mut own = self.0.own.lock();
        for server in servers.iter().filter(|it| it.source == McpSource::Plugin) {
            let seen = own.plugins.entry(server.name.clone());
            seen.or_insert_with(|| server.hash.clone());
        }
    }

    /// Returns whether there are any servers, here or above.
    pub fn is_empty(&self) -> bool {
        let above = self.0.parent.as_ref();
        self.0.own.lock().known.is_empty() && above.is_none_or(Self::is_empty)
    }

    /// Returns a server by its name, of this session or of those above.
    pub fn server(&self, name: &str) -> Option<Arc<Server>> {
        let own = self.host().and_then(|host| host.get(name));
        own.or_else(|| self.0.parent.as_ref()?.server(name))
    }

    /// Returns all servers that are used, those of parents first. Of two with one name the own one counts.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        let above = self.0.parent.as_ref();
        let mut servers = above.map(Self::servers).unwrap_or_default();
        if let Some(host) = self.host() {
            servers.retain(|server| host.get(&server.name).is_none());
            servers.extend(host.servers());
        }
        servers
    }

    /// Returns the tools of all servers with their names for models.
    pub fn tools(&self) -> Vec<OfferedTool> {
        loopd_mcp::offered(&self.servers())
    }

    /// Returns the tools of servers that models may mean by this name. Of a server that does not tell its
    /// tools now, any tool may be meant whose name begins like its own.
    pub fn tools_named(&self, name: &str) -> Vec<McpToolRef> {
        let offered = self.tools();
        let offered = offered.iter().find(|offered| offered.name == name);
        if let Some((offered, tool)) = offered.and_then(|it| Some((it, it.tool()?))) {
            return vec![McpToolRef {
                server: offered.server.name.to_string(),
                tool: tool.name.clone(),
            }];
        }
        let servers = self.server_names().into_iter();
        let meant = servers.filter_map(|server| {
            let tool = name.strip_prefix(&naming::plain(&server, ""))?.to_owned();
            Some(McpToolRef { server, tool })
        });
        meant.collect()
    }

    /// Returns the names of all servers, used or not, here and above.
    fn server_names(&self) -> BTreeSet<String> {
        let above = self.0.parent.as_ref();
        let mut names = above.map(Self::server_names).unwrap_or_default();
        names.extend(self.known().into_iter().map(|known| known.name));
        let used = self.servers();
        names.extend(used.iter().map(|server| server.name.to_string()));
        names
    }

    /// Returns what clients are told about each server.
    pub fn report(&self) -> Vec<LoadedServer> {
        let host = self.host();
        let reports = self.known().into_iter().map(|known| {
            let server = host.as_ref().and_then(|host| host.get(&known.name));
            described(known, server.as_deref())
        });
        reports.collect()
    }

    /// Returns those of the notices that nobody was told yet.
    pub(super) fn new_notices(&self, notices: Vec<String>) -> Vec<String> {
        let mut own = self.0.own.lock();
        let told = std::mem::replace(&mut own.told, notices.clone());
        let mut notices = notices;
        notices.retain(|it| !told.contains(it));
        notices
    }

    /// Returns those of the names without a server that nobody was told yet.
    pub(super) fn new_unknown(&self, unknown: Vec<String>) -> Vec<String> {
        let mut own = self.0.own.lock();
        let told = std::mem::replace(&mut own.told_unknown, unknown.clone());
        let mut unknown = unknown;
        unknown.retain(|it| !told.contains(it));
        unknown
    }

    /// Returns what the user's own files bring if people were told otherwise before.
    pub(super) fn new_content(&self, content: Vec<OwnContent>) -> Vec<OwnContent> {
        let mut own = self.0.own.lock();
        if own.seen == content {
            return Vec::new();
        }
        own.seen.clone_from(&content);
        content
    }

    /// Lets the first turn wait for servers whose tools were never known, but not for long.
    pub async fn wait_for_tools(&self, limit: Duration) {
        let Some(host) = self.host() else {
            return;
        };
        if self.0.waited.swap(true, Ordering::AcqRel) {
            return;
        }
        self.0.waits.store(true, Ordering::Release);
        tokio::select! {
            () = host.tools_known(limit) => {}
            () = self.0.go_on.notified() => {}
        }
        self.0.waits.store(false, Ordering::Release);
        host.note_slow().await;
    }

    /// Lets a turn that waits for servers go on; returns whether there was one.
    pub fn go_on(&self) -> bool {
        let waits = self.0.waits.load(Ordering::Acquire);
        if waits {
            self.0.go_on.notify_waiters();
        }
        waits
    }

    /// Ends the servers of this session.
    pub async fn close(&self) {
        let host = self.0.own.lock().host.take();
        if let Some(host) = host {
            host.close().await;
        }
    }
}

/// Describes a server for clients.
fn described(known: KnownServer, server: Option<&Server>) -> LoadedServer {
    let report = server.map(Server::report);
    let status = match (&known.state, &report) {
        (ServerState::Disabled | ServerState::NotTrusted, _) => McpStatus::Disabled,
        (ServerState::Invalid(_), _) => McpStatus::Failed,
        (ServerState::Used, Some(report)) => match report.status {
            ServerStatus::Pending => McpStatus::Pending,
            ServerStatus::Connected => McpStatus::Connected,
            ServerStatus::NeedsAuth => McpStatus::NeedsAuth,
            ServerStatus::Failed => McpStatus::Failed,
            ServerStatus::Stopped => McpStatus::Stopped,
        },
        (ServerState::Used, None) => McpStatus::Pending,
    };
    let error = match known.state {
        ServerState::Invalid(why) => Some(why),
        ServerState::NotTrusted => {
            Some("its folder is not trusted with it; see `loop trust`".to_owned())
        }
        ServerState::Used | ServerState::Disabled => {
            report.as_ref().and_then(|report| report.error.clone())
        }
    };
    let instructions = report.and_then(|report| report.instructions);
    LoadedServer {
        name: known.name,
        status,
        source: known.source,
        display_name: known.display_name,
        error,
        server_metadata: (status == McpStatus::Connected)
            .then_some(ServerMetadata { instructions }),
        transport: Some(known.transport),
        plugin_name: known.plugin,
    }
}
