//! The file tools and `web_fetch` over the wire: what the model is told, what is asked, what the
//! events record, and that bad input changes nothing.

use std::os::unix::fs::symlink;

use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A turn for each call, with what its result has to contain.
fn turns(calls: &[(&str, Value, &str)]) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut next = Turn::user("go");
    for (number, (tool, args, result)) in calls.iter().enumerate() {
        turns.push(next.calls([call(&format!("call-{number}"), tool, args.clone())]));
        next = Turn::results([*result]);
    }
    turns.push(next.says("done"));
    turns
}

/// The results of all calls so far, in order.
fn completed(session: &Session) -> Vec<Value> {
    let events = session.events().into_iter();
    events
        .filter(|event| event["type"] == "tool.execution_complete")
        .map(|event| event["data"].clone())
        .collect()
}

fn patch(sections: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{sections}\n*** End Patch\n")})
}

#[tokio::test]
async fn files_are_made_changed_found_and_shown_and_every_change_is_recorded() {
    let calls = [
        (
            "create",
            json!({"path": "src/a.rs", "file_text": "fn one() {}\nfn two() {}\n"}),
            "Created file",
        ),
        (
            "edit",
            json!({"path": "src/a.rs", "edits": [
                {"old_str": "one", "new_str": "first"}, {"old_str": "two", "new_str": "second"},
            ]}),
            "updated with changes",
        ),
        (
            "apply_patch",
            patch(
                "*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-fn first() {}\n+fn 1st() {}\n*** Add File: c.md\n+# C",
            ),
            "Patch applied to 2 files",
        ),
        (
            "grep",
            json!({"pattern": "1st", "output_mode": "content", "-n": true}),
            "./src/b.rs:1:fn 1st() {}",
        ),
        ("glob", json!({"pattern": "**/*.md"}), "./c.md"),
        (
            "view",
            json!({"path": "src/b.rs", "view_range": [2, 2]}),
            "2. fn second() {}",
        ),
    ];
    let daemon = Daemon::playing(turns(&calls)).await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.ask("go").await;
    let text = std::fs::read_to_string(daemon.file("src/b.rs")).unwrap();
    assert_eq!(text, "fn 1st() {}\nfn second() {}\n");
    assert!(!daemon.file("src/a.rs").exists());
    let results = completed(&session);
    let diffs = [
        (0, "new file mode 100644"),
        (1, "+fn first() {}\n+fn second() {}\n"),
        (2, "rename to"),
    ];
    for (call, expected) in diffs {
        let diff = results[call]["result"]["detailedContent"].as_str().unwrap();
        assert!(
            diff.contains("diff --git") && diff.contains(expected),
            "{call}: {diff}"
        );
        let metrics = &results[call]["toolTelemetry"]["metrics"];
        assert!(metrics["linesAdded"].as_u64().unwrap() > 0, "{call}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn bad_input_is_explained_and_changes_nothing() {
    let calls = [
        (
            "edit",
            json!({"path": "twice.txt", "old_str": "x", "new_str": "y"}),
            "(first on lines 1, 3), 2 times in all",
        ),
        (
            "edit",
            json!({"path": "twice.txt", "old_str": "  z", "new_str": "y"}),
            "line 2 is \"\\tz\" and old_str has \"  z\"",
        ),
        (
            "edit",
            json!({"path": "data.bin", "old_str": "a", "new_str": "b"}),
            "binary data",
        ),
        ("view", json!({"path": "data.bin"}), "binary data"),
        (
            "view",
            json!({"path": "missing"}),
            "does not exist. Please provide a valid path.",
        ),
        (
            "create",
            json!({"path": "twice.txt", "file_text": ""}),
            "already exists",
        ),
        (
            "apply_patch",
            patch("*** Add File: new.txt\n+x\n*** Update File: twice.txt\n@@\n-q"),
            "Nothing was changed",
        ),
        (
            "apply_patch",
            json!({"patch": "hello"}),
            "neither a unified diff",
        ),
        ("grep", json!({"pattern": "a("}), "unclosed group"),
        ("glob", json!({"pattern": "../*"}), "leaves the folder"),
        (
            "web_fetch",
            json!({"url": "file:///etc/passwd"}),
            "only http and https",
        ),
    ];
    let daemon = Daemon::playing(turns(&calls)).await;
    std::fs::write(daemon.file("twice.txt"), "x\n\tz\nx\n").unwrap();
    std::fs::write(daemon.file("data.bin"), b"a\0b").unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    let rule = json!({"scope": "session", "add": [{"kind": "read", "argument": null}]});
    session.call("session.permissions.modifyRules", rule).await;
    session.ask("go").await;
    // Where reading is allowed, nobody is bothered with what cannot work.
    assert_eq!(session.count("permission.requested"), 0);
    assert!(
        completed(&session)
            .iter()
            .all(|result| result["success"] == false)
    );
    assert_eq!(
        std::fs::read_to_string(daemon.file("twice.txt")).unwrap(),
        "x\n\tz\nx\n"
    );
    assert!(!daemon.file("new.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_link_out_of_the_folder_is_asked_about_with_its_target() {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().canonicalize().unwrap().join("secret.txt");
    std::fs::write(&target, "secret\n").unwrap();
    let calls = [
        ("view", json!({"path": "inside.txt"}), "1. fine"),
        ("view", json!({"path": "link.txt"}), "rejected"),
    ];
    let daemon = Daemon::playing(turns(&calls).into_iter().take(2)).await;
    std::fs::write(daemon.file("inside.txt"), "fine\n").unwrap();
    symlink(&target, daemon.file("link.txt")).unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    let rule = json!({"scope": "session", "add": [{"kind": "read", "argument": null}]});
    session.call("session.permissions.modifyRules", rule).await;
    session.send("go").await;
    let (request, asked) = session.permission().await;
    assert_eq!(asked["path"], json!(target));
    assert_eq!(asked["alsoNamed"], json!([daemon.file("link.txt")]));
    let intention = asked["intention"].as_str().unwrap();
    assert!(intention.contains("a link to"), "{intention}");
    session.decide(&request, json!({"kind": "reject"})).await;
    session.next("session.idle").await;
    assert_eq!(session.count("permission.requested"), 1);
    let texts = format!("{:?}", session.events());
    assert!(!texts.contains("1. secret"));
    daemon.finish().await;
}

#[tokio::test]
async fn a_patch_is_asked_about_as_a_whole_and_one_denied_file_denies_it() {
    let sections = "*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: keep/secret.txt\n+x";
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("one", "apply_patch", patch(sections))]),
        Turn::results(["keep"]).says("denied"),
        Turn::user("again").calls([call("two", "apply_patch", patch(sections))]),
        Turn::results(["Patch applied to 2 files"]).says("done"),
    ])
    .await;
    std::fs::write(daemon.file("a.txt"), "one\n").unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    let denied = json!([{"kind": "write", "argument": daemon.file("keep")}]);
    let rules = json!({
        "rules": {"approved": [], "denied": denied}, "approveAllToolPermissionRequests": true,
    });
    session.call("session.permissions.configure", rules).await;
    session.ask("go").await;
    assert_eq!(session.count("permission.requested"), 0);
    let text = std::fs::read_to_string(daemon.file("a.txt")).unwrap();
    assert_eq!(text, "one\n");
    assert!(!daemon.file("keep").exists());
    let rules = json!({
        "rules": {"approved": [{"kind": "write", "argument": daemon.file("a.txt")}], "denied": []},
        "approveAllToolPermissionRequests": false,
    });
    session.call("session.permissions.configure", rules).await;
    session.send("again").await;
    // One of the two files is allowed, which is not enough.
    let (request, asked) = session.permission().await;
    assert_eq!(asked["fileName"], json!(daemon.file("a.txt")));
    assert_eq!(asked["otherFiles"], json!([daemon.file("keep/secret.txt")]));
    let diff = asked["diff"].as_str().unwrap();
    assert!(
        diff.contains("-one\n+two\n") && diff.contains("+x\n"),
        "{diff}"
    );
    session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    session.next("session.idle").await;
    let text = std::fs::read_to_string(daemon.file("a.txt")).unwrap();
    assert_eq!(text, "two\n");
    daemon.finish().await;
}

