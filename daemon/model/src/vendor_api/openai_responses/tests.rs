//! Replies in the responses format, whole and in events.

use serde_json::json;

use super::*;
use crate::error::{ErrorKind, ProviderError};
use crate::opaque::{self, Format};
use crate::test_server::Scripted;
use crate::vendor_api::tests::{self, Collected, RESPONSES, event};
use loopd_kernel::model::{Delivery, Finish, ModelReply, Usage};

async fn exchange(
    delivery: Delivery,
    reply: Scripted,
) -> (Result<ModelReply, ProviderError>, Collected) {
    tests::exchange(RESPONSES, delivery, reply).await
}

fn said(text: &str) -> Value {
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
}

fn called(arguments: &str) -> Value {
    json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "bash", "arguments": arguments })
}

fn thought() -> Value {
    json!({ "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "hm" }], "encrypted_content": "XX" })
}

fn response(output: &[Value]) -> Value {
    json!({
        "id": "resp_1", "object": "response", "status": "completed", "error": null, "incomplete_details": null,
        "output": output,
        "usage": { "input_tokens": 11, "output_tokens": 7, "input_tokens_details": { "cached_tokens": 4 },
                   "output_tokens_details": { "reasoning_tokens": 3 } },
    })
}

fn added(index: u64, item: &Value) -> String {
    event(&json!({ "type": "response.output_item.added", "output_index": index, "item": item }))
}

fn delta(kind: &str, index: u64, delta: &str) -> String {
    event(
        &json!({ "type": format!("response.{kind}.delta"), "output_index": index, "delta": delta }),
    )
}

fn completed(output: &[Value]) -> String {
    event(&json!({ "type": "response.completed", "response": response(output) }))
}

#[tokio::test]
async fn a_whole_reply_has_thinking_text_calls_and_usage() {
    let output = [thought(), said("I look."), called("{\"command\":\"ls\"}")];
    let reply = Scripted::json(200, &response(&output));
    let (result, _) = exchange(Delivery::Whole, reply).await;
    let reply = result.unwrap();
    assert_eq!(reply.turn.text, "I look.");
    assert_eq!(reply.turn.calls[0].id.as_str(), "call_1");
    assert_eq!(reply.turn.calls[0].arguments, json!({ "command": "ls" }));
    assert_eq!(reply.finish, Finish::ToolCalls);
    assert_eq!(
        reply.usage,
        Usage {
            input_tokens: 11,
            output_tokens: 7,
            cache_read_tokens: 4,
            cache_write_tokens: 0,
            reasoning_tokens: 3,
            nano_credits: 0,
        }
    );
    let reasoning = reply.turn.reasoning.unwrap();
    assert_eq!(reasoning.text.as_deref(), Some("hm"));
    assert_eq!(
        opaque::unwrap(Format::Responses, Some(&reasoning)),
        [thought()]
    );
}

#[tokio::test]
async fn a_stream_brings_thinking_text_and_calls() {
    let unsealed = json!({ "type": "reasoning", "id": "rs_1", "summary": [] });
    let reply = Scripted::events([
        event(
            &json!({ "type": "response.created", "response": { "id": "resp_1", "error": null, "output": [] } }),
        ),
        added(0, &unsealed),
        delta("reasoning_summary_text", 0, "h"),
        delta("reasoning_summary_text", 0, "m"),
        added(1, &said("")),
        delta("output_text", 1, "I "),
        delta("output_text", 1, "look."),
        added(2, &called("")),
        delta("function_call_arguments", 2, "{\"command\""),
        delta("function_call_arguments", 2, ":\"ls\"}"),
        event(
            &json!({ "type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{\"command\":\"ls\"}" }),
        ),
        completed(&[thought(), said("I look."), called("{\"command\":\"ls\"}")]),
    ]);
    let (result, collected) = exchange(Delivery::Streamed, reply).await;
    let reply = result.unwrap();
    assert_eq!(collected.text, ["I ", "look."]);
    assert_eq!(collected.thinking, ["h", "m"]);
    assert_eq!(reply.turn.text, "I look.");
    assert_eq!(reply.turn.calls.len(), 1);
    assert_eq!(reply.usage.output_tokens, 7);
    assert!(reply.turn.reasoning.unwrap().opaque.is_some());
}

#[tokio::test]
async fn what_was_streamed_counts_when_the_end_does_not_repeat_it() {
    let reply = Scripted::events([
        added(0, &thought()),
        delta("output_text", 1, "hello"),
        added(2, &called("")),
        delta("function_call_arguments", 2, "{}"),
        completed(&[]),
    ]);
    let (result, _) = exchange(Delivery::Streamed, reply).await;
    let turn = result.unwrap().turn;
    assert_eq!(turn.text, "hello");
    assert_eq!(turn.calls[0].arguments, json!({}));
    assert!(turn.reasoning.unwrap().opaque.is_some());
}

#[tokio::test]
async fn an_incomplete_response_says_why() {
    let cases = [
        ("max_output_tokens", Finish::Length),
        ("content_filter", Finish::ContentFilter),
        ("tea_break", Finish::Unknown),
    ];
    for (reason, finish) in cases {
        let mut document = response(&[said("half")]);
        document["status"] = "incomplete".into();
        document["incomplete_details"] = json!({ "reason": reason });
        let (whole, _) = exchange(Delivery::Whole, Scripted::json(200, &document)).await;
        assert_eq!(whole.unwrap().finish, finish);
        let last = event(&json!({ "type": "response.incomplete", "response": document }));
        let (streamed, _) = exchange(Delivery::Streamed, Scripted::events([last])).await;
        assert_eq!(streamed.unwrap().finish, finish);
    }
}

#[tokio::test]
async fn errors_inside_a_reply_have_their_kind() {
    let failed = |code: &str| {
        let error = json!({ "code": code, "message": "no" });
        let response = json!({ "id": "r", "status": "failed", "error": error, "output": [] });
        json!({ "type": "response.failed", "response": response })
    };
    let cases = [
        (failed("server_error"), ErrorKind::Server, true),
        (failed("rate_limit_exceeded"), ErrorKind::RateLimit, true),
        (
            failed("context_length_exceeded"),
            ErrorKind::ContextLimit,
            false,
        ),
        (failed("invalid_prompt"), ErrorKind::Query, false),
        (
            json!({ "type": "error", "code": "insufficient_quota", "message": "no money" }),
            ErrorKind::Quota,
            false,
        ),
        (
            json!({ "type": "error", "error": { "type": "server_error", "message": "oh" } }),
            ErrorKind::Server,
            true,
        ),
    ];
    for (document, kind, again) in cases {
        let reply = Scripted::events([delta("output_text", 0, "a"), event(&document)]);
        let (result, _) = exchange(Delivery::Streamed, reply).await;
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind(), error.is_retryable()),
            (kind, again),
            "{document}"
        );
    }
    let whole = failed("server_error")["response"].clone();
    let (result, _) = exchange(Delivery::Whole, Scripted::json(200, &whole)).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Server);
}

#[test]
fn the_summary_of_the_reasoning_is_as_the_session_wants_it() {
    let asked = |effort: Option<&str>, summary: Option<&str>| {
        let mut request = tests::request(Delivery::Whole);
        request.reasoning_effort = effort.map(str::to_owned);
        request.reasoning_summary = summary.map(str::to_owned);
        let body = request::body(&request, None).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        body.get("reasoning").cloned().unwrap_or(Value::Null)
    };
    let auto = json!({"effort": "low", "summary": "auto"});
    assert_eq!(asked(Some("low"), None), auto);
    assert_eq!(asked(Some("low"), Some("none")), json!({"effort": "low"}));
    assert_eq!(
        asked(None, Some("detailed")),
        json!({"summary": "detailed"})
    );
    assert_eq!(asked(None, None), Value::Null);
}
