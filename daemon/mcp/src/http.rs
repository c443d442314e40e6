//! Messages over HTTP: one request per message, with an answer as JSON or as a stream of events.
//!
//! Tokens come from a [`TokenSource`] with each request, so that a connection outlives its token. A
//! request that was refused for want of a token has not been carried out; it is sent again once there
//! is a new one.

mod sse;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;

use crate::asking::Asking;
use crate::port::{
    AuthChallenge, AuthReason, HttpFailure, HttpMethod, HttpPort, HttpRequest, HttpResponse,
    TokenError, TokenSource,
};
use crate::tap::Tap;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The largest body that is not a stream.
const LARGEST_BODY: usize = 16 * 1024 * 1024;
/// How much is read of an answer that refuses a request.
const REFUSAL: usize = 16 * 1024;
/// How many tokens are tried for one request: the one in force, a new one, and one of a wider scope.
const MOST_TOKENS: usize = 3;
/// How many redirects are followed, on the same host only.
const MOST_REDIRECTS: usize = 5;

type Failure = StreamableHttpError<HttpFailure>;

/// The HTTP client of one connection.
#[derive(Clone)]
pub(crate) struct McpHttp {
    pub(crate) port: Arc<dyn HttpPort>,
    pub(crate) tap: Arc<Tap>,
    pub(crate) tokens: Option<Arc<dyn TokenSource>>,
    pub(crate) refused: Refused,
    pub(crate) asking: Asking,
}

/// Whether the server refused the last request for want of a token.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refused(Arc<AtomicBool>);

impl Refused {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, refused: bool) {
        self.0.store(refused, Ordering::Release);
    }
}

impl McpHttp {
    /// Sends a request, with another token if the server refuses it for want of one.
    async fn send(
        &self,
        method: HttpMethod,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpResponse, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let token = match &self.tokens {
                Some(tokens) => tokens.current().await,
                None => None,
            };
            let mut headers = headers.clone();
            if let Some(token) = &token
                && let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {token}"))
            {
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            let response = self.follow(method, url, headers, body.clone()).await?;
            let Some(reason) = refusal(&response, token.is_some()) else {
                self.refused.set(false);
                return Ok(response);
            };
            let challenge = challenge(response, reason, token).await;
            let header = challenge.www_authenticate.clone().unwrap_or_default();
            let obtained = match &self.tokens {
                Some(tokens) if tries < MOST_TOKENS => {
                    let _open = self.asking.begin();
                    tokens.obtain(challenge).await
                }
                _ => Err(TokenError::NeedsLogin("its tokens are refused".to_owned())),
            };
            match obtained {
                Ok(_) => {}
                Err(TokenError::NeedsLogin(_)) => {
                    self.refused.set(true);
                    let error = AuthRequiredError::new(header);
                    return Err(StreamableHttpError::AuthRequired(error));
                }
                // The login is still valid: this is a failure like any other.
                Err(TokenError::Passing(why)) => {
                    self.refused.set(false);
                    let why = format!("its token could not be renewed: {why}");
                    return Err(StreamableHttpError::Client(HttpFailure(why)));
                }
            }
        }
    }

