//! The shell tools: in order, in parallel, in the background, moved there, stopped.

use loopd_tests::{Daemon, Latch, Lifeline, Script, Session, Turn, call};
use serde_json::{Value, json};

/// A daemon that asks for no permission.
async fn daemon(turns: Vec<Turn>) -> Daemon {
    let script = Script::play(turns).await;
    Daemon::builder().script(script).yolo().start().await
}

/// What a tool call came to.
async fn result(session: &mut Session, id: &str) -> String {
    let is_it = |event: &Value| {
        event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == id
    };
    let complete = session.next_where("a result", is_it).await;
    let data = &complete["data"];
    let text = data["result"]["content"].as_str();
    text.or(data["error"]["message"].as_str())
        .unwrap()
        .to_owned()
}

async fn tasks(session: &Session) -> Vec<Value> {
    let got = session.call("session.tasks.list", json!({})).await;
    got["tasks"].as_array().unwrap().clone()
}

#[tokio::test]
async fn two_commands_at_once_in_one_shell_run_in_order() {
    let folder = tempfile::TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let first = format!("{}; echo first >> order", latch.wait());
    let daemon = daemon(vec![
        Turn::user("go").calls([
            call("a", "bash", json!({"command": first, "shellId": "one"})),
            call(
                "b",
                "bash",
                json!({"command": "echo second >> order", "shellId": "one"}),
            ),
            call(
                "c",
                "bash",
                json!({"command": "echo beside >> order", "shellId": "two"}),
            ),
        ]),
        Turn::results(["exit code 0", "exit code 0", "exit code 0"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    assert!(result(&mut session, "c").await.contains("exit code 0"));
    latch.release("go").await;
    session.next("session.idle").await;
    let order = std::fs::read_to_string(daemon.file("order")).unwrap();
    assert_eq!(order, "beside\nfirst\nsecond\n");
    daemon.finish().await;
}

#[tokio::test]
async fn ten_shells_run_at_the_same_time() {
    let folder = tempfile::TempDir::new().unwrap();
    let latches: Vec<Latch> = (0..10)
        .map(|number| Latch::new(folder.path(), &format!("latch-{number}")))
        .collect();
    let calls = latches.iter().enumerate().map(|(number, latch)| {
        let command = format!("{}; echo $line", latch.wait());
        let id = format!("c{number}");
        call(&id, "bash", json!({"command": command, "shellId": id}))
    });
    let daemon = daemon(vec![
        Turn::user("go").calls(calls),
        Turn::results(["said"; 10]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    // Backwards: if they ran one after the other, the last would never wait.
    for latch in latches.iter().rev() {
        latch.release("said").await;
    }
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_takes_too_long_goes_on_as_a_task() {
    let folder = tempfile::TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let command = format!("echo begun; {}; echo $line", latch.wait());
    let arguments = json!({"command": command, "description": "Wait for it", "initial_wait": 0.3});
    let daemon = daemon(vec![
        Turn::user("go").calls([call("a", "bash", arguments)]),
        Turn::results(["goes on in the background as shellId 1"]).says("later"),
        Turn::user("<status>completed</status>").calls([call(
            "b",
            "read_bash",
            json!({"shellId": "1"}),
        )]),
        Turn::results(["over\n<shellId: 1 completed with exit code 0>"]).says("read"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    let [task] = tasks(&session).await.try_into().unwrap();
    assert_eq!(task["type"], "shell");
    assert_eq!(task["id"], "1");
    assert_eq!(task["description"], "Wait for it");
    assert_eq!(task["status"], "running");
    assert_eq!(task["attachmentMode"], "attached");
    assert_eq!(task["executionMode"], "background");
    let progress = session
        .call("session.tasks.getProgress", json!({"id": "1"}))
        .await;
    assert_eq!(progress["progress"]["type"], "shell");
    assert_eq!(progress["progress"]["recentOutput"], "begun\n");
    latch.release("over").await;
    session.next("session.idle").await;
    let [task] = tasks(&session).await.try_into().unwrap();
    assert_eq!(task["status"], "completed");
    assert_eq!(session.count("system.notification"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_moves_a_running_command_to_the_background_and_cancels_it() {
    let folder = tempfile::TempDir::new().unwrap();
    let lifeline = Lifeline::new(folder.path());
    let daemon = daemon(vec![
        Turn::user("go").calls([call(
            "a",
            "bash",
            json!({"command": lifeline.command(), "initial_wait": 600}),
        )]),
        Turn::results(["the user moved the command to the background"]).says("fine"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    let nothing = session
        .call("session.tasks.getCurrentPromotable", json!({}))
        .await;
    assert_eq!(nothing, json!({}));
    session.send("go").await;
    let command = lifeline.started().await;
    let current = session
        .call("session.tasks.getCurrentPromotable", json!({}))
        .await;
    assert_eq!(current["task"]["executionMode"], "sync");
    assert_eq!(current["task"]["canPromoteToBackground"], true);
    let id = current["task"]["id"].clone();
    let missing = session
        .call("session.tasks.promoteToBackground", json!({"id": "nobody"}))
        .await;
    assert_eq!(missing, json!({"promoted": false}));
    let promoted = session
        .call("session.tasks.promoteToBackground", json!({"id": id}))
        .await;
    assert_eq!(promoted, json!({"promoted": true}));
    session.next("session.idle").await;
    let removed = session
        .call("session.tasks.remove", json!({"id": id}))
        .await;
    assert_eq!(removed, json!({"removed": false}), "it still runs");
    let cancelled = session
        .call("session.tasks.cancel", json!({"id": id}))
        .await;
    assert_eq!(cancelled, json!({"cancelled": true}));
    command.ended().await;
    assert_eq!(tasks(&session).await[0]["status"], "cancelled");
    let removed = session
        .call("session.tasks.remove", json!({"id": id}))
        .await;
    assert_eq!(removed, json!({"removed": true}));
    assert!(tasks(&session).await.is_empty());
    assert_eq!(
        session.count("system.notification"),
        0,
        "who cancels knows already"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn the_first_command_that_is_waited_for_can_be_moved_without_its_name() {
    let folder = tempfile::TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let command = format!("echo up; {}", latch.wait());
    let daemon = daemon(vec![
        Turn::user("go").calls([call("a", "bash", json!({"command": command}))]),
        Turn::results(["the user moved"]).says("fine"),
        Turn::user("<exit_code>0</exit_code>").says("good"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    session.next("tool.execution_partial_result").await;
    let promoted = session
        .call("session.tasks.promoteCurrentToBackground", json!({}))
        .await;
    assert_eq!(promoted["task"]["executionMode"], "background");
    session.next("session.idle").await;
    latch.release("x").await;
    session.next("system.notification").await;
    session.next("session.idle").await;
    let again = session
        .call("session.tasks.promoteCurrentToBackground", json!({}))
        .await;
    assert_eq!(again, json!({}));
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_stops_what_the_loop_waits_for_and_nothing_else() {
    let (one, two) = (
        tempfile::TempDir::new().unwrap(),
        tempfile::TempDir::new().unwrap(),
    );
    let background = Latch::new(one.path(), "latch");
    let front = Lifeline::new(two.path());
    let daemon = daemon(vec![
        Turn::user("go").calls([call(
            "a",
            "bash",
            json!({"command": background.wait(), "shellId": "b", "mode": "async"}),
        )]),
        Turn::results(["runs in the background"]).calls([call(
            "b",
            "bash",
            json!({"command": front.command(), "initial_wait": 600}),
        )]),
        Turn::user("<task_id>b</task_id>").says("still there"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    let command = front.started().await;
    session.call("session.abort", json!({})).await;
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true);
    command.ended().await;
    assert_eq!(tasks(&session).await[0]["status"], "running");
    background.release("x").await;
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn closing_the_session_ends_its_commands_before_it_answers() {
    let folder = tempfile::TempDir::new().unwrap();
    let lifeline = Lifeline::new(folder.path());
    let daemon = daemon(vec![
        Turn::user("go").calls([call(
            "a",
            "bash",
            json!({"command": lifeline.command(), "mode": "async", "shellId": "s"}),
        )]),
        Turn::any().says("fine"),
    ])
    .await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("go").await;
    let command = lifeline.started().await;
    session.call("session.destroy", json!({})).await;
    command.ended().await;
    let resumed = client.resume(&session.id, json!({})).await;
    let state = daemon.state(&resumed.id).await;
    let task = state.tasks.get("s").unwrap();
    assert!(!task.is_running());
    daemon.finish().await;
}

#[tokio::test]
async fn reading_stopping_and_listing_need_no_permission_but_running_does() {
    let folder = tempfile::TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let daemon = Daemon::playing([
        Turn::user("go").calls([call(
            "a",
            "bash",
            json!({"command": latch.wait(), "mode": "async", "shellId": "s"}),
        )]),
        Turn::results(["background as shellId s"]).calls([
            call("b", "list_bash", json!({})),
            call("c", "read_bash", json!({"shellId": "s", "delay": 0})),
            call("d", "read_bash", json!({"shellId": "other"})),
            call("e", "read_bash", json!({"shellId": "s", "delay": -3})),
        ]),
        Turn::results([
            "<shellId: s is still running> `read -r line",
            "<shellId: s is still running>",
            "Open shells: s.",
            "delay is not valid",
        ])
        .calls([call("f", "stop_bash", json!({"shellId": "s"}))]),
        Turn::results(["was stopped"]).says("done"),
    ])
    .await;
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.send("go").await;
    let (request, asked) = session.permission().await;
    assert_eq!(asked["fullCommandText"], latch.wait());
    session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    session.next("session.idle").await;
    assert_eq!(session.count("permission.requested"), 1);
    assert_eq!(session.count("system.notification"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn without_a_terminal_there_is_no_tool_to_type_with() {
    let script = Script::play([Turn::user("hello").says("hi")]).await;
    let daemon = Daemon::builder()
        .script(script)
        .env("LOOPD_SHELL_BACKEND", "process")
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("hello").await;
    let request = daemon.script().last_request();
    let shells: Vec<&str> = request
        .tools()
        .into_iter()
        .filter(|name| name.ends_with("bash"))
        .collect();
    assert_eq!(shells, ["bash", "read_bash", "stop_bash", "list_bash"]);
    daemon.finish().await;
}

#[tokio::test]
async fn the_tools_of_the_session_and_of_the_daemon_are_listed() {
    let daemon = daemon(Vec::new()).await;
    let client = daemon.client();
    let session = client
        .create(json!({"excludedTools": ["write_bash"]}))
        .await;
    let ready = session
        .call("session.tools.initializeAndValidate", json!({}))
        .await;
    assert_eq!(ready, json!({}));
    let current = session
        .call("session.tools.getCurrentMetadata", json!({}))
        .await;
    let names = |list: &Value| -> Vec<String> {
        let tools = list["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let offered = names(&current);
    assert!(offered.contains(&"bash".to_owned()));
    assert!(!offered.contains(&"write_bash".to_owned()));
    assert_eq!(current["tools"][0]["input_schema"]["type"], "object");
    let all = client.call("tools.list", json!({})).await;
    assert!(names(&all).contains(&"write_bash".to_owned()));
    let settings = json!({"subagents": {"maxDepth": 3, "disabledSubagents": ["explore"]}});
    let set = session
        .call("session.tools.updateSubagentSettings", settings)
        .await;
    assert_eq!(set, json!({}));
    let state = daemon.state(&session.id).await;
    assert_eq!(state.options.subagents.unwrap().max_depth, Some(3));
    let wrong = json!({"subagents": {"maxDepth": 0}});
    let refused = session
        .refused("session.tools.updateSubagentSettings", wrong)
        .await;
    assert!(refused.message.contains("maxDepth"), "{}", refused.message);
    daemon.finish().await;
}
