//! What clients answer to the daemon's requests, and what a model gives to its calls, has a limit: it
//! is refused by name, and the connections go on.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_large_answer_to_a_question_is_refused_and_the_question_stays_open() {
    for bytes in [17 * MIB, 70 * MIB] {
        let daemon = Daemon::playing([
            Turn::user("go").calls([call("q", "ask_user", json!({"question": "Which one?"}))]),
            Turn::results(["User responded: small"]).says("ok"),
        ])
        .await;
        let mut session = daemon
            .client()
            .create(json!({"requestUserInput": true}))
            .await;
        session.send("go").await;
        let request = session.client().request("userInput.request").await;
        let asked = session.next("user_input.requested").await["data"]["requestId"].clone();
        request.answer(json!({"answer": "z".repeat(bytes), "wasFreeform": true}));
        let warning = session.next("session.warning").await;
        let message = warning["data"]["message"].as_str().unwrap();
        assert!(message.contains("limit"), "{message}");
        assert!(message.contains("stays open"), "{message}");
        session.client().call("ping", json!({})).await;
        let response = json!({"answer": "small", "wasFreeform": true});
        let params = json!({"requestId": asked, "response": response});
        let answered = session
            .call("session.ui.handlePendingUserInput", params)
            .await;
        assert_eq!(answered["success"], true);
        session.next("session.idle").await;
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_call_with_large_arguments_is_refused_and_nobody_is_cut() {
    let large = "z".repeat(20 * MIB);
    let small = "z".repeat(3 * MIB);
    let create = |id: &str, name: &str, text: &str| {
        let path = format!("/nowhere/{name}");
        call(id, "create", json!({"path": path, "file_text": text}))
    };
    let script = Script::play([
        Turn::user("go").calls([create("a", "a.txt", &large)]),
        Turn::any().calls([create("b", "b.txt", &small), create("c", "c.txt", &small)]),
        Turn::any().says("done"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    // Without compaction, because three MiB are more than the model takes.
    let whole = json!({"infiniteSessions": {"enabled": false}});
    let mut one = daemon.client().create(whole).await;
    let mut two = daemon.client().resume(&one.id, json!({})).await;
    one.send("go").await;
    one.next("session.idle").await;
    two.next("session.idle").await;
    let requests = daemon.script().requests();
    let first = requests[1].last_results();
    assert!(first[0].contains("20971"), "{first:?}");
    assert!(first[0].contains("limit of 4194304 bytes"), "{first:?}");
    let second = requests[2].last_results();
    assert!(!second[0].contains("limit of"), "{second:?}");
    assert!(second[1].contains("limit of 4194304 bytes"), "{second:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn of_an_answer_with_hundreds_of_calls_the_first_are_run_and_an_abort_is_heard() {
    let look = |prefix: &'static str| {
        let calls = (0..300).map(move |number| {
            let id = format!("{prefix}{number}");
            call(&id, "view", json!({"path": "/nowhere/at/all"}))
        });
        calls.collect::<Vec<_>>()
    };
    let hold = call("hold", "bash", json!({"command": "tail -f /dev/null"}));
    let script = Script::play([
        Turn::user("go").calls(look("a")),
        Turn::any().says("so many"),
        // The first of them does not end by itself.
        Turn::user("again").calls([hold].into_iter().chain(look("b"))),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    let refused = |event: &&serde_json::Value| {
        event["type"] == "tool.execution_complete"
            && event["data"]["error"]["code"] == "too_many_calls"
    };
    let events = session.events();
    assert_eq!(events.iter().filter(refused).count(), 300 - 128);
    assert_eq!(session.count("tool.execution_complete"), 300);
    session.send("again").await;
    session.next("tool.execution_start").await;
    session.call("session.abort", json!({})).await;
    session.next("session.idle").await;
    daemon.finish().await;
}
