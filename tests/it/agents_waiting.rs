//! A question of a sub-agent stays open when the daemon leaves, and is offered again.

use loopd_kernel::state::State;
use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

/// A session whose agent runs one command; with `nested` an agent of that agent does.
async fn daemon(mode: &'static str, nested: bool) -> Daemon {
    let script = Script::answering(move |request| {
        let start = |prompt: &str, mode: &str| {
            let start = json!({"description": "a part", "prompt": prompt, "name": prompt,
                               "agent_type": "general-purpose", "mode": mode});
            call("t", "task", start)
        };
        let prompt = request.first_user_text();
        let is = |name: &str| prompt.contains(name);
        match request.last_results().len() {
            0 if is("begin") && request.last_user_text().contains("begin") => {
                let first = if nested { "outer" } else { "inner" };
                Turn::any().calls([start(first, mode)])
            }
            0 if is("outer") => Turn::any().calls([start("inner", "sync")]),
            0 if is("inner") => {
                Turn::any().calls([call("c", "bash", json!({"command": "echo hi"}))])
            }
            _ if is("inner") => Turn::any().says("found it"),
            _ => Turn::any().says("done"),
        }
    })
    .await;
    Daemon::builder().script(script).start().await
}

fn offer() -> Value {
    json!({"requestPermission": true, "continuePendingWork": true})
}

async fn offered_again(mode: &'static str, nested: bool) {
    let mut daemon = daemon(mode, nested).await;
    let mut session = daemon.client().create(offer()).await;
    session.send("begin").await;
    let (request, _) = session.permission().await;
    if mode == "background" {
        let is_done = |state: &State| state.turn().is_none();
        daemon.until(&session.id, "the answer", is_done).await;
    }
    daemon.restart().await;
    let mut resumed = daemon.client().resume(&session.id, offer()).await;
    assert_eq!(resumed.permission().await.0, request);
    let tasks = resumed.call("session.tasks.list", json!({})).await;
    assert_eq!(tasks["tasks"][0]["status"], "running", "{tasks}");
    let approved = resumed.decide(&request, json!({"kind": "approve-once"}));
    assert!(approved.await);
    resumed.next("session.idle").await;
    let state = daemon
        .until(&session.id, "the agent to end", |state| {
            state.tasks.running().next().is_none()
        })
        .await;
    let task = state.tasks.iter().next().unwrap();
    assert_eq!(task.ending().and_then(|end| end.reason.clone()), None);
    let requests = daemon.script().requests();
    let read = |text: &str| {
        let mut messages = requests
            .iter()
            .flat_map(loopd_tests::script::Recorded::messages);
        messages.any(|message| message.to_string().contains(text))
    };
    assert!(read("found it"), "the answer reached who waited for it");
    assert!(
        !read("daemon stopped"),
        "nobody was told of an interruption"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_question_of_an_agent_in_the_background_is_offered_again_after_a_restart() {
    offered_again("background", false).await;
}

#[tokio::test]
async fn a_question_of_an_agent_that_a_call_waits_for_is_offered_again_after_a_restart() {
    offered_again("sync", false).await;
}

#[tokio::test]
async fn a_question_of_an_agent_below_an_agent_is_offered_again_after_a_restart() {
    offered_again("sync", true).await;
}

#[tokio::test]
async fn a_client_that_wants_no_pending_work_ends_the_agent_that_its_call_waited_for() {
    let mut daemon = daemon("sync", false).await;
    let mut session = daemon.client().create(offer()).await;
    session.send("begin").await;
    session.permission().await;
    daemon.restart().await;
    let offer = json!({"requestPermission": true, "continuePendingWork": false});
    let resumed = daemon.client().resume(&session.id, offer).await;
    daemon
        .until(&resumed.id, "the agent to end", |state| {
            state.tasks.running().next().is_none()
        })
        .await;
    daemon.finish().await;
}
