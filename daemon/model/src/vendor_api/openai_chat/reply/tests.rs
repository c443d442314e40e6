//! Replies of many servers, whole and in chunks.

use serde_json::json;

use super::*;
use crate::NoDeltas;
use crate::vendor_api::complete;
use crate::vendor_api::tests::{Collected, conversation};
use loopd_kernel::model::{ModelMessage, ToolCall};

fn built(reply: ChatReply) -> ModelReply {
    complete(reply.build(), &conversation("m", Vec::new()))
}

fn whole(document: Value) -> ModelReply {
    let mut reply = ChatReply::default();
    reply.take_whole(document, &mut NoDeltas).unwrap();
    built(reply)
}

fn streamed(chunks: Vec<Value>) -> (ModelReply, Collected) {
    let mut reply = ChatReply::default();
    let mut collected = Collected::default();
    let mut progress = Progress::Unfinished;
    for chunk in chunks {
        progress = reply.take_event(chunk, &mut collected).unwrap();
    }
    assert_eq!(progress, Progress::Finished);
    (built(reply), collected)
}

fn calls(reply: &ModelReply) -> Vec<(&str, &str, String)> {
    let calls = reply.turn.calls.iter();
    calls
        .map(|call| {
            (
                call.id.as_str(),
                call.name.as_str(),
                call.arguments.to_string(),
            )
        })
        .collect()
}

fn function(id: &str, name: &str, arguments: &Value) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

#[test]
fn a_plain_reply_is_read_with_its_counts() {
    let reply = whole(json!({
        "id": "chatcmpl-1",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "hi" }, "finish_reason": "stop" }],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "prompt_tokens_details": { "cached_tokens": 4 },
            "completion_tokens_details": { "reasoning_tokens": 3 },
            "cache_creation_input_tokens": 2,
        },
    }));
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 5,
        cache_read_tokens: 4,
        cache_write_tokens: 2,
        reasoning_tokens: 3,
        nano_credits: 0,
    };
    let turn = AssistantTurn {
        text: "hi".to_owned(),
        ..AssistantTurn::default()
    };
    let api_call_id = Some("chatcmpl-1".to_owned());
    assert_eq!(
        reply,
        ModelReply {
            turn,
            usage,
            api_call_id,
            ..ModelReply::default()
        }
    );
}

#[test]
fn several_choices_become_one_turn() {
    let reply = whole(json!({ "choices": [
        { "index": 0, "message": { "content": "Let me look." }, "finish_reason": "stop" },
        { "index": 0, "message": { "content": null, "tool_calls": [function("a", "view", &json!("{\"path\":1}"))] }, "finish_reason": "tool_calls" },
        { "index": 0, "message": { "content": " Again.", "tool_calls": [function("b", "grep", &json!("{}"))] }, "finish_reason": "tool_calls" },
    ] }));
    assert_eq!(reply.turn.text, "Let me look. Again.");
    assert_eq!(
        calls(&reply),
        [
            ("a", "view", "{\"path\":1}".to_owned()),
            ("b", "grep", "{}".to_owned())
        ]
    );
    assert_eq!(reply.finish, Finish::ToolCalls);
}

#[test]
fn arguments_of_every_shape_are_read() {
    let cases = [
        (json!("{\"a\": 1}"), json!({ "a": 1 })),
        (json!({ "a": 1 }), json!({ "a": 1 })),
        (json!(""), json!({})),
        (json!(" "), json!({})),
        (json!("null"), json!({})),
        (Value::Null, json!({})),
        (json!("{\"a\": "), json!("{\"a\": ")),
        (json!("plain"), json!("plain")),
    ];
    for (raw, expected) in cases {
        let message = json!({ "tool_calls": [function("a", "t", &raw)] });
        let reply = whole(json!({ "choices": [{ "message": message, "finish_reason": "stop" }] }));
        assert_eq!(reply.turn.calls[0].arguments, expected, "{raw}");
        assert_eq!(reply.finish, Finish::ToolCalls);
    }
}

#[test]
fn missing_and_repeated_ids_are_replaced() {
    let earlier = AssistantTurn {
        calls: vec![ToolCall {
            id: "call_0".into(),
            name: "t".to_owned(),
            arguments: json!({}),
        }],
        ..AssistantTurn::default()
    };
    let nothing = json!("");
    let list = [
        function("", "t", &nothing),
        function("x", "t", &nothing),
        function("x", "t", &nothing),
        function("call_0", "t", &nothing),
        json!({ "function": { "name": "t" } }),
    ];
    let mut reply = ChatReply::default();
    let document = json!({ "choices": [{ "message": { "tool_calls": list } }] });
    reply.take_whole(document, &mut NoDeltas).unwrap();
    let request = conversation("m", vec![ModelMessage::Assistant(earlier)]);
    let reply = complete(reply.build(), &request);
    let ids: Vec<&str> = reply
        .turn
        .calls
        .iter()
        .map(|call| call.id.as_str())
        .collect();
    assert_eq!(ids, ["call_1_0", "x", "call_1_1", "call_1_2", "call_1_3"]);
}

#[test]
fn finish_reasons_are_mapped() {
    let cases = [
        ("stop", Finish::Stop),
        ("length", Finish::Length),
        ("content_filter", Finish::ContentFilter),
        ("end_turn", Finish::Stop),
    ];
    for (reason, finish) in cases {
        let reply = whole(
            json!({ "choices": [{ "message": { "content": "x" }, "finish_reason": reason }] }),
        );
        assert_eq!(reply.finish, finish, "{reason}");
    }
}

