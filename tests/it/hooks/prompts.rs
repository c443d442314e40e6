//! Hooks around prompts, notifications and failed model calls.

use loopd_tests::{Daemon, Latch, Script, Turn, call};
use serde_json::{Value, json};

use super::support::{HookApp, HookReply, bash, hooked, offer, permit};

#[tokio::test]
async fn a_prompt_can_be_changed() {
    let (daemon, mut session) = hooked([Turn::user("another prompt").says("ok")]).await;
    let app = HookApp::on(session.client(), |kind, input| match kind {
        "userPromptSubmitted" if input["prompt"] == "my prompt" => {
            HookReply::Output(json!({"modifiedPrompt": "another prompt"}))
        }
        _ => HookReply::Nothing,
    });
    session.ask("my prompt").await;
    assert!(!daemon.script().last_request().raw.contains("my prompt"));
    let transformed = app.inputs("userPromptTransformed");
    assert_eq!(transformed.len(), 1);
    let text = transformed[0]["transformedPrompt"].as_str().unwrap();
    assert!(text.contains("another prompt"), "{text}");
    daemon.finish().await;
}

#[tokio::test]
async fn what_the_model_gets_of_a_prompt_can_be_changed() {
    let (daemon, mut session) = hooked([Turn::user("all new").says("ok")]).await;
    let changed = json!({"modifiedTransformedPrompt": "all new"});
    let _app = HookApp::saying(session.client(), "userPromptTransformed", changed);
    session.ask("my prompt").await;
    assert!(!daemon.script().last_request().raw.contains("my prompt"));
    daemon.finish().await;
}

