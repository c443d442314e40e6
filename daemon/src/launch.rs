//! What belongs to one launch: the process an SDK started plus every connection that came through
//! it. A value handed in, in memory only, never global and never stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use loopd_proto::params::launch::LaunchState;
use tokio::sync::OnceCell;

use crate::client::{Class, Client, ClientId, Lifecycle, Notice, NoticeContent};
use crate::redaction;
use loopd_model::client_http::{ClientHttp, RequestOrigin};
use loopd_model::http::HttpCarrier;
use loopd_model::http_client::{HttpClient, HttpSettings};
use loopd_model::secret::Secret;

/// One launch.
pub struct Launch {
    pub cwd: PathBuf,
    /// The environment the launching process had; secrets are filtered before children see it.
    pub env: BTreeMap<String, String>,
    /// What a TCP connection has to present.
    pub connection_token: Option<Secret>,
    /// Pays for the Copilot API.
    pub api_token: Option<Secret>,
    /// Everything is allowed without asking.
    pub yolo: bool,
    /// Sessions that were idle for so long are ended.
    pub session_idle_timeout: Option<Duration>,
    pub http: HttpClient,
    /// The local model server that answered, once somebody looked for one.
    pub local_server: OnceCell<String>,
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    clients: Vec<Weak<dyn Client>>,
    /// The client that carries model requests, once one asked for it.
    inference: Option<Inference>,
    /// The client that keeps the files of sessions, once one asked for it.
    session_files: Option<SessionFiles>,
    /// What clients want masked in what tools say.
    filtered: BTreeSet<String>,
    /// The plugins that come with its clients.
    plugins: Vec<PathBuf>,
    ended: bool,
}

/// Who carries model requests.
struct Inference {
    /// None for a client that has yet to come back.
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

/// Who keeps the files of sessions.
enum SessionFiles {
    KeptBy(Arc<dyn Client>),
    /// The client that does has yet to come back.
    Awaited,
}

/// Whether clients of a launch have sessions.
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
            connection_token: options.connection_token,
            api_token,
            yolo: options.yolo,
            session_idle_timeout: options.session_idle_timeout,
            local_server: OnceCell::new(),
            live: Mutex::default(),
        }
    }

    /// The plugins that come with its clients, wherever they were named from.
    pub fn plugins(&self) -> Vec<PathBuf> {
        self.live().plugins.clone()
    }

    pub fn set_plugins(&self, plugins: Vec<PathBuf>) {
        self.live().plugins = plugins;
    }

    /// A variable of the launch's environment, unless it is empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.env
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// The environment for child processes: the launch's own without anything that looks secret.
    pub fn child_environment(&self) -> BTreeMap<String, String> {
        self.env
            .iter()
            .filter(|(name, _)| !is_secret_name(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    fn live(&self) -> std::sync::MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Lets a client carry the model requests of this launch, unless another one does.
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

    /// Lets a client that carried model requests before do it again.
    pub fn carry_inference_again(&self, client: &Arc<dyn Client>) {
        self.live().inference = Some(Inference::by(client));
    }

    /// The exchanges of a client, if it is the one that carries model requests.
    pub fn inference_of(&self, client: ClientId) -> Option<Arc<ClientHttp>> {
        let live = self.live();
        let known = live.inference.as_ref();
        let known = known.filter(|known| known.client == Some(client))?;
        Some(known.http.clone())
    }

    /// Who carries model requests: the client that asked for it, even if it is gone, else we.
    pub fn carrier(&self, origin: Option<RequestOrigin>) -> Arc<dyn HttpCarrier> {
        match &self.live().inference {
            Some(client) => Arc::new(client.http.clone().carrier(origin)),
            None => Arc::new(self.http.clone()),
        }
    }

    /// Notes that a client keeps the files of this launch's sessions.
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

    /// Notes that a client that kept the files before keeps them again.
    pub fn keep_session_files_again(&self, client: &Arc<dyn Client>) {
        self.live().session_files = Some(SessionFiles::KeptBy(client.clone()));
    }

    /// Whether this client keeps the files of sessions.
    pub fn has_session_files_at(&self, client: ClientId) -> bool {
        let live = self.live();
        matches!(&live.session_files, Some(SessionFiles::KeptBy(known)) if known.id() == client)
    }

    /// Whether a client asked to keep the files of sessions, even if it is gone.
    pub fn client_keeps_session_files(&self) -> bool {
        self.live().session_files.is_some()
    }

    /// What clients have set, for the next daemon.
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

    /// Takes over what clients had set with the daemon before.
    pub fn restore(&self, state: LaunchState) {
        let mut live = self.live();
        live.plugins = state.plugins.into_iter().map(PathBuf::from).collect();
        live.filtered = state.masked.into_iter().collect();
        // Nobody else takes the place of a client that has yet to come back.
        live.inference = state.inference_by_client.then(|| Inference {
            client: None,
            http: Arc::new(ClientHttp::awaiting()),
        });
        live.session_files = state
            .session_files_by_client
            .then_some(SessionFiles::Awaited);
        live.ended = state.ended;
    }

    /// Masks these values from now on; refuses them all when they are too many.
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

    /// Every value of this launch that tools must not repeat: those it was told to mask, its
    /// tokens, and what its environment holds under names that children do not see.
    pub fn secret_values(&self) -> Vec<String> {
        let tokens = [&self.api_token, &self.connection_token];
        let tokens = tokens.into_iter().flatten().map(Secret::expose);
        let hidden = self
            .env
            .iter()
            .filter(|(name, value)| is_secret_name(name) && looks_secret(value))
            .map(|(_, value)| value.as_str());
        let known = tokens.chain(hidden).map(str::to_owned);
        let told = self.live().filtered.clone();
        known.chain(told).collect()
    }

    /// Refuses requests from now on.
    pub fn end(&self) {
        self.live().ended = true;
    }

    pub fn has_ended(&self) -> bool {
        self.live().ended
    }
}

/// Another connection of the launch carries model requests already.
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

/// How many values, and how many bytes of them, a launch may want masked.
const MOST_SECRETS: usize = 1_000;
const MOST_SECRET_BYTES: usize = 1024 * 1024;

/// More was to be masked than can be searched for in everything that tools say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too much to mask: at most {MOST_SECRETS} values of {MOST_SECRET_BYTES} bytes together")]
pub struct TooManySecrets;

/// Names of variables that are likely to hold keys; children never see them.
fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY"];
    let name = name.to_ascii_uppercase();
    WORDS.iter().any(|word| name.contains(word))
        || name.ends_with("_KEY")
        || name == "COPILOT_HMAC_KEY"
}

/// Whether the value of such a variable is likely a key: masking `true`, a number or a path would
/// do more harm than good.
fn looks_secret(value: &str) -> bool {
    let is_place = value.starts_with(['/', '.', '~']) || value.contains("://");
    let has = |is: fn(&char) -> bool| value.chars().any(|letter| is(&letter));
    let mixed = has(char::is_ascii_alphabetic) && has(char::is_ascii_digit);
    !is_place && ((value.len() >= 8 && mixed) || value.len() >= 20)
}

#[cfg(test)]
mod tests;
