//! What a server is: how it is started or reached, and within which limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ring::digest::{Context, SHA256};

/// How long a server may take until it can be used, if its configuration does not say.
pub const STARTUP: Duration = Duration::from_secs(30);
/// How long a call may take, if the configuration does not say. Progress begins it anew.
pub const CALL: Duration = Duration::from_secs(120);
/// How long a call may take however much progress it reports.
pub const LONGEST_CALL: Duration = Duration::from_secs(3600);

/// One server. Nothing in it is left to be replaced by variables.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerConfig {
    pub name: String,
    /// The name for people.
    pub display_name: Option<String>,
    pub transport: Transport,
    pub startup_timeout: Duration,
    pub call_timeout: Duration,
    pub tools: ToolFilter,
    pub lifecycle: Lifecycle,
    /// Whether its list of tools is kept on disk.
    pub keeps_tools: bool,
    /// Whether one process serves several sessions.
    pub is_shared: bool,
    pub trust: Trust,
}

/// On whose word a server is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    #[default]
    Client,
    User,
    Project,
    Plugin,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    Stdio(Program),
    Http(Endpoint),
}

/// A program that speaks on its standard input and output.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    pub command: String,
    pub args: Vec<String>,
    /// The complete environment.
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
}

/// A server on the network.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub oauth: OAuthClient,
}

/// What the configuration says about the login at a server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuthClient {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    pub is_public: Option<bool>,
    /// Whether the program logs in as itself, without a person.
    pub client_credentials: bool,
    pub redirect_port: Option<u16>,
    pub scopes: Vec<String>,
}

/// Which tools of a server are offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// All when absent or if one is `*`.
    pub include: Option<Vec<String>>,
    pub exclude: Vec<String>,
}

impl ToolFilter {
    pub fn lets_through(&self, tool: &str) -> bool {
        let included = self
            .include
            .as_ref()
            .is_none_or(|names| names.iter().any(|name| name == "*" || name == tool));
        included && !self.exclude.iter().any(|name| name == tool)
    }
}

/// Which generation of the protocol a server is greeted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// `initialize`, the older one. Programs get this: some stop at an unknown first message.
    Initialize,
    /// `server/discover`, and `initialize` if the server does not know that.
    Auto,
    /// `server/discover` only.
    Discover,
}

impl ServerConfig {
    /// Whether the server is reached over the network.
    pub fn is_remote(&self) -> bool {
        matches!(self.transport, Transport::Http(_))
    }

    /// Returns a hash of everything that decides which server this is and what it may see. Secrets are
    /// in it, but cannot be read from it.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hash = Context::new(&SHA256);
        let mut add = |part: &str| {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        };
        match &self.transport {
            Transport::Stdio(program) => {
                add("stdio");
                add(&program.command);
                program.args.iter().for_each(|arg| add(arg));
                add("env");
                for (name, value) in &program.env {
                    add(name);
                    add(value);
                }
                add(&program.cwd.to_string_lossy());
            }
            Transport::Http(endpoint) => {
                add("http");
                add(&endpoint.url);
                for (name, value) in &endpoint.headers {
                    add(name);
                    add(value);
                }
            }
        }
        let digest = hash.finish();
        let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
        Fingerprint(digits.collect())
    }
}

/// Tells one configuration of a server from others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
