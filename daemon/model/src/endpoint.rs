//! One address that speaks a model API: where it is, how to authenticate, which headers it wants.
//!
//! The daemon builds it from a session's provider configuration; `vendor_api` sends requests through it.
//! It turns refusals into errors and keeps keys out of them. It never looks into a request or a
//! successful reply.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use reqwest::Url;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};

use super::error::{ProviderError, TimeoutPhase};
use super::error_body;
use super::http::{Expecting, HttpCarrier, HttpMethod, HttpRequest, Timeouts, WatchedReply};
use super::secret::{Redactor, Secret};

/// How much of an error response is read.
const LARGEST_ERROR_BODY: usize = 64 * 1024;

/// How many letters of a user agent are sent.
const LONGEST_USER_AGENT: usize = 200;

/// Headers that frame a message or name its target; only the HTTP client sets them.
const FRAMING_HEADERS: [&str; 9] = [
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Headers that say who we are; a client's extra headers may not set them.
const IDENTITY_HEADERS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// How requests prove who sends them.
#[derive(Clone, Default)]
pub enum Credential {
    #[default]
    None,
    /// `Authorization: Bearer …`
    Bearer(Secret),
    /// A key in a header of its own, such as `api-key`.
    ApiKeyHeader { name: String, key: Secret },
    /// A bearer token that a [`TokenSource`] is asked for before each request.
    Asked(Arc<dyn TokenSource>),
}

/// Gives a bearer token for one request.
pub trait TokenSource: Send + Sync + 'static {
    fn token(&self) -> BoxFuture<'_, Result<Secret, ProviderError>>;
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bearer(secret) => f.debug_tuple("Bearer").field(secret).finish(),
            Self::ApiKeyHeader { name, key } => f
                .debug_struct("ApiKeyHeader")
                .field("name", name)
                .field("key", key)
                .finish(),
            Self::Asked(_) => f.write_str("Asked"),
        }
    }
}

/// An address with all that is needed to send requests to it.
pub struct Endpoint {
    base_url: Url,
    credential: Credential,
    headers: HeaderMap,
    redactor: Redactor,
    carrier: Arc<dyn HttpCarrier>,
    user_agent: Option<HeaderValue>,
    timeouts: Timeouts,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base_url", &self.public_url())
            .field("credential", &self.credential)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// What a request wants besides the endpoint's own headers.
pub(super) struct Outgoing<'a> {
    /// The path below the base address, beginning with a slash.
    pub(super) path: &'a str,
    pub(super) query: &'a [(&'a str, &'a str)],
    /// Headers of the vendor; the endpoint's configuration may replace them.
    pub(super) defaults: &'a [(&'static str, String)],
    /// Headers a client asked for; they may replace defaults, but not who we are.
    pub(super) extra: &'a [(String, String)],
    pub(super) expecting: Expecting,
}

/// A successful response, with the means to clean text quoted from it.
pub(super) struct Answer {
    pub(super) reply: WatchedReply,
    pub(super) redactor: Redactor,
}

impl Endpoint {
    /// Checks an address and its fixed headers; nothing is sent.
    pub fn new(
        base_url: &str,
        credential: Credential,
        headers: &[(String, String)],
        carrier: Arc<dyn HttpCarrier>,
    ) -> Result<Self, ProviderError> {
        // The address is not quoted: it may hold a password.
        let base_url = Url::parse(base_url.trim()).map_err(|failure| {
            ProviderError::misconfigured(format!("the provider's base URL is not valid: {failure}"))
        })?;
        if !matches!(base_url.scheme(), "http" | "https") || !base_url.has_host() {
            return Err(ProviderError::misconfigured(
                "the provider's base URL must begin with http:// or https://",
            ));
        }
        let mut redactor = Redactor::default();
        if let Some(password) = base_url.password() {
            redactor.add(Secret::new(password));
        }
        match &credential {
            Credential::Bearer(secret) | Credential::ApiKeyHeader { key: secret, .. } => {
                redactor.add(secret.clone());
            }
            Credential::None | Credential::Asked(_) => {}
        }
        let mut fixed = HeaderMap::new();
        for (name, value) in headers {
            let (name, mut value) = header(name, value)?;
            if FRAMING_HEADERS.contains(&name.as_str()) {
                return Err(ProviderError::misconfigured(format!(
                    "the provider's header `{name}` is set by the HTTP client; remove it from the configuration"
                )));
            }
            if let Ok(text) = value.to_str()
                && looks_secret(&name)
            {
                redactor.add(Secret::new(text));
            }
            value.set_sensitive(true);
            fixed.insert(name, value);
        }
        Ok(Self {
            base_url,
            credential,
            headers: fixed,
            redactor,
            carrier,
            user_agent: None,
            timeouts: Timeouts::default(),
        })
    }

    /// Replaces the default limits.
    #[cfg(test)]
    pub(super) fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Says who asks; letters that a header cannot hold are left out.
    #[must_use]
    pub fn with_user_agent(mut self, words: &str) -> Self {
        let plain: String = words
            .chars()
            .filter(|letter| letter.is_ascii_graphic() || *letter == ' ')
            .take(LONGEST_USER_AGENT)
            .collect();
        self.user_agent = HeaderValue::from_str(plain.trim()).ok();
        self
    }

    /// Adds a parameter to the address of every request.
    #[must_use]
    pub fn with_query(mut self, name: &str, value: &str) -> Self {
        self.base_url.query_pairs_mut().append_pair(name, value);
        self
    }

