//! The end of plan mode: the model proposes a plan, and a person approves it or does not.

use super::*;

const METHOD: &str = "session.ui.handlePendingExitPlanMode";

fn proposes(prompt: &str, arguments: Value) -> Turn {
    Turn::user(prompt).calls([call("exit", "exit_plan_mode", arguments)])
}

fn short() -> Value {
    json!({"summary": "Short", "plan": "1. Look\n2. Do"})
}

fn create(id: &str) -> loopd_tests::script::Call {
    call(id, "create", json!({"path": "new.txt", "file_text": "x"}))
}

async fn approving(daemon: &Daemon) -> Session {
    let offer = json!({"requestExitPlanMode": true, "autopilot": quiet()["autopilot"]});
    let session = daemon.client().create(offer).await;
    set(&session, "plan").await;
    session
}

async fn mode(session: &Session) -> Value {
    session.call("session.mode.get", json!({})).await
}

async fn answer(session: &Session, request: &Value, response: Value) -> bool {
    let params = json!({"requestId": request, "response": response});
    session.call(METHOD, params).await["success"] == true
}

#[tokio::test]
async fn an_approved_plan_ends_plan_mode_and_the_work_begins() {
    let daemon = daemon(vec![
        proposes("go", short()),
        Turn::results(["Plan approved! Exited plan mode.\n\nYou are now in interactive mode."])
            .calls([create("a")]),
        Turn::results(["Created file"]).says("done"),
    ])
    .await;
    let mut session = approving(&daemon).await;
    session.send("go").await;
    let request = session.client().request("exitPlanMode.request").await;
    let expected = json!({"sessionId": session.id, "summary": "Short", "planContent": "1. Look\n2. Do",
        "actions": ["autopilot", "interactive", "exit_only"], "recommendedAction": "interactive"});
    assert_eq!(request.params, expected);
    let asked = session.next("exit_plan_mode.requested").await;
    assert_eq!(asked["data"]["planContent"], "1. Look\n2. Do");
    assert!(!daemon.file("new.txt").exists());
    request.answer(json!({"approved": true, "selectedAction": "interactive"}));
    let completed = session.next("exit_plan_mode.completed").await;
    assert_eq!(completed["data"]["approved"], true);
    assert_eq!(completed["data"]["selectedAction"], "interactive");
    session.next("session.idle").await;
    assert_eq!(mode(&session).await, "interactive");
    assert!(daemon.file("new.txt").exists());
    let plan = session.call("session.plan.read", json!({})).await;
    assert_eq!(plan["content"], "1. Look\n2. Do");
    assert_eq!(session.count("session.plan_changed"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn each_action_leads_to_its_mode() {
    for (action, expected, told) in [
        ("exit_only", "interactive", "Do not begin"),
        ("interactive", "interactive", "interactive mode"),
        ("autopilot", "autopilot", "autopilot mode"),
    ] {
        let daemon = daemon(vec![
            proposes("go", short()),
            Turn::results([told]).says("done"),
        ])
        .await;
        let mut session = approving(&daemon).await;
        session.send("go").await;
        let request = session.client().request("exitPlanMode.request").await;
        request.answer(json!({"approved": true, "selectedAction": action}));
        session.next("session.idle").await;
        assert_eq!(mode(&session).await, expected, "{action}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_plan_that_is_not_approved_is_changed_in_plan_mode() {
    let daemon = daemon(vec![
        proposes("go", short()),
        Turn::results(["still in plan mode"]).calls([create("a")]),
        Turn::results(["plan mode"]).calls([call(
            "again",
            "exit_plan_mode",
            json!({"summary": "Shorter", "actions": ["exit_only"], "recommendedAction": "autopilot"}),
        )]),
        Turn::results(["Do not begin"]).says("done"),
    ])
    .await;
    let mut session = approving(&daemon).await;
    session.send("go").await;
    let request = session.client().request("exitPlanMode.request").await;
    request.answer(json!({"approved": false, "feedback": "make it smaller"}));
    let again = session.client().request("exitPlanMode.request").await;
    assert!(result_of(&session, "exit").contains("make it smaller"));
    assert_eq!(mode(&session).await, "plan");
    // Without a plan in the call, people are asked about the plan that the session has.
    assert_eq!(again.params["planContent"], "1. Look\n2. Do");
    assert_eq!(again.params["actions"], json!(["exit_only"]));
    assert_eq!(again.params["recommendedAction"], "exit_only");
    again.answer(json!({"approved": true, "selectedAction": "exit_only"}));
    session.next("session.idle").await;
    assert!(!daemon.file("new.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_plan_that_a_person_edited_is_what_the_model_reads() {
    let daemon = daemon(vec![
        proposes("go", short()),
        Turn::results(["The user edited the plan. This is the plan now:\n\n1. Only look"])
            .says("done"),
    ])
    .await;
    let mut session = approving(&daemon).await;
    session.send("go").await;
    let request = session.client().request("exitPlanMode.request").await;
    let asked = session.next("exit_plan_mode.requested").await["data"]["requestId"].clone();
    session.next("session.plan_changed").await;
    session
        .call("session.plan.update", json!({"content": "1. Only look"}))
        .await;
    assert!(answer(&session, &asked, json!({"approved": true})).await);
    request.withdrawn().await;
    session.next("session.idle").await;
    assert_eq!(mode(&session).await, "interactive");
    assert!(
        !answer(&session, &asked, json!({"approved": true})).await,
        "the first answer counted"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn edits_are_asked_about_no_more_if_the_person_says_so() {
    let script = Script::play(vec![
        proposes("go", short()),
        Turn::any().calls([create("a")]),
        Turn::results(["Created file"]).says("done"),
    ]);
    let daemon = Daemon::with(script.await).await;
    let offer = json!({"requestExitPlanMode": true, "requestPermission": true, "autopilot": quiet()["autopilot"]});
    let mut session = daemon.client().create(offer).await;
    set(&session, "plan").await;
    session.send("go").await;
    let request = session.client().request("exitPlanMode.request").await;
    request.answer(json!({"approved": true, "autoApproveEdits": true}));
    session.next("session.idle").await;
    assert_eq!(mode(&session).await, "autopilot");
    assert_eq!(session.count("permission.requested"), 0);
    assert!(daemon.file("new.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn the_tool_is_offered_where_it_can_work() {
    let daemon = daemon(vec![
        Turn::user("one").says("1"),
        Turn::user("two").says("2"),
        Turn::user("three").says("3"),
        Turn::user("four").calls([call("exit", "exit_plan_mode", short())]),
        Turn::results(["Tool 'exit_plan_mode' does not exist"]).says("4"),
    ])
    .await;
    let offered = |daemon: &Daemon| {
        let request = daemon.script().last_request();
        request.tools().contains(&"exit_plan_mode")
    };
    let mut silent = planning(&daemon).await;
    silent.ask("one").await;
    assert!(!offered(&daemon), "nobody could be asked");
    let mut session = approving(&daemon).await;
    session.ask("two").await;
    assert!(offered(&daemon));
    set(&session, "interactive").await;
    session.ask("three").await;
    assert!(!offered(&daemon), "the session is not in plan mode");
    session.ask("four").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_open_plan_outlives_the_client_and_the_daemon() {
    let daemon = daemon(vec![
        proposes("go", short()),
        Turn::results(["Plan approved!"]).says("done"),
    ])
    .await;
    let mut one = approving(&daemon).await;
    one.send("go").await;
    drop(one.client().request("exitPlanMode.request").await);
    one.next("exit_plan_mode.requested").await;
    one.next("session.plan_changed").await;
    one.client().vanish().await;
    daemon.live(&one.id).stop().await;
    let offer = json!({"requestExitPlanMode": true, "continuePendingWork": true});
    let mut two = daemon.client().resume(&one.id, offer).await;
    let again = two.client().request("exitPlanMode.request").await;
    assert_eq!(again.params["summary"], "Short");
    assert_eq!(mode(&two).await, "plan");
    again.answer(json!({"approved": true}));
    two.next("session.idle").await;
    assert_eq!(mode(&two).await, "interactive");
    daemon.finish().await;
}
