//! The tokens of MCP servers. A server that wants one is told to the clients that provide tokens, and the
//! first answer counts; without such clients the logins of the home are used.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::StreamExt;
use futures::future::BoxFuture;
use loopd_mcp::config::{Endpoint, ProgramLogin, ServerConfig, Transport};
use loopd_mcp::oauth::{self, Challenge};
use loopd_mcp::port::{
    AuthChallenge, AuthReason, HttpMethod, HttpPort, HttpRequest, TokenError, TokenSource,
};
use loopd_model::http::Url;
use loopd_proto::event::mcp::{
    HeaderEntry, OauthHttpResponse, OauthReason, OauthRequired, StaticClient, WwwAuthenticate,
};
use loopd_proto::id::RequestId;
use loopd_proto::session::McpTokenStorage;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use super::McpMessage;
use crate::logins::ServerLogin;
use crate::services::Services;
use crate::session::Message;

/// How long a client may take to provide a token: a person may have to log in.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10 * 60);
/// How long the description of a server's login may take, and how large it may be.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(10);
const LARGEST_DESCRIPTION: usize = 64 * 1024;
/// Why the session uses no login of the home.
pub const ONLY_CLIENTS: &str = "the session has mcpOAuthTokenStorage set to `in-memory`, so that only clients keep logins; \
                                       let the app provide a token";
/// The headers of a refusal that clients are shown; others may hold secrets.
const SHOWN_HEADERS: [&str; 4] = ["www-authenticate", "content-type", "date", "retry-after"];

/// The tokens of one server.
pub(super) struct SessionTokens {
    server: String,
    endpoint: Endpoint,
    current: Mutex<Current>,
    /// The login of the home; `None` if the session does not use it.
    login: Option<ServerLogin>,
    /// Tells of logins after a token was last asked for in vain.
    changes: Mutex<Option<watch::Receiver<u64>>>,
    /// One question at a time.
    asking: tokio::sync::Mutex<()>,
    mailbox: mpsc::Sender<Message>,
    services: Arc<Services>,
    http: Arc<dyn HttpPort>,
}

/// Where the token in force comes from.
#[derive(Clone)]
enum Current {
    Nothing,
    /// A client gave it.
    Given(String),
    /// It is that of the home.
    Login,
}

/// What clients said when they were asked for a token.
enum Asked {
    Token(String),
    Declined,
    /// No client provides tokens.
    Nobody,
}

impl SessionTokens {
    /// Makes the tokens of a server; `None` if it does not need any from here.
    pub(super) fn of(
        config: &ServerConfig,
        mailbox: &mpsc::Sender<Message>,
        services: &Arc<Services>,
        http: Arc<dyn HttpPort>,
        storage: McpTokenStorage,
    ) -> Option<Arc<dyn TokenSource>> {
        let Transport::Http(endpoint) = &config.transport else {
            return None;
        };
        let mut headers = endpoint.headers.iter();
        // Who brings a token along, or wants no login, is not asked for one.
        if endpoint.oauth.is_off
            || headers.any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        {
            return None;
        }
        let login = match storage {
            McpTokenStorage::Persistent => Some(services.logins.of(endpoint, http.clone())),
            McpTokenStorage::InMemory => None,
        };
        Some(Arc::new(Self {
            server: config.name.clone(),
            endpoint: endpoint.clone(),
            current: Mutex::new(Current::Nothing),
            login,
            changes: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            mailbox: mailbox.clone(),
            services: services.clone(),
            http,
        }))
    }

    /// Asks the clients.
    async fn ask(&self, challenge: &AuthChallenge, reason: OauthReason) -> Asked {
        let params = challenge.www_authenticate.as_deref().map(params);
        let address = params
            .as_ref()
            .and_then(|params| params.resource_metadata_url.clone());
        let described = match address {
            Some(address) => self.described(&address).await,
            None => None,
        };
        let shown = challenge.headers.iter();
        let shown = shown.filter(|(name, _)| SHOWN_HEADERS.contains(&name.as_str()));
        let client = &self.endpoint.oauth;
        let asked = OauthRequired {
            request_id: RequestId::from(self.services.clock.id()),
            server_name: self.server.clone(),
            server_url: self.endpoint.url.clone(),
            static_client_config: client.client_id.clone().map(|client_id| StaticClient {
                client_id,
                public_client: client.is_public,
                grant_type: (client.as_program == Some(ProgramLogin::ClientCredentials))
                    .then(|| "client_credentials".to_owned()),
            }),
            www_authenticate_params: params,
            http_response: Some(OauthHttpResponse {
                status_code: challenge.status,
                headers: shown
                    .map(|(name, value)| HeaderEntry {
                        name: name.clone(),
                        value: value.clone(),
                    })
                    .collect(),
                body: Some(challenge.body.clone()).filter(|body| !body.is_empty()),
            }),
            resource_metadata: described,
            reason,
        };
        let (reply, answer) = oneshot::channel();
        let request = asked.request_id.clone();
        let message = Message::Mcp(McpMessage::AskForToken {
            asked: Box::new(asked),
            reply,
        });
        if self.mailbox.send(message).await.is_err() {
            return Asked::Nobody;
        }
        let answered = tokio::time::timeout(ANSWERED_WITHIN, answer).await;
        if answered.is_err() {
            let withdrawn = Message::Mcp(McpMessage::TokenAnswered {
                request,
                token: None,
                reply: None,
            });
            self.mailbox.send(withdrawn).await.ok();
        }
        match answered {
            Ok(Ok(Some(token))) => Asked::Token(token),
            Ok(Ok(None)) | Err(_) => Asked::Declined,
            // The session drops the question if nobody can answer it.
            Ok(Err(_)) => Asked::Nobody,
        }
    }

