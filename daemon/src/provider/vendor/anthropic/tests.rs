//! Whole exchanges with a server on loopback.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::kernel::model::{Delivery, Finish, ModelMessage, Part, Usage};
use crate::provider::NoDeltas;
use crate::provider::endpoint::Credential;
use crate::provider::error::ErrorKind;
use crate::provider::http_client::{HttpClient, HttpSettings};
use crate::provider::opaque::{self, Format};
use crate::provider::secret::Secret;
use crate::provider::test_server::{Ending, Scripted, TestServer};

const KEY: &str = "key-that-must-not-leak";

fn provider(server: &TestServer, below: &str) -> Anthropic {
    let carrier = Arc::new(HttpClient::new(HttpSettings::default()));
    let credential = Credential::ApiKeyHeader {
        name: "x-api-key".to_owned(),
        key: Secret::new(KEY),
    };
    let base = format!("{}{below}", server.url());
    Anthropic::new(
        "test",
        Endpoint::new(&base, credential, &[], carrier).unwrap(),
    )
}

fn request(delivery: Delivery) -> ModelRequest {
    ModelRequest {
        model: "claude-sonnet-4-5".to_owned(),
        messages: vec![ModelMessage::User(vec![Part::Text("hi".to_owned())])],
        tools: Vec::new(),
        delivery,
        reasoning_effort: None,
        headers: Vec::new(),
    }
}

#[derive(Default, Debug, PartialEq)]
struct Heard {
    text: Vec<String>,
    thinking: Vec<String>,
}

impl DeltaSink for Heard {
    fn text(&mut self, delta: &str) {
        self.text.push(delta.to_owned());
    }
    fn reasoning(&mut self, delta: &str) {
        self.thinking.push(delta.to_owned());
    }
    fn received(&mut self, _total_bytes: u64) {}
}

/// Serves one reply to one call.
async fn exchange(
    delivery: Delivery,
    reply: Scripted,
) -> (Result<ModelReply, ProviderError>, Heard) {
    let server = TestServer::start([reply]).await;
    let mut heard = Heard::default();
    let result = provider(&server, "")
        .call(&request(delivery), &mut heard)
        .await;
    (result, heard)
}

fn message(content: &Value, stop: &str) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": stop,
        "usage": { "input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20 },
    })
}

fn event(document: &Value) -> String {
    format!(
        "event: {}\ndata: {document}\n\n",
        document["type"].as_str().unwrap()
    )
}

fn block(index: u64, block: Value) -> String {
    event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
}

fn delta(index: u64, delta: Value) -> String {
    event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

fn start() -> String {
    event(&json!({ "type": "message_start", "message": {
        "id": "msg_1", "content": [], "stop_reason": null, "usage": { "input_tokens": 10, "output_tokens": 1 } } }))
}

fn stop(reason: &str) -> String {
    event(
        &json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 7 } }),
    )
}

#[tokio::test]
async fn a_whole_reply_has_text_usage_and_ids() {
    let content = json!([{ "type": "text", "text": "hello" }]);
    let reply = Scripted::json(200, &message(&content, "end_turn")).header("request-id", "req_9");
    let (result, heard) = exchange(Delivery::Whole, reply).await;
    let reply = result.unwrap();
    assert_eq!(reply.turn.text, "hello");
    assert_eq!(reply.finish, Finish::Stop);
    assert_eq!(reply.api_call_id.as_deref(), Some("msg_1"));
    assert_eq!(reply.provider_call_id.as_deref(), Some("req_9"));
    assert_eq!(
        reply.usage,
        Usage {
            input_tokens: 130,
            output_tokens: 5,
            cache_read_tokens: 100,
            cache_write_tokens: 20,
            reasoning_tokens: 0,
            nano_credits: 0,
        }
    );
    assert_eq!(heard, Heard::default());
}

#[tokio::test]
async fn the_address_may_name_the_version_or_not() {
    for below in ["", "/v1", "/v1/"] {
        let content = json!([{ "type": "text", "text": "a" }]);
        let server = TestServer::start([Scripted::json(200, &message(&content, "end_turn"))]).await;
        provider(&server, below)
            .call(&request(Delivery::Whole), &mut NoDeltas)
            .await
            .unwrap();
        let received = server.received().remove(0);
        assert_eq!(received.line, "POST /v1/messages", "{below}");
        assert_eq!(received.header("x-api-key"), Some(KEY));
        assert_eq!(received.header("anthropic-version"), Some(VERSION));
        assert_eq!(received.header("authorization"), None);
        assert_eq!(received.json()["model"], "claude-sonnet-4-5");
    }
}

