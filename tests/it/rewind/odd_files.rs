//! Names and kinds of files that are out of the ordinary.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use super::support::{World, bash, same_tree};

/// The names of the files that were left alone, below the working directory.
fn left(world: &World, done: &Value) -> Vec<String> {
    let root = world.daemon.work().canonicalize().unwrap();
    let files = done["skippedFiles"].as_array().unwrap().iter();
    let mut names: Vec<String> = files
        .map(|file| {
            let path = Path::new(file["path"].as_str().unwrap());
            path.strip_prefix(&root)
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn odd_names_come_back_byte_for_byte() {
    let turns = vec![vec![bash(
        r#"printf changed > $'a\nb' && rm ' blank ' && mv 'quo"te' $'tab\there' && printf x > -- && printf y > 'ünï'"#,
    )]];
    let mut world = World::new(&turns, |world| {
        world.write("a\nb", b"1", 0o644);
        world.write(" blank ", b"2", 0o600);
        world.write("quo\"te", b"3", 0o644);
    })
    .await;
    let before = world.tree();
    world.turn(0).await;
    assert_ne!(world.tree(), before);
    let points = world.points().await;
    let done = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(done["skippedFiles"], json!([]), "{done}");
    same_tree("odd names", &before, &world.tree());
    world.finish().await;
}

#[tokio::test]
async fn pipes_and_very_large_files_are_named_and_hold_nothing_up() {
    let turns = vec![vec![bash(
        "rm pipe && mkfifo new-pipe && truncate -s 3G huge && truncate -s 2G new-huge && printf x > plain",
    )]];
    let mut world = World::new(&turns, |world| {
        let pipe = world.daemon.file("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        // Without blocks on the disk.
        let huge = std::fs::File::create(world.daemon.file("huge")).unwrap();
        huge.set_len(2 * 1024 * 1024 * 1024).unwrap();
    })
    .await;
    world.turn(0).await;
    let points = world.points().await;
    let done = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(done["outcome"], "success", "{done}");
    assert_eq!(
        left(&world, &done),
        ["huge", "new-huge", "new-pipe", "pipe"]
    );
    assert!(!world.daemon.file("plain").exists());
    assert!(world.daemon.file("new-huge").exists());
    world.finish().await;
}

#[tokio::test]
async fn a_folder_that_a_command_replaces_by_a_link_is_left_alone_with_all_that_was_in_it() {
    let outside = tempfile::tempdir().unwrap();
    let there = outside.path().join("a.txt");
    std::fs::write(&there, "of somebody else").unwrap();
    let command = format!(
        "rm -r folder && ln -s {} folder && printf y > other.txt",
        outside.path().display()
    );
    let turns = vec![vec![bash(&command)]];
    let mut world = World::new(&turns, |world| {
        world.write("folder/a.txt", b"mine", 0o644);
        world.write("other.txt", b"x", 0o644);
    })
    .await;
    world.turn(0).await;
    let points = world.points().await;
    let done = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(left(&world, &done), ["folder", "folder/a.txt"], "{done}");
    assert_eq!(world.read("other.txt"), "x");
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "of somebody else");
    assert!(world.daemon.file("folder").is_symlink());
    world.finish().await;
}

#[tokio::test]
async fn a_folder_that_becomes_a_link_between_two_rewinds_leads_nowhere() {
    let turns = vec![vec![bash("rm -r folder")]];
    let outside = tempfile::tempdir().unwrap();
    let mut world = World::new(&turns, |world| {
        world.write("folder/a.txt", b"mine", 0o644);
    })
    .await;
    world.turn(0).await;
    symlink(outside.path(), world.daemon.file("folder")).unwrap();
    let points = world.points().await;
    let done = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(done["restoredFiles"], json!([]), "{done}");
    assert_eq!(left(&world, &done), ["folder", "folder/a.txt"]);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    world.finish().await;
}
