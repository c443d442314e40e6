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
    let exchange = async {
        let sent = launch.http.send(request).await;
        let response = sent.map_err(|error| HookFailure::failed(error.to_string()))?;
        answer(response).await
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

async fn answer(response: HttpResponse) -> Result<HookOutput, HookFailure> {
    let mut text = Vec::new();
    let mut body = response.body;
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| HookFailure::failed(error.to_string()))?;
        text.extend_from_slice(&chunk);
        if text.len() > LONGEST_ANSWER {
            return Err(HookFailure::failed(format!(
                "the answer has more than {LONGEST_ANSWER} bytes"
            )));
        }
    }
    if !(200..300).contains(&response.status) {
        return Err(HookFailure::failed(format!(
            "the answer has the status {}",
            response.status
        )));
    }
    let text = String::from_utf8_lossy(&text);
    match text.trim() {
        "" => Ok(HookOutput::default()),
        text => HookOutput::read(text),
    }
}
