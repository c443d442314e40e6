//! Answers about a plan that cannot be used, and plans that nobody has to answer any more.

use super::*;

const METHOD: &str = "session.ui.handlePendingExitPlanMode";

async fn proposed(arguments: Value, last: Turn) -> (Daemon, Session) {
    let daemon = daemon(vec![
        Turn::user("go").calls([call("exit", "exit_plan_mode", arguments)]),
        last,
    ])
    .await;
    let offer = json!({"requestExitPlanMode": true, "autopilot": quiet()["autopilot"]});
    let session = daemon.client().create(offer).await;
    set(&session, "plan").await;
    session.send("go").await;
    (daemon, session)
}

async fn mode(session: &Session) -> Value {
    session.call("session.mode.get", json!({})).await
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_fails_the_call_and_plan_mode_stays() {
    let answers = [
        (Value::Null, "null"),
        (json!({}), "approved"),
        (json!({"approved": "yes"}), "yes"),
        (
            json!({"approved": true, "selectedAction": "frobnicate"}),
            "frobnicate",
        ),
        (
            json!({"approved": true, "selectedAction": "autopilot"}),
            "was not offered",
        ),
        (
            json!({"approved": true, "selectedAction": "autopilot_fleet"}),
            "was not offered",
        ),
    ];
    for (answer, why) in answers {
        let actions =
            json!({"summary": "Short", "plan": "1. Do", "actions": ["interactive", "exit_only"]});
        let last = Turn::results(["still in plan mode"]).says("done");
        let (daemon, mut session) = proposed(actions, last).await;
        let request = session.client().request("exitPlanMode.request").await;
        request.answer(answer.clone());
        let warning = session.next("session.warning").await;
        assert_eq!(warning["data"]["warningType"], "exit_plan_mode_answer");
        let message = warning["data"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{answer}: {message}");
        session.next("session.idle").await;
        assert_eq!(mode(&session).await, "plan", "{answer}");
        let told = result_of(&session, "exit");
        assert!(told.contains(why), "{answer}: {told}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn an_error_in_the_place_of_an_answer_fails_the_call() {
    let last = Turn::results(["still in plan mode"]).says("done");
    let (daemon, mut session) = proposed(json!({"summary": "Short", "plan": "1. Do"}), last).await;
    let request = session.client().request("exitPlanMode.request").await;
    request.refuse(-32603, "the handler threw");
    session.next("session.warning").await;
    session.next("session.idle").await;
    assert!(result_of(&session, "exit").contains("the handler threw"));
    assert_eq!(mode(&session).await, "plan");
    daemon.finish().await;
}

#[tokio::test]
async fn a_method_that_chooses_what_was_not_offered_may_choose_again() {
    let last = Turn::results(["Do not begin"]).says("done");
    let actions = json!({"summary": "Short", "plan": "1. Do", "actions": ["exit_only"]});
    let (daemon, mut session) = proposed(actions, last).await;
    let request = session.client().request("exitPlanMode.request").await;
    let asked = session.next("exit_plan_mode.requested").await;
    let answer =
        |response: Value| json!({"requestId": asked["data"]["requestId"], "response": response});
    let chosen = answer(json!({"approved": true, "selectedAction": "autopilot"}));
    let refused = session.refused(METHOD, chosen).await;
    assert!(
        refused.message.contains("autopilot was not offered"),
        "{refused}"
    );
    assert_eq!(mode(&session).await, "plan");
    // Without a choice, what was offered counts.
    let done = session
        .call(METHOD, answer(json!({"approved": true})))
        .await;
    assert_eq!(done["success"], true);
    request.withdrawn().await;
    session.next("session.idle").await;
    assert_eq!(mode(&session).await, "interactive");
    daemon.finish().await;
}

#[tokio::test]
async fn a_mode_that_is_set_closes_the_question() {
    for (set_to, told) in [
        ("interactive", "interactive mode"),
        ("autopilot", "autopilot mode"),
    ] {
        let last = Turn::results([told]).says("done");
        let plan = json!({"summary": "Short", "plan": "1. Do"});
        let (daemon, mut session) = proposed(plan, last).await;
        let request = session.client().request("exitPlanMode.request").await;
        set(&session, set_to).await;
        request.withdrawn().await;
        session.next("exit_plan_mode.completed").await;
        session.next("session.idle").await;
        assert!(result_of(&session, "exit").contains("without an answer"));
        assert_eq!(mode(&session).await, set_to);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_command_that_runs_is_named_when_plan_mode_begins() {
    let daemon = daemon(vec![
        Turn::user("go").calls([bash("c", "read line < pipe; echo $line")]),
        Turn::any().says("done"),
    ])
    .await;
    let pipe = daemon.file("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    // The pipe can be opened once the command reads it.
    let write = move || std::fs::OpenOptions::new().write(true).open(pipe);
    let mut opened = tokio::task::spawn_blocking(write).await.unwrap().unwrap();
    set(&session, "plan").await;
    let warning = session.next("session.warning").await;
    assert_eq!(warning["data"]["warningType"], "plan_mode_running_work");
    let message = warning["data"]["message"].as_str().unwrap();
    assert!(
        message.contains("`read line < pipe; echo $line`"),
        "{message}"
    );
    std::io::Write::write_all(&mut opened, b"end\n").unwrap();
    session.next("session.idle").await;
    daemon.finish().await;
}
