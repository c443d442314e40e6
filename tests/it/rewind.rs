//! Going back: the conversation, the files that tools and commands changed, and both.

mod conversation;
mod cost;
mod files;
mod killed;
mod links;
mod measure;
mod odd_files;
mod support;
mod undone;

use serde_json::json;

use loopd_tests::{Daemon, Turn};

use support::{World, bash, create, edit, patch};

/// Twelve turns that make, change, delete, rename and chmod files, with file tools and in shells.
fn twelve_turns() -> Vec<Vec<support::Step>> {
    vec![
        vec![create("src/new/deep.rs", "fn deep() {}\n")],
        vec![edit("src/main.rs", "old", "new")],
        vec![patch(
            "*** Update File: src/lib.rs\n*** Move to: src/library.rs\n@@\n-pub fn a() {}\n+pub fn b() {}\n*** Add File: notes/todo.md\n+- one",
        )],
        vec![patch("*** Delete File: gone.txt")],
        vec![bash("sed -i 's/new/newer/' src/main.rs")],
        vec![bash("rm data/one.txt data/two.bin")],
        vec![bash("mv docs/guide.md docs/manual.md")],
        vec![bash("chmod 755 run.sh && chmod 600 secret.env")],
        vec![bash(
            "mkdir -p made/by/shell && printf x > made/by/shell/file && mkdir empty",
        )],
        vec![bash("rm -r docs/old")],
        vec![edit("src/main.rs", "newer", "newest")],
        vec![
            create("last.txt", "one\n"),
            bash("printf 'two\\n' >> last.txt; printf changed > src/new/deep.rs"),
        ],
    ]
}

/// The tree before the first turn.
fn files(world: &World) {
    world.write("src/main.rs", b"fn main() { old }\n", 0o644);
    world.write("src/lib.rs", b"pub fn a() {}\n", 0o640);
    world.write("gone.txt", b"to be deleted\n", 0o600);
    world.write("data/one.txt", b"1\n", 0o644);
    world.write("data/two.bin", &[0, 159, 146, 150], 0o444);
    world.write("docs/guide.md", b"# Guide\n", 0o644);
    world.write("docs/old/a.md", b"a", 0o644);
    world.write("docs/old/sub/b.md", b"b", 0o644);
    world.folder("docs/old/nothing", 0o711);
    world.write("run.sh", b"#!/bin/sh\n", 0o644);
    world.write("secret.env", b"KEY=1\n", 0o644);
}

#[tokio::test]
async fn twelve_turns_are_taken_back_byte_for_byte_and_forth_again() {
    let turns = twelve_turns();
    let mut world = World::new(&turns, files).await;
    let mut trees = vec![world.tree()];
    for number in 0..turns.len() {
        world.turn(number).await;
        trees.push(world.tree());
    }
    let changed = trees.windows(2).all(|pair| pair[0] != pair[1]);
    assert!(changed, "every turn changed something");

    let points = world.points().await;
    assert_eq!(points.len(), 12);
    assert!(points.iter().all(|point| point["turnChangedFiles"] == true));
    assert_eq!(points[1]["linesAdded"], 1, "{}", points[1]);
    assert_eq!(points[1]["linesRemoved"], 1, "{}", points[1]);

    let all = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(all["outcome"], "success", "{all}");
    assert_eq!(all["skippedFiles"], json!([]), "{all}");
    support::same_tree(
        "after going back to the first turn",
        &trees[0],
        &world.tree(),
    );
    assert_eq!(world.said().await, Vec::<String>::new());

    let undone = world.undo().await;
    assert_eq!(undone["outcome"], "success", "{undone}");
    assert_eq!(undone["skipped"], json!([]), "{undone}");
    support::same_tree("after the undo", &trees[12], &world.tree());
    assert_eq!(world.said().await.len(), 12);

    for number in [10, 6, 3] {
        let part = world
            .rewind(&points[number], "conversation-and-files")
            .await;
        assert_eq!(part["outcome"], "success", "{part}");
        let what = format!("after going back to turn {number}");
        support::same_tree(&what, &trees[number], &world.tree());
        assert_eq!(world.said().await.len(), number);
    }
    world.finish().await;
}

#[tokio::test]
async fn the_conversation_goes_on_from_where_it_was_taken_back_to() {
    let daemon = Daemon::playing([
        Turn::user("one").says("first"),
        Turn::user("two").says("second"),
        Turn::user("three").says("third"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    session.ask("two").await;
    let points = session
        .call("session.history.listRewindPoints", json!({}))
        .await;
    let second = points["points"][1]["eventId"].clone();
    let before = session.messages().await.len();
    let result = session
        .call(
            "session.history.rewind",
            json!({"eventId": second, "mode": "conversation"}),
        )
        .await;
    assert_eq!(result["outcome"], "success");
    assert_eq!(result["restoredFiles"], json!([]));
    let told = session.next("session.snapshot_rewind").await;
    assert_eq!(told["data"]["upToEventId"], second);
    assert_eq!(told["data"]["eventsRemoved"], result["eventsRemoved"]);
    let left = session.messages().await.len() as u64;
    assert_eq!(
        left + result["eventsRemoved"].as_u64().unwrap(),
        before as u64
    );
    session.ask("three").await;
    let request = &daemon.script().requests()[2];
    let said: Vec<String> = request
        .messages()
        .iter()
        .map(|message| message["content"].to_string())
        .collect();
    assert!(
        !said
            .iter()
            .any(|text| text.contains("two") || text.contains("second")),
        "{said:?}"
    );
    assert!(said.iter().any(|text| text.contains("first")), "{said:?}");
    daemon.finish().await;
}
