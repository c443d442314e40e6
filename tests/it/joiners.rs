//! Clients that join a session which others use: they get its events and bring their own tools, and
//! its settings stay as they are. Also forms, whose askers may go.

use loopd_tests::{Daemon, Script, Turn};
use serde_json::{Value, json};

#[tokio::test]
async fn who_joins_others_changes_no_setting_and_is_told_so() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let mut first = daemon.client().create(json!({})).await;
    let before = daemon.state(&first.id).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let wanted = json!({
        "provider": {"type": "openai", "baseUrl": "http://127.0.0.1:9/", "apiKey": "other"},
        "workingDirectory": elsewhere.path(),
        "availableTools": ["view"],
        "systemMessage": {"mode": "replace", "content": "You are somebody else."},
        "streaming": true,
    });
    let mut second = daemon.client().resume(&first.id, wanted).await;
    let told = second.next("session.info").await;
    let message = told["data"]["message"].as_str().unwrap();
    for name in [
        "provider",
        "workingDirectory",
        "availableTools",
        "systemMessage",
        "streaming",
    ] {
        assert!(message.contains(name), "{message}");
    }
    let after = daemon.state(&first.id).await;
    assert_eq!((after.options, after.cwd), (before.options, before.cwd));
    // The model of the first client answers, to both.
    second.send("hello").await;
    second.next("session.idle").await;
    first.next("session.idle").await;
    assert_eq!(first.count("session.info"), 0, "only the second is told");
    daemon.finish().await;
}

#[tokio::test]
async fn who_joins_others_after_a_restart_brings_the_missing_key() {
    let script = Script::play([Turn::user("hello").says("hi")]).await;
    let mut daemon = Daemon::with(script).await;
    let session = daemon.client().create(json!({})).await;
    let provider =
        json!({"type": "openai", "baseUrl": daemon.script().url(), "apiKey": "secret-key"});
    let id = session.id.clone();
    daemon.restart().await;
    let bare = json!({"provider": null, "model": null});
    let mut looking = daemon.client().resume(&id, bare).await;
    let with_key = json!({"provider": provider, "model": null});
    let mut second = daemon.client().resume(&id, with_key).await;
    second.send("hello").await;
    second.next("session.idle").await;
    looking.next("session.idle").await;
    let request = daemon.script().last_request();
    assert_eq!(request.header("authorization"), Some("Bearer secret-key"));
    daemon.finish().await;
}

fn form() -> Value {
    let fields =
        json!({"age": {"type": "integer"}, "size": {"type": "string", "enum": ["s", "m"]}});
    let schema = json!({"type": "object", "properties": fields, "required": ["age"]});
    json!({"message": "How old?", "requestedSchema": schema})
}

fn filled_in(asked: &Value, content: Value) -> Value {
    let result = json!({"action": "accept", "content": content});
    json!({"requestId": asked["data"]["requestId"], "result": result})
}

#[tokio::test]
async fn a_form_is_filled_in_as_it_was_asked_for() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let mut session = client.create(json!({"requestElicitation": true})).await;
    let answer = session.start("session.ui.elicitation", form());
    let asked = session.next("elicitation.requested").await;
    let method = "session.ui.handlePendingElicitation";
    for (content, named) in [
        (json!({}), "content.age"),
        (json!({"age": "old"}), "content.age"),
        (json!({"age": 3, "size": "xl"}), "content.size"),
    ] {
        let error = session.refused(method, filled_in(&asked, content)).await;
        assert!(error.message.contains(named), "{error}");
    }
    let done = session
        .call(method, filled_in(&asked, json!({"age": 3})))
        .await;
    assert_eq!(done["success"], true);
    assert_eq!(answer.await.unwrap()["content"], json!({"age": 3}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_form_is_closed_when_its_asker_is_gone() {
    let daemon = Daemon::playing([]).await;
    let reader = json!({"requestElicitation": true});
    let mut reading = daemon.client().create(reader.clone()).await;
    let asker = daemon.client();
    let guest = asker.resume(&reading.id, json!({})).await;
    let answer = guest.start("session.ui.elicitation", form());
    let shown = reading.next("elicitation.requested").await;
    asker.vanish().await;
    drop(answer);
    let closed = reading.next("elicitation.completed").await;
    assert_eq!(closed["data"]["requestId"], shown["data"]["requestId"]);
    assert_eq!(closed["data"]["action"], "cancel");
    let method = "session.ui.handlePendingElicitation";
    let late = reading
        .call(method, filled_in(&shown, json!({"age": 3})))
        .await;
    assert_eq!(late["success"], false);
    assert_eq!(daemon.state(&reading.id).await.questions.forms().count(), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_joiner_that_wants_to_allow_everything_is_told_that_others_decide_it() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let options = loopd::launch::LaunchOptions {
        yolo: true,
        ..Default::default()
    };
    let work = daemon.work().to_owned();
    let launch = loopd::launch::Launch::new(work, std::collections::BTreeMap::new(), options);
    let client = daemon.client_of(std::sync::Arc::new(launch));
    let mut joiner = client.resume(&session.id, json!({})).await;
    let kept = joiner.next("session.info").await;
    assert_eq!(kept["data"]["infoType"], "settings_kept");
    let told = kept["data"]["message"].as_str().unwrap();
    assert!(told.contains("--yolo"), "{told}");
    assert!(!told.contains("its settings stay"), "{told}");
    daemon.finish().await;
}