    /// Sends a request and follows redirects that stay on the same host.
    async fn follow(
        &self,
        method: HttpMethod,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpResponse, Failure> {
        let mut url = url.to_owned();
        for _ in 0..=MOST_REDIRECTS {
            let request = HttpRequest {
                method,
                url: url.clone(),
                headers: headers.clone(),
                body: body.clone(),
            };
            let response = self.port.send(request).await;
            let response = response.map_err(StreamableHttpError::Client)?;
            if !matches!(response.status, 307 | 308) {
                return Ok(response);
            }
            let location = response.headers.get(LOCATION);
            let location = location.and_then(|location| location.to_str().ok());
            url = location
                .and_then(|location| same_host(&url, location))
                .ok_or_else(|| unexpected("the server redirects to another host"))?;
        }
        Err(unexpected("the server redirects in a circle"))
    }
}

/// Returns where a redirect leads, if that is on the same host.
fn same_host(from: &str, location: &str) -> Option<String> {
    let from: Uri = from.parse().ok()?;
    let to: Uri = location.parse().ok()?;
    let (scheme, authority) = (from.scheme_str()?, from.authority()?.as_str());
    match (to.scheme_str(), to.authority()) {
        (None, None) if location.starts_with('/') && !location.starts_with("//") => {
            Some(format!("{scheme}://{authority}{location}"))
        }
        (Some(new), Some(host)) if new == scheme && host.as_str() == authority => {
            Some(location.to_owned())
        }
        _ => None,
    }
}

/// Returns why a response refuses a request for want of a token.
fn refusal(response: &HttpResponse, had_token: bool) -> Option<AuthReason> {
    let says = |word: &str| {
        let header = response.headers.get(WWW_AUTHENTICATE);
        let header = header.and_then(|header| header.to_str().ok());
        header.is_some_and(|header| header.contains(word))
    };
    match response.status {
        401 if had_token => Some(AuthReason::Refresh),
        401 => Some(AuthReason::Initial),
        403 if says("insufficient_scope") => Some(AuthReason::Upscope),
        _ => None,
    }
}

async fn challenge(
    response: HttpResponse,
    reason: AuthReason,
    rejected: Option<String>,
) -> AuthChallenge {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = response.headers.iter();
    let headers: Vec<(String, String)> = headers
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect();
    let www_authenticate = response.headers.get(WWW_AUTHENTICATE).map(text);
    let status = response.status;
    let body = read(response.body, REFUSAL).await.unwrap_or_default();
    AuthChallenge {
        reason,
        rejected,
        status,
        www_authenticate,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

/// Reads a body, up to a limit.
async fn read(
    mut body: BoxStream<'static, Result<Bytes, HttpFailure>>,
    limit: usize,
) -> Result<Vec<u8>, HttpFailure> {
    let mut read = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        if read.len() + chunk.len() > limit {
            return Err(HttpFailure(format!(
                "the answer is larger than {limit} bytes"
            )));
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read)
}

fn unexpected(what: impl Into<Cow<'static, str>>) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(what.into())
}

/// Returns the headers of a request.
fn headers(
    custom: HashMap<HeaderName, HeaderValue>,
    session: Option<&str>,
) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for (name, value) in custom {
        headers.insert(name, value);
    }
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    if let Some(session) = session {
        let value = HeaderValue::from_str(session);
        let value = value.map_err(|_| unexpected("the server gave an invalid session id"))?;
        headers.insert(SESSION, value);
    }
    Ok(headers)
}

fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    value
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
}

impl StreamableHttpClient for McpHttp {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.tap.sent(&message);
        let mut headers = headers(custom_headers, session_id.as_deref())?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let response = self.send(HttpMethod::Post, &uri, headers, body).await?;
        let new_session = response.headers.get(SESSION);
        let new_session = new_session
            .and_then(|it| it.to_str().ok())
            .map(str::to_owned);
        let media_type = media_type(&response.headers).to_owned();
        match response.status {
            202 | 204 => return Ok(StreamableHttpPostResponse::Accepted),
            404 if session_id.is_some() => return Err(StreamableHttpError::SessionExpired),
            200..=299 => {}
            status => {
                let body = read(response.body, REFUSAL).await.unwrap_or_default();
                let body = String::from_utf8_lossy(&body);
                return failed(&message, session_id.is_some(), status, &body);
            }
        }
        if media_type == EVENTS {
            let events = sse::events(response.body, self.tap.clone());
            return Ok(StreamableHttpPostResponse::Sse(events, new_session));
        }
        let body = read(response.body, LARGEST_BODY).await;
        let body = body.map_err(StreamableHttpError::Client)?;
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        if !is_request && (body.is_empty() || media_type != JSON) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if media_type != JSON {
            return Err(StreamableHttpError::UnexpectedContentType(Some(media_type)));
        }
        self.tap.received(&body);
        match serde_json::from_slice(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, new_session)),
            Err(_) if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(unexpected(format!("its answer is no message: {error}"))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let headers = headers(custom_headers, Some(&session_id))?;
        // What the server answers changes nothing: the session is over.
        self.send(HttpMethod::Delete, &uri, headers, Bytes::new())
            .await?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let mut headers = headers(custom_headers, session_id.as_deref())?;
        headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
        if let Some(id) = last_event_id {
            let value = HeaderValue::from_str(&id);
            let value = value.map_err(|_| unexpected("the server gave an invalid event id"))?;
            headers.insert(LAST_EVENT, value);
        }
        let response = self
            .send(HttpMethod::Get, &uri, headers, Bytes::new())
            .await?;
        match response.status {
            200..=299 if media_type(&response.headers) == EVENTS => {
                Ok(sse::events(response.body, self.tap.clone()))
            }
            // A server without a stream of its own says so in many ways.
            200..=299 | 400 | 404 | 405 | 501 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => Err(unexpected(format!("HTTP {status}"))),
        }
    }
}

/// Turns an answer that is no success into what the library understands.
fn failed(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    status: u16,
    body: &str,
) -> Result<StreamableHttpPostResponse, Failure> {
    let error = match serde_json::from_str::<ServerJsonRpcMessage>(body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    if let ClientJsonRpcMessage::Request(request) = message {
        // A server of the older generation may refuse the greeting of the newer one in any words.
        if matches!(request.request, ClientRequest::DiscoverRequest(_))
            && !has_session
            && (400..500).contains(&status)
            && !matches!(status, 401 | 403)
        {
            let why = || ErrorData::invalid_request(format!("HTTP {status}"), None);
            let error = error.map_or_else(why, |error| error.error);
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        if let Some(mut error) = error {
            error.id = Some(request.id.clone());
            let answer = ServerJsonRpcMessage::Error(error);
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
    }
    let said: String = body.chars().take(200).collect();
    let said = said.trim();
    Err(unexpected(if said.is_empty() {
        format!("HTTP {status}")
    } else {
        format!("HTTP {status}: {said}")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_on_the_same_host() {
        let at = "https://a.example/mcp";
        assert_eq!(
            same_host(at, "/mcp/").as_deref(),
            Some("https://a.example/mcp/")
        );
        assert_eq!(
            same_host(at, "https://a.example/v2").as_deref(),
            Some("https://a.example/v2")
        );
        for elsewhere in [
            "https://b.example/mcp",
            "http://a.example/mcp",
            "//b.example/x",
            "relative",
        ] {
            assert_eq!(same_host(at, elsewhere), None, "{elsewhere}");
        }
    }
}
