//! One launch: the process that an SDK started, and every connection that came through it. A launch
//! is a value that callers hand in; it lives in memory only, is never global and never stored.

pub mod wrong_tokens;

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use loopd_proto::params::launch::LaunchState;
use loopd_proto::provider::address_secrets;
use loopd_proto::secret_variables::is_secret_name;
pub use loopd_proto::secret_variables::{looks_secret, private_variables};
use tokio::sync::OnceCell;

use crate::client::{Class, Client, ClientId, Lifecycle, Notice, NoticeContent};
use crate::config::Config;
use crate::redaction;
use loopd_model::client_http::{ClientHttp, RequestOrigin};
use loopd_model::http::HttpCarrier;
use loopd_model::http_client::{HttpClient, HttpSettings};
use loopd_model::secret::Secret;
use wrong_tokens::WrongTokens;

/// One launch: its directory, environment, tokens and flags, and what its clients have set.
pub struct Launch {
    pub cwd: PathBuf,
    /// The environment of the launching process. Secrets are taken out before children see it.
    pub env: BTreeMap<String, String>,
    /// The variable that was said to hold the token for the Copilot API, whatever its name.
    auth_token_env: Option<String>,
    /// The token that a TCP connection has to send.
    pub connection_token: Option<Secret>,
    /// The wrong tokens that were shown instead.
    pub wrong_tokens: WrongTokens,
    /// The token for the Copilot API.
    pub api_token: Option<Secret>,
    /// Whether every tool is allowed without asking.
    pub yolo: bool,
    /// How long a session may be idle before it is ended.
    pub session_idle_timeout: Option<Duration>,
    pub http: HttpClient,
    /// The local model server that answered; empty until a search found one.
    pub local_server: OnceCell<String>,
    /// The secrets in the environment, which does not change.
    hidden_values: OnceLock<Vec<String>>,
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    clients: Vec<Weak<dyn Client>>,
    /// The client that carries model requests, if one asked to.
    inference: Option<Inference>,
    /// The client that keeps the files of sessions, if one asked to.
    session_files: Option<SessionFiles>,
    /// The values that clients want masked in the results of tools.
    filtered: BTreeSet<String>,
    /// The folders of the plugins that clients have named.
    plugins: Vec<PathBuf>,
    ended: bool,
}

/// The client that carries model requests.
struct Inference {
    /// `None` if the client carried them at the previous daemon and has not joined this one yet.
    client: Option<ClientId>,
    http: Arc<ClientHttp>,
}

impl Inference {
    fn by(client: &Arc<dyn Client>) -> Self {
        let id = client.id();
        Self {
            client: Some(id),
            http: Arc::new(ClientHttp::new(client.clone(), id.to_string())),
        }
    }
}

/// The client that keeps the files of sessions.
enum SessionFiles {
    KeptBy(Arc<dyn Client>),
    /// A client kept them at the previous daemon and has not joined this one yet.
    Awaited,
}

/// Whether the clients of a launch have sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchSessions {
    None,
    Some,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// The environment variables that hold the token for the Copilot API, best first.
const API_TOKENS: [&str; 4] = [
    "COPILOT_SDK_AUTH_TOKEN",
    "COPILOT_GITHUB_TOKEN",
    "GH_TOKEN",
    "GITHUB_TOKEN",
];

/// How a launch was started.
#[derive(Debug, Default)]
pub struct LaunchOptions {
    /// The variable that `--auth-token-env` named.
    pub auth_token_env: Option<String>,
    pub connection_token: Option<Secret>,
    pub yolo: bool,
    pub session_idle_timeout: Option<Duration>,
}

impl Launch {
    pub fn new(cwd: PathBuf, env: BTreeMap<String, String>, options: LaunchOptions) -> Self {
        let named = options.auth_token_env.as_deref();
        let api_token = named
            .into_iter()
            .chain(API_TOKENS)
            .filter_map(|name| env.get(name))
            .find(|value| !value.is_empty())
            .map(|value| Secret::new(value.as_str()));
        Self {
            http: HttpClient::new(HttpSettings::from_environment(&env)),
            cwd,
            env,
            auth_token_env: options.auth_token_env,
            connection_token: options.connection_token,
            wrong_tokens: WrongTokens::default(),
            api_token,
            yolo: options.yolo,
            session_idle_timeout: options.session_idle_timeout,
            local_server: OnceCell::new(),
            hidden_values: OnceLock::new(),
            live: Mutex::default(),
        }
    }

