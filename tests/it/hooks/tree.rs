//! Hooks hold in every agent of the tree, also after a restart.

use loopd_tests::script::Call;
use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

use super::support::{HookApp, HookReply, bash, offer, without_hooks, write_hooks};

fn task(id: &str, prompt: &str, name: &str, mode: &str) -> Call {
    let arguments = json!({"description": "a part of it", "prompt": prompt, "name": name,
                           "mode": mode, "agent_type": "general-purpose"});
    call(id, "task", arguments)
}

/// A background agent has an agent that runs a command; told to go on, it runs one itself.
pub(super) async fn tree() -> Daemon {
    let denied = "Denied by preToolUse hook";
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task("t", "level one", "one", "background")]),
                Turn::results(["agent_id: one"]).says("it works"),
                Turn::user("\"one\"").says("it is done"),
                Turn::user("refused again").says("it is done again"),
            ],
        ),
        (
            "level one",
            vec![
                Turn::user("level one").calls([task("u", "level two", "two", "sync")]),
                Turn::results(["refused below"]).says("refused"),
                Turn::user("go on").calls([bash("d", "touch made")]),
                Turn::results([denied]).says("refused again"),
            ],
        ),
        (
            "level two",
            vec![
                Turn::user("level two").calls([bash("c", "touch made")]),
                Turn::results([denied]).says("refused below"),
            ],
        ),
    ]);
    Daemon::builder().script(script.await).yolo().start().await
}

fn denying(session: &Session) -> HookApp {
    HookApp::on(session.client(), |kind, input| match kind {
        "preToolUse" if input["toolName"] == "bash" => {
            HookReply::Output(json!({"permissionDecision": "deny"}))
        }
        _ => HookReply::Nothing,
    })
}

/// Waits until the main agent says this.
pub(super) async fn says(session: &mut Session, text: &str) {
    let is_it =
        |event: &Value| event["type"] == "assistant.message" && event["data"]["content"] == text;
    session.next_where(text, is_it).await;
}

pub(super) async fn go_on(session: &Session) {
    let message = json!({"id": "one", "message": "go on"});
    let sent = session.call("session.tasks.sendMessage", message).await;
    assert_eq!(sent["sent"], true, "{sent}");
}

