//! Clients whose answers to questions cannot be used: nobody waits for ever without a word.

use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

async fn told(session: &mut Session, kind: &str, words: &str) {
    let is_it =
        |event: &Value| event["type"] == "session.warning" && event["data"]["warningType"] == kind;
    let event = session.next_where(kind, is_it).await;
    let message = event["data"]["message"].as_str().unwrap();
    assert!(message.contains(words), "{message}");
}

#[tokio::test]
async fn a_question_to_the_user_stays_open_and_people_are_told() {
    for wrong in [
        json!({"answer": 5}),
        json!(null),
        json!({"wasFreeform": "yes"}),
    ] {
        let ask = call("q", "ask_user", json!({"question": "Which one?"}));
        let daemon = Daemon::playing([
            Turn::user("go").calls([ask]),
            Turn::results(["later"]).says("ok"),
        ])
        .await;
        let mut session = daemon
            .client()
            .create(json!({"requestUserInput": true}))
            .await;
        session.send("go").await;
        let request = session.client().request("userInput.request").await;
        let asked = session.next("user_input.requested").await["data"]["requestId"].clone();
        request.answer(wrong);
        told(&mut session, "user_input", "stays open").await;
        let answer =
            json!({"requestId": asked, "response": {"answer": "later", "wasFreeform": true}});
        let method = "session.ui.handlePendingUserInput";
        assert_eq!(session.call(method, answer).await["success"], true);
        session.next("session.idle").await;
        daemon.finish().await;
    }
}

#[tokio::test]
async fn an_answer_about_another_model_that_cannot_be_used_is_a_no() {
    let limited = Turn::user("go")
        .fails(429, "You have reached your limit.")
        .with_code("user_weekly_rate_limited")
        .with_header("retry-after", "3600");
    let daemon = Daemon::playing([limited]).await;
    let offer = json!({"requestAutoModeSwitch": true});
    let mut session = daemon.client().create(offer).await;
    session.send("go").await;
    let request = session.client().request("autoModeSwitch.request").await;
    request.answer(json!({"response": "perhaps"}));
    told(&mut session, "auto_mode_switch", "counts as a no").await;
    session.next("session.idle").await;
    daemon.finish().await;
}
