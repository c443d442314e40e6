//! Rules about files of a repository hold in its copies: for the agent that works there, for agents
//! below it, and for who started it.

use std::path::Path;

use loopd_tests::script::{Call, Recorded};
use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

use super::task;
use crate::worktrees::git;

/// A daemon whose sessions work in a repository with these files.
async fn in_repository<'a>(
    files: &[(&str, &str)],
    voices: impl IntoIterator<Item = (&'a str, Vec<Turn>)>,
) -> Daemon {
    let daemon = Daemon::builder()
        .script(Script::voices(voices).await)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .yolo()
        .start()
        .await;
    for (name, text) in files {
        let path = daemon.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    git(daemon.work(), &["init", "--quiet"]);
    git(daemon.work(), &["add", "--all"]);
    git(daemon.work(), &["commit", "--quiet", "-m", "First"]);
    daemon
}

const FILES: [(&str, &str); 4] = [
    ("secrets/key.txt", "TOKEN_SECRET\n"),
    ("src/x", "TOKEN_SOURCE\n"),
    ("deep/.env", "TOKEN_ENV\n"),
    ("fine.txt", "harmless\n"),
];

fn bash(id: &str, command: &str) -> Call {
    call(id, "bash", json!({"command": command}))
}

fn view(id: &str, path: &Path) -> Call {
    call(id, "view", json!({"path": path}))
}

fn apart(id: &str, prompt: &str) -> Call {
    task(
        id,
        json!({"prompt": prompt, "name": prompt, "mode": "sync", "isolation": "worktree"}),
    )
}

/// Returns which calls with these ids succeeded, in whatever session of the tree.
fn succeeded(session: &Session, ids: &[&str]) -> Vec<String> {
    let events = session.events();
    let ends = events
        .iter()
        .filter(|event| event["type"] == "tool.execution_complete");
    let done = ends.filter(|event| event["data"]["success"] == true);
    let done = done.filter_map(|event| event["data"]["toolCallId"].as_str());
    done.filter(|id| ids.contains(id))
        .map(str::to_owned)
        .collect()
}

/// What models were told, in all their requests.
fn told(daemon: &Daemon) -> String {
    let requests = daemon.script().requests();
    let messages = requests.iter().flat_map(Recorded::messages);
    let results = messages.filter(|message| message["role"] == "tool");
    results.map(Value::to_string).collect()
}

fn reaching_for_it() -> [Call; 8] {
    [
        call("view", "view", json!({"path": "secrets/key.txt"})),
        bash("cat", "cat secrets/key.txt"),
        bash("env", "cat deep/.env"),
        bash("write", "echo changed > src/x"),
        call(
            "edit",
            "edit",
            json!({"path": "src/x", "old_str": "TOKEN_SOURCE", "new_str": "changed"}),
        ),
        call(
            "grep",
            "grep",
            json!({"pattern": "TOKEN_S", "path": "secrets", "output_mode": "content"}),
        ),
        call("listed", "glob", json!({"pattern": "secrets/*"})),
        bash("fine", "cat fine.txt"),
    ]
}

#[tokio::test]
async fn rules_about_the_repository_hold_in_the_copies_of_agents() {
    let daemon = in_repository(
        &FILES,
        [
            (
                "begin",
                vec![
                    Turn::user("begin").calls([apart("a", "one")]),
                    Turn::any().says("thanks"),
                ],
            ),
            (
                "one",
                vec![
                    Turn::user("one").calls(reaching_for_it()),
                    Turn::any().calls([apart("b", "two")]),
                    Turn::any().says("done"),
                ],
            ),
            (
                "two",
                vec![
                    Turn::user("two").calls([
                        call("below", "view", json!({"path": "secrets/key.txt"})),
                        bash("below-cat", "cat secrets/key.txt"),
                        bash("below-fine", "cat fine.txt"),
                    ]),
                    Turn::any().says("done"),
                ],
            ),
        ],
    )
    .await;
    let rules = json!({"permissions": {"deny": ["Read(.env)"]}});
    std::fs::create_dir_all(daemon.file(".claude")).unwrap();
    std::fs::write(daemon.file(".claude/settings.json"), rules.to_string()).unwrap();
    let mut session = daemon.client().create(json!({})).await;
    let denied = json!({"rules": {"approved": [], "denied": [
        {"kind": "read", "argument": daemon.file("secrets")},
        {"kind": "write", "argument": daemon.file("src/x")},
    ]}});
    session.call("session.permissions.configure", denied).await;
    session.ask("begin").await;
    let ids = [
        "view",
        "cat",
        "env",
        "write",
        "edit",
        "fine",
        "below",
        "below-cat",
        "below-fine",
    ];
    assert_eq!(succeeded(&session, &ids), ["fine", "below-fine"]);
    let told = told(&daemon);
    for hidden in ["TOKEN_SECRET", "TOKEN_ENV", "key.txt:"] {
        assert!(!told.contains(hidden), "{hidden} in {told}");
    }
    daemon.finish().await;
}

/// The copy of an agent is no way around a rule for who started it.
#[tokio::test]
async fn who_started_an_agent_does_not_reach_through_its_copy() {
    let mut copy = None;
    let mut asked = 0;
    let script = Script::answering(move |request| {
        let results = request.last_results();
        if request.first_user_text().contains("one") {
            let Some(said) = results.first() else {
                return Turn::any().calls([bash("pwd", "echo new > new.txt; pwd")]);
            };
            copy = said.lines().next().map(|it| Path::new(it).to_owned());
            return Turn::any().says("written");
        }
        asked += 1;
        match (asked, &copy) {
            (1, _) => Turn::any().calls([apart("a", "one")]),
            (2, Some(copy)) => {
                let file = copy.join("secrets/key.txt");
                Turn::any().calls([
                    bash("cat", &format!("cat {}", file.display())),
                    view("view", &file),
                    view("fine", &copy.join("fine.txt")),
                ])
            }
            _ => Turn::any().says("done"),
        }
    })
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .yolo()
        .start()
        .await;
    for (name, text) in FILES {
        let path = daemon.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    git(daemon.work(), &["init", "--quiet"]);
    git(daemon.work(), &["add", "--all"]);
    git(daemon.work(), &["commit", "--quiet", "-m", "First"]);
    let mut session = daemon.client().create(json!({})).await;
    let denied = json!({"rules": {"approved": [], "denied": [
        {"kind": "read", "argument": daemon.file("secrets")},
    ]}});
    session.call("session.permissions.configure", denied).await;
    session.ask("begin").await;
    let ids = ["cat", "view", "fine"];
    assert_eq!(succeeded(&session, &ids), ["fine"]);
    assert!(!told(&daemon).contains("TOKEN_SECRET"));
    daemon.finish().await;
}