    /// Gets a token of the home's own login.
    async fn of_login(&self, challenge: &AuthChallenge) -> Result<String, TokenError> {
        let Some(login) = &self.login else {
            return Err(TokenError::NeedsLogin(ONLY_CLIENTS.to_owned()));
        };
        let changes = login.changes().await;
        *self.changes.lock() = changes;
        let header = challenge.www_authenticate.as_deref();
        let read = header.map(Challenge::read).unwrap_or_default();
        let rejected = challenge.rejected.as_deref();
        let token = login.obtain(challenge.reason, rejected, read).await?;
        *self.current.lock() = Current::Login;
        Ok(token)
    }

    /// Fetches what a server publishes about its login.
    async fn described(&self, address: &str) -> Option<String> {
        // The server names the address: it must not make this machine ask its neighbours.
        let server = Url::parse(&self.endpoint.url).ok()?;
        let address = oauth::checked_address(address, &server).ok()?;
        let request = HttpRequest {
            method: HttpMethod::Get,
            url: address.into(),
            headers: http::HeaderMap::new(),
            body: bytes::Bytes::new(),
        };
        let fetched = async {
            let mut response = self.http.send(request).await.ok()?;
            if response.status != 200 {
                return None;
            }
            let mut text = Vec::new();
            while let Some(Ok(chunk)) = response.body.next().await {
                if text.len() + chunk.len() > LARGEST_DESCRIPTION {
                    return None;
                }
                text.extend_from_slice(&chunk);
            }
            String::from_utf8(text).ok()
        };
        tokio::time::timeout(DESCRIBED_WITHIN, fetched).await.ok()?
    }
}

impl TokenSource for SessionTokens {
    fn current(&self) -> BoxFuture<'_, Option<String>> {
        async move {
            let current = self.current.lock().clone();
            match current {
                Current::Nothing => None,
                Current::Given(token) => Some(token),
                Current::Login => self.login.as_ref()?.current().await,
            }
        }
        .boxed()
    }

    fn obtain(&self, challenge: AuthChallenge) -> BoxFuture<'_, Result<String, TokenError>> {
        async move {
            let _alone = self.asking.lock().await;
            let current = self.current().await;
            if let Some(newer) = current.filter(|it| Some(it) != challenge.rejected.as_ref()) {
                // Somebody else got it meanwhile.
                return Ok(newer);
            }
            let reasons: &[OauthReason] = match challenge.reason {
                AuthReason::Initial => &[OauthReason::Initial],
                AuthReason::Refresh => &[OauthReason::Refresh, OauthReason::Reauth],
                AuthReason::Upscope => &[OauthReason::Upscope],
            };
            for reason in reasons {
                match self.ask(&challenge, *reason).await {
                    Asked::Token(token) => {
                        *self.current.lock() = Current::Given(token.clone());
                        return Ok(token);
                    }
                    Asked::Declined => {}
                    Asked::Nobody => return self.of_login(&challenge).await,
                }
            }
            // Who provides tokens and declines does not want another way.
            let why = "no client provides a token".to_owned();
            Err(TokenError::NeedsLogin(why))
        }
        .boxed()
    }

    fn renewed(&self) -> BoxFuture<'_, ()> {
        let changes = self.changes.lock().take();
        async move {
            match changes {
                Some(mut changes) => {
                    if changes.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
                None => std::future::pending().await,
            }
        }
        .boxed()
    }
}

/// Returns the parameters of `WWW-Authenticate: Bearer …` as clients are told them.
fn params(header: &str) -> WwwAuthenticate {
    let Challenge {
        resource_metadata,
        scope,
        error,
    } = Challenge::read(header);
    WwwAuthenticate {
        resource_metadata_url: resource_metadata,
        scope,
        error,
    }
}
