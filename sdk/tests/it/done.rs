//! What "done" means to a caller, and the outcome that says what came.

use loopd_sdk::{
    AutopilotOptions, Mode, PermissionDecision, Session, SessionConfig, StopReason, TurnOutcome,
    Wait,
};
use loopd_tests::script::Call;
use loopd_tests::{Gate, Script, Turn, call};
use serde_json::{Value, json};

use crate::home::{Home, until, within};

/// A session whose model plays a script.
async fn session(home: &Home, script: &Script, max_continues: Option<u64>) -> Session {
    let mut options = home.options();
    let env = options.env.get_or_insert_default();
    env.insert("OPENAI_BASE_URL".to_owned(), format!("{}/v1", script.url()));
    env.insert("LOOPD_MODEL".to_owned(), "scripted".to_owned());
    let client = within("a connection", loopd_sdk::Client::connect(options));
    let client = client.await.unwrap();
    let allow = |_| async { PermissionDecision::ApproveOnce {} };
    let mut config = SessionConfig::new().on_permission(allow);
    config.options.autopilot = Some(AutopilotOptions {
        max_continues,
        ..AutopilotOptions::default()
    });
    let session = within("a session", client.create(config)).await;
    session.unwrap()
}

fn complete(arguments: Value) -> Call {
    call("c", "task_complete", arguments)
}

/// A model whose main agent starts another one, which answers when the gate opens, and then says
/// these things.
async fn with_an_agent(gate: &Gate, then: impl IntoIterator<Item = Turn>) -> Script {
    let task = json!({"prompt": "look", "description": "d", "mode": "background",
                      "agent_type": "general-purpose"});
    let mut main = vec![Turn::user("go").calls([call("t", "task", task)])];
    main.extend(then);
    let agent = vec![Turn::user("look").says("seen").held_by(gate)];
    Script::voices([("go", main), ("look", agent)]).await
}

#[tokio::test]
async fn a_caller_can_wait_for_the_answer_while_others_work() {
    let home = Home::new();
    let gate = Gate::new();
    let mut script = with_an_agent(
        &gate,
        [
            Turn::results([""]).says("started"),
            Turn::user("<system_notification>").says("it was seen"),
        ],
    )
    .await;
    let session = session(&home, &script, None).await;
    let mut events = session.events();
    let reply = within(
        "the answer",
        session.send_and_wait_for("go", Wait::Foreground),
    );
    let reply = reply.await.unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.outcome),
        ("started", TurnOutcome::Answered)
    );
    gate.open();
    until(&mut events, "session.idle").await;
    session.destroy().await.unwrap();
    script.finish();
}

#[tokio::test]
async fn a_caller_can_wait_until_all_work_has_ended() {
    let home = Home::new();
    let gate = Gate::new();
    gate.open();
    let mut script = with_an_agent(
        &gate,
        [
            Turn::results([""]).says("started"),
            Turn::user("<system_notification>").says("it was seen"),
        ],
    )
    .await;
    let session = session(&home, &script, None).await;
    let reply = within("idle", session.send_and_wait("go")).await.unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.outcome),
        ("it was seen", TurnOutcome::Idle)
    );
    session.destroy().await.unwrap();
    script.finish();
}

#[tokio::test]
async fn a_caller_can_wait_for_the_task_to_be_complete() {
    let home = Home::new();
    let gate = Gate::new();
    let mut script = with_an_agent(
        &gate,
        [
            Turn::results([""])
                .says_and_calls("all is built", [complete(json!({"summary": "built"}))]),
            Turn::user("<system_notification>").says("thanks"),
        ],
    )
    .await;
    let session = session(&home, &script, None).await;
    session.set_mode(Mode::Autopilot).await.unwrap();
    let mut events = session.events();
    // The other agent is held back, so the session is not idle when this returns.
    let reply = within("the task", session.send_and_wait_for("go", Wait::Task)).await;
    let reply = reply.unwrap();
    let summary = "built".to_owned();
    assert_eq!(reply.outcome, TurnOutcome::Completed { summary });
    assert_eq!(reply.text, "all is built");
    gate.open();
    until(&mut events, "session.idle").await;
    session.destroy().await.unwrap();
    script.finish();
}

#[tokio::test]
async fn blocked_and_stopped_are_no_completion() {
    let home = Home::new();
    let blocked = json!({"summary": "half", "blocked": "a key"});
    let mut script = Script::play([
        Turn::user("one").calls([complete(blocked)]),
        Turn::user("two").says("I only talk"),
    ])
    .await;
    let session = session(&home, &script, Some(0)).await;
    session.set_mode(Mode::Autopilot).await.unwrap();
    let reply = within("one", session.send_and_wait_for("one", Wait::Task)).await;
    let (summary, needs) = ("half".to_owned(), "a key".to_owned());
    assert_eq!(
        reply.unwrap().outcome,
        TurnOutcome::Blocked { summary, needs }
    );
    let reply = within("two", session.send_and_wait("two")).await.unwrap();
    match reply.outcome {
        TurnOutcome::Stopped { reason, message } => {
            assert_eq!(reason, StopReason::CapReached);
            assert!(message.unwrap().contains("maxContinues"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(session.autopilot().await.unwrap().max_continues, 0);
    session.destroy().await.unwrap();
    script.finish();
}

#[tokio::test]
async fn in_other_modes_a_wait_for_the_task_ends_with_idle() {
    let home = Home::new();
    let mut script = Script::play([Turn::user("hi").says("hello")]).await;
    let session = session(&home, &script, None).await;
    let reply = within("hi", session.send_and_wait_for("hi", Wait::Task)).await;
    assert_eq!(reply.unwrap().outcome, TurnOutcome::Idle);
    let paused = session.pause_autopilot().await.unwrap();
    assert!(!paused.changed && !paused.status.paused, "{paused:?}");
    session.destroy().await.unwrap();
    script.finish();
}
