//! What keeping earlier versions of files costs a turn with tools: nothing in commits.

use loopd_tests::{Commits, Daemon, Script};
use serde_json::{Value, json};

use super::support::{bash, edit, prompt, script};

/// The commits of the tools in a turn that edits a file and one that runs a command, with this option.
async fn commits(options: Value) -> Vec<String> {
    let turns = vec![
        vec![edit("a.txt", "one", "two")],
        vec![bash("sed -i s/two/three/ a.txt"), bash("cat a.txt")],
    ];
    let commits = Commits::default();
    let model = Script::play(script(&turns)).await;
    let builder = Daemon::builder().script(model).commits(&commits).yolo();
    let daemon = builder.start().await;
    std::fs::write(daemon.file("a.txt"), "one\n").unwrap();
    let mut session = daemon.client().create(options).await;
    for number in 0..turns.len() {
        session.ask(&prompt(number)).await;
    }
    assert_eq!(
        std::fs::read_to_string(daemon.file("a.txt")).unwrap(),
        "three\n"
    );
    let made = commits.kinds().into_iter().map(|kinds| kinds.join(" "));
    let made = made.filter(|kinds| kinds.contains("tool.execution"));
    let made = made.collect();
    daemon.finish().await;
    made
}

#[tokio::test]
async fn a_turn_has_the_same_commits_with_and_without_earlier_versions_of_files() {
    let without = commits(json!({"enableFileChangeTracking": false})).await;
    let with = commits(json!({"enableFileChangeTracking": true})).await;
    assert_eq!(with, without);
    assert_eq!(with.len(), 6, "two for each call: {with:#?}");
}
