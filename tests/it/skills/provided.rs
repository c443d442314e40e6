//! Skills that an app provides: it lists them, and sends a text when it is used.

use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

use super::{list, offered, skill, warnings};

fn provided() -> Value {
    json!({"skills": [
        {"name": "ship", "description": "Ships it."},
        {"name": "manual", "description": "By hand.", "disableModelInvocation": true},
    ]})
}

#[tokio::test]
async fn an_app_lists_its_skills_and_sends_the_text_of_one() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("a", "skill", json!({"skill": "ship"}))]),
        Turn::any().says("shipped"),
    ])
    .await;
    skill(&daemon, "ship", "", "A file of the same name.");
    let client = daemon.client();
    let params = json!({"hasSkillProvider": true, "skillDirectories": ["lib"]});
    let mut session = client.create(params).await;
    let asked = client.request("skillProvider.list").await;
    assert_eq!(asked.params, json!({"sessionId": session.id}));
    asked.answer(provided());
    session.next("session.skills_loaded").await;
    assert_eq!(list(&session).await, ["ship", "manual"]);
    session.send("go").await;
    let asked = client.request("skillProvider.read").await;
    assert_eq!(
        asked.params,
        json!({"sessionId": session.id, "name": "ship"})
    );
    asked.answer(json!({"markdown": "---\nname: ship\ndescription: Ships it.\nallowed-tools: Read\n---\nShip.\n"}));
    session.next("session.idle").await;
    let last = daemon.script().last_request();
    let context = "<skill-context name=\"ship\">\nShip.\n\n</skill-context>";
    assert_eq!(text_of(last.messages().last().unwrap()), context);
    assert!(!offered(&daemon).unwrap().contains("manual"));
    let event = session
        .events()
        .into_iter()
        .find(|it| it["type"] == "skill.invoked")
        .unwrap();
    assert_eq!(
        (&event["data"]["path"], &event["data"]["source"]),
        (&json!(""), &json!("sdk"))
    );
    assert_eq!(event["data"]["allowedTools"], json!(["Read"]));
    // A reload asks again.
    let reload = session.start("session.skills.reload", json!({}));
    client
        .request("skillProvider.list")
        .await
        .answer(json!({"skills": []}));
    assert_eq!(reload.await.unwrap(), json!({"warnings": [], "errors": []}));
    assert_eq!(list(&session).await, ["ship"]);
    daemon.finish().await;
}

#[tokio::test]
async fn an_app_that_does_not_keep_its_word_is_named_and_harms_nobody() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("a", "skill", json!({"skill": "ship"}))]),
        Turn::results(["no text today"]).says("no"),
    ])
    .await;
    let client = daemon.client();
    let mut session = client.create(json!({"hasSkillProvider": true})).await;
    client
        .request("skillProvider.list")
        .await
        .answer(json!({"skills": [{"name": "../x", "description": "d"}]}));
    session.next("session.warning").await;
    let told = warnings(&session, &daemon);
    assert!(
        told[0].contains("the skills of an app cannot be used"),
        "{told:#?}"
    );
    let reload = session.start("session.skills.reload", json!({}));
    client
        .request("skillProvider.list")
        .await
        .answer(provided());
    reload.await.unwrap();
    session.send("go").await;
    client
        .request("skillProvider.read")
        .await
        .refuse(-32000, "no text today");
    session.next("session.idle").await;
    daemon.finish().await;
}
