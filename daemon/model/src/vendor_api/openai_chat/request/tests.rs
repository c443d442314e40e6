//! Requests as JSON.

use std::sync::Arc;

use super::*;
use crate::vendor_api::tests::conversation;
use loopd_kernel::model::Reasoning;

fn request(messages: Vec<ModelMessage>) -> ModelRequest {
    conversation("m", messages)
}

fn written(request: &ModelRequest, flavor: Flavor) -> Value {
    serde_json::from_slice(&body(request, flavor, None).unwrap()).unwrap()
}

fn call(arguments: Value) -> ToolCall {
    ToolCall {
        id: "c1".into(),
        name: "bash".to_owned(),
        arguments,
    }
}

fn assistant(text: &str, calls: Vec<ToolCall>) -> ModelMessage {
    let reasoning = Some(Reasoning {
        text: Some("hm".to_owned()),
        opaque: Some("0x".to_owned()),
    });
    ModelMessage::Assistant(AssistantTurn {
        text: text.to_owned(),
        reasoning,
        calls,
    })
}

#[test]
fn each_kind_of_message_has_its_form() {
    let image = Part::Image {
        media_type: "image/png".to_owned(),
        base64: "AAAA".to_owned(),
    };
    let text = |text: &str| Part::Text(text.to_owned());
    let wire_call = |arguments: &str| json!([{ "id": "c1", "type": "function", "function": { "name": "bash", "arguments": arguments } }]);
    let cases = [
        (
            ModelMessage::System("s".to_owned()),
            json!({ "role": "system", "content": "s" }),
        ),
        (
            ModelMessage::User(vec![text("u")]),
            json!({ "role": "user", "content": "u" }),
        ),
        (
            ModelMessage::User(vec![]),
            json!({ "role": "user", "content": "" }),
        ),
        (
            ModelMessage::User(vec![text("a"), text("b")]),
            json!({ "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }),
        ),
        (
            ModelMessage::User(vec![text("see"), image.clone()]),
            json!({ "role": "user", "content": [
                { "type": "text", "text": "see" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
            ] }),
        ),
        (
            ModelMessage::User(vec![image]),
            json!({ "role": "user", "content": [
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
            ] }),
        ),
        (
            assistant("hi", vec![]),
            json!({ "role": "assistant", "content": "hi" }),
        ),
        (
            assistant("", vec![]),
            json!({ "role": "assistant", "content": "" }),
        ),
        (
            assistant("", vec![call(json!({ "a": [1, "ä"], "b": null }))]),
            json!({ "role": "assistant", "content": null, "tool_calls": wire_call(r#"{"a":[1,"ä"],"b":null}"#) }),
        ),
        (
            assistant("hi", vec![call(json!("{\"cut"))]),
            json!({ "role": "assistant", "content": "hi", "tool_calls": wire_call(r#""{\"cut""#) }),
        ),
        (
            ModelMessage::ToolResult {
                call: "c1".into(),
                text: "out".to_owned(),
            },
            json!({ "role": "tool", "tool_call_id": "c1", "content": "out" }),
        ),
    ];
    for (message, expected) in cases {
        let document = written(&request(vec![message]), Flavor::Plain);
        assert_eq!(document, json!({ "model": "m", "messages": [expected] }));
    }
}

#[test]
fn thinking_goes_back_to_copilot_only() {
    let request = request(vec![assistant("hi", vec![])]);
    let message = &written(&request, Flavor::Copilot)["messages"][0];
    assert_eq!(message["reasoning_text"], "hm");
    assert_eq!(message["reasoning_opaque"], "0x");
    assert_eq!(
        written(&request, Flavor::Plain)["messages"][0],
        json!({ "role": "assistant", "content": "hi" })
    );
}

#[test]
fn streaming_tools_and_effort_are_written_when_set() {
    let spec = |parameters| {
        Arc::new(ToolSpec {
            name: "t".to_owned(),
            description: "d".to_owned(),
            parameters,
            counted: loopd_kernel::model::CountedOnce::default(),
        })
    };
    let request = ModelRequest {
        tools: vec![
            spec(json!({ "type": "object", "required": ["x"] })),
            spec(Value::Null),
        ],
        delivery: Delivery::Streamed,
        reasoning_effort: Some("high".to_owned()),
        ..request(vec![])
    };
    let tool = |parameters: Value| json!({ "type": "function", "function": { "name": "t", "description": "d", "parameters": parameters } });
    assert_eq!(
        written(&request, Flavor::Plain),
        json!({
            "model": "m",
            "messages": [],
            "tools": [
                tool(json!({ "type": "object", "required": ["x"] })),
                tool(json!({ "type": "object", "properties": {} })),
            ],
            "reasoning_effort": "high",
            "stream": true,
            "stream_options": { "include_usage": true },
        })
    );
}

#[test]
fn copilot_learns_who_began_the_request_and_that_it_holds_images() {
    let of = |messages: Vec<ModelMessage>| {
        let headers = copilot_headers(Some(&request(messages)));
        let find = |name: &str| {
            headers
                .iter()
                .find(|header| header.0 == name)
                .map(|header| header.1.clone())
        };
        (find("x-initiator"), find("copilot-vision-request"))
    };
    let words = ModelMessage::User(vec![Part::Text("u".to_owned())]);
    let image = ModelMessage::User(vec![Part::Image {
        media_type: "image/png".to_owned(),
        base64: String::new(),
    }]);
    let result = ModelMessage::ToolResult {
        call: "c".into(),
        text: String::new(),
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(of(vec![words.clone()]), (some("user"), None));
    assert_eq!(of(vec![words, result.clone()]), (some("agent"), None));
    assert_eq!(of(vec![image, result]), (some("agent"), some("true")));
}

#[test]
fn a_limit_has_the_name_that_the_server_knows() {
    let limited = |limit| -> Value {
        let bytes = body(&request(Vec::new()), Flavor::Plain, Some(limit)).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    assert_eq!(limited((OutputLimit::MaxTokens, 7))["max_tokens"], 7);
    assert_eq!(
        limited((OutputLimit::MaxCompletionTokens, 7))["max_completion_tokens"],
        7
    );
    assert_eq!(
        limited((OutputLimit::MaxCompletionTokens, 7)).get("max_tokens"),
        None
    );
}
