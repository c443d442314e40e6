//! A login that waits for a person. It belongs to the daemon, so that whoever started it may go.

use std::sync::Arc;
use std::time::Duration;

use loopd_mcp::oauth::{self, ClientOrigin, LoginRequest, OauthError, PendingLogin};
use loopd_model::http::Url;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::callback::CallbackListener;
use super::{Entry, ServerLogin};

/// How long a person may take.
const LOGGED_IN_WITHIN: Duration = Duration::from_secs(10 * 60);
/// The name of this program where nobody names another one.
const NAME: &str = "loopd";
const DONE: &str = "You are logged in. You can close this page.";

/// A login that was begun, and how it ended if it has.
pub(super) struct OpenLogin {
    pub(super) url: String,
    pub(super) outcome: watch::Receiver<LoginOutcome>,
    /// Listens for the answer.
    _task: AbortOnDropHandle<()>,
}

/// How far a login is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginOutcome {
    Waiting,
    /// The login is in force; the text says what is wrong all the same.
    LoggedIn(Option<String>),
    Failed(String),
}

/// What a login begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// There is a login already.
    LoggedIn,
    /// A person has to visit this address.
    Visit(String),
}

/// How somebody wants a login.
#[derive(Debug, Clone, Default)]
pub struct LoginOptions {
    /// Log in although there is a login.
    pub again: bool,
    /// The name that people are shown.
    pub client_name: Option<String>,
    /// What the last page says.
    pub success_message: Option<String>,
    /// The address of a description of this program.
    pub document: Option<String>,
}

impl ServerLogin {
    /// Begins a login, or finds the one that was begun already.
    pub async fn begin(&self, options: LoginOptions) -> Result<Begun, OauthError> {
        let entry = self.logins.entry(&self.key).await;
        let entry = entry.map_err(OauthError::Unusable)?;
        let _alone = entry.beginning.lock().await;
        let (known, challenge) = {
            let held = entry.held.lock();
            let waits = |url: &str| Begun::Visit(url.to_owned());
            if !options.again {
                if held.access().is_some() && held.challenge.is_none() {
                    return Ok(Begun::LoggedIn);
                }
                if let Some(open) = &held.open
                    && matches!(*open.outcome.borrow(), LoginOutcome::Waiting)
                {
                    return Ok(waits(&open.url));
                }
            }
            (held.login.clone(), held.challenge.clone())
        };
        let registered = known.as_ref().map(|known| &known.client);
        let registered = registered.filter(|client| client.origin == ClientOrigin::Registered);
        let registered = registered.and_then(|client| Url::parse(&client.redirect_uri).ok());
        let port = registered.and_then(|url| url.port());
        // The one before gives its port back.
        entry.held.lock().open = None;
        let listener = CallbackListener::open(self.client.redirect_port, port).await;
        let listener = listener.map_err(|error| {
            OauthError::Unusable(match self.client.redirect_port {
                Some(port) => format!("the port {port} for the answer cannot be used: {error}"),
                None => format!("no port for the answer can be used: {error}"),
            })
        })?;
        let pending = oauth::begin(
            &*self.http,
            LoginRequest {
                server_url: &self.url,
                client: &self.client,
                challenge,
                redirect_uri: &listener.redirect_uri(),
                document: options.document.as_deref(),
                name: options.client_name.as_deref().unwrap_or(NAME),
                known: known.as_ref(),
            },
        )
        .await?;
        let url = pending.url().to_owned();
        let open = self.listen(&entry, listener, pending, options.success_message);
        entry.held.lock().open = Some(open);
        Ok(Begun::Visit(url))
    }

    fn listen(
        &self,
        entry: &Arc<Entry>,
        listener: CallbackListener,
        pending: PendingLogin,
        message: Option<String>,
    ) -> OpenLogin {
        let (told, outcome) = watch::channel(LoginOutcome::Waiting);
        let url = pending.url().to_owned();
        let (logins, http) = (self.logins.clone(), self.http.clone());
        // The entry owns the task: it must not own the entry.
        let entry = Arc::downgrade(entry);
        #[expect(clippy::disallowed_methods, reason = "the entry keeps the handle")]
        let task = tokio::spawn(async move {
            let _stay = logins.0.keep_alive.waiting();
            let answered = tokio::time::timeout(LOGGED_IN_WITHIN, listener.answer(&pending)).await;
            let (callback, page) = match answered {
                Ok(Ok(answered)) => answered,
                Ok(Err(error)) => {
                    told.send_replace(LoginOutcome::Failed(format!(
                        "the answer could not be taken: {error}"
                    )));
                    return;
                }
                Err(_) => {
                    let minutes = LOGGED_IN_WITHIN.as_secs() / 60;
                    told.send_replace(LoginOutcome::Failed(format!(
                        "nobody logged in within {minutes} minutes"
                    )));
                    return;
                }
            };
            let finished = pending.finish(&*http, callback, logins.now_ms()).await;
            let ended = match (finished, entry.upgrade()) {
                (Ok(login), Some(entry)) => {
                    {
                        let mut held = entry.held.lock();
                        held.login = Some(login);
                        held.challenge = None;
                    }
                    let stored = logins.store().await;
                    entry.changes.send_modify(|count| *count += 1);
                    let why = stored.err();
                    LoginOutcome::LoggedIn(why.map(|why| {
                        format!(
                            "it is lost when the daemon ends, because it could not be stored: {why}"
                        )
                    }))
                }
                (Ok(_), None) => LoginOutcome::Failed("nobody wants it any more".to_owned()),
                (Err(error), _) => LoginOutcome::Failed(error.to_string()),
            };
            let text = match &ended {
                LoginOutcome::LoggedIn(_) => message.unwrap_or_else(|| DONE.to_owned()),
                LoginOutcome::Failed(why) => format!("The login failed: {why}"),
                LoginOutcome::Waiting => String::new(),
            };
            told.send_replace(ended);
            page.show(&text).await;
        });
        OpenLogin {
            url,
            outcome,
            _task: AbortOnDropHandle::new(task),
        }
    }
}
