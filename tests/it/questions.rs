//! Questions to people: what the model asks, and forms that clients put to each other.

use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

fn asks(prompt: &str) -> Turn {
    let question = json!({"question": "Which one?", "choices": ["left", "right"]});
    Turn::user(prompt).calls([call("q", "ask_user", question)])
}

async fn listening(daemon: &Daemon) -> Session {
    daemon.client().create(json!({"requestUserInput": true})).await
}

async fn answer(session: &Session, request: &Value, text: &str) -> bool {
    let params = json!({"requestId": request, "response": {"answer": text, "wasFreeform": true}});
    session.call("session.ui.handlePendingUserInput", params).await["success"] == true
}

#[tokio::test]
async fn the_models_question_is_a_request_to_the_client() {
    let daemon = Daemon::playing([asks("go"), Turn::results(["User selected: left"]).says("left it is")]).await;
    let mut session = listening(&daemon).await;
    session.send("go").await;
    let request = session.client().request("userInput.request").await;
    let expected = json!({"sessionId": session.id, "question": "Which one?",
        "choices": ["left", "right"], "allowFreeform": true});
    assert_eq!(request.params, expected);
    request.answer(json!({"answer": "left", "wasFreeform": false}));
    let completed = session.next("user_input.completed").await;
    assert_eq!(completed["data"]["answer"], "left");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn any_client_may_answer_by_method_and_the_request_is_taken_back() {
    let daemon = Daemon::playing([asks("go"), Turn::results(["User responded: neither"]).says("ok")]).await;
    let mut one = listening(&daemon).await;
    let two = daemon.client().resume(&one.id, json!({})).await;
    one.send("go").await;
    let request = one.client().request("userInput.request").await;
    let asked = one.next("user_input.requested").await["data"]["requestId"].clone();
    assert!(answer(&two, &asked, "neither").await);
    request.withdrawn().await;
    assert!(!answer(&two, &asked, "again").await, "a second answer counts for nothing");
    one.next("session.idle").await;
    assert!(two.client().open_requests().is_empty(), "who does not take questions is not asked");
    daemon.finish().await;
}

#[tokio::test]
async fn of_two_clients_that_are_asked_the_first_answers() {
    let daemon = Daemon::playing([asks("go"), Turn::results(["right"]).says("ok")]).await;
    let mut one = listening(&daemon).await;
    let two = daemon.client().resume(&one.id, json!({"requestUserInput": true})).await;
    one.send("go").await;
    let first = one.client().request("userInput.request").await;
    let second = two.client().request("userInput.request").await;
    second.answer(json!({"answer": "right", "wasFreeform": false}));
    first.withdrawn().await;
    one.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_that_fails_to_answer_leaves_the_question_open() {
    let daemon = Daemon::playing([asks("go"), Turn::results(["later"]).says("ok")]).await;
    let mut one = listening(&daemon).await;
    one.send("go").await;
    let request = one.client().request("userInput.request").await;
    let asked = one.next("user_input.requested").await["data"]["requestId"].clone();
    request.refuse(-32603, "the window was closed");
    let two = daemon.client().resume(&one.id, json!({"requestUserInput": true})).await;
    let again = two.client().request("userInput.request").await;
    assert_eq!(again.params["question"], "Which one?", "who comes late is asked, too");
    assert!(answer(&one, &asked, "later").await);
    again.withdrawn().await;
    one.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_open_question_outlives_the_client_and_the_daemon() {
    let daemon = Daemon::playing([asks("go"), Turn::results(["found again"]).says("ok")]).await;
    let mut one = listening(&daemon).await;
    one.send("go").await;
    drop(one.client().request("userInput.request").await);
    one.next("user_input.requested").await;
    one.client().vanish().await;
    daemon.live(&one.id).stop().await;
    let offer = json!({"requestUserInput": true, "continuePendingWork": true});
    let mut two = daemon.client().resume(&one.id, offer).await;
    let again = two.client().request("userInput.request").await;
    again.answer(json!({"answer": "found again", "wasFreeform": true}));
    two.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn the_tool_is_there_only_while_somebody_takes_questions() {
    let daemon = Daemon::playing([
        Turn::user("one").says("1"),
        asks("two"),
        Turn::results(["does not exist"]).says("2"),
        Turn::user("three").says("3"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    assert!(!daemon.script().last_request().tools().contains(&"ask_user"));
    session.ask("two").await;
    daemon.client().resume(&session.id, json!({"requestUserInput": true})).await;
    session.ask("three").await;
    assert!(daemon.script().last_request().tools().contains(&"ask_user"));
    daemon.finish().await;
}

fn form() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"message": "Who are you?", "requestedSchema": schema})
}

async fn fill(session: &Session, request: &Value, result: Value) -> bool {
    let params = json!({"requestId": request, "result": result});
    session.call("session.ui.handlePendingElicitation", params).await["success"] == true
}

#[tokio::test]
async fn a_form_goes_to_everyone_and_the_first_answer_to_the_asker() {
    let daemon = Daemon::playing([]).await;
    let mut one = daemon.client().create(json!({"requestElicitation": true})).await;
    let mut two = daemon.client().resume(&one.id, json!({"requestElicitation": true})).await;
    for (result, expected) in [
        (json!({"action": "accept", "content": {"name": "Ada"}}), json!({"action": "accept", "content": {"name": "Ada"}})),
        (json!({"action": "decline"}), json!({"action": "decline"})),
        (json!({"action": "cancel"}), json!({"action": "cancel"})),
    ] {
        let waiting = one.start("session.ui.elicitation", form());
        let asked = two.next("elicitation.requested").await["data"].clone();
        assert_eq!(asked["message"], "Who are you?");
        assert_eq!(asked["requestedSchema"], form()["requestedSchema"]);
        assert!(fill(&two, &asked["requestId"], result.clone()).await);
        assert!(!fill(&one, &asked["requestId"], json!({"action": "cancel"})).await);
        assert_eq!(waiting.await.unwrap(), expected);
        let completed = one.next("elicitation.completed").await;
        assert_eq!(completed["data"]["action"], result["action"]);
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_form_that_nobody_can_show_is_refused() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let error = session.refused("session.ui.elicitation", form()).await;
    assert!(error.message.contains("requestElicitation"), "{error}");
    daemon.finish().await;
}

#[tokio::test]
async fn the_others_learn_when_somebody_who_can_show_forms_comes_and_goes() {
    let daemon = Daemon::playing([]).await;
    let mut one = daemon.client().create(json!({})).await;
    let client = daemon.client();
    let two = client.resume(&one.id, json!({"requestElicitation": true})).await;
    let changed = one.next("capabilities.changed").await;
    assert_eq!(changed["data"], json!({"ui": {"elicitation": true}}));
    two.client().vanish().await;
    let changed = one.next("capabilities.changed").await;
    assert_eq!(changed["data"], json!({"ui": {"elicitation": false}}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_form_whose_reader_leaves_is_shown_to_the_next_one() {
    let daemon = Daemon::playing([]).await;
    let one = daemon.client().create(json!({})).await;
    let reader = json!({"requestElicitation": true});
    let mut two = daemon.client().resume(&one.id, reader.clone()).await;
    let waiting = one.start("session.ui.elicitation", form());
    let asked = two.next("elicitation.requested").await["data"].clone();
    two.client().vanish().await;
    let mut three = daemon.client().resume(&one.id, reader).await;
    let again = three.next("elicitation.requested").await["data"].clone();
    assert_eq!(again, asked);
    assert!(fill(&three, &asked["requestId"], json!({"action": "decline"})).await);
    assert_eq!(waiting.await.unwrap(), json!({"action": "decline"}));
    daemon.finish().await;
}