#[test]
fn thinking_is_read_under_all_its_names() {
    for name in ["reasoning_text", "reasoning_content", "reasoning"] {
        let message = json!({ "content": "x", name: "hm", "reasoning_opaque": "0x" });
        let reply = whole(json!({ "choices": [{ "message": message }] }));
        let expected = Reasoning {
            text: Some("hm".to_owned()),
            opaque: Some("0x".to_owned()),
        };
        assert_eq!(reply.turn.reasoning, Some(expected));
    }
    let both = json!({ "reasoning_content": "hm", "reasoning": "hm" });
    let reply = whole(json!({ "choices": [{ "message": both }] }));
    assert_eq!(reply.turn.reasoning.unwrap().text.as_deref(), Some("hm"));
    let empty = json!({ "content": "x", "reasoning_content": "", "reasoning": null });
    assert_eq!(
        whole(json!({ "choices": [{ "message": empty }] }))
            .turn
            .reasoning,
        None
    );
}

#[test]
fn content_may_be_parts_or_a_refusal() {
    let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    let reply = whole(json!({ "choices": [{ "message": { "content": parts } }] }));
    assert_eq!(reply.turn.text, "ab");
    let reply = whole(json!({ "choices": [{ "message": { "content": null, "refusal": "no" } }] }));
    assert_eq!(reply.turn.text, "no");
}

#[test]
fn a_reply_without_choices_is_refused() {
    for document in [
        json!({ "choices": [] }),
        json!({}),
        json!({ "choices": null }),
        json!([1]),
    ] {
        let result = ChatReply::default().take_whole(document.clone(), &mut NoDeltas);
        assert!(
            matches!(result, Err(ProviderError::Malformed { .. })),
            "{document}"
        );
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({ "id": "s1", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

#[test]
fn a_stream_of_text_is_put_together() {
    let (reply, collected) = streamed(vec![
        json!({ "choices": [], "prompt_filter_results": [] }),
        chunk(&json!({ "role": "assistant", "content": "" }), None),
        chunk(&json!({ "reasoning_content": "hm" }), None),
        chunk(&json!({ "content": "Hel" }), None),
        chunk(&json!({ "content": "lo" }), None),
        chunk(&json!({}), Some("stop")),
        json!({ "id": "s1", "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 2 } }),
    ]);
    assert_eq!(collected.thinking.concat(), "hm");
    assert_eq!(collected.text.concat(), "Hello");
    assert_eq!(reply.turn.text, "Hello");
    assert_eq!(
        (reply.usage.input_tokens, reply.usage.output_tokens),
        (7, 2)
    );
    assert_eq!(reply.api_call_id.as_deref(), Some("s1"));
}

fn piece(index: Option<usize>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    json!({ "tool_calls": [{ "index": index, "id": id, "function": { "name": name, "arguments": arguments } }] })
}

#[test]
fn calls_in_pieces_are_put_together() {
    let cases = [
        // As the format says: number always, id and name once.
        vec![
            piece(Some(0), Some("a"), Some("view"), ""),
            piece(Some(0), None, None, "{\"x\""),
            piece(Some(1), Some("b"), Some("grep"), "{\"y\""),
            piece(Some(0), None, None, ":1}"),
            piece(Some(1), None, None, ":2}"),
        ],
        // The id on every piece, an empty name on later ones.
        vec![
            piece(Some(0), Some("a"), Some("view"), "{\"x\""),
            piece(Some(0), Some("a"), Some(""), ":1}"),
            piece(Some(1), Some("b"), Some("grep"), "{\"y\":2}"),
        ],
        // Every call numbered 0.
        vec![
            piece(Some(0), Some("a"), Some("view"), "{\"x\":1}"),
            piece(Some(0), Some("b"), Some("grep"), "{\"y\":2}"),
        ],
        // No numbers at all.
        vec![
            piece(None, Some("a"), Some("view"), "{\"x\""),
            piece(None, None, None, ":1}"),
            piece(None, Some("b"), Some("grep"), "{\"y\":2}"),
        ],
    ];
    for (number, pieces) in cases.into_iter().enumerate() {
        let mut chunks: Vec<Value> = pieces.iter().map(|piece| chunk(piece, None)).collect();
        chunks.push(chunk(&json!({}), Some("tool_calls")));
        let (reply, _) = streamed(chunks);
        assert_eq!(
            calls(&reply),
            [
                ("a", "view", "{\"x\":1}".to_owned()),
                ("b", "grep", "{\"y\":2}".to_owned())
            ],
            "case {number}"
        );
        assert_eq!(reply.finish, Finish::ToolCalls);
    }
}

#[test]
fn streamed_choices_are_merged_in_their_order() {
    let choice = |index: usize, delta: Value, finish: Option<&str>| json!({ "choices": [{ "index": index, "delta": delta, "finish_reason": finish }] });
    let (reply, _) = streamed(vec![
        choice(
            1,
            piece(Some(0), Some("a"), Some("view"), "{}"),
            Some("tool_calls"),
        ),
        choice(0, json!({ "content": "first" }), Some("stop")),
    ]);
    assert_eq!(reply.turn.text, "first");
    assert_eq!(calls(&reply), [("a", "view", "{}".to_owned())]);
}

#[test]
fn a_stream_is_finished_when_every_choice_is() {
    let mut reply = ChatReply::default();
    let mut take = |chunk| reply.take_event(chunk, &mut NoDeltas).unwrap();
    let steps = [
        (
            chunk(&json!({ "content": "a" }), None),
            Progress::Unfinished,
        ),
        (chunk(&json!({}), Some("stop")), Progress::Finished),
        (
            json!({ "choices": [{ "index": 1, "delta": { "content": "b" } }] }),
            Progress::Unfinished,
        ),
    ];
    for (chunk, progress) in steps {
        assert_eq!(take(chunk.clone()), progress, "{chunk}");
    }
}
