//! What hooks are told: a hook that is tried gets the members that it gets when its event happens, and
//! every event names the transcript.

use std::collections::BTreeSet;

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Map, Value, json};

use super::support::{bash, permit, without_hooks, write_hooks};

/// The events that happen in [`all_events`], in both spellings.
const EVENTS: [(&str, &str); 14] = [
    ("sessionStart", "SessionStart"),
    ("sessionEnd", "SessionEnd"),
    ("userPromptSubmitted", "UserPromptSubmit"),
    ("userPromptTransformed", "UserPromptTransformed"),
    ("preToolUse", "PreToolUse"),
    ("permissionRequest", "PermissionRequest"),
    ("postToolUse", "PostToolUse"),
    ("postToolUseFailure", "PostToolUseFailure"),
    ("subagentStart", "SubagentStart"),
    ("subagentStop", "SubagentStop"),
    ("agentStop", "Stop"),
    ("preCompact", "PreCompact"),
    ("errorOccurred", "ErrorOccurred"),
    ("notification", "Notification"),
];

/// Hooks that write the first payload of each event to a file.
fn recording() -> Value {
    let names = EVENTS
        .iter()
        .flat_map(|(native, claude)| [*native, *claude]);
    let hooks = names.map(|name| {
        let command = format!("[ -e seen-{name} ] || cat > seen-{name}");
        let hook = if name.starts_with(char::is_uppercase) {
            json!([{"hooks": [{"type": "command", "command": command}]}])
        } else {
            json!([{"bash": command}])
        };
        (name.to_owned(), hook)
    });
    Value::Object(hooks.collect::<Map<String, Value>>())
}

/// Lets all events happen once.
async fn all_events() -> Daemon {
    let order = json!({"description": "a part", "prompt": "work on it", "name": "one",
                       "agent_type": "explore", "mode": "sync"});
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([bash("c", "touch made")]),
                Turn::any().calls([call("v", "view", json!({"path": "missing"}))]),
                Turn::any().calls([call("t", "task", order)]),
                Turn::any().says("done"),
                Turn::user("Please create a detailed summary").says("it was made"),
                Turn::user("begin to fail").fails(400, "no"),
            ],
        ),
        ("work on it", vec![Turn::user("work on it").says("worked")]),
    ]);
    let daemon = Daemon::builder().script(script.await).start().await;
    write_hooks(&daemon, &recording());
    let mut offer = without_hooks();
    offer["enableFileHooks"] = true.into();
    let mut session = daemon.client().create(offer).await;
    session.send("begin").await;
    // The command, and the file that is not there.
    permit(&mut session).await;
    permit(&mut session).await;
    session.next("session.idle").await;
    session.call("session.history.compact", json!({})).await;
    session.send("begin to fail").await;
    session.next("session.idle").await;
    session.destroy().await;
    daemon
}

fn members(payload: &Value) -> BTreeSet<&str> {
    let members = payload.as_object().unwrap().iter();
    members.map(|(name, _)| name.as_str()).collect()
}

#[tokio::test]
async fn a_hook_that_is_tried_is_told_what_it_is_told_in_a_session() {
    let daemon = all_events().await;
    let client = daemon.client();
    let file = daemon.home().join("hooks/test.json");
    for (native, claude) in EVENTS {
        for name in [native, claude] {
            let seen = std::fs::read_to_string(daemon.file(&format!("seen-{name}")));
            let seen = seen.unwrap_or_else(|error| panic!("{name} did not happen: {error}"));
            let seen: Value = serde_json::from_str(&seen).unwrap();
            let params = json!({"file": file, "event": name, "cwd": daemon.work()});
            let tried = client.call("loopd.hooks.test", params).await;
            let tried = tried["hooks"].as_array().unwrap().clone();
            let of_form = |it: &&Value| {
                it["payload"].get("session_id").is_some() == name.starts_with(char::is_uppercase)
            };
            let tried = &tried.iter().find(of_form).unwrap()["payload"];
            assert_eq!(members(tried), members(&seen), "{name}");
            for member in ["toolResult", "tool_result", "error"] {
                if seen[member].is_object() {
                    assert_eq!(members(&tried[member]), members(&seen[member]), "{name}");
                }
            }
            let path = seen.get("transcriptPath").or(seen.get("transcript_path"));
            let path = path.unwrap_or_else(|| panic!("{name} names no transcript: {seen}"));
            let transcript = std::fs::read_to_string(path.as_str().unwrap()).unwrap();
            assert!(transcript.contains("session.start"), "{name}");
        }
    }
    daemon.finish().await;
}

#[tokio::test]
async fn no_transcript_is_written_if_nobody_wants_it() {
    let daemon = Daemon::playing([Turn::user("go").says("done")]).await;
    write_hooks(&daemon, &json!({"notification": [{"bash": "true"}]}));
    let mut offer = without_hooks();
    offer["enableFileHooks"] = true.into();
    let mut session = daemon.client().create(offer).await;
    session.ask("go").await;
    let id = session.id.as_str().into();
    let folder = daemon.app.services.session_folder(&id);
    assert!(!folder.join("transcript.jsonl").exists());
    daemon.finish().await;
}