#[tokio::test]
async fn a_blocked_prompt_reaches_no_model_and_the_next_one_does() {
    let (daemon, mut session) = hooked([Turn::user("harmless").says("ok")]).await;
    let _app = HookApp::on(session.client(), |kind, input| match kind {
        "userPromptSubmitted" if input["prompt"] == "a sordid secret" => {
            HookReply::Output(json!({"decision": "block", "reason": "it is a secret"}))
        }
        _ => HookReply::Nothing,
    });
    session.send("a sordid secret").await;
    let error = session.next("session.error").await;
    let message = error["data"]["message"].as_str().unwrap();
    for part in ["userPromptSubmitted hook", "it is a secret"] {
        assert!(message.contains(part), "{message}");
    }
    session.next("session.idle").await;
    assert_eq!(daemon.script().requests().len(), 0);
    session.ask("harmless").await;
    assert!(!daemon.script().last_request().raw.contains("sordid"));
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_begins_with_what_its_hook_tells_the_model() {
    let turns = [
        Turn::user("one").says("ok"),
        Turn::user("two").says("ok"),
        Turn::user("three").says("ok"),
    ];
    let mut daemon = Daemon::playing(turns).await;
    let mut session = daemon.client().create(offer()).await;
    let context = json!({"additionalContext": "be brief"});
    let app = HookApp::saying(session.client(), "sessionStart", context.clone());
    session.ask("one").await;
    session.ask("two").await;
    let asked = app.inputs("sessionStart");
    assert_eq!(asked.len(), 1, "a session begins once");
    assert_eq!(asked[0]["source"], "new");
    assert_eq!(asked[0]["initialPrompt"], "one");
    assert!(daemon.script().requests()[0].raw.contains("be brief"));
    drop(app);
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, offer()).await;
    let app = HookApp::saying(session.client(), "sessionStart", context);
    session.ask("three").await;
    assert_eq!(app.inputs("sessionStart")[0]["source"], "resume");
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_is_told_that_a_session_ends() {
    let (daemon, mut session) = hooked([Turn::user("go").says("ok")]).await;
    let app = HookApp::silent(session.client());
    session.ask("go").await;
    session.destroy().await;
    let ended = app.inputs("sessionEnd");
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["reason"], "user_exit");
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_is_told_what_people_are_notified_of() {
    let folder = tempfile::TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let background = call(
        "b",
        "bash",
        json!({"command": latch.wait(), "mode": "async", "shellId": "build",
               "description": "Build it"}),
    );
    let (daemon, mut session) = hooked([
        Turn::user("go").calls([background]),
        Turn::any().says("started"),
        Turn::any().says("it is built"),
    ])
    .await;
    let app = HookApp::on(session.client(), |kind, input| match kind {
        "notification" if input["notification_type"] == "permission_prompt" => {
            HookReply::Output(json!({"additionalContext": "somebody was asked"}))
        }
        _ => HookReply::Nothing,
    });
    session.send("go").await;
    let (id, _) = session.permission().await;
    let asked = app.asked("notification", 1).await;
    assert_eq!(asked["notification_type"], "permission_prompt");
    assert!(session.decide(&id, json!({"kind": "approve-once"})).await);
    session.next("session.idle").await;
    latch.release("x").await;
    session.next("system.notification").await;
    session.next("session.idle").await;
    let told = app.asked("notification", 2).await;
    let kind = told["notification_type"].as_str().unwrap();
    assert!(kind.starts_with("shell"), "{told}");
    let last = daemon.script().last_request();
    assert!(last.raw.contains("somebody was asked"), "{}", last.raw);
    daemon.finish().await;
}

#[tokio::test]
async fn a_failed_model_call_is_made_again_as_often_as_a_hook_wants() {
    let (daemon, mut session) = hooked([
        Turn::user("go").fails(400, "first"),
        Turn::user("go").fails(400, "second"),
        Turn::user("go").says("third time lucky"),
    ])
    .await;
    let retry = json!({"errorHandling": "retry", "retryCount": 2});
    let app = HookApp::saying(session.client(), "errorOccurred", retry);
    session.ask("go").await;
    let errors = app.inputs("errorOccurred");
    assert_eq!(errors.len(), 2);
    assert_eq!(errors[0]["errorContext"], "model_call");
    assert!(errors[1]["error"].as_str().unwrap().contains("second"));
    assert_eq!(session.count("session.error"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_cannot_have_a_model_call_made_for_ever() {
    let script = Script::answering(|_| Turn::any().fails(400, "no")).await;
    let daemon = Daemon::with(script).await;
    let mut session = daemon.client().create(offer()).await;
    let retry = json!({"errorHandling": "retry", "retryCount": 1_000_000});
    let _app = HookApp::saying(session.client(), "errorOccurred", retry);
    session.send("go").await;
    session.next("session.error").await;
    session.next("session.idle").await;
    assert_eq!(daemon.script().requests().len(), 6);
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_is_told_what_a_person_is_asked() {
    // The hook of a client has nothing to say; the question is for the person.
    let (daemon, mut session) = hooked([
        Turn::user("go").calls([bash("c", "echo hi")]),
        Turn::any().says("done"),
    ])
    .await;
    let app = HookApp::silent(session.client());
    session.send("go").await;
    let request = permit(&mut session).await;
    session.next("session.idle").await;
    let told = app.asked("notification", 1).await;
    assert_eq!(told["message"], request["fullCommandText"]);
    assert_eq!(told["title"], Value::from("Permission needed"));
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_that_its_start_hook_stops_does_not_begin_with_the_next_prompt() {
    let (daemon, mut session) = hooked([Turn::user("three").says("ok")]).await;
    let mut starts = 0;
    let _app = HookApp::on(session.client(), move |kind, _| {
        starts += usize::from(kind == "sessionStart");
        match kind {
            "sessionStart" if starts < 3 => HookReply::Output(json!({"continue": false})),
            _ => HookReply::Nothing,
        }
    });
    for prompt in ["one", "two"] {
        session.send(prompt).await;
        session.next("session.error").await;
        session.next("session.idle").await;
    }
    assert_eq!(daemon.script().requests().len(), 0);
    session.ask("three").await;
    daemon.finish().await;
}
