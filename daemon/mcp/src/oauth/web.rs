//! The requests of a login, with a limit on time and size.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

use super::{OauthError, address};
use crate::port::{HttpMethod, HttpPort, HttpRequest, HttpResponse};

/// How long one exchange may take.
const WITHIN: Duration = Duration::from_secs(20);
/// The largest answer.
const LARGEST: usize = 256 * 1024;
/// How many redirects of a description are followed, on the same host only.
const MOST_REDIRECTS: usize = 3;

/// An answer to a request.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    /// Returns the body if it is a JSON object.
    pub(super) fn object(&self) -> Option<Map<String, Value>> {
        serde_json::from_slice(&self.body).ok()
    }

    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the server is out of order for the moment.
    fn is_passing(&self) -> bool {
        matches!(self.status, 408 | 425 | 429 | 500..)
    }
}

/// Fetches a description; `None` if there is none at this address.
pub(super) async fn describe(
    http: &dyn HttpPort,
    url: &Url,
    server: &Url,
) -> Result<Option<Map<String, Value>>, OauthError> {
    let mut url = url.clone();
    for _ in 0..=MOST_REDIRECTS {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let answer = send(http, HttpMethod::Get, &url, headers, Bytes::new()).await?;
        if answer.is_passing() {
            return Err(out_of_order(&url, answer.status));
        }
        if (300..400).contains(&answer.status) {
            let to = answer.headers.get(LOCATION);
            let to = to.and_then(|to| to.to_str().ok());
            let to = to.and_then(|to| url.join(to).ok());
            let Some(to) = to.filter(|to| to.origin() == url.origin()) else {
                return Ok(None);
            };
            url = address::checked(to.as_str(), server)?;
            continue;
        }
        return Ok(answer.object().filter(|_| answer.is_success()));
    }
    Ok(None)
}

/// Sends a form.
pub(super) async fn post_form(
    http: &dyn HttpPort,
    url: &Url,
    form: &[(&str, &str)],
    authorization: Option<HeaderValue>,
) -> Result<Answer, OauthError> {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    headers.insert(CONTENT_TYPE, kind);
    if let Some(mut value) = authorization {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    post(http, url, headers, body.into()).await
}

/// Sends a JSON object.
pub(super) async fn post_json(
    http: &dyn HttpPort,
    url: &Url,
    value: &Value,
) -> Result<Answer, OauthError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    post(http, url, headers, value.to_string().into()).await
}

/// Asks a server for anything, to hear what it says about its login.
pub(super) async fn probe(http: &dyn HttpPort, url: &Url) -> Result<Answer, OauthError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let request = request(HttpMethod::Get, url, headers, Bytes::new());
    let asked = tokio::time::timeout(WITHIN, http.send(request)).await;
    let response = asked
        .map_err(|_| too_slow(url))?
        .map_err(|error| unreachable(url, &error.to_string()))?;
    // Its body may be a stream that never ends.
    Ok(Answer {
        status: response.status,
        headers: response.headers,
        body: Vec::new(),
    })
}

async fn post(
    http: &dyn HttpPort,
    url: &Url,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Answer, OauthError> {
    let answer = send(http, HttpMethod::Post, url, headers, body).await?;
    if answer.is_passing() {
        return Err(out_of_order(url, answer.status));
    }
    Ok(answer)
}

fn request(method: HttpMethod, url: &Url, headers: HeaderMap, body: Bytes) -> HttpRequest {
    HttpRequest {
        method,
        url: url.as_str().to_owned(),
        headers,
        body,
    }
}

async fn send(
    http: &dyn HttpPort,
    method: HttpMethod,
    url: &Url,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Answer, OauthError> {
    let exchange = async {
        let sent = http.send(request(method, url, headers, body)).await;
        let response = sent.map_err(|error| unreachable(url, &error.to_string()))?;
        read(url, response).await
    };
    let exchange = tokio::time::timeout(WITHIN, exchange).await;
    exchange.unwrap_or_else(|_| Err(too_slow(url)))
}

async fn read(url: &Url, mut response: HttpResponse) -> Result<Answer, OauthError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.body.next().await {
        let chunk = chunk.map_err(|error| unreachable(url, &error.to_string()))?;
        if body.len() + chunk.len() > LARGEST {
            let host = shown(url);
            return Err(OauthError::Unusable(format!(
                "{host} answers with more than {LARGEST} bytes"
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer {
        status: response.status,
        headers: response.headers,
        body,
    })
}

/// Shows an address without its query, which may hold secrets.
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

fn unreachable(url: &Url, why: &str) -> OauthError {
    OauthError::Passing(format!("{} cannot be reached: {why}", shown(url)))
}

fn too_slow(url: &Url) -> OauthError {
    let limit = WITHIN.as_secs();
    OauthError::Passing(format!("{} did not answer within {limit} s", shown(url)))
}

fn out_of_order(url: &Url, status: u16) -> OauthError {
    OauthError::Passing(format!("{} answers with HTTP {status}", shown(url)))
}
