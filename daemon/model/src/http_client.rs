//! The HTTP client of the daemon: proxies, certificates and connection pools of one launch.
//!
//! A launch is what one client started, with its own environment. The daemon makes one HTTP client
//! per launch from that environment, never from its own; the endpoints of the launch share it.
//! Nothing is built before the first request, so that starting the daemon costs nothing. The client
//! knows no vendor, no key and no retry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use reqwest::redirect::Policy;
use reqwest::{Certificate, ClientBuilder, NoProxy, Proxy};
use tokio::sync::OnceCell;

use super::error::{ProviderError, TimeoutPhase};
use super::http::{HttpCarrier, HttpMethod, HttpRequest, HttpResponse};
use super::secret::Secret;

const USER_AGENT: &str = concat!("loopd/", env!("CARGO_PKG_VERSION"));

/// How to reach the network, as a value of one launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// The proxy for `http://` addresses; secret because it may hold a password.
    pub http_proxy: Option<Secret>,
    /// The proxy for `https://` addresses.
    pub https_proxy: Option<Secret>,
    /// The hosts that are reached without a proxy, comma separated as in `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// A PEM file that takes the place of the system's certificates (`SSL_CERT_FILE`).
    pub trusted_certificates: Option<PathBuf>,
    /// A PEM file that is trusted besides the others (`NODE_EXTRA_CA_CERTS`).
    pub extra_certificates: Option<PathBuf>,
    pub connect_timeout: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            http_proxy: None,
            https_proxy: None,
            no_proxy: None,
            trusted_certificates: None,
            extra_certificates: None,
            connect_timeout: Duration::from_secs(10),
        }
    }
}

impl HttpSettings {
    /// Reads the usual variables from an environment; lower case wins, empty counts as unset.
    pub fn from_environment(environment: &BTreeMap<String, String>) -> Self {
        let variable = |name: &str| {
            [name.to_ascii_lowercase(), name.to_owned()]
                .iter()
                .find_map(|spelling| environment.get(spelling))
                .filter(|value| !value.trim().is_empty())
                .map(|value| value.trim().to_owned())
        };
        let proxy = |name: &str| {
            variable(name)
                .or_else(|| variable("ALL_PROXY"))
                .map(Secret::new)
        };
        Self {
            http_proxy: proxy("HTTP_PROXY"),
            https_proxy: proxy("HTTPS_PROXY"),
            no_proxy: variable("NO_PROXY"),
            trusted_certificates: variable("SSL_CERT_FILE").map(PathBuf::from),
            extra_certificates: variable("NODE_EXTRA_CA_CERTS").map(PathBuf::from),
            ..Self::default()
        }
    }

    /// Gives the proxies for plain and for secure addresses; `*` in `NO_PROXY` excepts everything.
    fn proxies(&self) -> (Option<&Secret>, Option<&Secret>) {
        let excepted = self.no_proxy.as_deref().unwrap_or_default();
        // The matcher applies `*` to names only, not to addresses such as 127.0.0.1.
        if excepted.split(',').any(|host| host.trim() == "*") {
            return (None, None);
        }
        (self.http_proxy.as_ref(), self.https_proxy.as_ref())
    }

    /// Tells whether reaching a scheme needs certificates: its own TLS or that of its proxy.
    fn trust_for(&self, scheme: &str) -> Trust {
        let (plain, _) = self.proxies();
        let proxy_speaks_tls = plain.is_some_and(|proxy| proxy.expose().starts_with("https://"));
        if scheme == "http" && !proxy_speaks_tls {
            Trust::Nobody
        } else {
            Trust::Certificates
        }
    }
}

/// Whether a pool will ever check a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Plain HTTP only: no certificate store is read, so none needs to exist.
    Nobody,
    Certificates,
}

/// Carries requests over the network; clones share their connections.
#[derive(Clone)]
pub struct HttpClient {
    inner: Arc<Pools>,
}

struct Pools {
    settings: HttpSettings,
    plain: OnceCell<reqwest::Client>,
    secure: OnceCell<reqwest::Client>,
}

impl HttpClient {
    /// Keeps the settings; the first request builds what it needs.
    pub fn new(settings: HttpSettings) -> Self {
        let (plain, secure) = (OnceCell::new(), OnceCell::new());
        Self {
            inner: Arc::new(Pools {
                settings,
                plain,
                secure,
            }),
        }
    }

    /// Returns a client with the same settings and connections of its own, which end with it.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self::new(self.inner.settings.clone())
    }

    async fn pool_for(&self, scheme: &str) -> Result<&reqwest::Client, ProviderError> {
        let trust = self.inner.settings.trust_for(scheme);
        let pool = match trust {
            Trust::Nobody => &self.inner.plain,
            Trust::Certificates => &self.inner.secure,
        };
        pool.get_or_try_init(|| async {
            let settings = self.inner.settings.clone();
            // Reading and parsing certificates blocks for milliseconds.
            tokio::task::spawn_blocking(move || build(&settings, trust))
                .await
                .map_err(|failure| {
                    ProviderError::misconfigured(format!(
                        "the HTTP client could not be built: {failure}"
                    ))
                })?
        })
        .await
    }
}

