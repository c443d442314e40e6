//! Sends the payload of a hook to an address, and reads its answer.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::StreamExt;
use serde_json::Value;
use tokio::time::timeout;

use super::command::expand;
use super::context::HookContext;
use super::handlers::FileHook;
use super::output::{HookFailure, HookOutput};
use loopd_model::error::ProviderError;
use loopd_model::http::{HeaderMap, HttpCarrier, HttpMethod, HttpRequest, HttpResponse, Url};

/// The most bytes of an answer.
const LONGEST_ANSWER: usize = 1024 * 1024;

pub(super) async fn post(
    context: &HookContext,
    hook: &FileHook,
    url: &str,
    headers: &BTreeMap<String, String>,
    allowed_env: &[String],
    payload: &Value,
) -> Result<HookOutput, HookFailure> {
    let Some(launch) = &context.launch else {
        return Err(HookFailure::failed("no client is there to send it for"));
    };
    let request = request(launch.env(), url, headers, allowed_env, payload)?;
    // What follows the path may be secret.
    let url = shown(&request.url);
    let url = url.as_str();
    let exchange = async {
        let sent = launch.http.send(request).await;
        let response = sent.map_err(|error| HookFailure::failed(describe(url, &error)))?;
        answer(url, response).await
    };
    let limit = hook.definition.timeout;
    tokio::select! {
        answer = timeout(limit, exchange) => answer.unwrap_or_else(|_| {
            Err(HookFailure::failed(format!(
                "{url} did not answer within {} s",
                limit.as_secs_f64()
            )))
        }),
        () = context.cancel.cancelled() => {
            Err(HookFailure::failed("the turn was stopped while the address was asked"))
        }
    }
}

fn request(
    env: &BTreeMap<String, String>,
    url: &str,
    headers: &BTreeMap<String, String>,
    allowed_env: &[String],
    payload: &Value,
) -> Result<HttpRequest, HookFailure> {
    let wrong =
        |what: &str, why: String| HookFailure::failed(format!("{what} cannot be used: {why}"));
    // Headers may hold the variables that the hook names, secrets included, and no others.
    let allowed = |(name, _): &(&String, &String)| allowed_env.contains(name);
    let visible = env.iter().filter(allowed);
    let visible: BTreeMap<String, String> = visible
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut map = HeaderMap::new();
    let json = ("content-type".to_owned(), "application/json".to_owned());
    for (name, value) in std::iter::once((&json.0, &json.1)).chain(headers) {
        let header = name.parse::<loopd_model::http::HeaderName>();
        let header = header.map_err(|error| wrong(name, error.to_string()))?;
        let value = expand(value, &visible).parse::<loopd_model::http::HeaderValue>();
        let mut value = value.map_err(|error| wrong(name, error.to_string()))?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(HttpRequest {
        method: HttpMethod::Post,
        url: Url::parse(url).map_err(|error| wrong(url, error.to_string()))?,
        headers: map,
        body: Bytes::from(payload.to_string()),
    })
}

/// Returns an address without what may be secret in it.
fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}"));
    format!(
        "{}://{host}{}{}",
        url.scheme(),
        port.unwrap_or_default(),
        url.path()
    )
}

/// Says why an exchange with an address failed, in terms of the address.
fn describe(url: &str, error: &ProviderError) -> String {
    match error {
        ProviderError::Network { detail } => {
            // The client names the address, too.
            let detail = detail.strip_prefix(url).unwrap_or(detail);
            let detail = detail.trim_start_matches([':', ' ']);
            format!("{url} could not be reached: {detail}")
        }
        ProviderError::Truncated { detail } => {
            format!("the answer of {url} broke off before its end: {detail}")
        }
        ProviderError::Timeout { limit, .. } => {
            format!("{url} did not answer within {} s", limit.as_secs_f64())
        }
        ProviderError::TooLarge { limit } => {
            format!("the answer of {url} has more than {limit} bytes")
        }
        ProviderError::Malformed { detail } => {
            format!("the answer of {url} could not be understood: {detail}")
        }
        ProviderError::Misconfigured { detail } => format!("{url} cannot be used: {detail}"),
        ProviderError::Rejected(rejection) => format!("{url} refused: {rejection}"),
        ProviderError::Cancelled => format!("the exchange with {url} was given up"),
    }
}

async fn answer(url: &str, response: HttpResponse) -> Result<HookOutput, HookFailure> {
    let mut text = Vec::new();
    let mut body = response.body;
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| HookFailure::failed(describe(url, &error)))?;
        text.extend_from_slice(&chunk);
        if text.len() > LONGEST_ANSWER {
            return Err(HookFailure::failed(format!(
                "the answer of {url} has more than {LONGEST_ANSWER} bytes"
            )));
        }
    }
    if !(200..300).contains(&response.status) {
        return Err(HookFailure::failed(format!(
            "the answer of {url} has the status {}",
            response.status
        )));
    }
    let text = String::from_utf8_lossy(&text);
    match text.trim() {
        "" => Ok(HookOutput::default()),
        text => HookOutput::read(text),
    }
}
