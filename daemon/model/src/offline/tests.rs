//! Conversations with the offline model.

use std::sync::Arc;

use super::*;
use crate::NoDeltas;
use loopd_kernel::model::{Finish, ToolSpec};

const ALL_TOOLS: [&str; 6] = ["bash", "view", "grep", "glob", "create", "ask_user"];

fn request(messages: Vec<ModelMessage>, tools: &[&str]) -> ModelRequest {
    ModelRequest {
        model: MODEL.to_owned(),
        messages,
        tools: tools
            .iter()
            .map(|name| {
                Arc::new(ToolSpec {
                    name: (*name).to_owned(),
                    description: String::new(),
                    parameters: Value::Null,
                    counted: loopd_kernel::model::CountedOnce::default(),
                })
            })
            .collect(),
        delivery: Delivery::Whole,
        reasoning_effort: None,
        reasoning_summary: None,
        max_output_tokens: None,
        tool_use: loopd_kernel::model::ToolUse::Free,
        headers: Vec::new(),
    }
}

fn user(text: &str) -> ModelMessage {
    ModelMessage::User(vec![Part::Text(text.to_owned())])
}

/// Plays the agent loop: carries each call out with `tool` until the model answers with text.
async fn converse(
    prompt: &str,
    tools: &[&str],
    tool: impl Fn(&ToolCall) -> String,
) -> (Vec<ToolCall>, String) {
    let mut request = request(
        vec![ModelMessage::System("be good".to_owned()), user(prompt)],
        tools,
    );
    let mut calls = Vec::new();
    loop {
        let reply = OfflineModel.call(&request, &mut NoDeltas).await.unwrap();
        if reply.turn.calls.is_empty() {
            assert_eq!(reply.finish, Finish::Stop);
            return (calls, reply.turn.text);
        }
        assert_eq!(reply.finish, Finish::ToolCalls);
        assert_eq!(reply.turn.calls.len(), 1);
        request
            .messages
            .push(ModelMessage::Assistant(reply.turn.clone()));
        for call in reply.turn.calls {
            request.messages.push(ModelMessage::ToolResult {
                call: call.id.clone(),
                text: tool(&call),
            });
            calls.push(call);
        }
    }
}

#[tokio::test]
async fn one_command_is_run_and_its_output_told() {
    let (calls, text) = converse("run echo hi", &ALL_TOOLS, |_| {
        "hi\n<exited with exit code 0>".to_owned()
    })
    .await;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].id.as_str(), "offline_2");
    assert_eq!(calls[0].name, "bash");
    assert_eq!(calls[0].arguments["command"], "echo hi");
    assert_eq!(text, "Done. The output was:\nhi\n<exited with exit code 0>");
}

#[tokio::test]
async fn several_commands_run_one_after_the_other() {
    let (calls, text) = converse("run a then read b\nfind c", &ALL_TOOLS, |call| {
        format!("from {}", call.name)
    })
    .await;
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(names, ["bash", "view", "grep"]);
    assert_eq!(ids, ["offline_2", "offline_4", "offline_6"]);
    assert_eq!(
        text,
        "Done. The outputs were:\n\n1. run a\nfrom bash\n\n2. read b\nfrom view\n\n3. find c\nfrom grep"
    );
}

#[tokio::test]
async fn a_tool_that_is_not_offered_is_named() {
    let (calls, text) = converse("run ls", &["view"], |_| String::new()).await;
    assert!(calls.is_empty());
    assert_eq!(
        text,
        "`run ls` needs the tool `bash`, which this session does not offer, so I stop here."
    );
    let (calls, text) = converse("read a then run ls", &["view"], |_| "contents".to_owned()).await;
    assert_eq!(calls.len(), 1);
    assert!(text.contains("1. read a\ncontents"), "{text}");
    assert!(text.contains("needs the tool `bash`"), "{text}");
}

