//! Lists that deny or ask and have mistakes: a person is asked about what they may be about, also where
//! everything is approved, and is told so.

use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

use super::{bash, ends, told, view, write};

/// Something that is done under approve-all, and what the mistake has to be about to stop it.
#[derive(Clone, Copy, PartialEq)]
enum Deed {
    /// `touch made`
    Touch,
    /// `git push`, which fails if it runs
    Push,
    Read,
    Write,
    Fetch,
    Task,
}

const DEEDS: [Deed; 6] = [
    Deed::Touch,
    Deed::Push,
    Deed::Read,
    Deed::Write,
    Deed::Fetch,
    Deed::Task,
];

impl Deed {
    fn id(self) -> &'static str {
        match self {
            Self::Touch => "touch",
            Self::Push => "push",
            Self::Read => "read",
            Self::Write => "write",
            Self::Fetch => "fetch",
            Self::Task => "task",
        }
    }

    fn call(self) -> loopd_tests::script::Call {
        let id = self.id();
        match self {
            Self::Touch => bash(id, "touch made"),
            Self::Push => bash(id, "git push origin"),
            Self::Read => view(id, "secrets/a.txt"),
            Self::Write => call(id, "create", json!({"path": "new.txt", "file_text": "x"})),
            Self::Fetch => call(id, "web_fetch", json!({"url": "http://127.0.0.1:9/x"})),
            Self::Task => call(
                id,
                "task",
                json!({"prompt": "work", "description": "a part", "agent_type": "nobody"}),
            ),
        }
    }
}

const COMMANDS: &[Deed] = &[Deed::Touch, Deed::Push];
/// Where every file is asked about, so are commands, which may read or write one.
const READS: &[Deed] = &[Deed::Touch, Deed::Push, Deed::Read];
const WRITES: &[Deed] = &[Deed::Touch, Deed::Push, Deed::Write];
const ALL: &[Deed] = &[
    Deed::Touch,
    Deed::Push,
    Deed::Read,
    Deed::Write,
    Deed::Fetch,
];

/// Returns which deeds are asked about under approve-all with a settings file.
async fn asked(text: &str, words: &str) -> Vec<&'static str> {
    let daemon = Daemon::playing([
        Turn::user("go").calls(DEEDS.map(Deed::call)),
        Turn::any().says("done"),
    ])
    .await;
    write(daemon.work(), ".claude/settings.json", text);
    write(daemon.work(), "secrets/a.txt", "secret");
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.approve_all().await;
    session.send("go").await;
    told(&mut session, words).await;
    session
        .next_where("all calls to be asked about or done", {
            let settled = std::cell::Cell::new(0);
            move |event: &Value| {
                let kind = event["type"].as_str().unwrap_or_default();
                if matches!(kind, "permission.requested" | "tool.execution_complete") {
                    settled.set(settled.get() + 1);
                }
                settled.get() == DEEDS.len()
            }
        })
        .await;
    let events = session.events();
    let requests = events
        .iter()
        .filter(|it| it["type"] == "permission.requested");
    let mut asked = Vec::new();
    for request in requests {
        let request = &request["data"];
        let id = request["permissionRequest"]["toolCallId"].as_str().unwrap();
        asked.extend(DEEDS.iter().map(|deed| deed.id()).filter(|it| *it == id));
        let id = request["requestId"].as_str().unwrap();
        session
            .decide(id, json!({"kind": "user-not-available"}))
            .await;
    }
    session.next("session.idle").await;
    let done = ends(&mut session).await;
    assert!(
        done.iter()
            .all(|(id, done)| !done || !asked.contains(&id.as_str()))
    );
    assert_eq!(
        daemon.file("made").exists(),
        !asked.contains(&"touch"),
        "{text}"
    );
    daemon.finish().await;
    asked.sort_by_key(|id| DEEDS.iter().position(|deed| deed.id() == *id));
    asked
}

