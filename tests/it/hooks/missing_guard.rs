//! Guards of a project that are not there any more as they were trusted: what they guard is denied
//! until a person has looked again.

use loopd_tests::{Client, Turn};
use serde_json::{Value, json};

use super::edited::{guarded, guarded_by, trust};
use super::support::{bash, end_of, warning, without_hooks};

const MISSING: &str = "was changed, moved, deleted or turned off";

async fn show(client: &Client) -> Value {
    client.call("loopd.trust.show", json!({})).await
}

/// An agent takes the guard away with a command, and goes on after the next message.
async fn taken_away_by(command: &str) {
    let daemon = guarded([
        Turn::user("go").calls([bash("a", command)]),
        Turn::results([""]).says("done"),
        Turn::user("more").calls([bash("b", "touch fine")]),
        Turn::results([MISSING]).says("done"),
        Turn::user("again").calls([bash("c", "touch fine")]),
        Turn::results([MISSING]).says("done"),
        Turn::user("last").calls([bash("d", "touch fine")]),
        Turn::results([""]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.ask("go").await;
    session.send("more").await;
    let told = warning(&mut session, "hook_file").await;
    for part in ["guard.json", MISSING, "loop trust"] {
        assert!(told.contains(part), "{command}: {told}");
    }
    let end = end_of(&mut session, "b").await;
    let message = end["error"]["message"].as_str().unwrap();
    for part in ["guard.json:2", "loop trust"] {
        assert!(message.contains(part), "{command}: {message}");
    }
    session.next("session.idle").await;
    // Nor does it run without a guard in a session that begins now.
    let mut other = daemon.client().create(without_hooks()).await;
    other.approve_all().await;
    other.ask("again").await;
    assert!(!daemon.file("fine").exists(), "{command}");
    let shown = show(session.client()).await;
    assert_eq!(shown["trusted"], false, "{shown}");
    assert_eq!(shown["missing"][0]["name"], "preToolUse (bash)", "{shown}");
    trust(session.client()).await;
    assert_eq!(show(session.client()).await.get("missing"), None);
    session.ask("last").await;
    assert!(daemon.file("fine").exists(), "{command}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_whose_file_is_moved_denies() {
    taken_away_by("mv .github/hooks/guard.json guard.json").await;
}

#[tokio::test]
async fn a_guard_whose_folder_is_deleted_denies() {
    taken_away_by("rm -r .github").await;
}

#[tokio::test]
async fn a_guard_whose_script_is_changed_denies() {
    taken_away_by("echo '# c' >> guard.sh").await;
}

#[tokio::test]
async fn a_guard_that_its_own_file_turns_off_denies() {
    taken_away_by(
        "sed -i 's/\"version\"/\"disableAllHooks\":true,\"version\"/' .github/hooks/guard.json",
    )
    .await;
}

#[tokio::test]
async fn settings_that_nobody_trusts_do_not_turn_a_guard_off() {
    let switch = "mkdir .claude; echo '{\"disableAllHooks\":true}' > .claude/settings.json";
    let daemon = guarded([
        Turn::user("go").calls([bash("a", switch)]),
        Turn::results([""]).says("done"),
        Turn::user("more").calls([bash("b", "touch forbidden"), bash("c", "touch fine")]),
        Turn::results(["not this", ""]).says("done"),
        Turn::user("again").calls([bash("d", "touch forbidden")]),
        Turn::results([""]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.ask("go").await;
    session.send("more").await;
    let told = warning(&mut session, "hook_file").await;
    assert!(told.contains("does not turn off any hooks"), "{told}");
    session.next("session.idle").await;
    assert!(daemon.file("fine").exists());
    assert!(!daemon.file("forbidden").exists());
    trust(session.client()).await;
    session.ask("again").await;
    assert!(daemon.file("forbidden").exists(), "the user turned it off");
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_that_writes_a_log_stays_what_was_trusted() {
    let hooks = r#"{"version":1,"hooks":{"preToolUse":[
{"bash":"./guard.sh 2>>\"$COPILOT_PROJECT_DIR\"/guard.log >> out.log; code=$?; echo x >&2; exit $code"}]}}"#;
    let daemon = guarded_by(
        hooks,
        [
            Turn::user("go").calls([bash("a", "touch fine"), bash("b", "touch forbidden")]),
            Turn::results(["", "x"]).says("done"),
            Turn::user("more").calls([bash("c", "touch forbidden"), bash("d", "touch more")]),
            Turn::results(["x", ""]).says("done"),
        ],
    )
    .await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.ask("go").await;
    session.ask("more").await;
    assert!(daemon.file("guard.log").exists());
    assert!(daemon.file("more").exists());
    assert!(!daemon.file("forbidden").exists());
    daemon.finish().await;
}
