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
    /// Whether it may push messages into the queue of the session.
    pub may_push: bool,
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
    /// A private key in PEM, with which the program proves who it is.
    pub private_key: Option<String>,
    pub is_public: Option<bool>,
    /// How the program logs in as itself; `None` if a person logs in.
    pub as_program: Option<ProgramLogin>,
    pub redirect_port: Option<u16>,
    pub scopes: Vec<String>,
    /// Whether nobody logs in at this server, whatever it says.
    pub is_off: bool,
}

/// How a program logs in without a person.
#[derive(Clone, PartialEq, Eq)]
pub enum ProgramLogin {
    /// With its secret or its key.
    ClientCredentials,
    /// With a statement about it that somebody else has signed.
    Assertion(String),
    /// With what an organisation says about a person.
    Organisation(IdentityProvider),
}

/// Who knows the people of an organisation.
#[derive(Clone, PartialEq, Eq)]
pub struct IdentityProvider {
    pub token_endpoint: String,
    /// The name of the program there.
    pub client_id: Option<String>,
    /// What it says about the person.
    pub id_token: String,
}

impl OAuthClient {
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let login = match &self.as_program {
            Some(ProgramLogin::Assertion(assertion)) => Some(assertion.as_str()),
            Some(ProgramLogin::Organisation(provider)) => Some(provider.id_token.as_str()),
            Some(ProgramLogin::ClientCredentials) | None => None,
        };
        let own = [self.client_secret.as_deref(), self.private_key.as_deref()];
        own.into_iter().flatten().chain(login)
    }
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

    /// Returns the secrets that the server is given: what its headers, its login and its variables with
    /// telling names say.
    pub fn secrets(&self) -> Vec<String> {
        match &self.transport {
            Transport::Stdio(program) => {
                let named = program.env.iter().filter(|(name, _)| is_secret(name));
                named.map(|(_, value)| value.clone()).collect()
            }
            Transport::Http(endpoint) => {
                let headers = endpoint.headers.iter();
                let headers = headers.filter(|(name, _)| is_secret(name));
                // The words before the last one name the scheme.
                let headers = headers.filter_map(|(_, value)| value.split_whitespace().next_back());
                headers
                    .chain(endpoint.oauth.secrets())
                    .map(str::to_owned)
                    .collect()
            }
        }
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

/// Whether a variable or a header of this name is likely to hold a secret.
fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 8] = [
        "auth",
        "key",
        "token",
        "secret",
        "passw",
        "cookie",
        "credential",
        "private",
    ];
    // They name sockets and folders.
    const NONE: [&str; 2] = ["ssh_auth_sock", "xauthority"];
    let name = name.to_ascii_lowercase();
    !NONE.contains(&name.as_str()) && WORDS.iter().any(|word| name.contains(word))
}

/// Tells one configuration of a server from others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
