//! The tokens of MCP servers that clients provide: a server that wants one is told to the clients, and
//! the first answer counts.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::StreamExt;
use futures::future::BoxFuture;
use loopd_mcp::config::{Endpoint, ServerConfig, Transport};
use loopd_mcp::port::{AuthChallenge, AuthReason, HttpMethod, HttpPort, HttpRequest, TokenSource};
use loopd_proto::event::mcp::{
    HeaderEntry, OauthHttpResponse, OauthReason, OauthRequired, StaticClient, WwwAuthenticate,
};
use loopd_proto::id::RequestId;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::McpMessage;
use crate::services::Services;
use crate::session::Message;

/// How long a client may take to provide a token: a person may have to log in.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10 * 60);
/// How long the description of a server's login may take, and how large it may be.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(10);
const LARGEST_DESCRIPTION: usize = 64 * 1024;
/// The headers of a refusal that clients are shown; others may hold secrets.
const SHOWN_HEADERS: [&str; 4] = ["www-authenticate", "content-type", "date", "retry-after"];

/// The tokens of one server.
pub(super) struct ClientTokens {
    server: String,
    endpoint: Endpoint,
    current: Mutex<Option<String>>,
    /// One question at a time.
    asking: tokio::sync::Mutex<()>,
    mailbox: mpsc::Sender<Message>,
    services: Arc<Services>,
    http: Arc<dyn HttpPort>,
}

impl ClientTokens {
    /// Makes the tokens of a server; `None` if it does not need any from here.
    pub(super) fn of(
        config: &ServerConfig,
        mailbox: &mpsc::Sender<Message>,
        services: &Arc<Services>,
        http: Arc<dyn HttpPort>,
    ) -> Option<Arc<dyn TokenSource>> {
        let Transport::Http(endpoint) = &config.transport else {
            return None;
        };
        let mut headers = endpoint.headers.iter();
        // Who brings a token along is not asked for another one.
        if headers.any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            return None;
        }
        Some(Arc::new(Self {
            server: config.name.clone(),
            endpoint: endpoint.clone(),
            current: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            mailbox: mailbox.clone(),
            services: services.clone(),
            http,
        }))
    }

    /// Asks the clients; `None` if none of them provides a token.
    async fn ask(&self, challenge: &AuthChallenge, reason: OauthReason) -> Option<String> {
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
                grant_type: client
                    .client_credentials
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
        self.mailbox.send(message).await.ok()?;
        let answered = tokio::time::timeout(ANSWERED_WITHIN, answer).await;
        if answered.is_err() {
            let withdrawn = Message::Mcp(McpMessage::TokenAnswered {
                request,
                token: None,
                reply: None,
            });
            self.mailbox.send(withdrawn).await.ok();
        }
        answered.ok()?.ok()?
    }

    /// Fetches what a server publishes about its login.
    async fn described(&self, address: &str) -> Option<String> {
        let request = HttpRequest {
            method: HttpMethod::Get,
            url: address.to_owned(),
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

impl TokenSource for ClientTokens {
    fn current(&self) -> Option<String> {
        self.current.lock().clone()
    }

    fn obtain(&self, challenge: AuthChallenge) -> BoxFuture<'_, Result<String, String>> {
        async move {
            let _alone = self.asking.lock().await;
            let current = self.current();
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
                if let Some(token) = self.ask(&challenge, *reason).await {
                    *self.current.lock() = Some(token.clone());
                    return Ok(token);
                }
            }
            Err("no client provides a token".to_owned())
        }
        .boxed()
    }
}

/// Reads the parameters of `WWW-Authenticate: Bearer …`.
fn params(header: &str) -> WwwAuthenticate {
    let value = |name: &str| {
        let mut rest = header;
        while let Some(at) = rest.find(name) {
            let (before, from) = rest.split_at(at);
            let after = from.get(name.len()..)?;
            let begins = before.is_empty() || before.ends_with([' ', ',', '\t']);
            if let (true, Some(value)) = (begins, after.strip_prefix('=')) {
                let quoted = value.strip_prefix('"').and_then(|it| it.split_once('"'));
                let plain = || value.split([',', ' ']).next().unwrap_or_default();
                return Some(quoted.map_or_else(plain, |(inside, _)| inside).to_owned());
            }
            rest = after;
        }
        None
    };
    WwwAuthenticate {
        resource_metadata_url: value("resource_metadata"),
        scope: value("scope"),
        error: value("error"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_a_challenge_are_read() {
        let header = r#"Bearer resource_metadata="https://a/x", scope="r w", error="invalid_token", error_description="error=other""#;
        let read = params(header);
        assert_eq!(read.resource_metadata_url.as_deref(), Some("https://a/x"));
        assert_eq!(read.scope.as_deref(), Some("r w"));
        assert_eq!(read.error.as_deref(), Some("invalid_token"));
        let read = params("Bearer error_description=\"no\", error=invalid_token");
        assert_eq!(read.error.as_deref(), Some("invalid_token"));
        assert_eq!(params("Basic realm=\"x\""), WwwAuthenticate::default());
    }
}
