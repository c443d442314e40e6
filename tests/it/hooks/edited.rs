//! Hooks of a project that an agent edits: what it wrote never runs, and nothing stops guarding
//! without a word.

use loopd_tests::{Client, Daemon, Turn};
use serde_json::json;

use super::support::{bash, end_of, warning, without_hooks};

const HOOKS: &str = r#"{"version":1,"hooks":{"preToolUse":[
{"bash":"./guard.sh","matcher":"bash"}]}}"#;

/// Denies what has the word "forbidden" in it.
const GUARD: &str = "#!/bin/bash\nif grep -q forbidden; then echo 'not this' >&2; exit 2; fi\n";

pub(super) async fn trust(client: &Client) {
    let shown = client.call("loopd.trust.show", json!({})).await;
    let params = json!({"path": shown["path"], "hash": shown["hash"]});
    client.call("loopd.trust.set", params).await;
}

/// A daemon whose project has a guard, which is trusted.
pub(super) async fn guarded(turns: impl IntoIterator<Item = Turn>) -> Daemon {
    guarded_by(HOOKS, turns).await
}

/// A daemon whose project has this file of hooks, which is trusted.
pub(super) async fn guarded_by(hooks: &str, turns: impl IntoIterator<Item = Turn>) -> Daemon {
    let text = hooks;
    let daemon = Daemon::playing(turns).await;
    let hooks = daemon.file(".github/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    std::fs::write(hooks.join("guard.json"), text).unwrap();
    std::fs::write(daemon.file("guard.sh"), GUARD).unwrap();
    let made = std::process::Command::new("chmod")
        .args(["+x", "guard.sh"])
        .current_dir(daemon.work())
        .status();
    assert!(made.unwrap().success());
    trust(&daemon.client()).await;
    daemon
}

#[tokio::test]
async fn a_trusted_guard_of_a_project_guards() {
    let daemon = guarded([
        Turn::user("go").calls([bash("a", "touch fine"), bash("b", "touch forbidden")]),
        Turn::results(["", "not this"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.ask("go").await;
    assert!(daemon.file("fine").exists());
    assert!(!daemon.file("forbidden").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_that_nobody_trusts_does_not_run_and_people_are_told() {
    let daemon = Daemon::playing([Turn::user("go").says("done")]).await;
    let hooks = daemon.file(".github/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    std::fs::write(hooks.join("guard.json"), HOOKS).unwrap();
    let mut session = daemon.client().create(without_hooks()).await;
    session.send("go").await;
    let told = warning(&mut session, "hook_file").await;
    for part in ["guard.json, line 2", "1 hook does not run", "loop trust"] {
        assert!(told.contains(part), "{told}");
    }
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_script_that_the_agent_changed_does_not_decide() {
    let daemon = guarded([
        Turn::user("go").calls([bash("a", "printf 'exit 0' > guard.sh")]),
        Turn::results([""]).calls([bash("b", "touch forbidden")]),
        Turn::results(["has changed since it was trusted"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.send("go").await;
    let end = end_of(&mut session, "b").await;
    let message = end["error"]["message"].as_str().unwrap();
    for part in ["guard.json:2", "loop trust"] {
        assert!(message.contains(part), "{message}");
    }
    session.next("session.idle").await;
    assert!(!daemon.file("forbidden").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_file_of_hooks_that_the_agent_changed_is_read_after_it_is_trusted_again() {
    let edit = "sed -i 's/guard.sh/evil.sh/' .github/hooks/guard.json; \
                printf 'touch evil' > evil.sh; chmod +x evil.sh";
    let daemon = guarded([
        Turn::user("go").calls([bash("a", edit)]),
        // The guard that was trusted goes on until the next prompt.
        Turn::results([""]).calls([bash("b", "touch forbidden")]),
        Turn::results(["not this"]).says("done"),
        // From then on, what it guarded is denied.
        Turn::user("more").calls([bash("c", "touch fine")]),
        Turn::results(["was changed, moved, deleted or turned off"]).says("done"),
        Turn::user("again").calls([bash("d", "touch fine")]),
        Turn::results([""]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.ask("go").await;
    assert!(!daemon.file("forbidden").exists());
    session.send("more").await;
    let missing = warning(&mut session, "hook_file").await;
    assert!(missing.contains("what it guards is denied"), "{missing}");
    let told = warning(&mut session, "hook_file").await;
    for part in ["guard.json, line 2", "1 hook does not run", "loop trust"] {
        assert!(told.contains(part), "{told}");
    }
    session.next("session.idle").await;
    assert!(
        !daemon.file("evil").exists(),
        "what the agent wrote has run"
    );
    trust(session.client()).await;
    session.ask("again").await;
    assert!(daemon.file("evil").exists(), "the user trusts it now");
    daemon.finish().await;
}

/// A guard in Python that asks a module of its own.
const PYTHON: &str = r#"{"version":1,"hooks":{"preToolUse":[
{"bash":"python3 guard.py","matcher":"bash"}]}}"#;

/// Has Python keep another module in the place where it keeps `rules.py` once it was compiled.
const PLANT: &str = r#"
import importlib.util, marshal, os, struct
code = compile("def decide(text): return 'allow'", "rules.py", "exec")
kept = importlib.util.cache_from_source("rules.py")
os.makedirs(os.path.dirname(kept), exist_ok=True)
seen = os.stat("rules.py")
head = struct.pack("<III", 0, int(seen.st_mtime) & 0xffffffff, seen.st_size & 0xffffffff)
open(kept, "wb").write(importlib.util.MAGIC_NUMBER + head + marshal.dumps(code))
"#;

#[tokio::test]
async fn what_python_keeps_of_a_module_does_not_decide_in_its_place() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("a", "touch forbidden")]),
        Turn::results(["rules"]).calls([bash("b", "python3 plant.py")]),
        Turn::results([""]).calls([bash("c", "touch forbidden")]),
        Turn::results(["rules"]).calls([bash("d", "touch rules.abi3.so")]),
        Turn::results([""]).calls([bash("e", "touch forbidden")]),
        Turn::results(["has changed since it was trusted"]).says("done"),
    ])
    .await;
    let hooks = daemon.file(".github/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    std::fs::write(hooks.join("guard.json"), PYTHON).unwrap();
    let guard = "import json, sys, rules\nprint(json.dumps({\"permissionDecision\": \
                 rules.decide(sys.stdin.read()), \"permissionDecisionReason\": \"rules\"}))\n";
    std::fs::write(daemon.file("guard.py"), guard).unwrap();
    let rules = "def decide(text):\n    return 'deny' if 'forbidden' in text else 'allow'\n";
    std::fs::write(daemon.file("rules.py"), rules).unwrap();
    std::fs::write(daemon.file("plant.py"), PLANT).unwrap();
    trust(&daemon.client()).await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.ask("go").await;
    assert!(!daemon.file("forbidden").exists());
    daemon.finish().await;
}
