//! Files that rules keep from being read: under no name, in no search, and without a word about
//! them before somebody permits it.

use std::os::unix::fs::symlink;

use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

/// A turn for each call, then an answer.
fn turns(calls: &[(&str, Value)]) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut next = Turn::user("go");
    for (number, (tool, args)) in calls.iter().enumerate() {
        turns.push(next.calls([call(&format!("call-{number}"), tool, args.clone())]));
        next = Turn::results([""]);
    }
    turns.push(next.says("done"));
    turns
}

/// What the model read as the result of each call.
fn results(session: &Session) -> Vec<String> {
    let events = session.events().into_iter();
    events
        .filter(|event| event["type"] == "tool.execution_complete")
        .map(|event| {
            let data = &event["data"];
            let text = data["result"]["content"].as_str();
            let text = text.or(data["error"]["message"].as_str());
            text.unwrap_or_default().to_owned()
        })
        .collect()
}

/// Allows reading in the working directory, and denies what the rules name.
async fn configure(session: &Session, denied: Value) {
    let rules = json!({"rules": {
        "approved": [{"kind": "read", "argument": null}], "denied": denied,
    }});
    session.call("session.permissions.configure", rules).await;
}

#[tokio::test]
async fn a_search_leaves_out_what_rules_deny() {
    let calls = [
        (
            "grep",
            json!({"pattern": "TOKEN", "output_mode": "content"}),
        ),
        ("glob", json!({"pattern": "**/*"})),
        ("view", json!({"path": "."})),
        ("grep", json!({"pattern": "TOKEN", "path": "src"})),
    ];
    let daemon = Daemon::playing(turns(&calls)).await;
    for (path, text) in [
        ("src/main.rs", "TOKEN_IN_SOURCE\n"),
        ("secrets/key.txt", "TOKEN_ABSOLUTE\n"),
        ("private/key.txt", "TOKEN_RELATIVE\n"),
        ("real/key.txt", "TOKEN_BEHIND_LINK\n"),
    ] {
        std::fs::create_dir_all(daemon.file(path).parent().unwrap()).unwrap();
        std::fs::write(daemon.file(path), text).unwrap();
    }
    std::fs::hard_link(daemon.file("secrets/key.txt"), daemon.file("src/copy.txt")).unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    configure(
        &session,
        json!([
            {"kind": "read", "argument": daemon.file("secrets")},
            {"kind": "read", "argument": "private/**"},
            {"kind": "read", "argument": daemon.file("linked")},
        ]),
    )
    .await;
    // The link is made after the rule.
    symlink(daemon.file("real"), daemon.file("linked")).unwrap();
    session.ask("go").await;
    let results = results(&session);
    for result in results.iter().take(3) {
        for hidden in [
            "TOKEN_ABSOLUTE",
            "TOKEN_RELATIVE",
            "TOKEN_BEHIND",
            "key.txt",
            "copy.txt",
        ] {
            assert!(!result.contains(hidden), "{hidden} in {result}");
        }
        assert!(
            result.contains("[What rules deny reading was left out.]"),
            "{result}"
        );
        assert!(result.contains("main.rs"), "{result}");
    }
    // Nothing is said where no rule denies anything.
    assert_eq!(results[3], "src/main.rs");
    assert_eq!(session.count("permission.requested"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn who_may_not_read_a_file_may_not_change_or_move_it() {
    let patch = "*** Begin Patch\n*** Update File: copy.txt\n*** Move to: moved.txt\n@@\n+more\n*** End Patch";
    let calls = [
        (
            "edit",
            json!({"path": "copy.txt", "old_str": "SECRET", "new_str": "x"}),
        ),
        ("apply_patch", json!({"input": patch})),
        (
            "apply_patch",
            json!({"input": "*** Begin Patch\n*** Delete File: copy.txt\n*** End Patch"}),
        ),
    ];
    let daemon = Daemon::playing(turns(&calls)).await;
    std::fs::create_dir(daemon.file("closed")).unwrap();
    std::fs::write(daemon.file("closed/key.txt"), "SECRET\n").unwrap();
    std::fs::hard_link(daemon.file("closed/key.txt"), daemon.file("copy.txt")).unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    let closed = json!([{"kind": "read", "argument": daemon.file("closed")}]);
    configure(&session, closed).await;
    session.approve_all().await;
    session.ask("go").await;
    for result in results(&session) {
        assert!(result.to_lowercase().contains("denied"), "{result}");
    }
    assert!(daemon.file("copy.txt").exists());
    assert!(!daemon.file("moved.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_denied_file_is_denied_under_every_name() {
    let calls = [
        ("view", json!({"path": "copy.txt"})),
        ("view", json!({"path": "real/key.txt"})),
        ("grep", json!({"pattern": "SECRET", "path": "copy.txt"})),
        (
            "edit",
            json!({"path": "copy.txt", "old_str": "SECRET", "new_str": "x"}),
        ),
        ("view", json!({"path": "other.txt"})),
    ];
    let daemon = Daemon::playing(turns(&calls)).await;
    std::fs::create_dir(daemon.file("real")).unwrap();
    std::fs::write(daemon.file("real/key.txt"), "SECRET\n").unwrap();
    std::fs::write(daemon.file("other.txt"), "fine\n").unwrap();
    std::fs::hard_link(daemon.file("real/key.txt"), daemon.file("copy.txt")).unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    configure(
        &session,
        json!([
            {"kind": "read", "argument": daemon.file("linked")},
            {"kind": "write", "argument": daemon.file("linked")},
        ]),
    )
    .await;
    symlink(daemon.file("real"), daemon.file("linked")).unwrap();
    session.ask("go").await;
    let results = results(&session);
    for result in results.iter().take(4) {
        assert!(!result.contains("1. SECRET"), "{result}");
        assert!(result.to_lowercase().contains("denied"), "{result}");
    }
    assert!(results[4].contains("fine"), "{}", results[4]);
    daemon.finish().await;
}

/// What is told of a path outside the working directory before anybody permitted anything.
#[tokio::test]
async fn nothing_is_told_of_a_path_before_it_is_permitted() {
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    let there = outside.join("there.txt");
    let missing = outside.join("missing.txt");
    let binary = outside.join("data.bin");
    let pipe = outside.join("pipe");
    std::fs::write(&there, "hello\n").unwrap();
    std::fs::write(&binary, b"a\0b").unwrap();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut calls = Vec::new();
    for path in [&there, &missing, &binary, &pipe] {
        calls.push(("view", json!({"path": path})));
        calls.push(("grep", json!({"pattern": "h", "path": path})));
        calls.push(("glob", json!({"pattern": "*", "path": path})));
        calls.push((
            "edit",
            json!({"path": path, "old_str": "nothing like it", "new_str": "x"}),
        ));
        calls.push(("create", json!({"path": path, "file_text": "x"})));
        let patch = format!(
            "*** Begin Patch\n*** Update File: {}\n@@\n-no such line\n+x\n*** End Patch\n",
            path.display()
        );
        calls.push(("apply_patch", json!({"patch": patch})));
    }
    let count = calls.len();
    let daemon = Daemon::playing(turns(&calls)).await;
    // Nobody can be asked, so that every call is denied, with the same words for every path.
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": false}))
        .await;
    session.ask("go").await;
    let results = results(&session);
    assert_eq!(results.len(), count);
    for (result, (tool, args)) in results.iter().zip(&calls) {
        assert_eq!(result, &results[0], "{tool} {args}");
    }
    assert!(!missing.exists());
    daemon.finish().await;
}

#[tokio::test]
async fn who_permits_reading_is_told_why_a_call_cannot_work() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("one", "view", json!({"path": "missing.txt"}))]),
        Turn::results(["does not exist"]).calls([call(
            "two",
            "edit",
            json!({"path": "a.txt", "old_str": "none", "new_str": "x"}),
        )]),
        Turn::results(["No match for old_str"]).says("done"),
    ])
    .await;
    std::fs::write(daemon.file("a.txt"), "hello\n").unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.send("go").await;
    for path in ["missing.txt", "a.txt"] {
        let (request, asked) = session.permission().await;
        assert_eq!(asked["kind"], "read");
        assert_eq!(asked["path"], json!(daemon.file(path)));
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await;
    }
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_rule_that_cannot_be_enforced_is_refused() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let rules = json!({"rules": {
        "approved": [], "denied": [{"kind": "read", "argument": "src/*.key"}],
    }});
    let error = session
        .refused("session.permissions.configure", rules)
        .await;
    assert!(error.message.contains("src/*.key"), "{error}");
    daemon.finish().await;
}

