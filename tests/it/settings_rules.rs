//! Permission rules in settings that people have for other programs.

mod mistakes;

use std::path::Path;

use loopd_tests::script::Call;
use loopd_tests::{Client, Daemon, Session, Turn, call};
use serde_json::{Value, json};

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn settings(permissions: &Value) -> String {
    serde_json::to_string_pretty(&json!({ "permissions": permissions })).unwrap()
}

async fn trust(client: &Client) {
    let shown = client.call("loopd.trust.show", json!({})).await;
    let params = json!({"path": shown["path"], "hash": shown["hash"]});
    client.call("loopd.trust.set", params).await;
}

fn bash(id: &str, command: &str) -> Call {
    call(id, "bash", json!({"command": command}))
}

fn view(id: &str, path: &str) -> Call {
    call(id, "view", json!({"path": path}))
}

/// Returns whether each call of a session succeeded, by its id.
async fn ends(session: &mut Session) -> Vec<(String, bool)> {
    let events = session.messages().await;
    let ends = events
        .iter()
        .filter(|it| it["type"] == "tool.execution_complete");
    ends.map(|end| {
        let id = end["data"]["toolCallId"].as_str().unwrap().to_owned();
        (id, end["data"]["success"].as_bool().unwrap())
    })
    .collect()
}

/// Waits for a warning with these words.
async fn told(session: &mut Session, words: &str) {
    let is_it = |event: &Value| {
        event["type"] == "session.warning"
            && event["data"]["message"].as_str().unwrap().contains(words)
    };
    session.next_where(words, is_it).await;
}

#[tokio::test]
async fn deny_rules_of_a_project_hold_without_trust() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            bash("seq", "echo x; seq 1 3 > made"),
            view("env", ".env"),
            view("deep", "deep/.env"),
            bash("cat", "cat deep/.env"),
            view("fine", "fine"),
        ]),
        Turn::any().says("done"),
    ])
    .await;
    let rules = json!({"deny": ["Bash(seq:*)", "Read(.env)"]});
    write(daemon.work(), ".claude/settings.json", &settings(&rules));
    for file in [".env", "deep/.env", "fine"] {
        write(daemon.work(), file, "secret");
    }
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.approve_all().await;
    session.ask("go").await;
    let ends = ends(&mut session).await;
    let of = |id: &str| ends.iter().find(|end| end.0 == id).unwrap().1;
    let found = ["seq", "env", "deep", "cat", "fine"].map(|id| (id, of(id)));
    assert_eq!(
        found,
        [
            ("seq", false),
            ("env", false),
            ("deep", false),
            ("cat", false),
            ("fine", true)
        ]
    );
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn ask_rules_ask_though_everything_is_approved() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("a", "touch made")]),
        Turn::results([""]).says("done"),
    ])
    .await;
    let rules = json!({"ask": ["Bash(touch *)"]});
    write(daemon.work(), ".claude/settings.json", &settings(&rules));
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.approve_all().await;
    session.send("go").await;
    let (id, _) = session.permission().await;
    assert!(!daemon.file("made").exists());
    session.decide(&id, json!({"kind": "approve-once"})).await;
    session.next("session.idle").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn allow_rules_count_only_in_a_trusted_folder() {
    for trusted in [false, true] {
        let mut turns = vec![Turn::user("go").calls([bash("a", "git --version")])];
        if trusted {
            turns.push(Turn::results(["git version"]).says("done"));
        }
        let daemon = Daemon::playing(turns).await;
        let rules = json!({"allow": ["Bash(git --version)"]});
        write(daemon.work(), ".claude/settings.json", &settings(&rules));
        if trusted {
            trust(&daemon.client()).await;
        }
        let mut session = daemon
            .client()
            .create(json!({"requestPermission": true}))
            .await;
        session.send("go").await;
        if !trusted {
            told(&mut session, "its rules in `allow` do not count").await;
            let (id, _) = session.permission().await;
            session.decide(&id, json!({"kind": "reject"})).await;
        }
        session.next("session.idle").await;
        assert_eq!(session.count("session.warning"), usize::from(!trusted));
        daemon.finish().await;
    }
}

