//! Fetches one page: follows redirects on the same host only, reads a bounded number of bytes in a
//! bounded time. Called by `web_fetch`; does not interpret the bytes.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;

use loopd_model::error::ProviderError;
use loopd_model::http::{HeaderMap, HttpCarrier, HttpMethod, HttpRequest, HttpResponse, Url};

use super::texts;

/// The accepted content types, best first.
const ACCEPT: &str =
    "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.8, */*;q=0.5";

/// The limits of one fetch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) redirects: usize,
    /// How many bytes of the body are read; the rest is left out.
    pub(super) bytes: usize,
    /// How long everything may take.
    pub(super) time: Duration,
}

impl Limits {
    pub(super) const USUAL: Self = Self {
        redirects: 5,
        bytes: 5 * 1024 * 1024,
        time: Duration::from_secs(30),
    };
}

/// A response.
#[derive(Debug)]
pub(super) struct Reply {
    /// The address after all redirects.
    pub(super) url: Url,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
    pub(super) cut: Cut,
}

/// Whether a body is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Whole,
    AtLimit(usize),
}

/// Why a page could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum VisitError {
    #[error("{host} could not be reached: {detail}")]
    Unreachable { host: String, detail: String },
    #[error("{host} did not answer within {} seconds. Try again later", limit.as_secs())]
    OutOfTime { host: String, limit: Duration },
    #[error("The page could not be read to its end: {detail}")]
    Broken { detail: String },
    #[error(
        "{from} redirects to {to}, which is on another host than the one that was allowed. It was not visited; call web_fetch with that address if you want it."
    )]
    ElsewhereRedirect { from: Url, to: String },
    #[error("{url} redirects more than {limit} times. The last address was {last}")]
    TooManyRedirects { url: Url, limit: usize, last: Url },
    #[error("{url} redirects to {to:?}, which is not a web address")]
    BadRedirect { url: Url, to: String },
    #[error("{url} answered with status {status}{}", if text.is_empty() { String::new() } else { format!(": {text}") })]
    Status { url: Url, status: u16, text: String },
    #[error("{url} sent its text packed as {encoding}, which was not asked for")]
    Packed { url: Url, encoding: String },
}

/// One fetch.
pub(super) struct Visit<'a> {
    pub(super) carrier: &'a dyn HttpCarrier,
    pub(super) limits: Limits,
}

impl Visit<'_> {
    pub(super) async fn fetch(&self, url: Url) -> Result<Reply, VisitError> {
        let host = host_of(&url);
        let limit = self.limits.time;
        match tokio::time::timeout(limit, self.follow(url)).await {
            Ok(reply) => reply,
            Err(_) => Err(VisitError::OutOfTime { host, limit }),
        }
    }

    async fn follow(&self, first: Url) -> Result<Reply, VisitError> {
        let mut url = first.clone();
        for _ in 0..=self.limits.redirects {
            let response = self.get(&url).await?;
            match redirect(&url, &response)? {
                Some(next) if is_same_host(&url, &next) => url = next,
                Some(next) => {
                    return Err(VisitError::ElsewhereRedirect {
                        from: url,
                        to: next.into(),
                    });
                }
                None => return self.read(url, response).await,
            }
        }
        Err(VisitError::TooManyRedirects {
            url: first,
            limit: self.limits.redirects,
            last: url,
        })
    }

    async fn get(&self, url: &Url) -> Result<HttpResponse, VisitError> {
        let mut headers = HeaderMap::new();
        if let Ok(value) = ACCEPT.parse() {
            headers.insert("accept", value);
        }
        let request = HttpRequest {
            method: HttpMethod::Get,
            url: url.clone(),
            headers,
            body: Bytes::new(),
        };
        let sent = self.carrier.send(request).await;
        sent.map_err(|error| VisitError::Unreachable {
            host: host_of(url),
            detail: cause(error),
        })
    }

    async fn read(&self, url: Url, response: HttpResponse) -> Result<Reply, VisitError> {
        let header = |name: &str| {
            let value = response.headers.get(name)?.to_str().ok()?;
            Some(value.trim().to_owned())
        };
        let content_type = header("content-type").unwrap_or_default();
        let encoding = header("content-encoding").unwrap_or_default();
        let status = response.status;
        if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
            return Err(VisitError::Packed { url, encoding });
        }
        let is_success = (200..300).contains(&status);
        let limit = if is_success { self.limits.bytes } else { 4096 };
        let mut body = Vec::new();
        let mut cut = Cut::Whole;
        let mut chunks = response.body;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| VisitError::Broken {
                detail: cause(error),
            })?;
            let room = limit - body.len();
            body.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
            if chunk.len() > room {
                cut = Cut::AtLimit(limit);
                break;
            }
        }
        if !is_success {
            let text = String::from_utf8_lossy(&body);
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(VisitError::Status {
                url,
                status,
                text: texts::clipped(&line, body.len() as u64, 500),
            });
        }
        Ok(Reply {
            url,
            content_type,
            body,
            cut,
        })
    }
}

/// Returns the target of a redirect.
fn redirect(url: &Url, response: &HttpResponse) -> Result<Option<Url>, VisitError> {
    if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers.get("location") else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
    let mut next = match url.join(&location) {
        Ok(next) if matches!(next.scheme(), "http" | "https") => next,
        _ => {
            return Err(VisitError::BadRedirect {
                url: url.clone(),
                to: location,
            });
        }
    };
    next.set_fragment(None);
    Ok(Some(next))
}

/// Returns whether a redirect stays on the same origin, or on the same host from http to https with
/// the default ports.
fn is_same_host(from: &Url, to: &Url) -> bool {
    let bare = to.username().is_empty() && to.password().is_none();
    let upgraded = from.scheme() == "http"
        && to.scheme() == "https"
        && (from.port(), to.port()) == (None, None);
    let same_port =
        from.scheme() == to.scheme() && from.port_or_known_default() == to.port_or_known_default();
    bare && from.host() == to.host() && (same_port || upgraded)
}

fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// Describes an error without mentioning model providers.
fn cause(error: ProviderError) -> String {
    match error {
        ProviderError::Network { detail }
        | ProviderError::Truncated { detail }
        | ProviderError::Misconfigured { detail } => detail,
        ProviderError::Timeout { limit, .. } => {
            format!("no connection within {} seconds", limit.as_secs())
        }
        other => other.to_string(),
    }
}