/// Serves one page at `/page` and a redirect to another host elsewhere; counts visits.
async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).await.unwrap_or(0);
            let is_page = head[..length].starts_with(b"GET /page ");
            let body = "<h1>Title</h1><p>Some <b>text</b>.</p>";
            let answer = if is_page {
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                )
            } else {
                "HTTP/1.1 302 Found\r\nlocation: http://other.invalid/x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()
            };
            stream.write_all(answer.as_bytes()).await.ok();
        }
    });
    address
}

#[tokio::test]
async fn a_page_is_fetched_with_permission_for_its_address_only() {
    let server = server().await;
    let page = format!("{server}/page");
    let calls = [
        (
            "web_fetch",
            json!({"url": page}),
            "# Title\n\nSome **text**.",
        ),
        ("web_fetch", json!({"url": page}), "# Title"),
        (
            "web_fetch",
            json!({"url": format!("{server}/out")}),
            "redirects to http://other.invalid/x",
        ),
    ];
    let daemon = Daemon::playing(turns(&calls)).await;
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.send("go").await;
    let (request, asked) = session.permission().await;
    let expected = json!({"kind": "url", "toolCallId": "call-0", "intention": format!("Fetch {page}"), "url": page});
    assert_eq!(asked, expected);
    // Answered for the whole server: it is not asked about again.
    let decision = json!({"kind": "approve-for-session", "domain": server});
    assert!(session.decide(&request, decision).await);
    session.next("session.idle").await;
    assert_eq!(session.count("permission.requested"), 1);
    let successes: Vec<bool> = completed(&session)
        .iter()
        .map(|result| result["success"] == true)
        .collect();
    assert_eq!(successes, [true, true, false]);
    daemon.finish().await;
}
