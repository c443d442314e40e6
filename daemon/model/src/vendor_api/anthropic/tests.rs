//! Replies of Anthropic, whole and in events.

use serde_json::json;

use super::*;
use crate::error::{ErrorKind, ProviderError};
use crate::opaque::{self, Format};
use crate::test_server::Scripted;
use crate::vendor_api::tests::{self, ANTHROPIC, Collected, event};
use loopd_kernel::model::{Delivery, Finish, ModelReply, Usage};

async fn exchange(
    delivery: Delivery,
    reply: Scripted,
) -> (Result<ModelReply, ProviderError>, Collected) {
    tests::exchange(ANTHROPIC, delivery, reply).await
}

fn message(content: &Value, stop: &str) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": stop,
        "usage": { "input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20 },
    })
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
async fn what_the_cache_gave_and_took_is_part_of_the_input() {
    let content = json!([{ "type": "text", "text": "hello" }]);
    let reply = Scripted::json(200, &message(&content, "end_turn"));
    let (result, _) = exchange(Delivery::Whole, reply).await;
    assert_eq!(
        result.unwrap().usage,
        Usage {
            input_tokens: 130,
            output_tokens: 5,
            cache_read_tokens: 100,
            cache_write_tokens: 20,
            reasoning_tokens: 0,
            nano_credits: 0,
        }
    );
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
    let (result, collected) = exchange(Delivery::Streamed, reply).await;
    let reply = result.unwrap();
    assert_eq!(collected.text, ["I look", "."]);
    assert_eq!(collected.thinking, ["let me ", "see"]);
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
        opaque::unwrap(Format::Anthropic, Some(&reasoning)),
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
        opaque::unwrap(Format::Anthropic, Some(&reasoning)),
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
