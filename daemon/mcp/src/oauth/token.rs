//! Requests for tokens.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::client::{Client, ClientAuth};
use super::{OauthError, assertion, web};
use crate::port::HttpPort;

/// The longest text of an authorization server that is passed on.
const LONGEST_WHY: usize = 300;
/// The longest token.
const LONGEST_TOKEN: usize = 64 * 1024;
/// Errors of the protocol that say nothing about the token.
const PASSING: [&str; 3] = ["server_error", "temporarily_unavailable", "slow_down"];

/// The tokens of a login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    pub access: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<String>,
    /// When the access token ends, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
}

/// An answer with tokens.
pub(super) struct Granted {
    pub(super) tokens: Tokens,
    /// The scopes that were given, if the answer says so.
    pub(super) scopes: Option<Vec<String>>,
}

/// Asks for tokens. `form` is what the kind of the request needs.
pub(super) async fn request(
    http: &dyn HttpPort,
    (endpoint, issuer): (&Url, &str),
    client: &Client,
    form: &[(&str, &str)],
    now_ms: u64,
) -> Result<Granted, OauthError> {
    let mut form = form.to_vec();
    let mut authorization = None;
    let mut assertion = None;
    if client.auth == ClientAuth::PrivateKeyJwt {
        let key = client.key.as_deref().ok_or_else(|| {
            OauthError::Unusable("the private key of the program is missing".to_owned())
        })?;
        assertion = Some(assertion::about_program(key, &client.id, issuer, now_ms)?);
    }
    match (client.auth, &client.secret) {
        (ClientAuth::ClientSecretBasic, Some(secret)) => {
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", encoded(&client.id), encoded(secret));
            let header = format!("Basic {}", BASE64_STANDARD.encode(pair));
            authorization = HeaderValue::from_str(&header).ok();
        }
        (ClientAuth::ClientSecretPost, Some(secret)) => {
            form.push(("client_id", &client.id));
            form.push(("client_secret", secret));
        }
        (ClientAuth::PrivateKeyJwt, _) => {
            form.push(("client_id", &client.id));
            form.push(("client_assertion_type", assertion::KIND));
            form.push(("client_assertion", assertion.as_deref().unwrap_or_default()));
        }
        (ClientAuth::None | ClientAuth::ClientSecretBasic | ClientAuth::ClientSecretPost, None)
        | (ClientAuth::None, Some(_)) => form.push(("client_id", &client.id)),
    }
    // A statement that somebody else has signed says by itself whom it is about.
    form.retain(|(name, value)| *name != "client_id" || !value.is_empty());
    let answer = web::post_form(http, endpoint, &form, authorization).await?;
    read(&granted(&answer)?, now_ms)
}

/// Returns what an answer to a form says, if it grants something.
pub(super) fn granted(answer: &web::Answer) -> Result<Map<String, Value>, OauthError> {
    let answered = answer.object().unwrap_or_default();
    if !answer.is_success() || answered.contains_key("error") {
        return Err(refused(&answered, answer.status));
    }
    Ok(answered)
}

fn refused(answered: &Map<String, Value>, status: u16) -> OauthError {
    let text = |name: &str| answered.get(name).and_then(Value::as_str);
    let short = |text: &str| -> String {
        let letters = text.chars().filter(|letter| !letter.is_control());
        letters.take(LONGEST_WHY).collect()
    };
    match text("error") {
        Some(code) if !PASSING.contains(&code) => OauthError::Refused {
            code: short(code),
            why: short(text("error_description").unwrap_or_default()),
        },
        Some(code) => OauthError::Passing(format!("the authorization server says {}", short(code))),
        // Something in between answered, which says nothing about the token.
        None => OauthError::Passing(format!(
            "the authorization server answers with HTTP {status}"
        )),
    }
}

fn read(answered: &Map<String, Value>, now_ms: u64) -> Result<Granted, OauthError> {
    let text = |name: &str| answered.get(name).and_then(Value::as_str);
    let unusable =
        |what: &str| OauthError::Unusable(format!("the authorization server gave {what}"));
    let kind = text("token_type").unwrap_or("Bearer");
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(unusable("a token of a type other than Bearer"));
    }
    let is_token = |token: &&str| {
        !token.is_empty() && token.len() <= LONGEST_TOKEN && !token.chars().any(char::is_control)
    };
    let access = text("access_token").filter(is_token);
    let access = access.ok_or_else(|| unusable("no token"))?;
    // Some write the number as text.
    let seconds = answered.get("expires_in").and_then(|seconds| {
        let number = seconds.as_f64();
        number.or_else(|| seconds.as_str()?.parse().ok())
    });
    let seconds = seconds.filter(|seconds| *seconds >= 0.0);
    let seconds = seconds.map(std::time::Duration::try_from_secs_f64);
    let ends = seconds.and_then(Result::ok).map(|left| {
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        now_ms.saturating_add(left)
    });
    Ok(Granted {
        tokens: Tokens {
            access: access.to_owned(),
            refresh: text("refresh_token").filter(is_token).map(str::to_owned),
            expires_at_ms: ends,
        },
        scopes: text("scope").map(|scope| scope.split_whitespace().map(str::to_owned).collect()),
    })
}
