//! Calls that servers carry out as tasks, in both dialects of the protocol.

use std::process::Stdio;

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::{last_result, noted, program, server};

/// A daemon that waits so many seconds for a task before that goes to the background.
async fn daemon(seconds: f64, turns: impl IntoIterator<Item = Turn>) -> Daemon {
    let builder = Daemon::builder().script(Script::play(turns).await);
    let config = format!("[mcp]\ntask_wait = {seconds:?}\n");
    builder.config(&config).start().await
}

async fn session(daemon: &Daemon, behaviour: &str, more: &[&str]) -> Session {
    let servers =
        json!({"mcpServers": {"box": server(behaviour, more)}, "requestElicitation": true});
    let session = daemon.client().create(servers).await;
    session.approve_all().await;
    session
}

/// Returns the task with this id, as the list has it.
async fn task(session: &Session, id: &str) -> Value {
    let listed = session.call("session.tasks.list", json!({})).await;
    let tasks = listed["tasks"].as_array().unwrap().clone();
    let mut tasks = tasks.into_iter();
    tasks.find(|task| task["id"] == id).unwrap_or_default()
}

fn research(arguments: Value) -> Turn {
    Turn::user("go").calls([call("r", "box-research", arguments)])
}

/// What the model does when it is told of the end: it reads the result.
fn reads() -> [Turn; 2] {
    [
        Turn::any().calls([call("a", "read_agent", json!({"agent_id": "mcp-1"}))]),
        Turn::any().says("read it"),
    ]
}

#[tokio::test]
async fn a_tool_that_needs_a_task_works_in_the_background_and_its_end_is_told_once() {
    let [read, done] = reads();
    let arguments = json!({"says": "42 papers", "steps": 2});
    let turns = [
        research(arguments.clone()),
        Turn::any().says("waiting"),
        read,
        done,
    ];
    let daemon = daemon(10.0, turns).await;
    let mut session = session(&daemon, "tasks", &[]).await;
    session.send("go").await;
    session.next("session.idle").await;
    let started = last_result(&session)["result"]["content"].clone();
    assert!(
        started.as_str().unwrap().contains("as the task mcp-1"),
        "{started}"
    );
    session.next("session.idle").await;
    let told = |event: &&Value| event["type"] == "system.notification";
    let events = session.events();
    let told: Vec<&Value> = events.iter().filter(told).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["data"]["kind"]["agentId"], "mcp-1");
    assert_eq!(told[0]["data"]["kind"]["status"], "completed");
    let read = daemon.script().last_request().last_results().join("\n");
    assert!(read.contains("42 papers"), "{read}");
    let task = task(&session, "mcp-1").await;
    assert_eq!(
        (&task["agentType"], &task["status"], &task["result"]),
        (&json!("mcp-task"), &json!("completed"), &json!("42 papers"))
    );
    let prompt: Value = serde_json::from_str(task["prompt"].as_str().unwrap()).unwrap();
    assert_eq!(prompt, arguments);
    daemon.finish().await;
}

