//! Links are never followed and never replaced.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::support::{World, bash, create, edit, same_tree};

#[tokio::test]
async fn a_link_in_the_place_of_a_file_is_refused() {
    let turns = vec![vec![edit("a.txt", "one", "two")]];
    let mut world = World::new(&turns, |world| {
        world.write("a.txt", b"one\n", 0o644);
        world.write("target.txt", b"two\n", 0o644);
    })
    .await;
    world.turn(0).await;
    std::fs::remove_file(world.daemon.file("a.txt")).unwrap();
    symlink("target.txt", world.daemon.file("a.txt")).unwrap();
    let before = world.tree();
    let points = world.points().await;
    let done = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(done["restoredFiles"], json!([]), "{done}");
    assert_eq!(done["skippedFiles"].as_array().unwrap().len(), 1, "{done}");
    same_tree("the link and its target stay", &before, &world.tree());
    world.finish().await;
}

#[tokio::test]
async fn a_link_in_the_place_of_a_folder_leads_nowhere() {
    let turns = vec![vec![create("inside/a.txt", "made by the tool")]];
    let outside = tempfile::tempdir().unwrap();
    let mut world = World::new(&turns, |_| {}).await;
    world.turn(0).await;
    // The same file outside, reached through a link: it is not the one that the tool made.
    std::fs::write(outside.path().join("a.txt"), "made by the tool").unwrap();
    std::fs::remove_dir_all(world.daemon.file("inside")).unwrap();
    symlink(outside.path(), world.daemon.file("inside")).unwrap();
    let points = world.points().await;
    let done = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(done["restoredFiles"], json!([]), "{done}");
    let kept = std::fs::read_to_string(outside.path().join("a.txt")).unwrap();
    assert_eq!(kept, "made by the tool");
    assert!(world.daemon.file("inside").is_symlink());
    world.finish().await;
}

#[tokio::test]
async fn a_link_that_a_command_made_is_named_and_left_alone() {
    let turns = vec![vec![bash(
        "ln -s a.txt link && rm old-link && printf x > new.txt",
    )]];
    let mut world = World::new(&turns, |world| {
        world.write("a.txt", b"a", 0o644);
        symlink("a.txt", world.daemon.file("old-link")).unwrap();
    })
    .await;
    world.turn(0).await;
    let points = world.points().await;
    let done = world.rewind(&points[0], "conversation-and-files").await;
    let skipped = done["skippedFiles"].as_array().unwrap();
    assert_eq!(skipped.len(), 2, "{done}");
    assert!(
        skipped.iter().all(|it| it["reason"] == "skipped-capture"),
        "{done}"
    );
    assert!(world.daemon.file("link").is_symlink());
    assert!(!world.daemon.file("new.txt").exists());
    world.finish().await;
}
