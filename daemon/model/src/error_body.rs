//! Reads what providers put into an error response and decides which kind of error it is.
//!
//! `endpoint` gives it the status, headers and body of a refused request; `vendor_api` gives it the
//! documents of a reply, which may hold an error. Only this file knows how vendors word errors.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::error::{ErrorKind, ProviderError, Rejection};
use super::secret::Redactor;
use super::wait_hint;

/// How much of a provider's message is kept, in characters.
const LONGEST_MESSAGE: usize = 2000;

/// Phrases with which vendors say that the conversation is too long for the model.
const CONTEXT_PHRASES: [&str; 18] = [
    "context length",
    "context_length",
    "context window",
    "context_window",
    "context limit",
    "context size",
    "context_size",
    "maximum context",
    "prompt is too long",
    "prompt too long",
    "maximum prompt length",
    "max_prompt_tokens",
    "prompt token count",
    "input is too long",
    "input token count",
    "too many input tokens",
    "reduce the length of the messages",
    "exceeds the model's maximum",
];

/// Codes and phrases that mean "no money or allowance left", whatever the status.
const QUOTA_CODES: [&str; 6] = [
    "billing_error",
    "insufficient_quota",
    "quota_exceeded",
    "billing_hard_limit_reached",
    "billing_not_active",
    "credit_balance_too_low",
];
const QUOTA_PHRASES: [&str; 2] = ["credit balance is too low", "exceeded your current quota"];

/// Codes and types with which an error inside a reply says what a status would have said.
const RATE_LIMIT_WORDS: [&str; 3] = ["rate_limit", "too_many_requests", "resource_exhausted"];
const AUTHENTICATION_WORDS: [&str; 4] = [
    "authentication_error",
    "invalid_api_key",
    "permission_error",
    "unauthorized",
];
const QUERY_WORDS: [&str; 4] = [
    "invalid_request",
    "invalid_argument",
    "invalid_prompt",
    "bad_request",
];

/// Builds the error for a response whose status is not a success.
pub(super) fn refused(
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    redactor: &Redactor,
) -> ProviderError {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let mut said = match &parsed {
        Some(json) => VendorError::from_json(json),
        None => VendorError::from_text(&String::from_utf8_lossy(body)),
    };
    if (300..400).contains(&status) {
        let target = headers
            .get("location")
            .and_then(|value| value.to_str().ok())
            .unwrap_or("another address");
        said.message =
            format!("it redirects to {target}; use that address as the base URL if you trust it");
    }
    if said.message.is_empty() {
        said.message.push_str("no explanation was given");
    }
    reject(Some(status), said, headers, redactor)
}

/// Builds the error for an error object inside an otherwise successful response.
pub(super) fn reported(error: &Value, headers: &HeaderMap, redactor: &Redactor) -> ProviderError {
    let said = VendorError::from_error(error);
    // Gateways that had already answered 200 put the status of the real error into `code`.
    let status = said.number.filter(|number| (400..600).contains(number));
    reject(status, said, headers, redactor)
}

/// Finds the error in a document that came with a success status.
///
/// Most vendors put the error into `error`. Some send a document that is the error, and the
/// responses format puts it into the response that failed.
pub(super) fn found_in(document: &Value) -> Option<&Value> {
    fn error_of(holder: &Value) -> Option<&Value> {
        holder.get("error").filter(|error| !error.is_null())
    }
    let kind = document.get("type").and_then(Value::as_str);
    if let Some(error) = error_of(document) {
        return Some(error);
    }
    if kind == Some("error") {
        return Some(document);
    }
    let response = document.get("response")?;
    error_of(response).or((kind == Some("response.failed")).then_some(response))
}

/// Finds the id under which the provider can trace a request.
pub(super) fn call_id(headers: &HeaderMap) -> Option<String> {
    [
        "x-github-request-id",
        "x-request-id",
        "request-id",
        "apim-request-id",
    ]
    .iter()
    .find_map(|name| headers.get(*name))
    .and_then(|value| value.to_str().ok())
    .filter(|value| !value.is_empty())
    .map(str::to_owned)
}

