//! Agents in copies of a repository: what is unchanged goes, what is changed stays and is told of.

use std::path::{Path, PathBuf};

use loopd_tests::{Daemon, Gate, Script, Session, Turn, call};
use serde_json::{Value, json};

use super::{execution_complete, last_said, task, task_of};
use crate::worktrees::git;

/// A daemon whose sessions work in a repository with a commit.
async fn in_repository<'a>(voices: impl IntoIterator<Item = (&'a str, Vec<Turn>)>) -> Daemon {
    let script = Script::voices(voices).await;
    let daemon = Daemon::builder()
        .script(script)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .yolo()
        .start()
        .await;
    std::fs::write(daemon.file("file.txt"), "one\n").unwrap();
    git(daemon.work(), &["init", "--quiet"]);
    git(daemon.work(), &["add", "--all"]);
    git(daemon.work(), &["commit", "--quiet", "-m", "First"]);
    daemon
}

fn apart(id: &str, prompt: &str, name: &str, mode: &str) -> loopd_tests::script::Call {
    task(
        id,
        json!({"prompt": prompt, "name": name, "mode": mode, "isolation": "worktree"}),
    )
}

fn bash(command: &str) -> loopd_tests::script::Call {
    call("b", "bash", json!({"command": command}))
}

async fn worktrees(session: &Session) -> Vec<Value> {
    let list = session.client().call("loopd.worktreeList", json!({})).await;
    list["worktrees"].as_array().unwrap().clone()
}

/// The copy that an agent works or worked in.
async fn copy_of(session: &Session, id: &str) -> PathBuf {
    let tree = session.call("loopd.taskTree", json!({})).await;
    let mut nodes = tree["tasks"].as_array().unwrap().iter();
    let node = nodes.find(|node| node["task"]["id"] == id).unwrap();
    PathBuf::from(node["worktree"].as_str().unwrap())
}