#[tokio::test]
async fn a_clients_guard_holds_in_a_grandchild_and_after_a_restart() {
    let mut daemon = tree().await;
    let mut session = daemon.client().create(offer()).await;
    let app = denying(&session);
    session.send("begin").await;
    says(&mut session, "it is done").await;
    session.next("session.idle").await;
    let asked = app.inputs("preToolUse");
    let below = asked.iter().find(|it| it["toolName"] == "bash").unwrap();
    assert_eq!(below["agentId"], "one.two");
    assert_eq!(below["agentName"], "general-purpose");
    let top = asked.iter().find(|it| it["toolCallId"] == "t").unwrap();
    assert_eq!(top["agentId"], Value::Null);
    let started = app.inputs("subagentStart");
    let agents: Vec<&Value> = started.iter().map(|it| &it["agentId"]).collect();
    assert_eq!(agents, ["one", "one.two"]);
    let stopped = app.inputs("subagentStop");
    let agents: Vec<&Value> = stopped.iter().map(|it| &it["agentId"]).collect();
    assert_eq!(agents, ["one.two", "one"]);
    drop(app);

    daemon.restart().await;
    // The client that guarded is not there: the call of the agent waits.
    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    go_on(&other).await;
    let waits = |event: &Value| {
        event["type"] == "session.warning" && event["data"]["warningType"] == "guard_absent"
    };
    other.next_where("a call that waits", waits).await;
    assert!(!daemon.file("made").exists());
    let guard = daemon.client();
    let session = guard.resume(&session.id, offer()).await;
    let app = denying(&session);
    says(&mut other, "it is done again").await;
    let asked = app.inputs("preToolUse");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["agentId"], "one");
    assert!(!daemon.file("made").exists());
    other.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_of_a_file_holds_in_a_grandchild_and_after_a_restart() {
    let mut daemon = tree().await;
    let hooks = json!({"preToolUse": [{"bash": "cat >> seen; exit 2", "matcher": "bash"}]});
    write_hooks(&daemon, &hooks);
    let mut session = daemon.client().create(without_hooks()).await;
    session.send("begin").await;
    says(&mut session, "it is done").await;
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.restart().await;
    // No prompt of the main agent has looked for hooks when the agent goes on.
    let mut session = daemon.client().resume(&session.id, without_hooks()).await;
    go_on(&session).await;
    says(&mut session, "it is done again").await;
    assert!(!daemon.file("made").exists());
    let seen = std::fs::read_to_string(daemon.file("seen")).unwrap();
    let agents: Vec<Value> = seen
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["agentId"].clone())
        .collect();
    assert_eq!(agents, ["one.two", "one"]);
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_of_a_file_holds_in_an_agent_that_a_client_starts_before_any_prompt() {
    let script = Script::voices([
        (
            "help me",
            vec![
                Turn::user("help me").calls([bash("c", "touch made")]),
                Turn::results(["Denied by preToolUse hook"]).says("refused"),
            ],
        ),
        ("helper", vec![Turn::user("refused").says("I see")]),
    ]);
    let daemon = Daemon::builder().script(script.await).yolo().start().await;
    write_hooks(&daemon, &json!({"preToolUse": [{"bash": "exit 2"}]}));
    let mut session = daemon.client().create(without_hooks()).await;
    let helper = json!({"agentType": "general-purpose", "prompt": "help me", "name": "helper"});
    session.call("session.tasks.startAgent", helper).await;
    says(&mut session, "I see").await;
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn an_agents_own_hooks_only_add() {
    let hooks = |own: &str| {
        format!(
            "---\nname: careful\ndescription: Works.\nhooks:\n  preToolUse:\n    - bash: {own}\n      \
             matcher: bash\n---\nWork.\n"
        )
    };
    // (the user's guard, the agent's own, what the model is told)
    let table = [
        (
            "exit 2",
            "echo '{\"permissionDecision\":\"allow\"}'",
            "Denied by preToolUse hook",
        ),
        ("true", "exit 2", "Denied by preToolUse hook"),
    ];
    for (users, own, told) in table {
        let script = Script::voices([
            (
                "begin",
                vec![
                    Turn::user("begin").calls([call(
                        "t",
                        "task",
                        json!({
                        "description": "a part", "prompt": "work on it", "name": "one",
                        "agent_type": "careful", "mode": "sync"}),
                    )]),
                    Turn::results(["refused"]).calls([bash("m", "touch top")]),
                    Turn::any().says("done"),
                ],
            ),
            (
                "work on it",
                vec![
                    Turn::user("work on it").calls([bash("c", "touch made")]),
                    Turn::results([told]).says("refused"),
                ],
            ),
        ]);
        let daemon = Daemon::builder().script(script.await).yolo().start().await;
        write_hooks(
            &daemon,
            &json!({"preToolUse": [{"bash": users, "matcher": "bash"}]}),
        );
        let agents = daemon.home().join("agents");
        std::fs::create_dir_all(&agents).unwrap();
        std::fs::write(agents.join("careful.md"), hooks(own)).unwrap();
        let mut session = daemon.client().create(without_hooks()).await;
        session.ask("begin").await;
        assert!(!daemon.file("made").exists(), "{users} {own}");
        // The agent's own hooks are for the agent alone.
        assert_eq!(daemon.file("top").exists(), users == "true");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn matchers_choose_tools_and_agents() {
    let daemon = tree().await;
    let note = |text: &str| json!({"bash": format!("echo {text} >> seen"), "matcher": text});
    let hooks = json!({
        "preToolUse": [{"bash": "exit 2", "matcher": "bash"}, note("task"), note("view")],
        "subagentStart": [note("general-purpose"), note("explore")],
    });
    write_hooks(&daemon, &hooks);
    let mut session = daemon.client().create(without_hooks()).await;
    session.send("begin").await;
    says(&mut session, "it is done").await;
    session.next("session.idle").await;
    let seen = std::fs::read_to_string(daemon.file("seen")).unwrap();
    let seen: Vec<&str> = seen.lines().collect();
    assert_eq!(seen, ["task", "general-purpose", "task", "general-purpose"]);
    // What the agent has to do after a restart is not a part of this.
    go_on(&session).await;
    says(&mut session, "it is done again").await;
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn agents_go_on_when_people_lift_the_guard() {
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task("t", "work on it", "one", "sync")]),
                Turn::results(["worked"]).says("done"),
            ],
        ),
        (
            "work on it",
            vec![
                Turn::user("work on it").calls([bash("c", "touch made")]),
                Turn::results([""]).says("worked"),
            ],
        ),
    ]);
    let daemon = Daemon::builder().script(script.await).yolo().start().await;
    let session = daemon.client().create(offer()).await;
    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    let app = HookApp::on(session.client(), |kind, input| match kind {
        "preToolUse" if input["agentId"] == "one" => HookReply::Never,
        _ => HookReply::Nothing,
    });
    other.send("begin").await;
    app.asked("preToolUse", 2).await;
    drop(app);
    session.client().vanish().await;
    let waits = |event: &Value| {
        event["type"] == "session.warning" && event["data"]["warningType"] == "guard_absent"
    };
    let told = other.next_where("a call that waits", waits).await;
    assert_eq!(told["agentId"], "one");
    assert!(!daemon.file("made").exists());
    other.call("loopd.hooks.lift", json!({})).await;
    other.next("session.idle").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_can_be_kept_from_stopping() {
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task("t", "work on it", "one", "sync")]),
                Turn::results(["tested"]).says("done"),
            ],
        ),
        (
            "work on it",
            vec![
                Turn::user("work on it").says("worked"),
                Turn::user("test it").says("tested"),
            ],
        ),
    ]);
    let daemon = Daemon::builder().script(script.await).yolo().start().await;
    let mut session = daemon.client().create(offer()).await;
    let app = HookApp::on(session.client(), |kind, input| match kind {
        "subagentStop" if input["stopBlocks"] == 0 => {
            HookReply::Output(json!({"decision": "block", "reason": "test it"}))
        }
        _ => HookReply::Nothing,
    });
    session.ask("begin").await;
    let asked = app.inputs("subagentStop");
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1]["response"], "tested");
    let path = asked[1]["transcriptPath"].as_str().unwrap();
    let transcript = std::fs::read_to_string(path).unwrap();
    assert!(transcript.contains("worked"), "{transcript}");
    assert_eq!(app.inputs("agentStop").len(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_that_its_start_hook_stops_does_not_begin_with_a_later_message() {
    let mut calls = vec![
        Turn::any().says("done"),
        Turn::any().calls([call(
            "w",
            "write_agent",
            json!({"agent_id": "one", "message": "go on all the same"}),
        )]),
        Turn::any().calls([task("t", "work on it", "one", "sync")]),
    ];
    let script = Script::answering(move |request| {
        if request.first_user_text().contains("begin") {
            calls.pop().unwrap_or_else(|| Turn::any().says("noted"))
        } else {
            Turn::any().says("worked although it was stopped")
        }
    });
    let daemon = Daemon::builder().script(script.await).yolo().start().await;
    let mut session = daemon.client().create(offer()).await;
    let stopped = json!({"continue": false, "stopReason": "not now"});
    let app = HookApp::saying(session.client(), "subagentStart", stopped);
    session.send("begin").await;
    app.asked("subagentStart", 2).await;
    says(&mut session, "done").await;
    session.next("session.idle").await;
    let requests = daemon.script().requests();
    let of_agent = requests.iter();
    let of_agent = of_agent.filter(|it| !it.first_user_text().contains("begin"));
    assert_eq!(of_agent.count(), 0, "the agent was asked");
    daemon.finish().await;
}
