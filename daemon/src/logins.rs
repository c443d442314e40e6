//! The logins at MCP servers of a home: one authority for all sessions and apps.
//!
//! Sessions that share a login renew it once: who comes with a token that was refused gets the newer
//! one, or waits for the renewal that is under way. A renewal runs by itself to its end, because a
//! refresh token that was used and whose answer got lost is a login that got lost. A failure that may
//! pass wipes nothing.

mod callback;
mod file;
mod open;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use loopd_exec::clock::Clock;
use loopd_exec::keep_alive::KeepAlive;
use loopd_mcp::config::{Endpoint, OAuthClient, ProgramLogin};
use loopd_mcp::oauth::{self, Challenge, ClientOrigin, Login, OauthError};
use loopd_mcp::port::{AuthReason, HttpPort, TokenError};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tokio::sync::{OnceCell, watch};

use self::file::LoginFile;
use self::open::OpenLogin;
pub use self::open::{Begun, LoginOptions, LoginOutcome};

/// A token is renewed so long before it ends.
const BEFORE_END_MS: u64 = 30_000;

/// Tells one login from others: the server, and the program that logs in there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct LoginKey(String);

impl LoginKey {
    fn of(endpoint: &Endpoint) -> Self {
        let client = endpoint.oauth.client_id.as_deref().unwrap_or_default();
        let named = format!("{}\0{client}", endpoint.url);
        let hash = digest(&SHA256, named.as_bytes());
        let digits = hash.as_ref().iter().map(|byte| format!("{byte:02x}"));
        Self(digits.collect())
    }
}

/// The logins of a home.
#[derive(Clone)]
pub struct Logins(Arc<Inner>);

struct Inner {
    file: LoginFile,
    clock: Clock,
    keep_alive: KeepAlive,
    entries: Mutex<HashMap<LoginKey, Arc<Entry>>>,
    loaded: OnceCell<()>,
    /// One writing at a time, in the order of what happened.
    storing: tokio::sync::Mutex<()>,
}

/// One login, or the place for one.
struct Entry {
    held: Mutex<Held>,
    /// Counts the logins and renewals.
    changes: watch::Sender<u64>,
    /// One login is begun at a time.
    beginning: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Held {
    login: Option<Login>,
    renewing: Option<Renewing>,
    /// What the server said when it last wanted a person to log in.
    challenge: Option<Challenge>,
    open: Option<OpenLogin>,
}

/// A renewal that is under way.
type Renewing = Shared<BoxFuture<'static, Result<String, TokenError>>>;

/// How a token is renewed.
enum Renewal {
    Refresh(Box<Login>),
    /// The program logs in as itself.
    AsProgram(ProgramLogin, Challenge),
}

impl Held {
    fn access(&self) -> Option<&str> {
        let tokens = self.login.as_ref()?.tokens.as_ref()?;
        Some(&tokens.access)
    }
}

impl Entry {
    fn new(login: Option<Login>) -> Arc<Self> {
        Arc::new(Self {
            held: Mutex::new(Held {
                login,
                ..Held::default()
            }),
            changes: watch::Sender::new(0),
            beginning: tokio::sync::Mutex::default(),
        })
    }
}

impl Logins {
    pub fn new(home: &Path, keep_alive: KeepAlive) -> Self {
        Self(Arc::new(Inner {
            file: LoginFile::of(home),
            clock: Clock::default(),
            keep_alive,
            entries: Mutex::default(),
            loaded: OnceCell::new(),
            storing: tokio::sync::Mutex::default(),
        }))
    }

    /// Returns the tokens of one server.
    pub fn of(&self, endpoint: &Endpoint, http: Arc<dyn HttpPort>) -> ServerLogin {
        ServerLogin {
            logins: self.clone(),
            key: LoginKey::of(endpoint),
            url: endpoint.url.clone(),
            client: endpoint.oauth.clone(),
            http,
        }
    }

    /// Returns all secrets that are in memory, so that they can be masked.
    pub fn secrets(&self) -> Vec<String> {
        let entries = self.0.entries.lock();
        let mut secrets = Vec::new();
        for entry in entries.values() {
            let held = entry.held.lock();
            let Some(login) = &held.login else {
                continue;
            };
            secrets.extend(login.client.secret.clone());
            if let Some(tokens) = &login.tokens {
                secrets.push(tokens.access.clone());
                secrets.extend(tokens.refresh.clone());
            }
        }
        secrets
    }

