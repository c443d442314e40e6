//! Sessions: messages, permissions, tools, questions, events.

use std::sync::{Arc, Mutex};

use loopd_sdk::proto::event::tool::ToolComplete;
use loopd_sdk::{
    Body, Durable, Error, Event, PermissionDecision, PermissionRequest, SessionConfig, Tool,
    ToolInvocation, UserInputResponse, Wait,
};
use serde_json::json;

use crate::home::{Home, kinds, until, within};

fn allowing() -> SessionConfig {
    SessionConfig::new().on_permission(|_| async { PermissionDecision::ApproveOnce {} })
}

#[tokio::test]
async fn a_command_runs_when_its_permission_is_given() {
    let home = Home::new();
    let client = home.client().await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = asked.clone();
    let config = SessionConfig::new().on_permission(move |request| {
        heard.lock().unwrap().push(request.permission_request);
        async { PermissionDecision::ApproveOnce {} }
    });
    let session = client.create(config).await.unwrap();
    let reply = within("the answer", session.send_and_wait("run echo hel''lo"))
        .await
        .unwrap();
    assert!(reply.text.contains("\nhello"), "{}", reply.text);
    let asked = asked.lock().unwrap();
    let [
        PermissionRequest::Shell {
            full_command_text, ..
        },
    ] = asked.as_slice()
    else {
        panic!("one shell permission was expected: {asked:?}");
    };
    assert_eq!(full_command_text, "echo hel''lo");
}

#[tokio::test]
async fn a_refused_permission_ends_the_turn_without_running_anything() {
    let home = Home::new();
    let client = home.client().await;
    let config = SessionConfig::new()
        .on_permission(|_| async { PermissionDecision::Reject { feedback: None } });
    let session = client.create(config).await.unwrap();
    let reply = within("the end", session.send_and_wait("run touch made"))
        .await
        .unwrap();
    assert_eq!(reply.text, "");
    assert!(!home.folder.path().join("made").exists());
}

