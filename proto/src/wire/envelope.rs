//! JSON-RPC 2.0 envelopes: parses a frame as request, notification or response, by the members it
//! has, and writes our own messages. Called by the pump and the peer. Never looks into params or
//! results and knows no method.

use crate::parse_error::plain;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The frame is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a valid request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method has no handler.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The params do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The handler failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// The caller cancelled the request.
pub const REQUEST_CANCELLED: i64 = -32800;
/// Too many requests are running.
pub const OVERLOADED: i64 = -32001;

/// The id of a request, kept as the JSON text (a number or a string) the caller wrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Returns the id as JSON text, exactly as it was sent.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Returns the id as a number, when it is an unsigned one.
    pub fn as_number(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// Reads an id; `None` when the JSON is neither a number nor a string.
    pub(super) fn from_raw(raw: &RawValue) -> Option<Self> {
        match raw.get().bytes().next() {
            Some(b'"' | b'-' | b'0'..=b'9') => Some(Self(raw.get().into())),
            Some(_) | None => None,
        }
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The error member of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl ErrorObject {
    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

/// A call that gets exactly one response.
#[derive(Clone, Debug)]
pub struct Request {
    pub id: RequestId,
    pub method: String,
    pub params: Option<Box<RawValue>>,
}

/// A message that gets no response.
#[derive(Clone, Debug)]
pub struct Notification {
    pub method: String,
    pub params: Option<Box<RawValue>>,
}

/// The response to a request.
#[derive(Clone, Debug)]
pub struct Response {
    /// `None` when the other side could not tell which request it answers.
    pub id: Option<RequestId>,
    pub outcome: Result<Box<RawValue>, ErrorObject>,
}

/// One incoming message.
#[derive(Clone, Debug)]
pub enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// Why a frame is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The frame is not UTF-8 or not JSON.
    #[error("the message is not valid JSON: {0}")]
    NotJson(String),
    /// The frame is an array.
    #[error("batches are not supported: send each message in a frame of its own")]
    Batch,
    /// The JSON has not the members of a request, a notification or a response.
    #[error("the message is not a JSON-RPC 2.0 message: {reason}")]
    NotMessage {
        id: Option<RequestId>,
        reason: String,
    },
}

impl EnvelopeError {
    /// Returns the id of the request, if it could be read.
    pub fn id(&self) -> Option<&RequestId> {
        match self {
            Self::NotMessage { id, .. } => id.as_ref(),
            Self::NotJson(_) | Self::Batch => None,
        }
    }

    /// Returns the error to respond with.
    pub fn to_object(&self) -> ErrorObject {
        let code = match self {
            Self::NotJson(_) => PARSE_ERROR,
            Self::Batch | Self::NotMessage { .. } => INVALID_REQUEST,
        };
        ErrorObject::new(code, self.to_string())
    }
}

#[derive(Deserialize)]
struct Members<'a> {
    jsonrpc: Option<String>,
    method: Option<String>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Keeps an explicit `null`, which `Option` alone would take for an absent member.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Reads one frame.
pub fn parse(frame: &[u8]) -> Result<Message, EnvelopeError> {
    let text =
        std::str::from_utf8(frame).map_err(|error| EnvelopeError::NotJson(error.to_string()))?;
    // A derived struct would also accept an array, member by member.
    if text.trim_start().starts_with('[') {
        return Err(EnvelopeError::Batch);
    }
    let members: Members<'_> = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            EnvelopeError::NotMessage {
                id: None,
                reason: plain(&error),
            }
        } else {
            EnvelopeError::NotJson(plain(&error))
        }
    })?;
    members.into_message()
}

/// What the beginning of a message tells of it, if it is not read as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageHead {
    /// `None` if the id comes after a member that does not end in the beginning.
    pub id: Option<RequestId>,
    /// Whether the message is the response to a request of ours.
    pub is_response: bool,
}

/// Reads the head of a message from the beginning of its text.
pub(super) fn message_head(begun: &[u8]) -> MessageHead {
    let mut head = MessageHead::default();
    read_head(begun, &mut head);
    head
}

/// Reads members until one does not end in these bytes. Returns `None` where it stops.
fn read_head(begun: &[u8], head: &mut MessageHead) -> Option<()> {
    let mut rest = begun.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        let name: String = next_value(&mut rest)?;
        head.is_response |= matches!(name.as_str(), "result" | "error");
        rest = rest.trim_ascii_start().strip_prefix(b":")?;
        let value: &RawValue = next_value(&mut rest)?;
        rest = rest.trim_ascii_start();
        let (end, after) = rest.split_first()?;
        if name == "id" && matches!(end, b',' | b'}') {
            head.id = RequestId::from_raw(value);
        }
        rest = (*end == b',').then_some(after)?;
    }
}