    /// Waits until the login that a person was sent to with this address has ended, and no longer than
    /// this; `None` if there is no such login.
    pub async fn wait(&self, url: &str, limit: std::time::Duration) -> Option<LoginOutcome> {
        let entries: Vec<Arc<Entry>> = self.0.entries.lock().values().cloned().collect();
        let outcome = entries.iter().find_map(|entry| {
            let held = entry.held.lock();
            let open = held.open.as_ref().filter(|open| open.url == url)?;
            Some(open.outcome.clone())
        });
        let mut outcome = outcome?;
        let ended = outcome.wait_for(|outcome| !matches!(outcome, LoginOutcome::Waiting));
        let ended = tokio::time::timeout(limit, ended).await;
        match ended {
            Ok(Ok(ended)) => Some(ended.clone()),
            // It was replaced by another one.
            Ok(Err(_)) => None,
            Err(_) => Some(LoginOutcome::Waiting),
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.clock.now().0).unwrap_or(0)
    }

    /// Returns the place of a login. All logins are read with the first.
    async fn entry(&self, key: &LoginKey) -> Result<Arc<Entry>, String> {
        let loading = self.0.loaded.get_or_try_init(|| async {
            let file = self.0.file.clone();
            let read = tokio::task::spawn_blocking(move || file.load()).await;
            let read = read.map_err(|error| error.to_string())??;
            let mut entries = self.0.entries.lock();
            for (key, login) in read {
                entries
                    .entry(key)
                    .or_insert_with(|| Entry::new(Some(login)));
            }
            Ok::<(), String>(())
        });
        loading.await?;
        let mut entries = self.0.entries.lock();
        let entry = entries
            .entry(key.clone())
            .or_insert_with(|| Entry::new(None));
        Ok(entry.clone())
    }

    /// Writes all logins to the disk. If that fails they stay in memory, and the next writing has them.
    async fn store(&self) -> Result<(), String> {
        let _alone = self.0.storing.lock().await;
        let mut logins = BTreeMap::new();
        for (key, entry) in &*self.0.entries.lock() {
            if let Some(login) = &entry.held.lock().login {
                logins.insert(key.clone(), login.clone());
            }
        }
        let file = self.0.file.clone();
        let stored = tokio::task::spawn_blocking(move || file.store(logins)).await;
        let why = match stored {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(why, "logins at MCP servers could not be stored");
        Err(why)
    }
}

/// The login at one server, as one session uses it.
pub struct ServerLogin {
    logins: Logins,
    key: LoginKey,
    url: String,
    client: OAuthClient,
    http: Arc<dyn HttpPort>,
}

impl ServerLogin {
    /// Returns the token in force. One that has ended by the clock is renewed first.
    pub async fn current(&self) -> Option<String> {
        let entry = self.logins.entry(&self.key).await.ok()?;
        let (access, ends) = {
            let held = entry.held.lock();
            let tokens = held.login.as_ref()?.tokens.as_ref()?;
            (tokens.access.clone(), tokens.expires_at_ms)
        };
        let soon = self.logins.now_ms().saturating_add(BEFORE_END_MS);
        if ends.is_none_or(|ends| ends > soon) {
            return Some(access);
        }
        // If it cannot be renewed now, the server decides whether it still takes this one.
        let renewed = self.renewed(&entry, Some(&access), None).await;
        Some(renewed.unwrap_or(access))
    }

    /// Gets a token in the place of one that was refused.
    pub async fn obtain(
        &self,
        reason: AuthReason,
        rejected: Option<&str>,
        challenge: Challenge,
    ) -> Result<String, TokenError> {
        let entry = self.logins.entry(&self.key).await;
        let entry = entry.map_err(TokenError::Passing)?;
        match reason {
            AuthReason::Initial | AuthReason::Refresh => {
                self.renewed(&entry, rejected, Some(challenge)).await
            }
            AuthReason::Upscope => {
                let mut held = entry.held.lock();
                // Somebody has logged in again meanwhile.
                if let Some(newer) = held.access().filter(|it| Some(*it) != rejected) {
                    return Ok(newer.to_owned());
                }
                held.challenge = Some(Challenge {
                    error: Some("insufficient_scope".to_owned()),
                    ..challenge
                });
                let why = "a person has to allow more than before".to_owned();
                Err(TokenError::NeedsLogin(why))
            }
        }
    }

    /// Returns what counts up with each login and renewal.
    pub async fn changes(&self) -> Option<watch::Receiver<u64>> {
        let entry = self.logins.entry(&self.key).await.ok()?;
        Some(entry.changes.subscribe())
    }

    /// Returns another token than this one: the newer one, or that of the renewal under way.
    async fn renewed(
        &self,
        entry: &Arc<Entry>,
        rejected: Option<&str>,
        challenge: Option<Challenge>,
    ) -> Result<String, TokenError> {
        let renewing = {
            let mut held = entry.held.lock();
            if let Some(newer) = held.access().filter(|it| Some(*it) != rejected) {
                return Ok(newer.to_owned());
            }
            if let Some(renewing) = &held.renewing {
                renewing.clone()
            } else {
                let how = self.how(&mut held, challenge)?;
                let renewing = self.start(entry, how);
                held.renewing = Some(renewing.clone());
                renewing
            }
        };
        renewing.await
    }