fn reject(
    status: Option<u16>,
    said: VendorError,
    headers: &HeaderMap,
    redactor: &Redactor,
) -> ProviderError {
    let kind = classify(status, &said);
    ProviderError::Rejected(Box::new(Rejection {
        kind,
        status,
        message: shorten(&redactor.clean(&said.message)),
        code: said.code.map(|code| redactor.clean(&code)),
        retry_after: wait_hint::from_headers(headers, kind),
        provider_call_id: call_id(headers),
    }))
}

/// The parts of an error that matter, wherever the vendor put them.
#[derive(Debug, Default)]
struct VendorError {
    message: String,
    code: Option<String>,
    /// The vendor's class of error, beside its code.
    class: Option<String>,
    /// A code that is a number.
    number: Option<u16>,
}

impl VendorError {
    fn from_text(text: &str) -> Self {
        Self {
            message: text.trim().to_owned(),
            ..Self::default()
        }
    }

    fn from_json(json: &Value) -> Self {
        // Some gateways wrap the error object into an array of one.
        let json = json
            .as_array()
            .and_then(|list| list.first())
            .unwrap_or(json);
        if let Some(error) = json.get("error").or_else(|| json.pointer("/errors/0")) {
            let mut said = Self::from_error(error);
            if said.message.is_empty() {
                said.message = first_text(json, &["/message", "/detail"]);
            }
            return said;
        }
        Self::from_error(json)
    }

    fn from_error(error: &Value) -> Self {
        if let Some(text) = error.as_str() {
            return Self::from_text(text);
        }
        let word = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut message = first_text(
            error,
            &["/message", "/detail", "/detail/0/msg", "/error_description"],
        );
        if message.is_empty() && !error.is_null() {
            message = error.to_string();
        }
        Self {
            message,
            code: word("code").or_else(|| word("status")),
            class: word("type"),
            number: error
                .get("code")
                .and_then(Value::as_u64)
                .and_then(|code| u16::try_from(code).ok()),
        }
    }

    fn has_word(&self, words: &[&str]) -> bool {
        [&self.code, &self.class].into_iter().flatten().any(|said| {
            let said = said.to_lowercase();
            words.iter().any(|word| said.contains(word))
        })
    }

    fn has_phrase(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
    }
}

fn first_text(json: &Value, pointers: &[&str]) -> String {
    pointers
        .iter()
        .filter_map(|pointer| json.pointer(pointer).and_then(Value::as_str))
        .map(str::trim)
        .find(|text| !text.is_empty())
        .unwrap_or_default()
        .to_owned()
}

fn classify(status: Option<u16>, said: &VendorError) -> ErrorKind {
    if status == Some(402) || said.has_word(&QUOTA_CODES) || said.has_phrase(&QUOTA_PHRASES) {
        return ErrorKind::Quota;
    }
    let may_be_input = matches!(status, None | Some(400 | 413 | 422));
    if may_be_input && (said.has_phrase(&CONTEXT_PHRASES) || said.has_word(&CONTEXT_PHRASES)) {
        return ErrorKind::ContextLimit;
    }
    if matches!(status, None | Some(400 | 404)) && names_unknown_model(said) {
        return ErrorKind::ModelNotFound;
    }
    match status {
        Some(401 | 403) => ErrorKind::Authentication,
        Some(429) => ErrorKind::RateLimit,
        // 529 is how one vendor says that it is overloaded.
        Some(500..) => ErrorKind::Server,
        // One vendor answers 413 when a single request exceeds the tokens of a minute.
        None | Some(413) if said.has_word(&RATE_LIMIT_WORDS) => ErrorKind::RateLimit,
        None if said.has_word(&AUTHENTICATION_WORDS) => ErrorKind::Authentication,
        None if !said.has_word(&QUERY_WORDS) => ErrorKind::Server,
        None | Some(_) => ErrorKind::Query,
    }
}

fn names_unknown_model(said: &VendorError) -> bool {
    said.has_word(&["model_not_found", "model_not_supported"])
        || (said.has_word(&["not_found_error"]) && said.message.starts_with("model:"))
        || (said.message.to_lowercase().starts_with("model ")
            && said.has_phrase(&["not found", "does not exist"]))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests;
