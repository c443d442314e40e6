//! Agents whose work is cut short by a person, an abort or a kill: what they did is told, once.

use loopd_tests::{Daemon, Gate, Script, Turn, call};
use serde_json::json;

use super::{daemon, execution_complete, kinds_told, last_said, task};
use crate::worktrees::git;

fn bash(id: &str, command: &str) -> loopd_tests::script::Call {
    call(id, "bash", json!({"command": command}))
}

#[tokio::test]
async fn a_rejection_is_read_by_the_agent_which_goes_on() {
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin")
                    .calls([task("o", json!({"prompt": "run it", "name": "runner"}))]),
                Turn::results(["I was told to leave the cache alone"]).says("well"),
            ],
        ),
        (
            "run it",
            vec![
                Turn::user("run it").says_and_calls("I try", [bash("b", "echo never")]),
                Turn::results(["User feedback: leave the cache alone"])
                    .says("I was told to leave the cache alone"),
            ],
        ),
    ])
    .await;
    let daemon = Daemon::with(script).await;
    let offer = json!({"requestPermission": true});
    let mut session = daemon.client().create(offer).await;
    session.send("begin").await;
    let (request, _) = session.permission().await;
    let no = json!({"kind": "reject", "feedback": "leave the cache alone"});
    assert!(session.decide(&request, no).await);
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "well");
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_tells_what_a_command_had_printed() {
    let daemon = daemon([(
        "begin",
        vec![
            Turn::user("begin").calls([bash("b", "echo half of it; sleep 600")]),
            Turn::user("next").says("fine"),
        ],
    )])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    session
        .next_where("the first output", |event| {
            event["type"] == "tool.execution_partial_result"
                && event["data"]["partialOutput"]
                    .as_str()
                    .is_some_and(|text| text.contains("half of it"))
        })
        .await;
    session.call("session.abort", json!({})).await;
    let closed = execution_complete(&mut session, "b").await;
    assert_eq!(closed["success"], false);
    session.next("session.idle").await;
    session.ask("next").await;
    let requests = daemon.script().last_request();
    let all = requests.messages();
    let result = all
        .iter()
        .find(|message| message["role"] == "tool")
        .unwrap();
    let text = result["content"].as_str().unwrap();
    assert!(
        text.starts_with("The execution of this tool, or a previous tool was interrupted.")
            && text.contains("half of it"),
        "{text}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_tells_what_its_agent_said_and_which_worktree_is_kept() {
    let never = Gate::new();
    let apart = json!({"prompt": "write it", "name": "writer", "isolation": "worktree"});
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task("t", apart)]),
                Turn::user("next").says("fine"),
            ],
        ),
        (
            "write it",
            vec![
                Turn::user("write it")
                    .says_and_calls("half is written", [bash("b", "echo two > new.txt")]),
                Turn::results([""]).says("never heard").held_by(&never),
            ],
        ),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .yolo()
        .start()
        .await;
    std::fs::write(daemon.file("file.txt"), "one\n").unwrap();
    git(daemon.work(), &["init", "--quiet"]);
    git(daemon.work(), &["add", "--all"]);
    git(daemon.work(), &["commit", "--quiet", "-m", "First"]);
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    never.reached().await;
    session.call("session.abort", json!({})).await;
    let closed = execution_complete(&mut session, "t").await;
    let tree = session.call("loopd.taskTree", json!({})).await;
    let copy = tree["tasks"][0]["worktree"].as_str().unwrap().to_owned();
    let facts = &closed["toolTelemetry"]["properties"];
    assert_eq!(facts["agentId"], "writer");
    assert_eq!(facts["status"], "cancelled");
    session.next("session.idle").await;
    session.ask("next").await;
    let request = daemon.script().last_request();
    let all = request.messages();
    let result = all
        .iter()
        .find(|message| message["role"] == "tool")
        .unwrap();
    let text = result["content"].as_str().unwrap();
    for part in ["interrupted", "half is written", "writer", copy.as_str()] {
        assert!(text.contains(part), "{part} is not told: {text}");
    }
    assert_eq!(kinds_told(&session), [], "it is told in the result only");
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_that_a_kill_interrupted_is_told_once() {
    let never = Gate::new();
    let look = call("g", "glob", json!({"pattern": "*"}));
    let mut daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task("t", json!({"prompt": "dig", "name": "digger"}))]),
                Turn::any().says("so it was interrupted"),
            ],
        ),
        (
            "dig",
            vec![
                Turn::user("dig").says_and_calls("half a hole", [look]),
                Turn::results([""]).says("never heard").held_by(&never),
            ],
        ),
    ])
    .await;
    let session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    never.reached().await;
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    session.ask("what happened").await;
    assert_eq!(kinds_told(&session), [], "the result of the call tells it");
    let request = daemon.script().last_request();
    let all = serde_json::to_string(request.messages()).unwrap();
    assert_eq!(all.matches("half a hole").count(), 1, "{all}");
    assert!(
        all.contains("because the daemon stopped") && all.contains("write_agent"),
        "{all}"
    );
    daemon.finish().await;
}

/// Begins a turn whose agent runs a command, aborts it when the command has printed, and returns the
/// result of the call that the model reads next.
async fn told_of_aborted_command(command: &str) -> (Daemon, String) {
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin")
                    .calls([task("t", json!({"prompt": "run it", "name": "runner"}))]),
                Turn::user("next").says("fine"),
            ],
        ),
        (
            "run it",
            vec![Turn::user("run it").says_and_calls("I run it", [bash("b", command)])],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    session
        .next_where("the first output", |event| {
            event["type"] == "tool.execution_partial_result"
                && event["data"]["partialOutput"]
                    .as_str()
                    .is_some_and(|text| text.contains("half of it"))
        })
        .await;
    session.call("session.abort", json!({})).await;
    execution_complete(&mut session, "t").await;
    session.next("session.idle").await;
    session.ask("next").await;
    let request = daemon.script().last_request();
    let all = request.messages();
    let result = all
        .iter()
        .find(|message| message["role"] == "tool")
        .unwrap();
    let text = result["content"].as_str().unwrap().to_owned();
    (daemon, text)
}

#[tokio::test]
async fn an_abort_tells_what_a_command_of_its_agent_had_printed() {
    let (daemon, text) = told_of_aborted_command("echo half of it; sleep 600").await;
    for part in ["interrupted", "I run it", "bash", "half of it", "runner"] {
        assert!(text.contains(part), "{part} is not told: {text}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_tells_what_a_command_had_printed_that_ignores_signals() {
    let (daemon, text) =
        told_of_aborted_command("trap '' INT TERM HUP; echo half of it; sleep 600; sleep 600")
            .await;
    assert!(text.contains("half of it"), "{text}");
    daemon.finish().await;
}