#[tokio::test]
async fn any_other_message_is_echoed_with_help() {
    let (_, text) = converse("What is 1+1?", &ALL_TOOLS, |_| String::new()).await;
    assert!(
        text.starts_with("You wrote: What is 1+1?\n\nI am the offline model"),
        "{text}"
    );
    let (_, text) = converse(&"x".repeat(5000), &ALL_TOOLS, |_| String::new()).await;
    assert!(
        text.len() < 800 && text.contains("(4800 more characters)"),
        "{text}"
    );
    let (_, text) = converse("run a\nnonsense", &ALL_TOOLS, |_| String::new()).await;
    assert!(
        text.starts_with("I did not carry anything out: `nonsense`"),
        "{text}"
    );
}

#[tokio::test]
async fn only_the_last_user_message_counts() {
    let (calls, _) = converse("run a", &ALL_TOOLS, |_| "old".to_owned()).await;
    let turn = AssistantTurn {
        calls,
        ..AssistantTurn::default()
    };
    let id = turn.calls[0].id.clone();
    let mut messages = vec![
        user("run a"),
        ModelMessage::Assistant(turn),
        ModelMessage::ToolResult {
            call: id,
            text: "old".to_owned(),
        },
        user("read b"),
        user("<reminder>be brief</reminder>"),
    ];
    let next = answer(&request(messages.clone(), &ALL_TOOLS));
    assert_eq!(next.calls[0].name, "view");
    messages.push(ModelMessage::Assistant(next.clone()));
    messages.push(ModelMessage::ToolResult {
        call: next.calls[0].id.clone(),
        text: "new".to_owned(),
    });
    messages.push(ModelMessage::User(vec![Part::Image {
        media_type: "image/png".to_owned(),
        base64: "AA".to_owned(),
    }]));
    assert_eq!(
        answer(&request(messages, &ALL_TOOLS)).text,
        "Done. The output was:\nnew"
    );
}

#[tokio::test]
async fn an_empty_conversation_gets_help() {
    let reply = OfflineModel
        .call(&request(Vec::new(), &[]), &mut NoDeltas)
        .await
        .unwrap();
    assert_eq!(reply.turn.text, USAGE_HINT);
}

#[derive(Default)]
struct Pieces(Vec<String>, u64);

impl DeltaSink for Pieces {
    fn text(&mut self, delta: &str) {
        self.0.push(delta.to_owned());
    }
    fn reasoning(&mut self, _delta: &str) {}
    fn received(&mut self, total_bytes: u64) {
        self.1 = total_bytes;
    }
}

#[tokio::test]
async fn a_streamed_answer_comes_word_by_word_and_a_whole_one_does_not() {
    let mut streamed = request(vec![user("hello there")], &[]);
    streamed.delivery = Delivery::Streamed;
    let mut pieces = Pieces::default();
    let reply = OfflineModel.call(&streamed, &mut pieces).await.unwrap();
    assert_eq!(pieces.0.concat(), reply.turn.text);
    assert!(
        pieces.0.len() > 20
            && pieces
                .0
                .iter()
                .all(|piece| piece.split_whitespace().count() <= 1)
    );
    assert_eq!(pieces.1, reply.turn.text.len() as u64);

    let mut none = Pieces::default();
    let whole = ModelRequest {
        delivery: Delivery::Whole,
        ..streamed
    };
    assert_eq!(OfflineModel.call(&whole, &mut none).await.unwrap(), reply);
    assert!(none.0.is_empty());
}

#[tokio::test]
async fn tokens_are_estimated_from_characters() {
    let usage = |messages| {
        let request = request(messages, &[]);
        estimate(&request, &says("12345".to_owned()))
    };
    let usage = usage(vec![ModelMessage::System("ääää".to_owned()), user("1234")]);
    assert_eq!((usage.input_tokens, usage.output_tokens), (2, 2));
}

#[tokio::test]
async fn the_only_model_is_offline() {
    let models = OfflineModel.models().await.unwrap();
    assert_eq!(
        models
            .iter()
            .map(|model| model.id.as_str())
            .collect::<Vec<_>>(),
        ["offline"]
    );
    assert_eq!(OfflineModel.describe().provider_type, "offline");
}
