//! Recording and repeating conversations.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::NoDeltas;
use crate::offline::OfflineModel;
use loopd_kernel::model::{Finish, ModelMessage, Part, ToolCall};

const RECORDING: &str = r#"
models: [some-model]
conversations:
  - messages:
      - role: system
        content: ${system}
      - role: user
        content: Read ${workdir}/a.txt
      - role: assistant
        content: I read it.
      - role: assistant
        tool_calls:
          - id: toolcall_0
            type: function
            function: { name: view, arguments: '{"path":"${workdir}/a.txt", "b": 1}' }
          - id: toolcall_1
            type: function
            function: { name: now, arguments: '{}' }
      - role: tool
        tool_call_id: toolcall_1
        content: noon
      - role: tool
        tool_call_id: toolcall_0
        content: 1. in ${workdir}
      - role: assistant
        content: It is in ${workdir}.
"#;

fn request(messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest {
        model: MODEL.to_owned(),
        messages,
        tools: Vec::new(),
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

fn result(call: &str, text: &str) -> ModelMessage {
    ModelMessage::ToolResult {
        call: call.into(),
        text: text.to_owned(),
    }
}

async fn ask(recording: &str, messages: Vec<ModelMessage>) -> Result<ModelReply, ProviderError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    std::fs::write(&file, recording).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "not a recording").unwrap();
    let model = ReplayModel::new(folder.path(), "/tmp/w");
    model.call(&request(messages), &mut NoDeltas).await
}

fn beginning() -> Vec<ModelMessage> {
    vec![
        ModelMessage::System("whatever".to_owned()),
        user(
            "<current_datetime>2026-01-01</current_datetime>\n\nRead /tmp/w/a.txt\n<reminder>x</reminder>",
        ),
    ]
}

#[tokio::test]
async fn a_conversation_is_repeated_turn_by_turn() {
    let reply = ask(RECORDING, beginning()).await.unwrap();
    assert_eq!(reply.turn.text, "I read it.");
    assert_eq!(reply.finish, Finish::ToolCalls);
    assert_eq!(
        reply.turn.calls[0].arguments,
        json!({ "path": "/tmp/w/a.txt", "b": 1 })
    );
    let call = |id: &str, name: &str, arguments| ToolCall {
        id: id.into(),
        name: name.to_owned(),
        arguments,
    };
    let mut messages = beginning();
    messages.push(ModelMessage::Assistant(AssistantTurn {
        text: "I read it.".to_owned(),
        reasoning: None,
        calls: vec![
            call("x", "view", json!({ "b": 1, "path": "/tmp/w/a.txt" })),
            call("y", "now", json!({})),
        ],
    }));
    messages.push(result("x", "1. in /tmp/w"));
    messages.push(result("y", "noon"));
    let reply = ask(RECORDING, messages).await.unwrap();
    assert_eq!(reply.turn.text, "It is in /tmp/w.");
    assert_eq!(reply.finish, Finish::Stop);
}

#[tokio::test]
async fn a_difference_is_named() {
    let error = ask(
        RECORDING,
        vec![ModelMessage::System(String::new()), user("Write a poem")],
    )
    .await
    .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("message 2"), "{text}");
    assert!(text.contains("Read ${workdir}/a.txt"), "{text}");
    assert!(text.contains("Write a poem"), "{text}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn recordings_that_end_are_empty_or_broken_say_so() {
    let open = "conversations: [{messages: [{role: user, content: hi}]}]";
    let cases = [
        (open, "without an answer"),
        ("", "there are none"),
        ("conversations: [{messages: [{role: robot}]}]", "not valid"),
    ];
    for (recording, words) in cases {
        let text = ask(recording, vec![user("hi")])
            .await
            .unwrap_err()
            .to_string();
        assert!(text.contains(words), "{text}");
    }
    let missing = ReplayModel::new(Path::new("/nowhere/at/all"), "/w");
    let error = missing
        .call(&request(vec![user("hi")]), &mut NoDeltas)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("LOOPD_REPLAY"));
}

#[tokio::test]
async fn what_is_recorded_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recorded.yaml");
    let recorder = Recorder::new(Arc::new(OfflineModel), &file, "/tmp/w", Arc::default());
    let first = request(vec![user("hello in /tmp/w")]);
    let said = recorder.call(&first, &mut NoDeltas).await.unwrap();
    let mut messages = first.messages.clone();
    messages.push(ModelMessage::Assistant(said.turn.clone()));
    messages.push(user("again"));
    let second = request(messages);
    let said_again = recorder.call(&second, &mut NoDeltas).await.unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("${workdir}") && !text.contains("/tmp/w"),
        "{text}"
    );
    assert_eq!(text.matches("messages:").count(), 1, "{text}");
    let model = ReplayModel::new(&file, "/tmp/w");
    for (request, said) in [(first, said), (second, said_again)] {
        let repeated = model.call(&request, &mut NoDeltas).await.unwrap();
        assert_eq!(repeated.turn.text, said.turn.text);
    }
}