#[tokio::test]
async fn a_stream_brings_thinking_text_and_calls() {
    let reply = Scripted::events([
        start(),
        event(&json!({ "type": "ping" })),
        block(
            0,
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
        ),
        delta(
            0,
            json!({ "type": "thinking_delta", "thinking": "let me " }),
        ),
        delta(0, json!({ "type": "thinking_delta", "thinking": "see" })),
        delta(0, json!({ "type": "signature_delta", "signature": "c2ln" })),
        block(1, json!({ "type": "text", "text": "" })),
        delta(1, json!({ "type": "text_delta", "text": "I look" })),
        delta(1, json!({ "type": "text_delta", "text": "." })),
        event(&json!({ "type": "content_block_stop", "index": 1 })),
        block(
            2,
            json!({ "type": "tool_use", "id": "toolu_1", "name": "bash", "input": {} }),
        ),
        delta(
            2,
            json!({ "type": "input_json_delta", "partial_json": "{\"comm" }),
        ),
        delta(
            2,
            json!({ "type": "input_json_delta", "partial_json": "and\":\"ls\"}" }),
        ),
        block(
            3,
            json!({ "type": "tool_use", "id": "toolu_2", "name": "now", "input": {} }),
        ),
        stop("tool_use"),
        event(&json!({ "type": "message_stop" })),
    ]);
    let (result, heard) = exchange(Delivery::Streamed, reply).await;
    let reply = result.unwrap();
    assert_eq!(heard.text, ["I look", "."]);
    assert_eq!(heard.thinking, ["let me ", "see"]);
    assert_eq!(reply.turn.text, "I look.");
    assert_eq!(reply.finish, Finish::ToolCalls);
    let calls: Vec<_> = reply
        .turn
        .calls
        .iter()
        .map(|call| (call.id.as_str(), call.arguments.clone()))
        .collect();
    assert_eq!(
        calls,
        [
            ("toolu_1", json!({ "command": "ls" })),
            ("toolu_2", json!({}))
        ]
    );
    let reasoning = reply.turn.reasoning.unwrap();
    assert_eq!(reasoning.text.as_deref(), Some("let me see"));
    assert_eq!(
        opaque::unwrap(Format::Anthropic, reasoning.opaque.as_deref()),
        [json!({ "type": "thinking", "thinking": "let me see", "signature": "c2ln" })]
    );
    assert_eq!(
        (reply.usage.input_tokens, reply.usage.output_tokens),
        (10, 7)
    );
}

#[tokio::test]
async fn reasons_to_stop_are_told_apart() {
    let cases = [
        ("end_turn", Finish::Stop),
        ("stop_sequence", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("model_context_window_exceeded", Finish::Length),
        ("refusal", Finish::ContentFilter),
    ];
    for (word, finish) in cases {
        let content = json!([{ "type": "text", "text": "a" }]);
        let reply = Scripted::json(200, &message(&content, word));
        let (result, _) = exchange(Delivery::Whole, reply).await;
        assert_eq!(result.unwrap().finish, finish, "{word}");
    }
}

#[tokio::test]
async fn redacted_thinking_is_kept() {
    let secret = json!({ "type": "redacted_thinking", "data": "ZZZ" });
    let content = json!([secret, { "type": "text", "text": "a" }]);
    let (result, _) = exchange(
        Delivery::Whole,
        Scripted::json(200, &message(&content, "end_turn")),
    )
    .await;
    let reasoning = result.unwrap().turn.reasoning.unwrap();
    assert_eq!(reasoning.text, None);
    assert_eq!(
        opaque::unwrap(Format::Anthropic, reasoning.opaque.as_deref()),
        [secret]
    );
}

#[tokio::test]
async fn refusals_have_their_kind() {
    let cases = [
        (
            401,
            "authentication_error",
            "invalid x-api-key",
            ErrorKind::Authentication,
            false,
        ),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 1 > 0",
            ErrorKind::ContextLimit,
            false,
        ),
        (
            404,
            "not_found_error",
            "model: claude-x",
            ErrorKind::ModelNotFound,
            false,
        ),
        (
            429,
            "rate_limit_error",
            "slow down",
            ErrorKind::RateLimit,
            true,
        ),
        (403, "billing_error", "pay first", ErrorKind::Quota, false),
        (
            529,
            "overloaded_error",
            "Overloaded",
            ErrorKind::Server,
            true,
        ),
    ];
    for (status, class, text, kind, again) in cases {
        let body = json!({ "type": "error", "error": { "type": class, "message": text } });
        let (result, _) = exchange(Delivery::Whole, Scripted::json(status, &body)).await;
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind(), error.is_retryable()),
            (kind, again),
            "{class}"
        );
    }
}

#[tokio::test]
async fn an_error_inside_a_stream_ends_the_call() {
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let reply = Scripted::events([start(), event(&error)]);
    let (result, _) = exchange(Delivery::Streamed, reply).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server);
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_truncated() {
    for ending in [Ending::Complete, Ending::Cut] {
        let pieces = [
            start(),
            block(0, json!({ "type": "text", "text": "" })),
            delta(0, json!({ "type": "text_delta", "text": "a" })),
        ];
        let (result, _) =
            exchange(Delivery::Streamed, Scripted::events(pieces).ending(ending)).await;
        assert_eq!(
            result.unwrap_err().kind(),
            ErrorKind::Truncated,
            "{ending:?}"
        );
    }
}

#[tokio::test]
async fn a_finished_stream_needs_no_end() {
    let pieces = [
        start(),
        block(0, json!({ "type": "text", "text": "done" })),
        stop("end_turn"),
    ];
    let reply = Scripted::events(pieces).ending(Ending::Cut);
    let (result, heard) = exchange(Delivery::Streamed, reply).await;
    assert_eq!(result.unwrap().turn.text, "done");
    assert_eq!(heard.text, ["done"]);
}

#[tokio::test]
async fn the_models_are_listed() {
    let list = json!({ "data": [{ "id": "claude-sonnet-4-5", "display_name": "Sonnet" }] });
    let server = TestServer::start([Scripted::json(200, &list)]).await;
    let models = provider(&server, "").models().await.unwrap();
    assert_eq!(models[0].name, "Sonnet");
    assert!(models[0].vision);
    assert_eq!(server.received()[0].line, "GET /v1/models?limit=1000");
}