    /// Decides how the token is renewed.
    fn how(&self, held: &mut Held, challenge: Option<Challenge>) -> Result<Renewal, TokenError> {
        if let Some(program) = &self.client.as_program {
            let challenge = challenge.unwrap_or_default();
            return Ok(Renewal::AsProgram(program.clone(), challenge));
        }
        let login = held.login.as_ref();
        let tokens = login.and_then(|login| login.tokens.as_ref());
        if let (Some(login), Some(_)) = (login, tokens.and_then(|it| it.refresh.as_ref())) {
            let login = login.clone().with_key(&self.client);
            return Ok(Renewal::Refresh(Box::new(login)));
        }
        if challenge.is_some() {
            held.challenge = challenge;
        }
        let why = "a person has to log in".to_owned();
        Err(TokenError::NeedsLogin(why))
    }

    /// Starts a renewal, which goes on when nobody waits for it any more.
    fn start(&self, entry: &Arc<Entry>, how: Renewal) -> Renewing {
        let (logins, entry, http) = (self.logins.clone(), entry.clone(), self.http.clone());
        let (url, client) = (self.url.clone(), self.client.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "the entry keeps the handle until the renewal has ended"
        )]
        let running = tokio::spawn(async move {
            let _stay = logins.0.keep_alive.work();
            let now = logins.now_ms();
            let done = match &how {
                Renewal::Refresh(login) => oauth::renew(&*http, login, now).await,
                Renewal::AsProgram(program, challenge) => {
                    let who = (&client, program);
                    let done = oauth::log_in_as_program(&*http, &url, who, challenge, now);
                    done.await.map(Some)
                }
            };
            let outcome = entry.take(&how, done);
            if !matches!(outcome, Err(TokenError::Passing(_))) {
                // A failure is logged; the token in memory is good all the same.
                logins.store().await.ok();
            }
            entry.held.lock().renewing = None;
            if outcome.is_ok() {
                entry.changes.send_modify(|count| *count += 1);
            }
            outcome
        });
        let outcome = async move {
            let crashed = |_| TokenError::Passing("the renewal of a token crashed".to_owned());
            running.await.map_err(crashed)?
        };
        outcome.boxed().shared()
    }

    /// Forgets the login; returns whether there was one.
    pub async fn log_out(&self) -> Result<bool, String> {
        let entry = self.logins.entry(&self.key).await?;
        let _alone = entry.beginning.lock().await;
        let had = {
            let mut held = entry.held.lock();
            held.open = None;
            held.challenge = None;
            held.login.take().is_some()
        };
        self.logins.store().await?;
        Ok(had)
    }
}

impl Entry {
    /// Takes the outcome of a renewal.
    fn take(
        &self,
        how: &Renewal,
        done: Result<Option<Login>, OauthError>,
    ) -> Result<String, TokenError> {
        let mut held = self.held.lock();
        if let Renewal::Refresh(before) = how {
            let now = held.login.as_ref().and_then(|login| login.tokens.as_ref());
            if now != before.tokens.as_ref() {
                // Somebody logged in or out meanwhile, which counts more.
                let newer = held.access().map(str::to_owned);
                return newer.ok_or_else(|| TokenError::NeedsLogin("it was logged out".to_owned()));
            }
        }
        let error = match done {
            Ok(Some(login)) => {
                let access = login.tokens.as_ref().map(|tokens| tokens.access.clone());
                held.login = Some(login);
                let none = || TokenError::Passing("there is no token in the answer".to_owned());
                return access.ok_or_else(none);
            }
            Ok(None) => return Err(TokenError::NeedsLogin("a person has to log in".to_owned())),
            Err(error) => error,
        };
        let why = error.to_string();
        match (error, how) {
            (OauthError::Refused { code, .. }, Renewal::Refresh(before)) => {
                if code == "invalid_grant"
                    && let Some(login) = &mut held.login
                {
                    // The refresh token is of no use any more; the registration is.
                    login.tokens = None;
                }
                let is_unknown = matches!(code.as_str(), "invalid_client" | "unauthorized_client");
                if is_unknown && before.client.origin == ClientOrigin::Registered {
                    held.login = None;
                }
                Err(TokenError::NeedsLogin(why))
            }
            (OauthError::Refused { .. }, Renewal::AsProgram(..)) => {
                Err(TokenError::NeedsLogin(why))
            }
            (OauthError::Passing(_) | OauthError::Unusable(_), _) => Err(TokenError::Passing(why)),
        }
    }
}
