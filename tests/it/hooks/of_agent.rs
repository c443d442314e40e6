//! Hooks in the definition of an agent hold when that agent is selected for the session itself.

use loopd_tests::{Daemon, Turn};
use serde_json::json;

use super::edited::trust;
use super::support::{bash, without_hooks};

const AGENT: &str = "---\nname: kid\ndescription: Does.\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: echo 'not this' >&2; exit 2\n---\nYou are careful.\n";

#[tokio::test]
async fn the_hooks_of_a_selected_agent_guard_the_session() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("a", "touch main")]),
        Turn::results(["not this"]).says("done"),
        // The agent's file says nothing of hooks any more.
        Turn::user("still").calls([bash("c", "touch main")]),
        Turn::results(["was changed, moved, deleted or turned off"]).says("done"),
        Turn::user("more").calls([bash("b", "touch other")]),
        Turn::results([""]).says("done"),
    ])
    .await;
    let agents = daemon.file(".github/agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("kid.md"), AGENT).unwrap();
    let client = daemon.client();
    trust(&client).await;
    let mut session = client.create(without_hooks()).await;
    session.approve_all().await;
    session
        .call("session.agent.select", json!({"name": "kid"}))
        .await;
    session.ask("go").await;
    let without = "---\nname: kid\ndescription: Does.\n---\nYou are free.\n";
    std::fs::write(agents.join("kid.md"), without).unwrap();
    session.ask("still").await;
    assert!(!daemon.file("main").exists());
    session.call("session.agent.deselect", json!({})).await;
    session.ask("more").await;
    assert!(daemon.file("other").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn the_hooks_of_an_agent_that_an_app_defines_guard_it_also_after_a_restart() {
    let mut daemon = Daemon::playing([
        Turn::user("go").calls([bash("a", "touch main")]),
        Turn::results(["not this"]).says("done"),
        Turn::user("again").calls([bash("b", "touch main")]),
        Turn::results(["not this"]).says("done"),
    ])
    .await;
    let hooks = json!({"PreToolUse": [{"matcher": "Bash",
        "hooks": [{"type": "command", "command": "echo 'not this' >&2; exit 2"}]}]});
    let mut options = without_hooks();
    options["customAgents"] =
        json!([{"name": "kid", "prompt": "You are careful.", "hooks": hooks}]);
    options["agent"] = "kid".into();
    let mut session = daemon.client().create(options).await;
    session.approve_all().await;
    session.ask("go").await;
    let id = session.id.clone();
    daemon.restart().await;
    let mut session = daemon.client().resume(&id, without_hooks()).await;
    session.ask("again").await;
    assert!(!daemon.file("main").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_of_an_apps_agent_that_cannot_be_used_denies() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("a", "touch main")]),
        Turn::results(["Denied by preToolUse hook"]).says("done"),
    ])
    .await;
    let mut options = without_hooks();
    let hooks = json!({"PreToolUse": [{"hooks": [{"type": "comand", "command": "true"}]}]});
    options["customAgents"] =
        json!([{"name": "kid", "prompt": "You are careful.", "hooks": hooks}]);
    options["agent"] = "kid".into();
    let mut session = daemon.client().create(options).await;
    session.approve_all().await;
    session.ask("go").await;
    assert!(!daemon.file("main").exists());
    daemon.finish().await;
}