    /// Gives the base address without user name, password, query and trailing slash.
    pub(super) fn public_url(&self) -> String {
        let mut shown = self.base_url.clone();
        // Both can only fail for addresses without a host, which `new` refuses.
        shown.set_username("").ok();
        shown.set_password(None).ok();
        shown.set_query(None);
        shown.set_fragment(None);
        shown.as_str().trim_end_matches('/').to_owned()
    }

    /// Sends a JSON document.
    pub(super) async fn post(
        &self,
        outgoing: Outgoing<'_>,
        body: Vec<u8>,
    ) -> Result<Answer, ProviderError> {
        self.exchange(HttpMethod::Post, outgoing, body.into()).await
    }

    /// Asks for a document.
    pub(super) async fn get(&self, outgoing: Outgoing<'_>) -> Result<Answer, ProviderError> {
        self.exchange(HttpMethod::Get, outgoing, Bytes::new()).await
    }

    async fn exchange(
        &self,
        method: HttpMethod,
        outgoing: Outgoing<'_>,
        body: Bytes,
    ) -> Result<Answer, ProviderError> {
        let mut redactor = self.redactor.clone();
        let mut headers = self.headers_for(&outgoing, &mut redactor).await?;
        if method == HttpMethod::Post {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let request = HttpRequest {
            method,
            url: self.url(outgoing.path, outgoing.query),
            headers,
            body,
        };
        let mut reply = WatchedReply::open(
            self.carrier.as_ref(),
            request,
            &self.timeouts,
            outgoing.expecting,
        )
        .await
        .map_err(|error| self.locate(error, &redactor))?;
        if (200..300).contains(&reply.status) {
            return Ok(Answer { reply, redactor });
        }
        let body = error_text(&mut reply).await;
        Err(error_body::refused(
            reply.status,
            &reply.headers,
            &body,
            &redactor,
        ))
    }

    fn url(&self, path: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.base_url.clone();
        // Some people write the version into the base address, some leave it to us.
        let names_version = url.path().trim_end_matches('/').ends_with("/v1");
        let path = path
            .strip_prefix("/v1")
            .filter(|_| names_version)
            .unwrap_or(path);
        if let Ok(mut segments) = url.path_segments_mut() {
            let added = path.split('/').filter(|segment| !segment.is_empty());
            segments.pop_if_empty().extend(added);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    async fn headers_for(
        &self,
        outgoing: &Outgoing<'_>,
        redactor: &mut Redactor,
    ) -> Result<HeaderMap, ProviderError> {
        let mut headers = HeaderMap::new();
        if let Some(words) = &self.user_agent {
            headers.insert(USER_AGENT, words.clone());
        }
        headers.insert(
            ACCEPT,
            HeaderValue::from_static(outgoing.expecting.accept()),
        );
        for (name, value) in outgoing.defaults {
            let (name, value) = header(name, value)?;
            headers.insert(name, value);
        }
        let mut ours: Option<HeaderName> = None;
        match &self.credential {
            Credential::None => {}
            Credential::Bearer(token) => {
                headers.insert(
                    AUTHORIZATION,
                    secret_value(&format!("Bearer {}", token.expose()))?,
                );
            }
            Credential::ApiKeyHeader { name, key } => {
                let (name, _) = header(name, "")?;
                headers.insert(name.clone(), secret_value(key.expose())?);
                ours = Some(name);
            }
            Credential::Asked(source) => {
                let limit = self.timeouts.token;
                let token =
                    tokio::time::timeout(limit, source.token())
                        .await
                        .map_err(|_elapsed| ProviderError::Timeout {
                            phase: TimeoutPhase::Token,
                            limit,
                        })??;
                headers.insert(
                    AUTHORIZATION,
                    secret_value(&format!("Bearer {}", token.expose()))?,
                );
                redactor.add(token);
            }
        }
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        for (name, value) in outgoing.extra {
            let (name, value) = header(name, value)?;
            let text = name.as_str();
            if FRAMING_HEADERS.contains(&text)
                || IDENTITY_HEADERS.contains(&text)
                || ours.as_ref() == Some(&name)
            {
                return Err(ProviderError::misconfigured(format!(
                    "the request header `{name}` is decided by the provider's configuration; send the message without it"
                )));
            }
            headers.insert(name, value);
        }
        Ok(headers)
    }

    /// Says which address a network failure was about.
    fn locate(&self, error: ProviderError, redactor: &Redactor) -> ProviderError {
        match error {
            ProviderError::Network { detail } => {
                ProviderError::network(redactor.clean(&format!("{}: {detail}", self.public_url())))
            }
            other => other,
        }
    }
}

/// Reads what a refusal says, as far as it comes: the status alone is already an answer.
async fn error_text(reply: &mut WatchedReply) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < LARGEST_ERROR_BODY {
        match reply.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, "an error response broke off");
                break;
            }
        }
    }
    body.truncate(LARGEST_ERROR_BODY);
    body
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ProviderError> {
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_invalid| {
        ProviderError::misconfigured(format!(
            "`{}` is not a valid header name",
            name.escape_debug()
        ))
    })?;
    let value = HeaderValue::from_str(value).map_err(|_invalid| {
        ProviderError::misconfigured(format!(
            "the value of the header `{parsed}` has forbidden characters"
        ))
    })?;
    Ok((parsed, value))
}

fn secret_value(text: &str) -> Result<HeaderValue, ProviderError> {
    let mut value = HeaderValue::from_str(text).map_err(|_invalid| {
        ProviderError::misconfigured(
            "the provider's key has characters that cannot be sent, such as a line break",
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn looks_secret(name: &HeaderName) -> bool {
    ["auth", "key", "token", "secret", "cookie"]
        .iter()
        .any(|word| name.as_str().contains(word))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]
mod tests;