/// Files in a folder, without those of git.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != ".git").collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_unchanged_copy_goes_and_a_changed_one_stays_and_is_told_of() {
    let daemon = in_repository([
        (
            "begin",
            vec![
                Turn::user("begin").calls([
                    apart("look", "only look", "looker", "sync"),
                    apart("write", "write it", "writer", "sync"),
                ]),
                Turn::any().says("thanks"),
            ],
        ),
        (
            "only look",
            vec![
                Turn::user("only look").calls([bash("cat file.txt; pwd")]),
                Turn::results(["one"]).says("it says one"),
            ],
        ),
        (
            "write it",
            vec![
                Turn::user("write it").calls([bash("echo two > new.txt")]),
                Turn::results([""]).says("written"),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    let (looker, writer) = (
        copy_of(&session, "looker").await,
        copy_of(&session, "writer").await,
    );
    assert!(!looker.exists(), "{} is still there", looker.display());
    assert_eq!(files(&writer), ["file.txt", "new.txt"]);
    assert_eq!(files(daemon.work()), ["file.txt"], "nothing changed here");
    let results = daemon.script().last_request().last_results();
    assert!(
        results[0].starts_with("it says one\n\n[agent_id: looker"),
        "{}",
        results[0]
    );
    assert!(results[1].starts_with("written\n\n"), "{}", results[1]);
    for part in [&writer.to_string_lossy() as &str, "1 file", "is kept"] {
        assert!(results[1].contains(part), "{part}: {}", results[1]);
    }
    let result = task_of(&session, "writer").await["result"].to_string();
    assert!(
        result.contains(&writer.to_string_lossy() as &str),
        "{result}"
    );
    let kept = worktrees(&session).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (&kept[0]["path"], &kept[0]["use"]),
        (&json!(writer), &json!("kept"))
    );
    let known = git(daemon.work(), &["worktree", "list"]);
    assert_eq!(known.lines().count(), 2, "{known}");
    daemon.finish().await;
}

#[tokio::test]
async fn two_in_the_background_do_not_see_each_others_files() {
    let (one, two) = (Gate::new(), Gate::new());
    let part = |prompt: &'static str, file: &str, gate: &Gate| {
        (
            prompt,
            vec![
                Turn::user(prompt).calls([bash(&format!("echo mine > {file}"))]),
                Turn::results([""])
                    .calls([call("l", "bash", json!({"command": "ls"}))])
                    .held_by(gate),
                Turn::results([file]).says("done"),
            ],
        )
    };
    let daemon = in_repository([
        (
            "begin",
            vec![
                Turn::user("begin").calls([
                    apart("t1", "part one", "one", "background"),
                    apart("t2", "part two", "two", "background"),
                ]),
                Turn::results(["agent_id: one", "agent_id: two"]).says("they work"),
                // Told of one after the other, or of both at once.
                Turn::any().says("noted"),
                Turn::any().says("noted"),
            ],
        ),
        part("part one", "one.txt", &one),
        part("part two", "two.txt", &two),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    // Both have written before either looks.
    one.reached().await;
    two.reached().await;
    assert_eq!(worktrees(&session).await.len(), 2);
    assert!(
        worktrees(&session)
            .await
            .iter()
            .all(|it| it["use"] == "inUse")
    );
    one.open();
    session
        .next_where("the first to be told of", |event| {
            event["type"] == "assistant.message" && event["data"]["content"] == "noted"
        })
        .await;
    two.open();
    session.next("session.idle").await;
    let requests = daemon.script().requests();
    let listed: Vec<String> = requests
        .iter()
        .flat_map(loopd_tests::script::Recorded::last_results)
        .filter(|result| result.contains("file.txt"))
        .collect();
    assert_eq!(listed.len(), 2);
    for list in &listed {
        let seen = ["one.txt", "two.txt"].map(|name| list.contains(name));
        assert_ne!(seen[0], seen[1], "each sees only its own: {list}");
    }
    for (id, file) in [("one", "one.txt"), ("two", "two.txt")] {
        let copy = copy_of(&session, id).await;
        assert_eq!(files(&copy), ["file.txt", file]);
        let told = session
            .events()
            .into_iter()
            .filter(|event| event["type"] == "system.notification")
            .map(|event| event["data"]["content"].as_str().unwrap().to_owned())
            .find(|text| text.contains(&format!("\"{id}\"")))
            .unwrap();
        assert!(told.contains(&copy.to_string_lossy() as &str), "{told}");
        assert!(
            worktrees(&session)
                .await
                .iter()
                .all(|it| it["use"] == "kept")
        );
    }
    daemon.finish().await;
}

#[tokio::test]
async fn one_that_goes_on_has_its_copy_again() {
    let more = call(
        "w",
        "write_agent",
        json!({"agent_id": "looker", "message": "now write"}),
    );
    let daemon = in_repository([
        (
            "begin",
            vec![
                Turn::user("begin").calls([apart("t1", "only look", "looker", "sync")]),
                Turn::results(["it says one"]).calls([more]),
                Turn::results(["goes on"]).says("it writes"),
                Turn::user("1 file").says("it wrote"),
            ],
        ),
        (
            "only look",
            vec![
                Turn::user("only look").says("it says one"),
                Turn::user("now write").calls([bash("echo two > new.txt")]),
                Turn::results([""]).says("written"),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    assert_eq!(last_said(&session), "it wrote");
    let copy = copy_of(&session, "looker").await;
    assert_eq!(files(&copy), ["file.txt", "new.txt"]);
    assert_eq!(files(daemon.work()), ["file.txt"]);
    daemon.finish().await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_and_leaves_nothing() {
    let both = task(
        "both",
        json!({"prompt": "work", "isolation": "worktree", "cwd": "."}),
    );
    let script = Script::voices([(
        "begin",
        vec![
            Turn::user("begin").calls([apart("none", "work", "worker", "sync"), both]),
            Turn::any().says("then not"),
        ],
    )])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", "/")
        .yolo()
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    let mut refused = [String::new(), String::new()];
    for (call, text) in ["both", "none"].iter().zip(&mut refused) {
        let end = execution_complete(&mut session, call).await;
        assert_eq!(end["success"], false);
        end["error"]["message"].as_str().unwrap().clone_into(text);
    }
    session.next("session.idle").await;
    assert_eq!(
        refused[0],
        "cwd and isolation exclude each other: a worktree has a folder of its own."
    );
    assert!(
        refused[1].starts_with("The agent has no worktree to work in: ")
            && refused[1].contains("git repository"),
        "{}",
        refused[1]
    );
    assert_eq!(worktrees(&session).await, Vec::<Value>::new());
    assert_eq!(session.count("subagent.started"), 0);
    let tasks = session.call("session.tasks.list", json!({})).await;
    assert_eq!(tasks, json!({"tasks": []}));
    daemon.finish().await;
}
