//! What `allowed-tools` of an active skill keeps the model from.

use loopd_tests::{Daemon, Turn, call};
use serde_json::json;

use super::{session, skill};

#[tokio::test]
async fn other_tools_are_refused_until_the_next_message() {
    let write = |id: &str| call(id, "create", json!({"path": "new.txt", "file_text": "x"}));
    let daemon = Daemon::playing([
        Turn::user("one").calls([call("a", "skill", json!({"skill": "tidy"}))]),
        Turn::any().calls([
            write("b"),
            call("c", "glob", json!({"pattern": "*.nothing"})),
        ]),
        Turn::results([
            "The skill \"tidy\" is active and allows only these tools: Glob. create cannot be used",
            "No files",
        ])
        .says("1"),
        Turn::user("two").calls([write("d")]),
        Turn::results(["Created file"]).says("2"),
    ])
    .await;
    skill(&daemon, "tidy", "allowed-tools: Glob\n", "Tidy.");
    let mut session = session(&daemon).await;
    session.approve_all().await;
    session.ask("one").await;
    assert!(!daemon.file("new.txt").exists());
    // The tools stay listed, so that what providers have cached stays valid.
    let requests = daemon.script().requests();
    assert_eq!(requests[0].tools(), requests[2].tools());
    session.ask("two").await;
    assert!(daemon.file("new.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn arguments_count_and_a_person_confirms_what_goes_beyond_them() {
    let run =
        |id: &str, line: &str| call(id, "bash", json!({"command": line, "description": "Run"}));
    let daemon = Daemon::playing([
        Turn::user("one").calls([call("a", "skill", json!({"skill": "tidy"}))]),
        Turn::any().calls([run("b", "echo yes")]),
        Turn::results(["yes"]).calls([run("c", "ls; touch made")]),
    ])
    .await;
    skill(&daemon, "tidy", "allowed-tools: Bash(echo:*)\n", "Tidy.");
    let mut session = session(&daemon).await;
    // Everything is approved, and still a person is asked about what the skill does not allow.
    session.approve_all().await;
    session.send("one").await;
    let (request, asked) = session.permission().await;
    assert_eq!(asked["fullCommandText"], "ls; touch made");
    let shown = asked.to_string();
    assert!(
        shown.contains("allows this tool for certain arguments only"),
        "{shown}"
    );
    session.decide(&request, json!({"kind": "reject"})).await;
    session.next("session.idle").await;
    assert_eq!(session.count("permission.requested"), 1);
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_skill_that_a_person_loads_restricts_its_message() {
    let daemon = Daemon::playing([
        Turn::user("the kitchen").calls([call(
            "a",
            "bash",
            json!({"command": "touch made", "description": "x"}),
        )]),
        Turn::results(["allows no tools"]).says("1"),
        Turn::user("two").says("2"),
    ])
    .await;
    skill(&daemon, "tidy", "allowed-tools: []\n", "Tidy.");
    let mut session = session(&daemon).await;
    session.approve_all().await;
    let params = json!({"commandName": "tidy", "args": "the kitchen"});
    session.call("session.commands.execute", params).await;
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    session.ask("two").await;
    daemon.finish().await;
}

#[tokio::test]
async fn agents_that_are_started_under_a_skill_are_restricted_like_their_parent() {
    let write = call("w", "create", json!({"path": "new.txt", "file_text": "x"}));
    let start =
        json!({"name": "a", "agent_type": "general-purpose", "description": "d", "prompt": "SUB"});
    let daemon = Daemon::playing([
        Turn::user("one").calls([call("a", "skill", json!({"skill": "tidy"}))]),
        Turn::any().calls([call("b", "task", start)]),
        Turn::user("SUB").calls([write]),
        Turn::results(["The skill \"tidy\" is active and allows only these tools"]).says("no"),
        Turn::any().says("1"),
    ])
    .await;
    skill(&daemon, "tidy", "allowed-tools: Task, Glob\n", "Tidy.");
    let mut session = session(&daemon).await;
    session.approve_all().await;
    session.ask("one").await;
    assert!(!daemon.file("new.txt").exists());
    daemon.finish().await;
}
