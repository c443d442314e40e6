//! Calls that write to protected files: each asks, whatever rules allow, and the others do not.

use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

/// The name of a tool, and the arguments of a call.
pub(crate) type ToolUse = (&'static str, Value);

pub(crate) fn update(file: &str) -> Value {
    let patch = format!("*** Begin Patch\n*** Update File: {file}\n@@\n-a\n+b\n*** End Patch\n");
    json!({"patch": patch})
}

pub(crate) fn edit(file: &str) -> Value {
    json!({"path": file, "old_str": "a", "new_str": "b"})
}

pub(crate) fn create(file: &str) -> Value {
    json!({"path": file, "file_text": "x"})
}

pub(crate) fn bash(command: &str) -> Value {
    json!({"command": command})
}

/// A daemon whose model makes these calls, one for each message.
pub(crate) async fn calling(asked: &[ToolUse], free: &[ToolUse]) -> Daemon {
    let calls = asked.iter().chain(free).enumerate();
    let turns = calls.flat_map(|(at, (tool, arguments))| {
        let id = format!("t{at}");
        [
            Turn::user(&id).calls([call(&id, tool, arguments.clone())]),
            Turn::results([""]).says("ok"),
        ]
    });
    Daemon::playing(turns.collect::<Vec<_>>()).await
}

/// Lets the model make its calls in a session that allows everything, and denies what is asked.
pub(crate) async fn only_these_ask(daemon: &Daemon, asked: &[ToolUse], free: &[ToolUse]) {
    let client = daemon.client();
    let mut session = client.create(json!({"requestPermission": true})).await;
    let rules = json!([{"kind": "write"}, {"kind": "shell"}, {"kind": "read"}]);
    let add = json!({"scope": "session", "add": rules});
    session.call("session.permissions.modifyRules", add).await;
    for (at, (tool, arguments)) in asked.iter().enumerate() {
        session.send(&format!("t{at}")).await;
        let (request, told) = session.permission().await;
        let offers = &told["canOfferSessionApproval"];
        assert_eq!(offers, false, "{tool} {arguments}: no rule covers it");
        let no = json!({"kind": "user-not-available"});
        assert!(session.decide(&request, no).await);
        session.next("session.idle").await;
    }
    for at in asked.len()..asked.len() + free.len() {
        session.ask(&format!("t{at}")).await;
    }
    assert_eq!(session.count("permission.requested"), asked.len());
}
