//! An agent that is told to go on, completes one task, is blocked with another, and is paused.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

use super::{Log, session, take};

pub(super) async fn autopilot() -> Vec<Log> {
    let complete = |id: &str, arguments| call(id, "task_complete", arguments);
    let script = Script::play([
        Turn::user("one").says("I will"),
        Turn::user("not marked as complete").calls([complete("a", json!({"summary": ""}))]),
        Turn::results(["is empty"]).calls([complete("b", json!({"summary": "built"}))]),
        Turn::user("two").calls([complete(
            "c",
            json!({"summary": "half", "blocked": "a key"}),
        )]),
        Turn::user("three").says("paused"),
    ]);
    let daemon = Daemon::with(script.await).await;
    let options = json!({"autopilot": {"maxContinues": 7}});
    let mut session = session(&daemon, "autopilot", options).await;
    let message = json!({"prompt": "one", "agentMode": "autopilot"});
    session.call("session.send", message).await;
    session.next("session.idle").await;
    session.ask("two").await;
    let pause = json!({"paused": true});
    session.call("loopd.autopilot.pause", pause).await;
    session.ask("three").await;
    let logs = take(&daemon).await;
    daemon.finish().await;
    logs
}
