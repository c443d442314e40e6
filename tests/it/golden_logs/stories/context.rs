//! Sessions whose context gets too small.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

use super::{Log, end, session};

/// The model looks at a file so often that old results are shortened.
pub(super) async fn pruned() -> Vec<Log> {
    let look = |id: &str| call(id, "view", json!({"path": "notes.txt"}));
    let turns = (1..=6).map(|at| Turn::any().calls([look(&format!("c{at}"))]));
    let script = Script::play(turns.chain([Turn::any().says("seen")]));
    let daemon = Daemon::with(script.await).await;
    let lines = (1..=80).map(|line| format!("line {line} of some words\n"));
    std::fs::write(daemon.file("notes.txt"), lines.collect::<String>()).unwrap();
    let window = json!({
        "modelCapabilities": {"limits": {"max_context_window_tokens": 6_000}},
        "availableTools": ["view"],
    });
    let mut session = session(&daemon, "pruned", window).await;
    session.approve_all().await;
    session.ask("look").await;
    end(daemon).await
}

/// A client lets the conversation be compacted, and then it goes on.
pub(super) async fn compacted() -> Vec<Log> {
    let script = Script::play([
        Turn::user("hello").says("a long greeting"),
        Turn::any().says("<overview>They greeted each other.</overview>"),
        Turn::any().says("goodbye"),
    ]);
    let daemon = Daemon::with(script.await).await;
    let tools = json!({"availableTools": ["view"]});
    let mut session = session(&daemon, "compacted", tools).await;
    session.ask("hello").await;
    session.call("session.history.compact", json!({})).await;
    session.ask("bye").await;
    end(daemon).await
}

/// The provider refuses an image, which is left out.
pub(super) async fn refused() -> Vec<Log> {
    let script = Script::play([
        Turn::user("what").fails(400, "Could not process image"),
        Turn::any().says("I cannot see it"),
    ]);
    let daemon = Daemon::with(script.await).await;
    let tools = json!({"availableTools": ["view"]});
    let mut session = session(&daemon, "refused", tools).await;
    let image = json!([{"type": "blob", "data": "aGk=", "mimeType": "image/png"}]);
    let sent = json!({"prompt": "what is this?", "attachments": image});
    session.call("session.send", sent).await;
    session.next("session.idle").await;
    end(daemon).await
}

/// A tool of a client clears the conversation, then a person does; a summary was made for somebody.
pub(super) async fn cleared() -> Vec<Log> {
    let script = Script::play([
        Turn::user("hello").calls([call("c", "anew", json!({}))]),
        Turn::user("begin anew").says("well"),
        Turn::user("Somebody else").says("## Goal").uses(100, 5),
        Turn::user("later").says("well"),
    ]);
    let daemon = Daemon::with(script.await).await;
    let tools = json!({
        "availableTools": ["anew"],
        "tools": [{"name": "anew", "description": "Clears", "skipPermission": true, "isTerminal": true}],
    });
    let mut session = session(&daemon, "cleared", tools).await;
    session.send("hello").await;
    let (request, _) = session.tool_call().await;
    let seed = json!({"prompt": "begin anew"});
    session.call("session.history.clearContext", seed).await;
    session.give(&request, json!({"result": "done"})).await;
    session.next("session.idle").await;
    session
        .call("session.history.summarizeForHandoff", json!({}))
        .await;
    let clear = json!({"name": "clear", "input": ""});
    session.call("session.commands.invoke", clear).await;
    session.ask("later").await;
    end(daemon).await
}
