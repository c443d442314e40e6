//! Guards in the definitions of agents: the agent does not work without one that it should have.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::edited::trust;
use super::support::{bash, warning, without_hooks};

const MISSING: &str = "was changed, moved, deleted or turned off";

fn definition(hooks: &str) -> String {
    format!("---\nname: kid\ndescription: Does.\n{hooks}---\nYou are careful.\n")
}

fn guard() -> String {
    definition("hooks:\n  preToolUse:\n    - bash: sh guard.sh\n      matcher: bash\n")
}

/// A daemon whose sessions start the agent `kid` with each message `begin 0`, `begin 1` and so on; the
/// agent runs a command and is told this. The last message is one of another session.
async fn starting(told: &[&str]) -> Daemon {
    let mut first = Vec::new();
    let mut voices = Vec::new();
    for (number, told) in told.iter().enumerate() {
        let (begin, work) = (format!("begin {number}"), format!("work {number}"));
        let task = json!({"description": "a part", "prompt": work, "name": format!("kid{number}"),
                          "agent_type": "kid", "mode": "sync"});
        let turns = vec![
            Turn::user(&begin).calls([call("t", "task", task)]),
            Turn::any().says("done"),
        ];
        first.push((begin, turns));
        let turns = vec![
            Turn::user(&work).calls([bash("c", "touch made")]),
            Turn::results([*told]).says("tried"),
        ];
        voices.push((work, turns));
    }
    let last = first.pop().unwrap();
    if !first.is_empty() {
        let turns = first.into_iter().flat_map(|(_, turns)| turns).collect();
        voices.push(("begin 0".to_owned(), turns));
    }
    voices.push(last);
    let voices = voices
        .iter()
        .map(|(name, turns)| (name.as_str(), turns.clone()));
    let script = Script::voices(voices.collect::<Vec<_>>()).await;
    Daemon::builder().script(script).yolo().start().await
}

