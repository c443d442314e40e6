//! A queue that two clients change, an abort by one of them, and an answer that comes late.

use loopd_tests::{Daemon, Gate, Script, Turn};
use serde_json::json;

use super::{Log, bash, end, session, take};

/// Messages are moved, edited, inserted and steered; the abort leaves those of the other client.
pub(super) async fn changed_queue() -> Vec<Log> {
    let (gate, last) = (Gate::new(), Gate::new());
    let script = Script::answering({
        let (gate, last) = (gate.clone(), last.clone());
        move |request| match request.last_user_text() {
            text if text.contains("one") => Turn::any().says("1").held_by(&gate),
            _ => Turn::any().says("2").held_by(&last),
        }
    });
    let daemon = Daemon::with(script.await).await;
    let commands =
        json!({"clientName": "first", "commands": [{"name": "deploy", "description": "Deploys"}]});
    let first = session(&daemon, "changed-queue", commands).await;
    let second = json!({"clientName": "second"});
    let second = daemon.client().resume(&first.id, second).await;
    first.send("one").await;
    gate.reached().await;
    let two = first.send("two").await;
    let three = second.send("three").await;
    first.send("dropped").await;
    let queue = |name: &str| format!("session.queue.{name}");
    let deploy = json!({"command": "/deploy now"});
    second.call("session.commands.enqueue", deploy).await;
    let to_front = json!({"id": three, "toPosition": 0});
    first.call(&queue("moveItem"), to_front).await;
    let edit = json!({"id": two, "prompt": "two, better"});
    second.call(&queue("updateText"), edit).await;
    let between = json!({"position": 1, "message": {"prompt": "between"}});
    let between = second.call(&queue("insertAt"), between).await;
    second
        .call(&queue("sendNow"), json!({"id": between["id"]}))
        .await;
    first.call("session.abort", json!({})).await;
    last.reached().await;
    let logs = take(&daemon).await;
    second.call(&queue("clear"), json!({})).await;
    second.call("session.abort", json!({})).await;
    gate.open();
    last.open();
    daemon.finish().await;
    logs
}

/// A permission is answered when its turn is over.
pub(super) async fn late_permission() -> Vec<Log> {
    let script = Script::answering(|request| match request.last_user_text() {
        text if text.contains("go") => Turn::any().calls([bash("c", "touch made")]),
        _ => Turn::any().says("I see"),
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = session(&daemon, "late-permission", json!({})).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    session.call("session.suspend", json!({})).await;
    session.next("session.idle").await;
    let no = json!({"kind": "reject", "feedback": "use make"});
    assert!(session.decide(&request, no).await);
    session.next("session.idle").await;
    end(daemon).await
}
