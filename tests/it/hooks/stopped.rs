//! A turn that is stopped while hooks are asked: what they have not let through, no model reads.

use loopd_tests::{Daemon, Gate, Lifeline, Session, Turn};
use serde_json::{Value, json};

use super::support::{HookApp, HookReply, bash, hooked, offer};

/// A command whose text does not have what it prints.
const PRINTS: &str = "printf 'open %s\\n' sesame";

async fn abort(session: &mut Session) {
    session.call("session.abort", json!({})).await;
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true);
}

fn last_request(daemon: &Daemon) -> String {
    daemon.script().last_request().raw
}

#[tokio::test]
async fn a_result_that_its_hooks_have_not_let_through_is_kept_back() {
    let (daemon, mut session) = hooked([
        Turn::user("go").calls([bash("a", PRINTS)]),
        Turn::user("next").says("fine"),
    ])
    .await;
    let app = HookApp::on(session.client(), |kind, _| match kind {
        "postToolUse" => HookReply::Never,
        _ => HookReply::Nothing,
    });
    session.approve_all().await;
    session.send("go").await;
    let shown = app.asked("postToolUse", 1).await;
    assert!(shown.to_string().contains("open sesame"), "{shown}");
    abort(&mut session).await;
    session.ask("next").await;
    let request = last_request(&daemon);
    assert!(!request.contains("open sesame"), "{request}");
    assert!(request.contains("is kept back"), "{request}");
    daemon.finish().await;
}

/// Starts a command that prints something and then runs on, and aborts it.
async fn cut(session: &mut Session, lifeline: Lifeline) {
    session.approve_all().await;
    session.send("go").await;
    let command = lifeline.started().await;
    let shows = |event: &Value| {
        event["type"] == "tool.execution_partial_result" && event.to_string().contains("sesame")
    };
    session.next_where("what the command prints", shows).await;
    abort(session).await;
    command.ended().await;
}

#[tokio::test]
async fn hooks_see_what_a_command_had_printed_when_it_was_stopped() {
    let daemon = Daemon::builder();
    let folder = tempfile::TempDir::new().unwrap();
    let lifeline = Lifeline::new(folder.path());
    let command = format!("{PRINTS}; {}", lifeline.command());
    let turns = [
        Turn::user("go").calls([bash("a", &command)]),
        Turn::user("next").says("fine"),
    ];
    let daemon = daemon.script(loopd_tests::Script::play(turns).await);
    let daemon = daemon.start().await;
    let mut session = daemon.client().create(offer()).await;
    let redacted = json!({"modifiedResult": {"textResultForLlm": "open REDACTED"}});
    let app = HookApp::saying(session.client(), "postToolUse", redacted);
    cut(&mut session, lifeline).await;
    assert_eq!(app.inputs("postToolUse").len(), 1);
    session.ask("next").await;
    let request = last_request(&daemon);
    assert!(!request.contains("open sesame"), "{request}");
    assert!(request.contains("open REDACTED"), "{request}");
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_stopped_command_had_printed_is_kept_back_if_no_hook_answers() {
    let folder = tempfile::TempDir::new().unwrap();
    let lifeline = Lifeline::new(folder.path());
    let command = format!("{PRINTS}; {}", lifeline.command());
    let (daemon, mut session) = hooked([
        Turn::user("go").calls([bash("a", &command)]),
        Turn::user("next").says("fine"),
    ])
    .await;
    let _app = HookApp::on(session.client(), |kind, _| match kind {
        "postToolUse" => HookReply::Never,
        _ => HookReply::Nothing,
    });
    cut(&mut session, lifeline).await;
    session.ask("next").await;
    let request = last_request(&daemon);
    assert!(!request.contains("open sesame"), "{request}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_prompt_that_its_hooks_have_not_let_through_is_not_sent_later() {
    let (daemon, mut session) = hooked([Turn::user("harmless").says("ok")]).await;
    let app = HookApp::on(session.client(), |kind, input| match kind {
        "userPromptSubmitted" if input["prompt"] == "a sordid secret" => HookReply::Never,
        _ => HookReply::Nothing,
    });
    session.send("a sordid secret").await;
    app.asked("userPromptSubmitted", 1).await;
    abort(&mut session).await;
    session.ask("harmless").await;
    let request = last_request(&daemon);
    assert!(!request.contains("sordid"), "{request}");
    assert!(request.contains("is kept back"), "{request}");
    daemon.finish().await;
}

/// An app that blocks prompts with this word.
fn blocking(session: &Session) -> HookApp {
    HookApp::on(session.client(), |kind, input| match kind {
        "userPromptSubmitted" if input["prompt"].to_string().contains("sordid") => {
            HookReply::Output(json!({"decision": "block", "reason": "it is a secret"}))
        }
        _ => HookReply::Nothing,
    })
}

async fn steer(session: &Session, prompt: &str) -> String {
    let message = json!({"prompt": prompt, "mode": "immediate"});
    let sent = session.call("session.send", message).await;
    sent["messageId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn of_several_steering_messages_only_the_blocked_one_goes() {
    let gate = Gate::new();
    let (daemon, mut session) = hooked([
        Turn::user("go").calls([bash("a", "true")]).held_by(&gate),
        Turn::user("with care").says("done"),
    ])
    .await;
    let _app = blocking(&session);
    session.approve_all().await;
    session.send("go").await;
    gate.reached().await;
    let blocked = steer(&session, "a sordid secret").await;
    steer(&session, "with care").await;
    gate.open();
    let error = session.next("session.error").await;
    assert_eq!(error["data"]["originatingMessageId"], blocked.as_str());
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"].get("aborted"), None);
    let request = last_request(&daemon);
    assert!(!request.contains("sordid"), "{request}");
    assert!(request.contains("with care"), "{request}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_blocked_steering_message_does_not_end_the_turn_that_it_wanted_to_join() {
    let gate = Gate::new();
    let (daemon, mut session) = hooked([
        Turn::user("go").calls([bash("a", "true")]).held_by(&gate),
        Turn::any().says("done"),
    ])
    .await;
    let _app = blocking(&session);
    session.approve_all().await;
    session.send("go").await;
    gate.reached().await;
    steer(&session, "a sordid secret").await;
    gate.open();
    session.next("session.error").await;
    let said = session.next("assistant.message").await;
    assert_eq!(said["data"]["content"], "done");
    session.next("session.idle").await;
    assert!(!last_request(&daemon).contains("sordid"));
    daemon.finish().await;
}
