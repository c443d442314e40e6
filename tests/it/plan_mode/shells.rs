//! Shells and plan mode: those from before rest, those of plan mode end with it.

use super::*;

fn in_shell(id: &str, shell: &str, command: &str) -> loopd_tests::script::Call {
    call(id, "bash", json!({"command": command, "shellId": shell}))
}

#[tokio::test]
async fn a_shell_from_before_is_refused_by_name_and_works_again_afterwards() {
    let daemon = daemon(vec![
        Turn::user("open").calls([in_shell("a", "old", "word=kept")]),
        Turn::any().says("opened"),
        Turn::user("use it").calls([
            in_shell("b", "old", "echo x > new.txt"),
            call(
                "w",
                "write_bash",
                json!({"shellId": "old", "input": "x{enter}"}),
            ),
            in_shell("c", "new", "echo inside"),
        ]),
        Turn::any().says("refused"),
        Turn::user("again").calls([in_shell("d", "old", "echo $word")]),
        Turn::any().says("used"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("open").await;
    set(&session, "plan").await;
    session.ask("use it").await;
    for id in ["b", "w"] {
        let told = result_of(&session, id);
        assert!(
            told.contains("before plan mode") && told.contains("old"),
            "{id}: {told}"
        );
    }
    assert!(result_of(&session, "c").contains("inside"));
    assert!(!daemon.file("new.txt").exists());
    set(&session, "interactive").await;
    session.ask("again").await;
    assert!(result_of(&session, "d").contains("kept"));
    daemon.finish().await;
}

#[tokio::test]
async fn the_shells_of_plan_mode_end_with_it() {
    let daemon = daemon(vec![
        Turn::user("open").calls([
            in_shell("a", "plan", "word=kept"),
            call(
                "s",
                "bash",
                json!({"command": "sleep 1000", "mode": "async", "shellId": "sleeper"}),
            ),
        ]),
        Turn::any().says("opened"),
        Turn::user("use it").calls([
            call("r", "read_bash", json!({"shellId": "sleeper"})),
            in_shell("b", "plan", "echo x > early.txt"),
        ]),
        Turn::any().says("told"),
        Turn::user("use a new one").calls([in_shell(
            "c",
            "plan",
            "echo \"[$word]\"; echo x > new.txt",
        )]),
        Turn::any().says("used"),
    ])
    .await;
    let mut session = planning(&daemon).await;
    session.ask("open").await;
    set(&session, "interactive").await;
    let id = session.id.clone();
    let ended = |state: &loopd_kernel::state::State| state.tasks.running().next().is_none();
    daemon.until(&id, "the command has ended", ended).await;
    session.ask("use it").await;
    let told = result_of(&session, "r");
    assert!(told.contains("plan mode"), "{told}");
    let told = result_of(&session, "b");
    assert!(told.contains("because plan mode ended"), "{told}");
    assert!(!daemon.file("early.txt").exists());
    session.ask("use a new one").await;
    let told = result_of(&session, "c");
    assert!(
        told.contains("[]") && told.contains("exit code 0"),
        "{told}"
    );
    assert!(daemon.file("new.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_detached_command_is_refused() {
    let detached = json!({"command": "echo x > new.txt", "mode": "async", "detach": true});
    let daemon = daemon(vec![
        Turn::user("go").calls([call("a", "bash", detached)]),
        Turn::results(["outlives the session"]).says("ok"),
    ])
    .await;
    let mut session = planning(&daemon).await;
    session.ask("go").await;
    assert!(!daemon.file("new.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn work_that_goes_on_is_named_when_plan_mode_begins() {
    let sleeper = json!({"command": "sleep 1000", "mode": "async", "shellId": "sleeper"});
    let daemon = daemon(vec![
        Turn::user("go").calls([call("a", "bash", sleeper)]),
        Turn::any().says("started"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    set(&session, "plan").await;
    let warning = session.next("session.warning").await;
    assert_eq!(warning["data"]["warningType"], "plan_mode_running_work");
    let message = warning["data"]["message"].as_str().unwrap();
    assert!(message.contains("sleeper (`sleep 1000`)"), "{message}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_the_end_of_plan_mode_stops_says_why() {
    let daemon = daemon(vec![
        Turn::user("wait").calls([call(
            "a",
            "bash",
            json!({"command": "echo begun; sleep 1000"}),
        )]),
        Turn::any().says("stopped"),
    ])
    .await;
    let mut session = planning(&daemon).await;
    session.send("wait").await;
    let begun = |event: &serde_json::Value| {
        event["type"] == "tool.execution_partial_result"
            && event["data"]["partialOutput"]
                .as_str()
                .is_some_and(|text| text.contains("begun"))
    };
    session.next_where("the output of the command", begun).await;
    set(&session, "interactive").await;
    session.next("session.idle").await;
    let told = result_of(&session, "a");
    assert!(told.contains("begun"), "{told}");
    assert!(
        told.contains("<the command was stopped because plan mode ended>"),
        "{told}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn shells_that_may_have_jobs_are_named_when_plan_mode_begins() {
    let job = json!({"command": "sleep 1000 & echo begun", "shellId": "one"});
    let none = json!({"command": "true && echo 'a & b' >&2", "shellId": "two"});
    let daemon = daemon(vec![
        Turn::user("go").calls([call("a", "bash", job), call("b", "bash", none)]),
        Turn::any().says("started"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    set(&session, "plan").await;
    let warning = session.next("session.warning").await;
    assert_eq!(warning["data"]["warningType"], "plan_mode_running_work");
    let message = warning["data"]["message"].as_str().unwrap();
    assert!(message.contains("in these shells: one."), "{message}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_has_ended_is_not_named_when_a_steering_message_begins_plan_mode() {
    let gate = loopd_tests::Gate::new();
    let daemon = daemon(vec![
        Turn::user("go").calls([bash("a", "true")]).held_by(&gate),
        Turn::user("only plan").says("planned"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    gate.reached().await;
    let steer = json!({"prompt": "only plan", "mode": "immediate", "agentMode": "plan"});
    session.call("session.send", steer).await;
    gate.open();
    session.next("session.mode_changed").await;
    session.next("session.idle").await;
    assert_eq!(session.count("session.warning"), 0);
    daemon.finish().await;
}
