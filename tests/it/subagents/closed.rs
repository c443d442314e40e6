//! A session that is closed while its agents work: what they did is told when it is opened again.

use loopd_tests::{Daemon, Gate, Script, Session, Turn, call};
use serde_json::{Value, json};

use super::{execution_complete, kinds_told, says, task};
use crate::worktrees::git;

/// Which way the work of the session ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Destroyed,
    Suspended,
    Killed,
}

/// Begins a turn whose agent has said something and changed a file in its worktree, and ends it this
/// way. Returns the session as it is opened again, and the path of the worktree.
async fn closed(daemon: &mut Daemon, never: &Gate, way: Way, mode: &str) -> (Session, String) {
    std::fs::write(daemon.file("file.txt"), "one\n").unwrap();
    git(daemon.work(), &["init", "--quiet"]);
    git(daemon.work(), &["add", "--all"]);
    git(daemon.work(), &["commit", "--quiet", "-m", "First"]);
    let mut session = daemon.client().create(json!({})).await;
    session.send(&format!("begin {mode}")).await;
    if mode == "background" {
        says(&mut session, "it works").await;
    }
    never.reached().await;
    let tree = session.call("loopd.taskTree", json!({})).await;
    let copy = tree["tasks"][0]["worktree"].as_str().unwrap().to_owned();
    match way {
        Way::Destroyed => session.destroy().await,
        Way::Suspended => drop(session.call("session.suspend", json!({})).await),
        Way::Killed => daemon.restart().await,
    }
    (daemon.client().resume(&session.id, json!({})).await, copy)
}

async fn start(never: &Gate) -> Daemon {
    let gate = never.clone();
    let script = Script::answering(move |request| {
        if request.first_user_text().contains("write it") {
            let write = call("b", "bash", json!({"command": "echo two > new.txt"}));
            return match request.last_results().len() {
                0 => Turn::any().says_and_calls("half is written", [write]),
                _ => Turn::any().says("never heard").held_by(&gate),
            };
        }
        let text = request.last_user_text();
        match text.split_once("begin ") {
            Some((_, mode)) if request.last_results().is_empty() => Turn::any().calls([task(
                "t",
                json!({"prompt": "write it", "name": "writer", "isolation": "worktree", "mode": mode}),
            )]),
            Some(_) => Turn::any().says("it works"),
            None => Turn::any().says("fine"),
        }
    })
    .await;
    Daemon::builder()
        .script(script)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .yolo()
        .start()
        .await
}

/// What the last request of the main agent says, and the agent as tasks are listed.
async fn told(daemon: &Daemon, session: &mut Session) -> (String, Value) {
    session.ask("next").await;
    let request = daemon.script().last_request();
    let all = request.messages().iter();
    let all: Vec<&str> = all
        .filter_map(|message| message["content"].as_str())
        .collect();
    let tree = session.call("loopd.taskTree", json!({})).await;
    (all.join("\n"), tree["tasks"][0].clone())
}

#[tokio::test]
async fn the_result_of_a_call_tells_what_its_agent_did_until_the_session_was_closed() {
    for way in [Way::Destroyed, Way::Suspended, Way::Killed] {
        let never = Gate::new();
        let mut daemon = start(&never).await;
        let (mut session, copy) = closed(&mut daemon, &never, way, "sync").await;
        let (text, task) = told(&daemon, &mut session).await;
        let why = match way {
            Way::Killed => "because the daemon stopped",
            Way::Destroyed | Way::Suspended => "because the session was closed",
        };
        let own = task["sessionId"].as_str().unwrap();
        let identity = format!("[agent_id: writer, session: {own}");
        for part in [
            why,
            "half is written",
            copy.as_str(),
            "write_agent",
            &identity,
        ] {
            assert!(text.contains(part), "{way:?}: {part} is not told: {text}");
        }
        assert_eq!(
            text.matches("half is written").count(),
            1,
            "{way:?}: {text}"
        );
        assert_eq!(kinds_told(&session), [], "{way:?}: the result tells it");
        let messages = session.messages().await;
        let done = messages.iter().find(|event| {
            event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == "t"
        });
        let facts = &done.unwrap()["data"]["toolTelemetry"];
        assert_eq!(facts["properties"]["agentId"], "writer", "{way:?}");
        assert!(
            facts["metrics"]["totalTokens"].as_u64().unwrap() > 0,
            "{way:?}"
        );
        assert_eq!(facts["metrics"]["totalToolUseCount"], 1, "{way:?}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_notification_tells_what_an_agent_in_the_background_did_until_the_session_was_closed() {
    for way in [Way::Destroyed, Way::Suspended, Way::Killed] {
        let never = Gate::new();
        let mut daemon = start(&never).await;
        let (mut session, copy) = closed(&mut daemon, &never, way, "background").await;
        let (text, task) = told(&daemon, &mut session).await;
        for part in ["half is written", copy.as_str(), "tool calls"] {
            assert!(text.contains(part), "{way:?}: {part} is not told: {text}");
        }
        assert_eq!(task["toolCalls"], 1, "{way:?}: {task}");
        assert!(task["tokens"].as_u64().unwrap() > 0, "{way:?}: {task}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn the_end_of_a_command_is_told_that_was_stopped_with_its_agent() {
    let in_background = json!({"command": "sleep 600", "mode": "async", "shellId": "server",
                               "description": "Serve"});
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task("t", json!({"prompt": "run it", "name": "bg"}))]),
                Turn::results(["You'll be notified when it ends"]).says("it runs"),
                Turn::user("and now").says("fine"),
            ],
        ),
        (
            "run it",
            vec![
                Turn::user("run it").calls([call("b", "bash", in_background)]),
                Turn::results([""]).says("it serves"),
            ],
        ),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    execution_complete(&mut session, "t").await;
    session.next("session.idle").await;
    let stopped = session
        .call("session.tasks.cancel", json!({"id": "bg"}))
        .await;
    assert_eq!(stopped, json!({"cancelled": true}));
    daemon
        .until(&session.id, "the command to end", |state| {
            let command = state.tasks.get("bg:server");
            command.is_some_and(|command| !command.is_running())
        })
        .await;
    session.ask("and now").await;
    let request = daemon.script().last_request();
    let all = serde_json::to_string(request.messages()).unwrap();
    assert!(all.contains("it was stopped with its agent"), "{all}");
    daemon.finish().await;
}
