//! Requests as JSON.

use std::sync::Arc;

use super::*;
use crate::opaque::{self, Format};
use crate::vendor_api::tests::conversation;
use loopd_kernel::model::Reasoning;

fn request(messages: Vec<ModelMessage>) -> ModelRequest {
    conversation("claude-sonnet-4-5", messages)
}

fn written(request: &ModelRequest) -> Value {
    serde_json::from_slice(&body(request, None, Citations::Unwanted).unwrap()).unwrap()
}

fn user(text: &str) -> ModelMessage {
    ModelMessage::User(vec![Part::Text(text.to_owned())])
}

fn calling(ids: &[&str], reasoning: Option<Reasoning>) -> ModelMessage {
    ModelMessage::Assistant(AssistantTurn {
        text: String::new(),
        reasoning,
        calls: ids
            .iter()
            .map(|&id| ToolCall {
                id: id.into(),
                name: "bash".to_owned(),
                arguments: json!({ "command": "ls" }),
            })
            .collect(),
    })
}

fn result(call: &str, text: &str) -> ModelMessage {
    ModelMessage::ToolResult {
        call: call.into(),
        text: text.to_owned(),
    }
}

fn thought() -> Value {
    json!({ "type": "thinking", "thinking": "hm", "signature": "sig" })
}

fn thinking() -> Reasoning {
    Reasoning {
        text: Some("hm".to_owned()),
        opaque: opaque::wrap(Format::Anthropic, vec![thought()]),
    }
}

#[test]
fn the_results_of_a_turn_are_one_user_message() {
    let document = written(&request(vec![
        ModelMessage::System("be brief".to_owned()),
        user("list"),
        calling(&["a", "b"], None),
        result("a", "one"),
        result("b", "two"),
        user("and now?"),
    ]));
    let use_of = |id: &str| json!({ "type": "tool_use", "id": id, "name": "bash", "input": { "command": "ls" } });
    let result_of =
        |id: &str, text: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": text });
    let kept = json!({ "type": "ephemeral" });
    assert_eq!(
        document,
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 16384,
            "system": [{ "type": "text", "text": "be brief", "cache_control": kept }],
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "list" }] },
                { "role": "assistant", "content": [use_of("a"), use_of("b")] },
                { "role": "user", "content": [
                    result_of("a", "one"),
                    result_of("b", "two"),
                    { "type": "text", "text": "and now?", "cache_control": kept },
                ] },
            ],
        })
    );
}

#[test]
fn images_tools_and_streams_have_their_form() {
    let mut request = request(vec![ModelMessage::User(vec![
        Part::Text("what is it".to_owned()),
        Part::Image {
            media_type: "image/png".to_owned(),
            base64: "AAAA".to_owned(),
        },
    ])]);
    request.delivery = Delivery::Streamed;
    request.tools = vec![Arc::new(ToolSpec {
        name: "now".to_owned(),
        description: "the time".to_owned(),
        parameters: Value::Null,
        counted: loopd_kernel::model::CountedOnce::default(),
    })];
    let document = written(&request);
    assert_eq!(document["stream"], json!(true));
    assert_eq!(
        document["messages"][0]["content"][1]["source"],
        json!({ "type": "base64", "media_type": "image/png", "data": "AAAA" })
    );
    assert_eq!(
        document["tools"],
        json!([{ "name": "now", "description": "the time", "input_schema": { "type": "object", "properties": {} } }])
    );
}

#[test]
fn what_the_server_would_refuse_is_put_right() {
    let odd_call = ModelMessage::Assistant(AssistantTurn {
        text: " \n".to_owned(),
        reasoning: None,
        calls: vec![ToolCall {
            id: "call:1".into(),
            name: "bash".to_owned(),
            arguments: json!("{broken"),
        }],
    });
    let silent = ModelMessage::Assistant(AssistantTurn::default());
    let document = written(&request(vec![
        user(""),
        silent,
        odd_call,
        result("call:1", ""),
    ]));
    assert_eq!(
        document["messages"][0]["content"],
        json!([{ "type": "text", "text": NOTHING }])
    );
    assert_eq!(
        document["messages"][1]["content"],
        json!([{ "type": "tool_use", "id": "call_1", "name": "bash", "input": { "arguments": "{broken" } }])
    );
    assert_eq!(
        document["messages"][2]["content"][0]["tool_use_id"],
        "call_1"
    );
}

#[test]
fn thinking_goes_back_to_its_maker_only() {
    let conversation = |reasoning| {
        written(&request(vec![
            user("go"),
            calling(&["a"], reasoning),
            result("a", "done"),
        ]))
    };
    let content = |document: &Value| document["messages"][1]["content"][0].clone();
    assert_eq!(content(&conversation(Some(thinking()))), thought());
    let foreign = Some(Reasoning {
        text: Some("hm".to_owned()),
        opaque: Some("0xabc".to_owned()),
    });
    assert_eq!(content(&conversation(foreign))["type"], "tool_use");
}

#[test]
fn the_effort_becomes_a_budget_or_a_word() {
    let mut asked = request(vec![user("go")]);
    asked.reasoning_effort = Some("medium".to_owned());
    let document = written(&asked);
    assert_eq!(
        document["thinking"],
        json!({ "type": "enabled", "budget_tokens": 8192 })
    );
    assert_eq!(document["max_tokens"], 16384 + 8192);
    asked.model = "claude-opus-4-6".to_owned();
    let document = written(&asked);
    assert_eq!(document["thinking"], json!({ "type": "adaptive" }));
    assert_eq!(document["output_config"], json!({ "effort": "medium" }));
    asked.model = "claude-3-haiku-20240307".to_owned();
    assert_eq!(written(&asked).get("thinking"), None);
}

#[test]
fn a_budget_stays_below_a_configured_limit() {
    let mut asked = request(vec![user("go")]);
    asked.reasoning_effort = Some("high".to_owned());
    let limited = |limit| -> Value {
        serde_json::from_slice(&body(&asked, Some(limit), Citations::Unwanted).unwrap()).unwrap()
    };
    assert_eq!(limited(4_000)["thinking"]["budget_tokens"], 4_000 - 1_024);
    assert_eq!(limited(4_000)["max_tokens"], 4_000);
    assert_eq!(limited(1_500).get("thinking"), None);
}

#[test]
fn thinking_does_not_begin_between_call_and_result() {
    let mut asked = request(vec![user("go"), calling(&["a"], None), result("a", "done")]);
    asked.reasoning_effort = Some("high".to_owned());
    assert_eq!(written(&asked).get("thinking"), None);
    asked.messages[1] = calling(&["a"], Some(thinking()));
    assert!(written(&asked)["thinking"].is_object());
}

#[test]
fn documents_are_cited_when_asked() {
    let asked = request(vec![ModelMessage::User(vec![
        Part::Document {
            title: Some("a.pdf".to_owned()),
            media_type: "application/pdf".to_owned(),
            base64: "AAAA".to_owned(),
        },
        Part::Text("sum it up".to_owned()),
    ])]);
    let block = |citations| -> Value {
        let document: Value =
            serde_json::from_slice(&body(&asked, None, citations).unwrap()).unwrap();
        document["messages"][0]["content"][0].clone()
    };
    let source = json!({ "type": "base64", "media_type": "application/pdf", "data": "AAAA" });
    assert_eq!(
        block(Citations::Wanted),
        json!({ "type": "document", "source": source, "title": "a.pdf", "citations": { "enabled": true } })
    );
    assert_eq!(block(Citations::Unwanted).get("citations"), None);
}