/// Takes one JSON value from the beginning of a text.
fn next_value<'a, T: Deserialize<'a>>(rest: &mut &'a [u8]) -> Option<T> {
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<T>();
    let value = values.next()?.ok()?;
    *rest = rest.get(values.byte_offset()..)?;
    Some(value)
}

impl Members<'_> {
    fn into_message(self) -> Result<Message, EnvelopeError> {
        let id = self.id.and_then(RequestId::from_raw);
        let refuse = |id: Option<RequestId>, reason: &str| EnvelopeError::NotMessage {
            id,
            reason: reason.to_owned(),
        };
        if self.jsonrpc.is_some_and(|version| version != "2.0") {
            return Err(refuse(id, "`jsonrpc` is not \"2.0\""));
        }
        let params = self.params.map(ToOwned::to_owned);
        match (self.method, self.id) {
            (Some(method), None) => Ok(Message::Notification(Notification { method, params })),
            (Some(method), Some(_)) => match id {
                Some(id) => Ok(Message::Request(Request { id, method, params })),
                None => Err(refuse(None, "`id` is neither a number nor a string")),
            },
            (None, Some(_)) => {
                let outcome = match (self.error, self.result) {
                    (Some(error), _) => Err(read_error(error)),
                    (None, Some(result)) => Ok(result.to_owned()),
                    (None, None) => {
                        return Err(refuse(id, "it has no `method`, `result` or `error`"));
                    }
                };
                Ok(Message::Response(Response { id, outcome }))
            }
            (None, None) => Err(refuse(None, "it has neither `method` nor `id`")),
        }
    }
}

/// Parses an error object. A malformed one still ends the call; it becomes the error's data.
fn read_error(raw: &RawValue) -> ErrorObject {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| ErrorObject {
        code: INTERNAL_ERROR,
        message: "the other side answered with an error that has no code and message".to_owned(),
        data: serde_json::from_str(raw.get()).ok(),
    })
}

/// Serialises a complete notification once, so that many peers can be sent the same bytes.
///
/// Params that cannot be written as JSON are logged and yield no bytes; pushing those sends nothing.
pub fn notification<P: Serialize + ?Sized>(method: &str, params: &P) -> Bytes {
    call(None, method, params).unwrap_or_else(|error| {
        tracing::error!(method, %error, "a notification cannot be written as JSON");
        Bytes::new()
    })
}

/// Serialises a request, or a notification when there is no id; params that are `null` are left out.
pub(super) fn call<P: Serialize + ?Sized>(
    id: Option<u64>,
    method: &str,
    params: &P,
) -> serde_json::Result<Bytes> {
    let mut out = br#"{"jsonrpc":"2.0","#.to_vec();
    if let Some(id) = id {
        out.extend_from_slice(format!("\"id\":{id},").as_bytes());
    }
    out.extend_from_slice(b"\"method\":");
    serde_json::to_writer(&mut out, method)?;
    let without_params = out.len();
    out.extend_from_slice(b",\"params\":");
    let start = out.len();
    serde_json::to_writer(&mut out, params)?;
    if out.get(start..) == Some(b"null") {
        out.truncate(without_params);
    }
    Ok(finish(out))
}

/// Serialises a response that carries a result.
pub(super) fn result<T: Serialize + ?Sized>(
    id: &RequestId,
    value: &T,
) -> serde_json::Result<Bytes> {
    let mut out = begin_response(Some(id));
    out.extend_from_slice(b"\"result\":");
    serde_json::to_writer(&mut out, value)?;
    Ok(finish(out))
}

/// Serialises a response that carries an error. It has no id if that of the frame is unknown.
pub(super) fn error(id: Option<&RequestId>, error: &ErrorObject) -> Bytes {
    let mut out = begin_response(id);
    let code = error.code;
    let message = serde_json::Value::from(error.message.as_str());
    out.extend_from_slice(format!("\"error\":{{\"code\":{code},\"message\":{message}").as_bytes());
    if let Some(data) = &error.data {
        out.extend_from_slice(format!(",\"data\":{data}").as_bytes());
    }
    out.push(b'}');
    finish(out)
}

/// Serialises an error that answers no request: the reason why a connection ends.
pub fn refusal(reason: &ErrorObject) -> Bytes {
    error(None, reason)
}

fn begin_response(id: Option<&RequestId>) -> Vec<u8> {
    let id = id.map_or("null", RequestId::as_json);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},").into_bytes()
}

/// Closes the object and frees spare capacity, because the bytes may wait in a queue for long.
fn finish(mut out: Vec<u8>) -> Bytes {
    out.push(b'}');
    out.into_boxed_slice().into()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