#[tokio::test]
async fn what_cannot_be_enforced_is_told_with_its_line_and_asked_about() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("a", "touch made")]),
        Turn::results([""]).says("done"),
    ])
    .await;
    let text = "{\"permissions\": {\n \"deny\": [\n  \"Bash(* --force)\",\n  \"Tsak\"\n ],\n \"defaultMode\": \"plan\"\n}}";
    write(daemon.work(), ".claude/settings.json", text);
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.approve_all().await;
    session.send("go").await;
    for words in [
        "settings.json, line 3: `Bash(* --force)` in `deny`",
        "settings.json, line 4: `Tsak` in `deny` is about no tool that rules can name (did you mean `task`?)",
        "settings.json, line 6: `defaultMode` of `permissions` is not used",
    ] {
        told(&mut session, words).await;
    }
    let (id, _) = session.permission().await;
    session.decide(&id, json!({"kind": "approve-once"})).await;
    session.next("session.idle").await;
    daemon.finish().await;
}

/// A session that works in a folder of the project has the rules of the project as they are meant there.
#[tokio::test]
async fn relative_paths_begin_in_the_folder_of_their_settings() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            view("root", "../secrets/key"),
            view("name", "../top.env"),
            bash("cat", "cat ../secrets/key"),
            view("here", "secrets/key"),
            view("own", "own/key"),
        ]),
        Turn::any().says("done"),
    ])
    .await;
    std::fs::create_dir_all(daemon.file(".git")).unwrap();
    let rules = json!({"deny": ["Read(secrets/**)", "Read(./top.env)"]});
    write(daemon.work(), ".claude/settings.json", &settings(&rules));
    let rules = json!({"deny": ["Read(own/**)"]});
    write(
        daemon.work(),
        "sub/.claude/settings.json",
        &settings(&rules),
    );
    for file in ["secrets/key", "top.env", "sub/secrets/key", "sub/own/key"] {
        write(daemon.work(), file, "secret");
    }
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true, "workingDirectory": daemon.file("sub")}))
        .await;
    session.approve_all().await;
    session.ask("go").await;
    let ends = ends(&mut session).await;
    let done = ends.iter().filter(|end| end.1).map(|end| end.0.as_str());
    assert_eq!(done.collect::<Vec<_>>(), ["here"]);
    daemon.finish().await;
}

/// The user's own settings are about every project: its root, and where the session works.
#[tokio::test]
async fn relative_paths_of_own_settings_begin_in_the_project() {
    let home = tempfile::tempdir().unwrap();
    let rules = json!({"deny": ["Read(secrets/**)"]});
    write(home.path(), ".claude/settings.json", &settings(&rules));
    let script = loopd_tests::Script::play([
        Turn::user("go").calls([
            view("root", "../secrets/key"),
            view("here", "secrets/key"),
            view("fine", "fine/key"),
        ]),
        Turn::any().says("done"),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .env("HOME", home.path().to_str().unwrap())
        .start()
        .await;
    std::fs::create_dir_all(daemon.file(".git")).unwrap();
    for file in ["secrets/key", "sub/secrets/key", "sub/fine/key"] {
        write(daemon.work(), file, "secret");
    }
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true, "workingDirectory": daemon.file("sub")}))
        .await;
    session.approve_all().await;
    session.ask("go").await;
    let ends = ends(&mut session).await;
    let done = ends.iter().filter(|end| end.1).map(|end| end.0.as_str());
    assert_eq!(done.collect::<Vec<_>>(), ["fine"]);
    daemon.finish().await;
}

/// An agent does not get rid of a rule by a change of the file, nor does whoever wants no hooks.
#[tokio::test]
async fn a_rule_stays_in_force_in_its_session() {
    let daemon = Daemon::playing([
        Turn::user("one").calls([bash("a", "rm .claude/settings.json")]),
        Turn::results([""]).says("done"),
        Turn::user("two").calls([bash("b", "touch made")]),
        Turn::results(["denied by the rule"]).says("done"),
    ])
    .await;
    let rules = json!({"deny": ["Bash(touch *)"]});
    write(daemon.work(), ".claude/settings.json", &settings(&rules));
    let offer =
        json!({"requestPermission": true, "enableConfigDiscovery": true, "enableFileHooks": false});
    let mut session = daemon.client().create(offer).await;
    session.approve_all().await;
    session.ask("one").await;
    session.send("two").await;
    told(&mut session, "stay in force in this session").await;
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}