#[tokio::test]
async fn a_task_that_ends_soon_is_the_result_of_its_call() {
    for behaviour in ["tasks", "new-tasks"] {
        let turns = [
            Turn::user("go").calls([call("m", "box-maybe", json!({"says": "soon"}))]),
            Turn::results(["soon"]).says("ok"),
        ];
        let daemon = daemon(10.0, turns).await;
        let mut session = session(&daemon, behaviour, &[]).await;
        session.ask("go").await;
        assert_eq!(task(&session, "mcp-1").await, Value::Null, "{behaviour}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_task_that_takes_longer_goes_on_in_the_background() {
    for behaviour in ["tasks", "new-tasks"] {
        let [read, done] = reads();
        let turns = [
            Turn::user("go").calls([call("m", "box-maybe", json!({"says": "at last"}))]),
            Turn::any().says("waiting"),
            read,
            done,
        ];
        let daemon = daemon(0.0, turns).await;
        let mut session = session(&daemon, behaviour, &[]).await;
        session.send("go").await;
        session.next("session.idle").await;
        session.next("session.idle").await;
        let read = daemon.script().last_request().last_results().join("\n");
        assert!(read.contains("at last"), "{behaviour}: {read}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn progress_and_failure_of_a_task_are_told() {
    let arguments = json!({"steps": 2, "progress": true, "fails": true});
    let turns = [
        research(arguments),
        Turn::any().says("waiting"),
        Turn::any().says("a pity"),
    ];
    let daemon = daemon(10.0, turns).await;
    let mut session = session(&daemon, "tasks", &[]).await;
    session.send("go").await;
    session.next("session.idle").await;
    session.next("session.idle").await;
    let events = session.events();
    let mut events = events.iter();
    let told = events
        .find(|event| event["type"] == "system.notification")
        .unwrap();
    let text = told["data"]["content"].as_str().unwrap();
    assert!(text.contains("it did not work out"), "{text}");
    assert!(text.contains("Start a new task"), "{text}");
    let params = json!({"id": "mcp-1"});
    let progress = session
        .call("session.tasks.getProgress", params.clone())
        .await;
    let latest = progress["progress"]["latestIntent"]
        .as_str()
        .unwrap_or_default();
    assert!(
        latest.starts_with("step ") || latest.starts_with("counting ("),
        "{progress}"
    );
    let message = json!({"id": "mcp-1", "message": "faster"});
    let sent = session.call("session.tasks.sendMessage", message).await;
    assert_eq!(sent["sent"], false);
    assert!(
        sent["error"].as_str().unwrap().contains("start a new task"),
        "{sent}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_task_is_cancelled_on_its_server_by_clients_and_by_the_model() {
    let long = || research(json!({"steps": 1000, "ms": 1000}));
    let stops = Turn::any().calls([call("s", "stop_agent", json!({"agent_id": "mcp-1"}))]);
    for by_model in [false, true] {
        let turns = if by_model {
            vec![long(), stops.clone(), Turn::any().says("stopped")]
        } else {
            vec![
                long(),
                Turn::any().says("waiting"),
                Turn::any().says("I see"),
            ]
        };
        let daemon = daemon(10.0, turns).await;
        let seen = daemon.file("seen");
        let seen_text = seen.display().to_string();
        let mut session = session(&daemon, "tasks", &["--seen", &seen_text]).await;
        session.send("go").await;
        session.next("session.idle").await;
        if !by_model {
            let cancelled = session
                .call("session.tasks.cancel", json!({"id": "mcp-1"}))
                .await;
            assert_eq!(cancelled["cancelled"], true);
        }
        assert_eq!(task(&session, "mcp-1").await["status"], "cancelled");
        assert_eq!(noted(&seen).matches("tasks/cancel").count(), 1);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_task_may_ask_a_person() {
    for behaviour in ["tasks", "new-tasks"] {
        let [read, done] = reads();
        let turns = [
            research(json!({"ask": true})),
            Turn::any().says("waiting"),
            read,
            done,
        ];
        let daemon = daemon(0.0, turns).await;
        let mut session = session(&daemon, behaviour, &[]).await;
        session.send("go").await;
        let asked = session.next("elicitation.requested").await["data"].clone();
        assert_eq!(asked["elicitationSource"], "box", "{behaviour}");
        let answer = json!({"requestId": asked["requestId"],
                            "result": {"action": "accept", "content": {"colour": "red"}}});
        session
            .call("session.ui.handlePendingElicitation", answer)
            .await;
        session
            .next_where("the model was told", |event| {
                event["type"] == "system.notification"
            })
            .await;
        session.next("session.idle").await;
        let read = daemon.script().last_request().last_results().join("\n");
        assert!(read.contains("red"), "{behaviour}: {read}");
        daemon.finish().await;
    }
}

/// A server over HTTP, which outlives the daemon.
pub(crate) async fn web_server() -> (tokio::process::Child, Value) {
    let mut child = tokio::process::Command::new("python3")
        .arg(program())
        .args(["tasks", "--http"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = said.next_line().await.unwrap().unwrap();
    (child, json!({"type": "http", "url": url, "tools": ["*"]}))
}

#[tokio::test]
async fn a_task_is_found_again_by_the_next_daemon() {
    let [read, done] = reads();
    let arguments = json!({"steps": 3, "ms": 300, "says": "found again"});
    let turns = [research(arguments), Turn::any().says("waiting"), read, done];
    let mut daemon = daemon(10.0, turns).await;
    let (_server, config) = web_server().await;
    let options = json!({"mcpServers": {"box": config}});
    let mut session = daemon.client().create(options.clone()).await;
    session.approve_all().await;
    session.ask("go").await;
    assert_eq!(task(&session, "mcp-1").await["status"], "running");
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, options).await;
    session.next("session.idle").await;
    let task = task(&session, "mcp-1").await;
    assert_eq!(task["result"], "found again", "{task}");
    let read = daemon.script().last_request().last_results().join("\n");
    assert!(read.contains("found again"), "{read}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_task_that_died_with_its_server_is_told_as_failed() {
    let turns = [
        research(json!({"steps": 1000, "ms": 1000})),
        Turn::any().says("waiting"),
        Turn::any().says("a pity"),
    ];
    let mut daemon = daemon(10.0, turns).await;
    let options = json!({"mcpServers": {"box": server("tasks", &[])}});
    let mut session = daemon.client().create(options.clone()).await;
    session.approve_all().await;
    session.ask("go").await;
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, options).await;
    session.next("session.idle").await;
    let task = task(&session, "mcp-1").await;
    assert_eq!(task["status"], "failed");
    let error = task["error"].as_str().unwrap();
    assert!(error.contains("does not know the task any more"), "{error}");
    daemon.finish().await;
}