#[tokio::test]
async fn what_a_mistake_may_be_about_is_asked_about_under_approve_all() {
    let table: [(&str, &[Deed]); 27] = [
        ("Bash(* --force)", COMMANDS),
        ("Bash(touch", COMMANDS),
        ("Bash(touch made) x", COMMANDS),
        ("Bash(^touch)", COMMANDS),
        ("Bash(touch*)", COMMANDS),
        ("Bash('touch made)", COMMANDS),
        ("Bash(touch, rm)", &[Deed::Touch]),
        ("Bash(touch|rm)", &[Deed::Touch]),
        ("Bash(touch $FILE)", &[Deed::Touch]),
        ("Bash(git push -[fF])", &[Deed::Push]),
        ("Bash(PATH=x touch)", COMMANDS),
        ("Read(secrets/[ab].txt)", &[Deed::Read]),
        ("Read(secrets/{a,b}.txt)", &[Deed::Read]),
        ("Read(secrets/a.txt, .env)", &[Deed::Read]),
        ("Read([a-z].txt)", READS),
        ("Read($HOME/x)", READS),
        ("Read(!fine)", READS),
        ("Edit([a-z]*)", WRITES),
        ("Write(**/../new.txt)", WRITES),
        ("WebFetch(127.0.0.1)", &[Deed::Fetch]),
        ("WebFetch(http://127.0.0.1/x)", &[Deed::Fetch]),
        ("WebFetch(domain:127.*)", &[Deed::Push, Deed::Fetch]),
        ("Task(explore)", &[Deed::Task]),
        ("Bsh(touch:*)", ALL),
        ("touch made", ALL),
        ("", ALL),
        ("Everything", ALL),
    ];
    for (entry, expected) in table {
        let expected: Vec<&str> = expected.iter().map(|deed| deed.id()).collect();
        for list in ["deny", "ask"] {
            let text = json!({"permissions": {list: [entry]}}).to_string();
            let asked = asked(&text, &format!("`{entry}` in `{list}`")).await;
            assert_eq!(asked, expected, "{entry} in {list}");
        }
    }
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_asked_about_as_a_whole() {
    let many: Vec<String> = (0..600).map(|at| format!("Bash(rm x{at})")).collect();
    let many = json!({"permissions": {"deny": many}}).to_string();
    let table: [(&str, &str, &[Deed]); 9] = [
        (
            r#"{"permissions": {"deny": 5}}"#,
            "has to be a list of rules",
            ALL,
        ),
        (
            r#"{"permissions": {"deny": {"a": 1}}}"#,
            "has to be a list of rules",
            ALL,
        ),
        (r#"{"permissions": {"deny": [5]}}"#, "has to be text", ALL),
        (r#"{"permissions": {"ask": [null]}}"#, "has to be text", ALL),
        (r#"{"permissions": ["Bash"]}"#, "has to be an object", ALL),
        (
            r#"{"permissions": {"deny": "Bash(touch"}}"#,
            "is taken for a list of one rule",
            COMMANDS,
        ),
        (&many, "has more than 500 rules", COMMANDS),
        (
            r#"{"permissions": {"deny": ["Bash(touch:*)"}"#,
            "is not valid JSON",
            ALL,
        ),
        (
            r#"{"permissions": {}, "permissions": {"deny": ["Bash(touch"]}}"#,
            "stands there twice",
            COMMANDS,
        ),
    ];
    for (text, words, expected) in table {
        let expected: Vec<&str> = expected.iter().map(|deed| deed.id()).collect();
        assert_eq!(asked(text, words).await, expected, "{text}");
    }
}

/// A list under a name that is nearly right denies like the list that is meant.
#[tokio::test]
async fn a_misspelt_list_denies() {
    for list in ["denied", "Deny", "deny ", "DENY"] {
        let daemon = Daemon::playing([
            Turn::user("go").calls([bash("a", "touch made")]),
            Turn::results(["denied by the rule"]).says("done"),
        ])
        .await;
        let text = json!({"permissions": {list: ["Bash(touch:*)"]}}).to_string();
        write(daemon.work(), ".claude/settings.json", &text);
        let mut session = daemon
            .client()
            .create(json!({"requestPermission": true}))
            .await;
        session.approve_all().await;
        session.send("go").await;
        told(&mut session, "is taken for `deny`").await;
        session.next("session.idle").await;
        assert!(!daemon.file("made").exists(), "{list}");
        daemon.finish().await;
    }
}

/// A file that is mended counts as it is with the next prompt.
#[tokio::test]
async fn what_is_asked_because_a_file_cannot_be_read_ends_with_that() {
    let daemon = Daemon::playing([
        Turn::user("one").calls([bash("a", "touch one")]),
        Turn::results([""]).says("done"),
        Turn::user("two").calls([bash("b", "touch two"), bash("c", "seq 3")]),
        Turn::any().says("done"),
    ])
    .await;
    let settings = ".claude/settings.json";
    let text = r#"{"permissions": {"deny": ["Bash(seq:*)"]"#;
    write(daemon.work(), settings, text);
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.approve_all().await;
    session.send("one").await;
    told(&mut session, "until it can be read a person is asked").await;
    let (id, request) = session.permission().await;
    assert_eq!(request["managedApprovalRequired"], true);
    session.decide(&id, json!({"kind": "approve-once"})).await;
    session.next("session.idle").await;
    write(daemon.work(), settings, &format!("{text}}}}}"));
    session.ask("two").await;
    assert_eq!(
        ends(&mut session).await[1..],
        [("c".to_owned(), false), ("b".to_owned(), true)]
    );
    assert_eq!(session.count("permission.requested"), 1);
    daemon.finish().await;
}

/// What denies a tool that needs no permission denies it.
#[tokio::test]
async fn a_tool_that_needs_no_permission_can_be_denied() {
    let task = json!({"prompt": "work", "description": "a part"});
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            call("task", "task", task),
            call("grep", "grep", json!({"pattern": "x"})),
            call("todo", "todowrite", json!({"todos": []})),
        ]),
        Turn::any().says("done"),
    ])
    .await;
    let text = json!({"permissions": {"deny": ["Task", "Grep"]}}).to_string();
    write(daemon.work(), ".claude/settings.json", &text);
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.approve_all().await;
    session.ask("go").await;
    let mut ends = ends(&mut session).await;
    ends.sort();
    let expected = [("grep", false), ("task", false), ("todo", true)];
    assert_eq!(ends, expected.map(|(id, done)| (id.to_owned(), done)));
    daemon.finish().await;
}