fn write(daemon: &Daemon, file: &str, text: &str) {
    let path = daemon.file(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A name, and what takes the guard away.
type Way = (&'static str, fn(&Daemon));

#[tokio::test]
async fn a_trusted_guard_that_is_taken_from_an_agent_denies() {
    let ways: [Way; 5] = [
        ("removed", |daemon| {
            write(daemon, ".github/agents/kid.md", &definition(""));
        }),
        ("changed", |daemon| {
            let changed = guard().replace("sh guard.sh", "true");
            write(daemon, ".github/agents/kid.md", &changed);
        }),
        ("another matcher", |daemon| {
            let changed = guard().replace("matcher: bash", "matcher: view");
            write(daemon, ".github/agents/kid.md", &changed);
        }),
        ("another script", |daemon| {
            write(daemon, "guard.sh", "exit 0\n");
        }),
        ("moved", |daemon| {
            std::fs::remove_file(daemon.file(".github/agents/kid.md")).unwrap();
            write(daemon, ".claude/agents/kid.md", &definition(""));
        }),
    ];
    for (way, take) in ways {
        let daemon = starting(&["not this", MISSING, MISSING]).await;
        write(&daemon, ".github/agents/kid.md", &guard());
        write(&daemon, "guard.sh", "echo 'not this' >&2\nexit 2\n");
        trust(&daemon.client()).await;
        let mut session = daemon.client().create(without_hooks()).await;
        session.ask("begin 0").await;
        take(&daemon);
        session.ask("begin 1").await;
        assert!(!daemon.file("made").exists(), "{way}");
        let mut other = daemon.client().create(without_hooks()).await;
        other.ask("begin 2").await;
        assert!(!daemon.file("made").exists(), "{way}");
        let shown = daemon.client().call("loopd.trust.show", json!({})).await;
        assert_eq!(shown["trusted"], false, "{way}: {shown}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_guard_of_an_agent_with_a_mistake_denies_and_is_told() {
    let table = [
        (
            "  preToolUse:\n    - bash: exit 2\n      matcher: \"ba(sh\"\n",
            5,
        ),
        ("  preTooluse:\n    - bash: exit 2\n", 5),
        (
            "  agentStop: []\n  preToolUse:\n    - bash: exit 2\n      timeoutSec: \"10\"\n",
            6,
        ),
        (
            "  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: judge\n          prompt: ok?\n",
            5,
        ),
        ("  preToolUse: exit 2\n", 5),
    ];
    for (hooks, line) in table {
        let daemon = starting(&["cannot be used"]).await;
        let agents = daemon.home().join("agents");
        std::fs::create_dir_all(&agents).unwrap();
        let text = definition(&format!("hooks:\n{hooks}"));
        std::fs::write(agents.join("kid.md"), text).unwrap();
        let mut session = daemon.client().create(without_hooks()).await;
        session.send("begin 0").await;
        let told = warning(&mut session, "agent_definition").await;
        let place = format!("kid.md, line {line}: `hooks` of the agent `kid`");
        assert!(told.contains(&place), "{hooks}: {told}");
        session.next("session.idle").await;
        assert!(!daemon.file("made").exists(), "{hooks}");
        let listed = daemon.client().call("loopd.hooks.list", json!({})).await;
        let problems = listed["problems"].as_array().unwrap();
        assert!(problems.iter().any(|it| it["line"] == line), "{listed}");
        let found = daemon
            .client()
            .call("loopd.discoveryProblems", json!({}))
            .await;
        assert!(
            found.to_string().contains("`hooks` of the agent"),
            "{found}"
        );
        daemon.finish().await;
    }
}

#[tokio::test]
async fn hooks_of_agents_are_listed() {
    let daemon = Daemon::playing([]).await;
    let agents = daemon.home().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("kid.md"), guard()).unwrap();
    let listed = daemon.client().call("loopd.hooks.list", json!({})).await;
    let hook = &listed["hooks"][0];
    let expected = json!({"event": "preToolUse", "origin": "agent", "line": 5, "state": "runs"});
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&hook[member], value, "{listed}");
    }
    assert!(Value::is_null(&hook["why"]), "{listed}");
    daemon.finish().await;
}

/// The user's own agents need no trust, but a guard of one does not go without a word.
#[tokio::test]
async fn a_guard_that_is_taken_from_an_agent_of_the_user_has_a_person_asked() {
    let ways: [Way; 3] = [
        ("removed", |daemon| write_own(daemon, &definition(""))),
        ("changed", |daemon| {
            write_own(daemon, &guard().replace("sh guard.sh", "exit 0"));
        }),
        ("moved", |daemon| {
            std::fs::remove_file(daemon.home().join("agents/kid.md")).unwrap();
            write(daemon, ".claude/agents/kid.md", &definition(""));
        }),
    ];
    for (way, take) in ways {
        let daemon = starting(&["not this", "", ""]).await;
        write_own(&daemon, &guard());
        write(&daemon, "guard.sh", "echo 'not this' >&2\nexit 2\n");
        let mut session = daemon.client().create(without_hooks()).await;
        session.ask("begin 0").await;
        take(&daemon);
        session.send("begin 1").await;
        let told = warning(&mut session, "agent_definition").await;
        assert!(
            told.contains("your guard preToolUse (bash) of the agent `kid`"),
            "{way}: {told}"
        );
        let (id, request) = session.permission().await;
        assert!(
            request.to_string().contains("touch made"),
            "{way}: {request}"
        );
        let nobody = json!({"kind": "user-not-available"});
        assert!(session.decide(&id, nobody).await);
        session.next("session.idle").await;
        assert!(!daemon.file("made").exists(), "{way}");
        let accepted = daemon.client().call("loopd.hooks.accept", json!({})).await;
        assert_eq!(
            accepted["givenUp"][0]["message"], "preToolUse (bash)",
            "{way}: {accepted}"
        );
        let mut other = daemon.client().create(without_hooks()).await;
        other.ask("begin 2").await;
        assert!(daemon.file("made").exists(), "{way}");
        daemon.finish().await;
    }
}

fn write_own(daemon: &Daemon, text: &str) {
    let agents = daemon.home().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("kid.md"), text).unwrap();
}
