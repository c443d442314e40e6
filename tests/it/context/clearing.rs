//! Clearing the conversation: by a person while the session rests, and by an app's tool in a turn.

use loopd_tests::script::Recorded;
use loopd_tests::{Daemon, Gate, Script, Session, Turn, call};
use serde_json::{Value, json};

const CLEAR: &str = "session.history.clearContext";

fn text(request: &Recorded) -> String {
    Value::from(request.messages().to_vec()).to_string()
}

fn clear_tool(is_terminal: bool) -> Value {
    json!({
        "name": "clear_context", "description": "Clears the conversation", "skipPermission": true,
        "isTerminal": is_terminal,
        "parameters": {"type": "object", "properties": {"prompt": {"type": "string"}}},
    })
}

async fn invoke(session: &Session, name: &str, input: &str) -> Value {
    let params = json!({"name": name, "input": input});
    session.call("session.commands.invoke", params).await
}

#[tokio::test]
async fn a_tool_of_an_app_clears_and_begins_anew() {
    for is_terminal in [true, false] {
        let daemon = Daemon::playing([
            Turn::user("old words").calls([call("c", "clear_context", json!({}))]),
            Turn::user("Begin anew.").says("fresh"),
        ])
        .await;
        let options = json!({"tools": [clear_tool(is_terminal)]});
        let mut session = daemon.client().create(options).await;
        let id = session.send("old words").await;
        let (request, _) = session.tool_call().await;
        let cleared = session.call(CLEAR, json!({"prompt": "Begin anew."})).await;
        assert_eq!(cleared, json!({"messagesCleared": 2}));
        let event = session.next("session.context_cleared").await;
        assert_eq!(
            event["data"],
            json!({"messagesCleared": 2, "initialMessage": "Begin anew."})
        );
        assert!(session.give(&request, json!({"result": "cleared"})).await);
        let answer = session.next("assistant.message").await;
        assert_eq!(answer["data"]["content"], "fresh");
        // It is still the work on the first message.
        assert_eq!(answer["data"]["originatingMessageId"], id);
        session.next("session.idle").await;
        let last = daemon.script().last_request();
        assert_eq!(last.messages().len(), 2, "{}", text(&last));
        assert!(!text(&last).contains("old words"));
        // The log has everything.
        let stored = Value::from(session.messages().await).to_string();
        assert!(stored.contains("old words") && stored.contains("cleared"));
        daemon.finish().await;
    }
}

#[tokio::test]
async fn what_other_calls_of_the_cleared_turn_say_is_not_told() {
    let gate = Gate::new();
    let script = Script::play([
        Turn::user("old words").calls([
            call("c", "clear_context", json!({})),
            call("v", "view", json!({"path": "notes.txt"})),
        ]),
        Turn::user("anew").says("fresh").held_by(&gate),
        Turn::user("later").says("still fresh"),
    ]);
    let daemon = Daemon::with(script.await).await;
    std::fs::write(daemon.file("notes.txt"), "secret of old").unwrap();
    let options = json!({"tools": [clear_tool(false)]});
    let mut session = daemon.client().create(options).await;
    session.approve_all().await;
    session.send("old words").await;
    let (request, _) = session.tool_call().await;
    session.call(CLEAR, json!({"prompt": "anew"})).await;
    session.give(&request, json!({"result": "done"})).await;
    gate.reached().await;
    // Nothing can be cleared from a turn without calls.
    let refused = session.refused(CLEAR, json!({"prompt": "x"})).await;
    assert!(
        refused.message.contains("no tool call is in flight"),
        "{refused:?}"
    );
    let busy = json!({"name": "clear", "input": ""});
    let busy = session.refused("session.commands.invoke", busy).await;
    assert!(busy.message.contains("while the session rests"), "{busy:?}");
    gate.open();
    session.next("session.idle").await;
    session.ask("later").await;
    for request in &daemon.script().requests()[1..] {
        assert!(
            !text(request).contains("secret of old"),
            "{}",
            text(request)
        );
    }
    daemon.finish().await;
}

#[tokio::test]
async fn an_empty_prompt_clears_nothing() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("c", "clear_context", json!({}))]),
        Turn::results(["kept"]).says("ok"),
    ])
    .await;
    let options = json!({"tools": [clear_tool(false)]});
    let mut session = daemon.client().create(options).await;
    session.send("go").await;
    let (request, _) = session.tool_call().await;
    let refused = session.refused(CLEAR, json!({"prompt": " "})).await;
    assert!(refused.message.contains("prompt"), "{refused:?}");
    session.give(&request, json!({"result": "kept"})).await;
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_person_clears_a_session_that_rests_and_a_rewind_brings_it_back() {
    let script = Script::answering(|request| {
        Turn::any().says(&format!("heard {}", request.last_user_text().len()))
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("first question").await;
    session.ask("second question").await;
    let done = invoke(&session, "clear", "").await;
    assert!(
        done["message"].as_str().unwrap().contains("4 messages"),
        "{done}"
    );
    let dropped = session
        .call("loopd.messages", json!({"dropped": true}))
        .await;
    assert_eq!(
        dropped["messages"].as_array().unwrap().len(),
        5,
        "{dropped}"
    );
    session.ask("third question").await;
    let last = daemon.script().last_request();
    assert!(!text(&last).contains("first question"), "{}", text(&last));
    let listed = session.call("loopd.messages", json!({})).await.to_string();
    assert!(listed.contains("\"kind\":\"cleared\""), "{listed}");

    // Back to before the clear: the whole conversation counts again.
    let events = session.messages().await;
    let mut prompts = events.iter().filter(|it| it["type"] == "user.message");
    let second = prompts.nth(1).unwrap()["id"].clone();
    let rewind = json!({"eventId": second});
    session.call("session.history.truncate", rewind).await;
    session.ask("other question").await;
    let last = text(&daemon.script().last_request());
    assert!(last.contains("first question"), "{last}");
    assert!(!last.contains("second question") && !last.contains("third question"));
    daemon.finish().await;
}

#[tokio::test]
async fn words_behind_the_command_are_what_the_conversation_begins_with() {
    let daemon = Daemon::playing([Turn::user("one").says("first")]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    let done = invoke(&session, "clear", "do this instead").await;
    assert_eq!(done["kind"], "agent-prompt", "{done}");
    assert_eq!(done["prompt"], "do this instead");
    assert_eq!(daemon.state(&session.id).await.conversation_tokens(), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_cleared_session_is_cleared_after_a_restart_and_keeps_its_todos() {
    let script = Script::answering(|request| {
        if request.last_user_text().contains("plan") && request.last_results().is_empty() {
            let todos = json!({"todos": [
                {"id": "t1", "content": "write the parser", "status": "pending", "priority": "high"},
            ]});
            return Turn::any().calls([call("c1", "todowrite", todos)]);
        }
        Turn::any().says("well")
    });
    let mut daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("plan it").await;
    invoke(&session, "clear", "").await;
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    session.ask("go on").await;
    let last = text(&daemon.script().last_request());
    assert!(!last.contains("plan it"), "{last}");
    let todos = session.call("loopd.todos", json!({})).await.to_string();
    assert!(todos.contains("write the parser"), "{todos}");
    daemon.finish().await;
}