impl HttpCarrier for HttpClient {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ProviderError>> {
        async move {
            let limit = self.inner.settings.connect_timeout;
            let pool = self.pool_for(request.url.scheme()).await?;
            let method = match request.method {
                HttpMethod::Get => reqwest::Method::GET,
                HttpMethod::Post => reqwest::Method::POST,
                HttpMethod::Delete => reqwest::Method::DELETE,
            };
            let response = pool
                .request(method, request.url)
                .headers(request.headers)
                .body(request.body)
                .send()
                .await
                .map_err(|failure| failed_before_reply(&failure, limit))?;
            Ok(HttpResponse {
                status: response.status().as_u16(),
                headers: response.headers().clone(),
                body: response
                    .bytes_stream()
                    .map(|chunk| {
                        chunk.map_err(|failure| ProviderError::truncated(causes(&failure)))
                    })
                    .boxed(),
            })
        }
        .boxed()
    }
}

fn build(settings: &HttpSettings, trust: Trust) -> Result<reqwest::Client, ProviderError> {
    // Only the first installation in a process takes effect, and any provider serves us.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let mut builder = reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(settings.connect_timeout)
        // A redirect could carry a key and a conversation to another host.
        .redirect(Policy::none())
        .tcp_keepalive(Duration::from_secs(30))
        .http2_keep_alive_interval(Duration::from_secs(30))
        .no_proxy();
    let (plain, secure) = settings.proxies();
    if let Some(address) = plain {
        builder = builder.proxy(proxy(
            "HTTP_PROXY",
            Proxy::http(address.expose()),
            settings,
        )?);
    }
    if let Some(address) = secure
        && trust == Trust::Certificates
    {
        builder = builder.proxy(proxy(
            "HTTPS_PROXY",
            Proxy::https(address.expose()),
            settings,
        )?);
    }
    with_trust(builder, settings, trust)?
        .build()
        .map_err(|failure| {
            ProviderError::misconfigured(format!(
                "the HTTP client could not be built: {}",
                causes(&failure)
            ))
        })
}

fn proxy(
    variable: &str,
    parsed: Result<Proxy, reqwest::Error>,
    settings: &HttpSettings,
) -> Result<Proxy, ProviderError> {
    let proxy = parsed.map_err(|failure| {
        ProviderError::misconfigured(format!(
            "{variable} is not the address of a proxy: {}; correct or unset the variable",
            causes(&failure)
        ))
    })?;
    let excepted = settings.no_proxy.as_deref().map(excepted_hosts);
    Ok(proxy.no_proxy(excepted.as_deref().and_then(NoProxy::from_string)))
}

/// Rewrites the common spellings `*.example.com` and `[::1]`, which the matcher does not know.
fn excepted_hosts(list: &str) -> String {
    let hosts = list.split(',').map(|host| {
        let host = host.trim();
        let host = host
            .strip_prefix('*')
            .filter(|rest| rest.starts_with('.'))
            .unwrap_or(host);
        host.strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(host)
    });
    hosts.collect::<Vec<_>>().join(",")
}

fn with_trust(
    builder: ClientBuilder,
    settings: &HttpSettings,
    trust: Trust,
) -> Result<ClientBuilder, ProviderError> {
    if trust == Trust::Nobody {
        return Ok(builder.tls_certs_only([]));
    }
    let mut builder = builder;
    if let Some(path) = &settings.extra_certificates {
        match certificates(path) {
            Ok(extra) => builder = builder.tls_certs_merge(extra),
            // The variable belongs to other programs too; a stale one must not stop every call.
            Err(detail) => tracing::warn!("NODE_EXTRA_CA_CERTS is ignored: {detail}"),
        }
    }
    if let Some(path) = &settings.trusted_certificates {
        let trusted = certificates(path).map_err(|detail| {
            ProviderError::misconfigured(format!(
                "SSL_CERT_FILE cannot be used: {detail}; correct or unset the variable"
            ))
        })?;
        builder = builder.tls_certs_only(trusted);
    }
    Ok(builder)
}

fn certificates(path: &Path) -> Result<Vec<Certificate>, String> {
    let pem = std::fs::read(path)
        .map_err(|failure| format!("{} cannot be read: {failure}", path.display()))?;
    let found = Certificate::from_pem_bundle(&pem)
        .map_err(|failure| format!("{} is not a PEM file: {}", path.display(), causes(&failure)))?;
    if found.is_empty() {
        return Err(format!("{} holds no certificate", path.display()));
    }
    Ok(found)
}

fn failed_before_reply(failure: &reqwest::Error, connect_timeout: Duration) -> ProviderError {
    if failure.is_timeout() {
        return ProviderError::Timeout {
            phase: TimeoutPhase::Connect,
            limit: connect_timeout,
        };
    }
    if failure.is_builder() {
        return ProviderError::misconfigured(format!(
            "the request could not be built: {}",
            causes(failure)
        ));
    }
    ProviderError::network(causes(failure))
}

/// Writes out the innermost cause, which names what happened; the outer texts repeat the address.
fn causes(failure: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = failure;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