#[tokio::test]
async fn a_tool_of_the_client_runs_in_the_client() {
    let home = Home::new();
    let client = home.client().await;
    // The offline model knows only the built-in tools, so ours takes the place of one.
    let tool = Tool::new(
        "bash",
        "Says what it was asked to run",
        json!({"type": "object", "properties": {"command": {"type": "string"}}}),
        |call: ToolInvocation| async move {
            let command = call.arguments.get("command").cloned().unwrap_or_default();
            Ok::<_, String>(format!("would run {command}"))
        },
    );
    let config = SessionConfig::new().tool(tool.overriding_built_in().without_permission());
    let session = client.create(config).await.unwrap();
    let reply = within("the answer", session.send_and_wait("run rm -rf x"))
        .await
        .unwrap();
    assert!(
        reply.text.contains("would run \"rm -rf x\""),
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn a_tool_that_fails_or_panics_fails_that_call_only() {
    let home = Home::new();
    let client = home.client().await;
    let tool = Tool::new(
        "bash",
        "Fails",
        json!({}),
        |call: ToolInvocation| async move {
            let command = call.arguments.get("command").and_then(|it| it.as_str());
            match command {
                Some("panic") => panic!("a tool of a test"),
                _ => Err::<String, _>("no such luck"),
            }
        },
    );
    let config = SessionConfig::new().tool(tool.overriding_built_in().without_permission());
    let session = client.create(config).await.unwrap();
    for command in ["run fail", "run panic"] {
        let mut turn = session.turn(command, Wait::Session);
        let mut failed = None;
        while let Some(event) = within("the end", turn.next()).await {
            if let Body::Durable(Durable::ToolComplete(done)) = event.body {
                failed = Some(done);
            }
        }
        assert!(
            matches!(failed, Some(ToolComplete { success: false, .. })),
            "{failed:?}"
        );
    }
}

#[tokio::test]
async fn a_question_of_the_model_is_answered() {
    let home = Home::new();
    let client = home.client().await;
    let config = SessionConfig::new().on_user_input(|asked| async move {
        assert_eq!(asked.question, "what is your name?");
        UserInputResponse {
            answer: "Ada".to_owned(),
            was_freeform: true,
        }
    });
    let session = client.create(config).await.unwrap();
    let asking = session.send_and_wait("ask what is your name?");
    let reply = within("the answer", asking).await.unwrap();
    assert!(reply.text.contains("Ada"), "{}", reply.text);
}

#[tokio::test]
async fn events_are_typed_and_begin_with_the_start_of_the_session() {
    let home = Home::new();
    let client = home.client().await;
    let session = client.create(SessionConfig::new()).await.unwrap();
    let mut events = session.events();
    session.send("hello").await.unwrap();
    let seen = until(&mut events, "session.idle").await;
    let durable: Vec<&Event> = seen
        .iter()
        .filter(|event| matches!(event.body, Body::Durable(_)))
        .collect();
    let kinds: Vec<&str> = durable.iter().map(|event| event.body.kind()).collect();
    assert_eq!(
        kinds,
        [
            "session.start",
            "session.model_change",
            "user.message",
            "system.message",
            "assistant.turn_start",
            "assistant.message",
            "assistant.turn_end",
        ]
    );
    let stored = session.history().await.unwrap();
    let ids = |events: &[&Event]| -> Vec<String> {
        events
            .iter()
            .map(|event| event.head.id.to_string())
            .collect()
    };
    assert_eq!(ids(&durable), ids(&stored.iter().collect::<Vec<_>>()));
}

#[tokio::test]
async fn an_aborted_turn_is_an_error_and_the_session_goes_on() {
    let home = Home::new();
    let client = home.client().await;
    let config = SessionConfig::new().on_permission(|_| std::future::pending());
    let session = client.create(config).await.unwrap();
    let mut turn = session.turn("run echo never", Wait::Session);
    loop {
        let event = within("the permission", turn.next()).await.unwrap();
        if event.body.kind() == "permission.requested" {
            break;
        }
    }
    session.abort().await.unwrap();
    while within("the end", turn.next()).await.is_some() {}
    assert!(matches!(turn.finish(), Err(Error::Aborted)));
    let reply = within("an answer", session.send_and_wait("hello")).await;
    assert!(reply.unwrap().text.contains("offline model"));
}

#[tokio::test]
async fn the_foreground_answer_can_be_waited_for() {
    let home = Home::new();
    let client = home.client().await;
    let session = client.create(allowing()).await.unwrap();
    let waiting = session.send_and_wait_for("run echo front", Wait::Foreground);
    let reply = within("the answer", waiting).await.unwrap();
    assert!(reply.text.contains("front"));
}

#[tokio::test]
async fn a_destroyed_session_is_listed_and_can_be_resumed() {
    let home = Home::new();
    let client = home.client().await;
    let session = client.create(allowing()).await.unwrap();
    let id = session.id().clone();
    within("an answer", session.send_and_wait("hello"))
        .await
        .unwrap();
    session.destroy().await.unwrap();
    let listed = client.sessions().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed.first().unwrap().session_id, id);
    let again = client.resume(id, allowing()).await.unwrap();
    let (mut seen, mut events) = again.past_and_events().await.unwrap();
    again.send("run echo back").await.unwrap();
    seen.extend(until(&mut events, "session.idle").await);
    let kinds = kinds(&seen);
    assert_eq!(kinds.first(), Some(&"session.start"));
    for kind in ["session.shutdown", "session.resume"] {
        let times = kinds.iter().filter(|it| **it == kind).count();
        assert_eq!(times, 1, "{kind} in {kinds:?}");
    }
}

#[tokio::test]
async fn an_error_of_the_daemon_keeps_its_message() {
    let home = Home::new();
    let client = home.client().await;
    let unknown = client.resume("nobody", SessionConfig::new()).await;
    let error = unknown.err().unwrap();
    assert!(error.is_session_not_found(), "{error}");
    assert_eq!(error.to_string(), "Session not found: nobody");
}