    /// Returns the folders of the plugins that clients have named, by whichever method.
    pub fn plugins(&self) -> Vec<PathBuf> {
        self.live().plugins.clone()
    }

    pub fn set_plugins(&self, plugins: Vec<PathBuf>) {
        self.live().plugins = plugins;
    }

    /// Returns the whole environment of the launch, secrets included.
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Returns a variable of the launch's environment, unless it is empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.env
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns the environment for child processes: the launch's own without what looks secret, and
    /// without the variables that the configuration file names as keys.
    pub fn child_environment(&self, config: &Config) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        env.retain(|name, value| !self.is_hidden(name) && !is_private_address(name, value));
        for name in config.key_variables() {
            env.remove(name);
        }
        env
    }

    /// Returns whether a variable holds a secret, by its name or because it was named as the token.
    fn is_hidden(&self, name: &str) -> bool {
        is_secret_name(name) || self.auth_token_env.as_deref() == Some(name)
    }

    fn live(&self) -> parking_lot::MutexGuard<'_, Live> {
        self.live.lock()
    }

    pub fn join(&self, client: &Arc<dyn Client>) {
        let mut live = self.live();
        live.clients.retain(|known| known.strong_count() > 0);
        live.clients.push(Arc::downgrade(client));
    }

    /// Tells every client of the launch about a change in the set of sessions.
    pub fn announce(&self, lifecycle: &Lifecycle<'_>) {
        let clients = self.live().clients.clone();
        let notice = Notice::new(NoticeContent::Lifecycle(lifecycle));
        for client in clients.iter().filter_map(Weak::upgrade) {
            client.tell(Class::Event, &notice);
        }
    }

    /// Lets a client carry the model requests of this launch, unless another client does.
    pub fn carry_inference(&self, client: &Arc<dyn Client>) -> Result<(), InferenceTaken> {
        let mut live = self.live();
        match &live.inference {
            Some(known) if known.client == Some(client.id()) => Ok(()),
            Some(known) if !known.http.is_gone() => Err(InferenceTaken),
            Some(_) | None => {
                live.inference = Some(Inference::by(client));
                Ok(())
            }
        }
    }

    /// Lets a client carry model requests that carried them at the previous daemon.
    pub fn carry_inference_again(&self, client: &Arc<dyn Client>) {
        self.live().inference = Some(Inference::by(client));
    }

    /// Returns the HTTP exchanges of a client, if that client carries model requests.
    pub fn inference_of(&self, client: ClientId) -> Option<Arc<ClientHttp>> {
        let live = self.live();
        let known = live.inference.as_ref();
        let known = known.filter(|known| known.client == Some(client))?;
        Some(known.http.clone())
    }

    /// Returns what carries model requests: the client that asked to, even if it is gone, or else
    /// the daemon's own HTTP client.
    pub fn carrier(&self, origin: Option<RequestOrigin>) -> Arc<dyn HttpCarrier> {
        match &self.live().inference {
            Some(client) => Arc::new(client.http.clone().carrier(origin)),
            None => Arc::new(self.http.clone()),
        }
    }

    /// Lets a client keep the files of this launch's sessions, unless another client does.
    pub fn keep_session_files(
        &self,
        client: &Arc<dyn Client>,
        sessions: LaunchSessions,
    ) -> Result<(), SessionFilesRefused> {
        let mut live = self.live();
        match (&live.session_files, sessions) {
            (Some(SessionFiles::KeptBy(known)), _)
                if known.id() != client.id() && !known.is_gone() =>
            {
                Err(SessionFilesRefused::Taken)
            }
            (_, LaunchSessions::Some) => Err(SessionFilesRefused::SessionsExist),
            (_, LaunchSessions::None) => {
                live.session_files = Some(SessionFiles::KeptBy(client.clone()));
                Ok(())
            }
        }
    }

    /// Lets a client keep the files that kept them at the previous daemon.
    pub fn keep_session_files_again(&self, client: &Arc<dyn Client>) {
        self.live().session_files = Some(SessionFiles::KeptBy(client.clone()));
    }

    /// Returns whether this client keeps the files of sessions.
    pub fn has_session_files_at(&self, client: ClientId) -> bool {
        let live = self.live();
        matches!(&live.session_files, Some(SessionFiles::KeptBy(known)) if known.id() == client)
    }

    /// Returns whether a client asked to keep the files of sessions, even if it is gone.
    pub fn client_keeps_session_files(&self) -> bool {
        self.live().session_files.is_some()
    }

    /// Returns what clients have set, for the next daemon.
    pub fn state(&self) -> LaunchState {
        let live = self.live();
        let plugins = live.plugins.iter();
        LaunchState {
            plugins: plugins
                .map(|path| path.to_string_lossy().into_owned())
                .collect(),
            masked: live.filtered.iter().cloned().collect(),
            inference_by_client: live.inference.is_some(),
            session_files_by_client: live.session_files.is_some(),
            ended: live.ended,
        }
    }

    /// Restores what clients had set at the previous daemon.
    pub fn restore(&self, state: LaunchState) {
        let mut live = self.live();
        live.plugins = state.plugins.into_iter().map(PathBuf::from).collect();
        live.filtered = state.masked.into_iter().collect();
        // The role is reserved for the client that had it at the previous daemon.
        live.inference = state.inference_by_client.then(|| Inference {
            client: None,
            http: Arc::new(ClientHttp::awaiting()),
        });
        live.session_files = state
            .session_files_by_client
            .then_some(SessionFiles::Awaited);
        live.ended = state.ended;
    }

    /// Masks these values from now on; refuses all of them if the total is too large.
    pub fn filter_values(&self, values: Vec<String>) -> Result<(), TooManySecrets> {
        let mut live = self.live();
        let new = values
            .into_iter()
            .filter(|value| (redaction::SHORTEST..=redaction::LONGEST).contains(&value.len()));
        let mut filtered = live.filtered.clone();
        filtered.extend(new);
        let bytes: usize = filtered.iter().map(String::len).sum();
        if filtered.len() > MOST_SECRETS || bytes > MOST_SECRET_BYTES {
            return Err(TooManySecrets);
        }
        live.filtered = filtered;
        Ok(())
    }

    /// Returns every value of this launch that tools must not repeat: the values that clients want
    /// masked, the tokens, the values of environment variables that are hidden from children, and the
    /// passwords in addresses.
    pub fn secret_values(&self) -> Vec<String> {
        let tokens = [&self.api_token, &self.connection_token];
        let tokens = tokens.into_iter().flatten().map(Secret::expose);
        let hidden = self.hidden_values.get_or_init(|| {
            let hidden = self.env.iter();
            let hidden = hidden.filter(|(name, value)| self.is_hidden(name) && looks_secret(value));
            let in_addresses = self.env.values().filter(|value| value.contains("://"));
            let in_addresses = in_addresses.flat_map(|value| address_secrets(value));
            hidden
                .map(|(_, value)| value.clone())
                .chain(in_addresses.filter(|value| looks_secret(value)))
                .collect()
        });
        let known = tokens.chain(hidden.iter().map(String::as_str));
        let known = known.map(str::to_owned);
        let masked = self.live().filtered.clone();
        known.chain(masked).collect()
    }

    /// Ends the launch: its requests are refused from now on.
    pub fn end(&self) {
        self.live().ended = true;
    }

    pub fn has_ended(&self) -> bool {
        self.live().ended
    }
}

/// Another client of the launch carries model requests already.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("Another client is already the LLM inference provider; disconnect it first.")]
pub struct InferenceTaken;

/// Why a client cannot keep the files of a launch's sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionFilesRefused {
    #[error("Another client already keeps the session files; disconnect it first.")]
    Taken,
    #[error(
        "this client has sessions already; set the provider of session files before the first one"
    )]
    SessionsExist,
}

/// How many values, and how many bytes in total, the clients of a launch may want masked.
const MOST_SECRETS: usize = 1_000;
const MOST_SECRET_BYTES: usize = 1024 * 1024;

/// A client wants more values masked than the daemon can search for in every tool result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too much to mask: at most {MOST_SECRETS} values of {MOST_SECRET_BYTES} bytes together")]
pub struct TooManySecrets;

/// Returns whether a variable is the address of a model's server, with a password or a key in it. Other
/// addresses with passwords, as of a proxy or a database, are what children need.
fn is_private_address(name: &str, value: &str) -> bool {
    const ENDINGS: [&str; 4] = ["_BASE_URL", "_API_BASE", "_ENDPOINT", "_API_URL"];
    let name = name.to_ascii_uppercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending)) && !address_secrets(value).is_empty()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