/// Blanks around a name do not belong to it; quotes and commas do, so a rule with them would match nothing.
#[tokio::test]
async fn a_rule_that_would_match_nothing_is_refused_by_name() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            call("a", "view", json!({"path": "secret.txt"})),
            call("b", "view", json!({"path": "odd,name"})),
        ]),
        Turn::any().says("done"),
    ])
    .await;
    for name in ["secret.txt", "odd,name"] {
        std::fs::write(daemon.file(name), "text").unwrap();
    }
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.approve_all().await;
    for (kind, argument, why) in [
        ("read", "\"secret.txt\"", "is in quotes"),
        ("read", "'secret.txt'", "is in quotes"),
        ("read", "secret.txt,other", "write a rule for each name"),
        ("write", "secret\u{200b}.txt", "cannot be seen"),
        ("read", " ", "says nothing"),
        ("shell", "rm,curl", "a comma parts nothing"),
        ("shell", "\"git push\"", "leave them out"),
        ("url", "example.com/a", "without a scheme"),
        ("url", "https://example.com/*", "`*`"),
        ("mcp", "github/*", "pattern"),
        ("custom-tool", "a b", "blank"),
        ("custom-tool", "bash", "is a built-in tool"),
    ] {
        let rule = json!([{"kind": kind, "argument": argument}]);
        let deny = json!({"scope": "session", "loopdDeny": rule});
        let error = session.refused("session.permissions.modifyRules", deny);
        let error = error.await;
        assert!(error.message.contains(why), "{kind}({argument}): {error}");
        let rules = json!({"rules": {"approved": [], "denied": rule}});
        let error = session.refused("session.permissions.configure", rules);
        let error = error.await;
        assert!(error.message.contains(why), "{kind}({argument}): {error}");
    }
    // What is there under that very name is meant.
    let deny = json!([{"kind": "read", "argument": " secret.txt "}, {"kind": "read", "argument": "odd,name"}]);
    let deny = json!({"scope": "session", "loopdDeny": deny});
    session.call("session.permissions.modifyRules", deny).await;
    session.ask("go").await;
    let results = results(&session);
    assert_eq!(results.len(), 2);
    let denied = |result: &String| result.contains("denied by the rule");
    assert!(results.iter().all(denied), "{results:?}");
    daemon.finish().await;
}
