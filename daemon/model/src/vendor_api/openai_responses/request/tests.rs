//! Requests as JSON.

use std::sync::Arc;

use super::*;
use crate::vendor_api::tests::conversation as request;
use loopd_kernel::model::Reasoning;

fn written(request: &ModelRequest) -> Value {
    serde_json::from_slice(&body(request, None).unwrap()).unwrap()
}

fn sealed() -> Value {
    json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "XX" })
}

fn messages(opaque: Option<String>) -> Vec<ModelMessage> {
    vec![
        ModelMessage::System("be brief".to_owned()),
        ModelMessage::User(vec![
            Part::Text("look".to_owned()),
            Part::Image {
                media_type: "image/png".to_owned(),
                base64: "AAAA".to_owned(),
            },
        ]),
        ModelMessage::Assistant(AssistantTurn {
            text: "I look.".to_owned(),
            reasoning: Some(Reasoning { text: None, opaque }),
            calls: vec![ToolCall {
                id: "call_1".into(),
                name: "bash".to_owned(),
                arguments: json!({ "command": "ls" }),
            }],
        }),
        ModelMessage::ToolResult {
            call: "call_1".into(),
            text: "a.txt".to_owned(),
        },
    ]
}

#[test]
fn each_kind_of_message_has_its_item() {
    let opaque = opaque::wrap(Format::Responses, vec![sealed()]);
    assert_eq!(
        written(&request("gpt-5", messages(opaque))),
        json!({
            "model": "gpt-5",
            "instructions": "be brief",
            "input": [
                { "type": "message", "role": "user", "content": [
                    { "type": "input_text", "text": "look" },
                    { "type": "input_image", "image_url": "data:image/png;base64,AAAA" },
                ] },
                sealed(),
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
                { "type": "function_call", "call_id": "call_1", "name": "bash", "arguments": "{\"command\":\"ls\"}" },
                { "type": "function_call_output", "call_id": "call_1", "output": "a.txt" },
            ],
            "store": false,
            "include": ["reasoning.encrypted_content"],
        })
    );
}

#[test]
fn thinking_of_others_stays_out() {
    for foreign in [
        Some("0xabc".to_owned()),
        opaque::wrap(Format::Anthropic, vec![sealed()]),
        None,
    ] {
        let document = written(&request("gpt-5", messages(foreign)));
        assert_eq!(document["input"][1]["type"], "message");
    }
}

#[test]
fn thinking_that_leads_to_nothing_stays_out() {
    let turn = AssistantTurn {
        reasoning: Some(Reasoning {
            text: None,
            opaque: opaque::wrap(Format::Responses, vec![sealed()]),
        }),
        ..AssistantTurn::default()
    };
    let document = written(&request("gpt-5", vec![ModelMessage::Assistant(turn)]));
    assert_eq!(document["input"], json!([]));
}

#[test]
fn options_have_their_form() {
    let mut asked = request("gpt-5", Vec::new());
    asked.reasoning_effort = Some("high".to_owned());
    asked.delivery = Delivery::Streamed;
    asked.tools = vec![Arc::new(ToolSpec {
        name: "now".to_owned(),
        description: "the time".to_owned(),
        parameters: Value::Null,
        counted: loopd_kernel::model::CountedOnce::default(),
    })];
    let document: Value = serde_json::from_slice(&body(&asked, Some(500)).unwrap()).unwrap();
    assert_eq!(
        document["reasoning"],
        json!({ "effort": "high", "summary": "auto" })
    );
    assert_eq!(document["stream"], true);
    assert_eq!(document["max_output_tokens"], 500);
    assert_eq!(
        document["tools"],
        json!([{ "type": "function", "name": "now", "description": "the time",
                 "parameters": { "type": "object", "properties": {} }, "strict": false }])
    );
}

#[test]
fn models_that_cannot_think_are_not_asked_for_thinking() {
    for model in ["gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest"] {
        assert_eq!(written(&request(model, Vec::new())).get("include"), None);
    }
    for model in ["gpt-5", "o3", "my-own"] {
        assert!(
            written(&request(model, Vec::new()))
                .get("include")
                .is_some()
        );
    }
}
