//! What rules do not cover over the wire: protected files, shells that were changed, directories
//! that were left, links that lead out.

use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

/// A session whose client is asked, with these rules.
async fn asking(daemon: &Daemon, rules: Value) -> Session {
    let client = daemon.client();
    let session = client.create(json!({"requestPermission": true})).await;
    let add = json!({"scope": "session", "add": rules});
    session.call("session.permissions.modifyRules", add).await;
    session
}

fn bash(id: &str, command: &str, shell: Option<&str>) -> [Turn; 2] {
    let mut arguments = json!({"command": command});
    if let Some(shell) = shell {
        arguments["shellId"] = json!(shell);
    }
    [
        Turn::user(id).calls([call(id, "bash", arguments)]),
        Turn::results([""]).says("done"),
    ]
}

/// Sends a prompt whose call asks, and says yes.
async fn allowed_once(session: &mut Session, prompt: &str) -> Value {
    session.send(prompt).await;
    let (request, asked) = session.permission().await;
    let yes = json!({"kind": "approve-once"});
    assert!(session.decide(&request, yes).await);
    session.next("session.idle").await;
    asked
}

#[tokio::test]
async fn every_file_tool_asks_before_it_writes_to_a_protected_file() {
    let patch = "*** Begin Patch\n*** Add File: .husky/pre-commit\n+x\n*** End Patch\n";
    let edit = json!({"path": ".git/config", "old_str": "a", "new_str": "b"});
    let through = json!({"path": "link/hooks/new", "file_text": "x"});
    let tools = [
        ("edit", edit),
        ("create", json!({"path": "sub/.mcp.json", "file_text": "x"})),
        ("create", json!({"path": "a/../.GIT/x", "file_text": "x"})),
        ("create", through),
        ("apply_patch", json!({"patch": patch})),
        ("bash", json!({"command": "echo x > link/made"})),
        ("bash", json!({"command": "cp notes.txt .envrc"})),
    ];
    let turns = tools
        .iter()
        .enumerate()
        .flat_map(|(at, (tool, arguments))| {
            let id = format!("t{at}");
            [
                Turn::user(&id).calls([call(&id, tool, arguments.clone())]),
                Turn::results([""]).says("ok"),
            ]
        });
    let harmless = [
        Turn::user("free").calls([call(
            "free",
            "create",
            json!({"path": "src/a.rs", "file_text": "x"}),
        )]),
        Turn::results(["Created"]).says("ok"),
    ];
    let daemon = Daemon::playing(turns.chain(harmless)).await;
    std::fs::create_dir_all(daemon.file(".git/hooks")).unwrap();
    std::fs::write(daemon.file(".git/config"), "a").unwrap();
    std::fs::write(daemon.file("notes.txt"), "a").unwrap();
    std::os::unix::fs::symlink(".git", daemon.file("link")).unwrap();
    let rules = json!([{"kind": "write"}, {"kind": "shell"}]);
    let mut session = asking(&daemon, rules).await;
    for (at, (tool, arguments)) in tools.iter().enumerate() {
        session.send(&format!("t{at}")).await;
        let (request, asked) = session.permission().await;
        let offers = &asked["canOfferSessionApproval"];
        assert_eq!(offers, false, "{tool} {arguments}: no rule covers it");
        let no = json!({"kind": "user-not-available"});
        assert!(session.decide(&request, no).await);
        session.next("session.idle").await;
    }
    session.ask("free").await;
    assert_eq!(session.count("permission.requested"), tools.len());
    assert_eq!(
        std::fs::read_to_string(daemon.file(".git/config")).unwrap(),
        "a"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_rule_does_not_cover_a_name_in_a_shell_that_was_changed() {
    let turns = [
        bash("before", "ls", Some("one")),
        bash("build", "touch built", Some("one")),
        bash("after build", "ls", Some("one")),
        bash("shadow", "ls() { touch shadowed; }", Some("one")),
        bash("after", "ls", Some("one")),
        bash("fresh", "ls", None),
        bash("other", "ls", Some("two")),
    ]
    .concat();
    let mut daemon = Daemon::playing(turns).await;
    let rules = json!([{"kind": "shell", "argument": "ls"}]);
    let mut session = asking(&daemon, rules).await;
    session.ask("before").await;
    allowed_once(&mut session, "build").await;
    session.ask("after build").await;
    assert_eq!(session.count("permission.requested"), 1);
    allowed_once(&mut session, "shadow").await;
    let asked = allowed_once(&mut session, "after").await;
    assert_eq!(asked["changedShell"], true);
    assert!(asked["warning"].as_str().unwrap().contains("changed"));
    session.ask("fresh").await;
    session.ask("other").await;
    assert_eq!(session.count("permission.requested"), 3);
    // The mark is a fold of the log.
    let before = daemon.state(&session.id).await.changed_shells;
    daemon.restart().await;
    let client = daemon.client();
    let session = client.resume(&session.id, json!({})).await;
    assert_eq!(daemon.state(&session.id).await.changed_shells, before);
    daemon.finish().await;
}

#[tokio::test]
async fn a_rule_does_not_cover_a_name_beside_a_call_that_changes_the_shell() {
    let shell =
        |id: &str, command: &str| call(id, "bash", json!({"command": command, "shellId": "one"}));
    let daemon = Daemon::playing([
        Turn::user("go").calls([shell("a", "ls() { touch shadowed; }"), shell("b", "ls")]),
        Turn::results(["", ""]).says("done"),
    ])
    .await;
    let mut session = asking(&daemon, json!([{"kind": "shell", "argument": "ls"}])).await;
    session.send("go").await;
    for _ in 0..2 {
        let (request, _) = session.permission().await;
        let no = json!({"kind": "user-not-available"});
        assert!(session.decide(&request, no).await);
    }
    session.next("session.idle").await;
    assert!(!daemon.file("shadowed").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_does_not_run_in_another_directory_than_it_was_asked_for() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("go", "bash", json!({"command": "touch made"}))]),
        Turn::results(["The working directory changed"]).says("ok"),
    ])
    .await;
    let other = daemon.file("other");
    std::fs::create_dir(&other).unwrap();
    let mut session = asking(&daemon, json!([])).await;
    session.send("go").await;
    let (request, asked) = session.permission().await;
    assert!(asked["resolvedWorkingDirectory"].is_string());
    let moved = json!({"workingDirectory": other});
    let set = "session.metadata.setWorkingDirectory";
    session.call(set, moved).await;
    let yes = json!({"kind": "approve-once"});
    assert!(session.decide(&request, yes).await);
    session.next("session.idle").await;
    assert!(!other.join("made").exists(), "it ran in the new directory");
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn the_rule_look_covers_looking_in_the_sessions_directory_only() {
    let free = [
        "cat notes.txt | head -5",
        "ls *.txt 2>/dev/null && wc -l notes.txt",
        "cd sub && cat a.txt",
    ];
    let asked = [
        "cat out.txt",
        "cat *.lnk",
        "cat sub/../../x",
        "cat /etc/hostname",
        "cat notes.txt > copy.txt",
        "cd away && ls",
    ];
    let turns = free
        .iter()
        .chain(&asked)
        .flat_map(|line| bash(line, line, None));
    let daemon = Daemon::playing(turns).await;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x"), "secret").unwrap();
    std::fs::create_dir(daemon.file("sub")).unwrap();
    std::fs::write(daemon.file("sub/a.txt"), "a").unwrap();
    std::fs::write(daemon.file("notes.txt"), "a").unwrap();
    let mut session = asking(&daemon, json!([{"kind": "look"}])).await;
    for line in free {
        session.ask(line).await;
        assert_eq!(session.count("permission.requested"), 0, "{line}");
    }
    // The links come only now, because a pattern that may match one of them is asked about.
    for (name, target) in [("out.txt", "x"), ("c.lnk", "x"), ("away", "")] {
        std::os::unix::fs::symlink(outside.path().join(target), daemon.file(name)).unwrap();
    }
    for line in asked {
        session.send(line).await;
        let (request, _) = session.permission().await;
        let no = json!({"kind": "user-not-available"});
        assert!(session.decide(&request, no).await, "{line}");
        session.next("session.idle").await;
    }
    daemon.finish().await;
}
