//! Commands that run in a sub-agent.

use loopd_tests::{Daemon, Gate, Script, Turn};
use serde_json::json;

use super::{INVOKE, command, session, session_of, write};

#[tokio::test]
async fn a_fork_answers_who_waits_and_the_conversation_without_a_turn_of_its_own() {
    let script = Script::voices([
        ("Look for rust", vec![Turn::any().says("three places")]),
        ("and now", vec![Turn::any().says("ok")]),
    ])
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    command(
        &daemon,
        "deep",
        "---\ncontext: fork\nallowed-tools: [Read, Grep]\n---\nLook for $ARGUMENTS.",
    );
    let mut session = session(&daemon).await;
    let invoked = session
        .call(INVOKE, json!({"name": "deep", "input": "rust"}))
        .await;
    assert_eq!(
        invoked,
        json!({"kind": "text", "text": "three places", "markdown": true})
    );
    let requests = daemon.script().requests();
    assert_eq!(requests.len(), 1, "nobody but the sub-agent was asked");
    let mut tools = requests[0].tools();
    tools.sort_unstable();
    assert_eq!(tools, ["grep", "view"]);
    // The idle after the sub-agent, which is not that of the next message.
    session.next("session.idle").await;
    session.ask("and now").await;
    let told = daemon.script().last_request();
    let told = told.messages().iter().any(|message| {
        let text = message.to_string();
        text.contains("The user ran /deep rust") && text.contains("three places")
    });
    assert!(told, "the model of the conversation reads the answer");
    let tasks = session.call("session.tasks.list", json!({})).await;
    assert_eq!(tasks["tasks"][0]["status"], "completed", "{tasks}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_fork_that_was_at_work_when_the_daemon_was_killed_is_told_as_interrupted() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::answering(move |request| {
        if request.first_user_text().contains("Look for rust") {
            Turn::any().says("never heard").held_by(&held)
        } else {
            Turn::any().says("ok")
        }
    })
    .await;
    let mut daemon = Daemon::builder().script(script).start().await;
    command(
        &daemon,
        "deep",
        "---\ncontext: fork\n---\nLook for $ARGUMENTS.",
    );
    let first = session(&daemon).await;
    let id = first.id.clone();
    let asked = first.start(INVOKE, json!({"name": "deep", "input": "rust"}));
    gate.reached().await;
    daemon.restart().await;
    gate.open();
    drop(asked);
    let mut session = daemon.client().resume(&id, json!({})).await;
    let tasks = session.call("session.tasks.list", json!({})).await;
    assert_eq!(tasks["tasks"][0]["status"], "failed", "{tasks}");
    let stored = session.messages().await;
    let told = stored
        .iter()
        .find(|event| event["type"] == "subagent.failed");
    let why = told.unwrap()["data"]["error"].as_str().unwrap();
    assert!(why.contains("the daemon stopped"), "{why}");
    session.ask("and now").await;
    let request = daemon.script().last_request();
    let notes = request.messages().iter().filter(|message| {
        let text = message.to_string();
        text.contains("The user ran /deep rust") && text.contains("the daemon stopped")
    });
    assert_eq!(notes.count(), 1, "the model is told once");
    daemon.finish().await;
}

#[tokio::test]
async fn subtask_and_an_agent_for_other_agents_mean_a_fork_too() {
    let script = Script::answering(|request| {
        let text = request.first_user_text();
        Turn::any().says(if text.contains("Dig") {
            "dug"
        } else {
            "explored"
        })
    })
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    let folder = daemon.work().join(".opencode/command");
    write(&folder.join("dig.md"), "---\nsubtask: true\n---\nDig.");
    let helper = "---\nname: helper\ndescription: Helps\nmode: subagent\n---\nHelp.";
    write(&daemon.work().join(".claude/agents/helper.md"), helper);
    write(
        &folder.join("tour.md"),
        "---\nagent: helper\n---\nLook around.",
    );
    let session = session(&daemon).await;
    for (name, answer) in [("dig", "dug"), ("tour", "explored")] {
        let invoked = session.call(INVOKE, json!({ "name": name })).await;
        assert_eq!(invoked["text"], answer, "{invoked}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn without_a_person_a_fork_works_in_the_background_and_its_result_comes_as_a_hidden_prompt() {
    let script = Script::answering(|request| {
        let first = request.first_user_text();
        if first.contains("Look for rust") {
            Turn::any().says("three places")
        } else {
            Turn::any().says("noted")
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    command(
        &daemon,
        "deep",
        "---\ncontext: fork\n---\nLook for $ARGUMENTS.",
    );
    let mut session = session_of(&daemon.client(), json!({})).await;
    session
        .call("session.mode.set", json!({"mode": "autopilot"}))
        .await;
    let invoked = session
        .call(INVOKE, json!({"name": "deep", "input": "rust"}))
        .await;
    assert_eq!(invoked["kind"], "completed");
    assert!(
        invoked["message"].as_str().unwrap().contains("background"),
        "{invoked}"
    );
    let told = session.next("system.notification").await;
    assert!(
        told["data"]["content"]
            .as_str()
            .unwrap()
            .contains("three places"),
        "{told}"
    );
    let noted = session.next_where("the model's answer", |event| {
        event["type"] == "assistant.message" && event["data"]["content"] == "noted"
    });
    noted.await;
    let said = session
        .events()
        .into_iter()
        .filter(|event| event["type"] == "user.message" && event["agentId"].is_null())
        .filter(|event| event["data"]["isAutopilotContinuation"] != true);
    assert_eq!(said.count(), 0, "people see no message of theirs");
    session.next("session.idle").await;
    daemon.finish().await;
}
