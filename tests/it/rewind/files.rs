//! What a rewind does to files, and what it leaves alone.

use serde_json::{Value, json};

use super::support::{World, bash, create, edit, same_tree};

/// The paths of a list of files, below the working directory.
fn names(world: &World, list: &Value, member: Option<&str>) -> Vec<String> {
    let root = world.daemon.work().canonicalize().unwrap();
    let files = list.as_array().unwrap().iter();
    let mut names: Vec<String> = files
        .map(|file| {
            let path = member.map_or(file, |member| &file[member]);
            let path = std::path::Path::new(path.as_str().unwrap());
            let name = path.strip_prefix(&root).unwrap_or(path);
            name.to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_somebody_else_changed_since_is_reported_and_left_alone() {
    let turns = vec![vec![
        edit("ours.txt", "a", "b"),
        edit("theirs.txt", "a", "b"),
        create("new.txt", "made by the tool"),
    ]];
    let mut world = World::new(&turns, |world| {
        world.write("ours.txt", b"a\n", 0o644);
        world.write("theirs.txt", b"a\n", 0o644);
    })
    .await;
    world.turn(0).await;
    world.write("theirs.txt", b"a person wrote this\n", 0o644);
    world.write("new.txt", b"a person wrote this, too\n", 0o644);
    let before = world.tree();
    let points = world.points().await;

    // All or nothing: nothing.
    let wanted = json!({"eventId": points[0]["eventId"], "onConflict": "refuse"});
    let refused = world.session.call("loopd.rewind", wanted).await;
    assert_eq!(refused["outcome"], "conflicts", "{refused}");
    assert_eq!(
        names(&world, &refused["skipped"], Some("path")),
        ["new.txt", "theirs.txt"]
    );
    same_tree("a refused rewind touches nothing", &before, &world.tree());
    assert_eq!(world.said().await.len(), 1);

    let done = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(done["outcome"], "success", "{done}");
    assert_eq!(names(&world, &done["restoredFiles"], None), ["ours.txt"]);
    assert_eq!(
        names(&world, &done["skippedFiles"], Some("path")),
        ["new.txt", "theirs.txt"]
    );
    assert!(
        done["skippedFiles"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["reason"] == "user-modified")
    );
    assert_eq!(world.read("ours.txt"), "a\n");
    assert_eq!(world.read("theirs.txt"), "a person wrote this\n");
    assert_eq!(world.read("new.txt"), "a person wrote this, too\n");
    world.finish().await;
}

#[tokio::test]
async fn what_a_person_changed_between_two_turns_is_not_lost() {
    let turns = vec![
        vec![edit("a.txt", "one", "two")],
        vec![bash("sed -i 's/three/four/' a.txt")],
    ];
    let mut world = World::new(&turns, |world| world.write("a.txt", b"one\n", 0o644)).await;
    world.turn(0).await;
    world.write("a.txt", b"three\n", 0o644);
    world.turn(1).await;
    assert_eq!(world.read("a.txt"), "four\n");
    let points = world.points().await;
    // Back to before the command, the file is as the person left it.
    let second = world.rewind(&points[1], "conversation-and-files").await;
    assert_eq!(names(&world, &second["restoredFiles"], None), ["a.txt"]);
    assert_eq!(world.read("a.txt"), "three\n");
    // Further back the text of the person would be lost.
    let first = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(
        names(&world, &first["restoredFiles"], None),
        Vec::<String>::new()
    );
    assert_eq!(
        names(&world, &first["skippedFiles"], Some("path")),
        ["a.txt"]
    );
    assert_eq!(world.read("a.txt"), "three\n");
    world.finish().await;
}

#[tokio::test]
async fn only_what_a_tool_made_is_deleted() {
    let turns = vec![vec![bash(
        "mkdir made && printf x > made/one && printf x > made/two",
    )]];
    let mut world = World::new(&turns, |world| world.write("kept.txt", b"k", 0o644)).await;
    world.turn(0).await;
    world.write("made/by-a-person", b"p", 0o644);
    let points = world.points().await;
    let done = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(
        names(&world, &done["restoredFiles"], None),
        ["made/one", "made/two"]
    );
    assert_eq!(world.read("made/by-a-person"), "p");
    assert_eq!(world.read("kept.txt"), "k");
    world.finish().await;
}

#[tokio::test]
async fn files_that_become_visible_to_a_command_are_not_taken_for_new_ones() {
    // The rule that kept these files out of the copy goes away with the command.
    let turns = vec![vec![bash("rm .gitignore && printf x > fresh.txt")]];
    let mut world = World::new(&turns, |world| {
        world.write(".gitignore", b"build/\n", 0o644);
        world.write("build/output.bin", b"of a person", 0o644);
    })
    .await;
    world.turn(0).await;
    let points = world.points().await;
    let done = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(
        names(&world, &done["restoredFiles"], None),
        [".gitignore", "fresh.txt"]
    );
    assert_eq!(world.read("build/output.bin"), "of a person");
    world.finish().await;
}

#[tokio::test]
async fn files_alone_go_back_and_the_conversation_stays() {
    let turns = vec![vec![create("a.txt", "a")], vec![create("b.txt", "b")]];
    let mut world = World::new(&turns, |_| {}).await;
    world.turn(0).await;
    world.turn(1).await;
    let points = world.points().await;
    let params = json!({"eventId": points[1]["eventId"], "mode": "files", "dryRun": true});
    let dry = world.session.call("loopd.rewind", params).await;
    assert_eq!(names(&world, &dry["files"], Some("path")), ["b.txt"]);
    assert_eq!(dry["files"][0]["changeType"], "created");
    assert!(
        world.daemon.file("b.txt").exists(),
        "a dry run touches nothing"
    );
    let params = json!({"eventId": points[1]["eventId"], "mode": "files"});
    let done = world.session.call("loopd.rewind", params).await;
    assert_eq!(
        (&done["outcome"], &done["eventsRemoved"]),
        (&json!("success"), &json!(0))
    );
    assert!(!world.daemon.file("b.txt").exists());
    assert_eq!(world.said().await.len(), 2);
    let undone = world.undo().await;
    assert_eq!(
        (&undone["outcome"], &undone["mode"]),
        (&json!("success"), &json!("files"))
    );
    assert_eq!(world.read("b.txt"), "b");
    world.finish().await;
}

#[tokio::test]
async fn a_session_that_captures_nothing_says_so() {
    let turns = vec![vec![create("a.txt", "a")]];
    let options = json!({"enableFileChangeTracking": false});
    let mut world = World::with(&turns, options, |_| {}).await;
    world.turn(0).await;
    let listed = world
        .session
        .call("session.history.listRewindPoints", json!({}))
        .await;
    assert_eq!(listed["fileChangeTrackingEnabled"], false);
    let point = listed["points"][0].clone();
    assert_eq!(
        (&point["canRestoreFiles"], &point["fileCount"]),
        (&json!(false), &json!(0))
    );
    let params = json!({"eventId": point["eventId"]});
    let preview = world
        .session
        .call("session.history.previewRewind", params)
        .await;
    assert_eq!(preview["available"], false);
    assert_eq!(preview["reason"], "file-change-tracking-disabled");
    let done = world.rewind(&point, "conversation-and-files").await;
    assert_eq!(done["outcome"], "file-change-tracking-disabled");
    assert_eq!(world.read("a.txt"), "a");
    assert_eq!(
        world.rewind(&point, "conversation").await["outcome"],
        "success"
    );
    assert_eq!(world.read("a.txt"), "a");
    world.finish().await;
}

#[tokio::test]
async fn what_is_too_large_is_named_and_left_alone() {
    let turns = vec![vec![bash("printf x >> large.bin && printf x >> small.txt")]];
    let large = vec![7; 1024 * 1024 + 1];
    let mut world = World::new(&turns, |world| {
        world.write("large.bin", &large, 0o644);
        world.write("small.txt", b"s", 0o644);
    })
    .await;
    world.turn(0).await;
    let points = world.points().await;
    let done = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(names(&world, &done["restoredFiles"], None), ["small.txt"]);
    assert_eq!(
        names(&world, &done["skippedFiles"], Some("path")),
        ["large.bin"]
    );
    assert_eq!(done["skippedFiles"][0]["reason"], "skipped-capture");
    assert_eq!(world.read("small.txt"), "s");
    world.finish().await;
}

#[tokio::test]
async fn copies_are_for_the_user_alone_and_go_with_the_session() {
    use std::os::unix::fs::PermissionsExt;
    let turns = vec![vec![
        edit("a.txt", "secret", "public"),
        bash("printf x > b.txt"),
    ]];
    let mut world = World::new(&turns, |world| world.write("a.txt", b"secret", 0o644)).await;
    world.turn(0).await;
    world.points().await;
    let folder = world
        .daemon
        .home()
        .join("session-state")
        .join(&world.session.id);
    let kept = folder.join("rewind");
    let mut waiting = vec![kept.clone()];
    let mut files = 0;
    while let Some(path) = waiting.pop() {
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            waiting.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|it| it.unwrap().path()),
            );
        } else {
            files += 1;
            assert_eq!(mode, 0o600, "{}", path.display());
        }
    }
    assert!(
        files >= 4,
        "contents, the record and the copy of the workspace: {files}"
    );
    let client = world.session.client().clone();
    let params = json!({"sessionIds": [world.session.id]});
    client.call("sessions.bulkDelete", params).await;
    assert!(!kept.exists(), "what was kept goes with the session");
    world.finish().await;
}

/// The copy may be whole when the command begins, or not: either way nothing is lost in silence.
#[tokio::test]
async fn what_the_first_command_deletes_comes_back_or_is_named() {
    let turns = vec![vec![bash("rm -r d0 d1 d2 d90 d117 d119")]];
    let mut world = World::new(&turns, |world| {
        for number in 0..120 {
            let folder = world.daemon.file(&format!("d{number}"));
            std::fs::create_dir(&folder).unwrap();
            for file in 0..50 {
                std::fs::write(folder.join(format!("f{file}")), "text").unwrap();
            }
        }
    })
    .await;
    let before = world.tree();
    world.turn(0).await;
    let points = world.points().await;
    let wanted = json!({"eventId": points[0]["eventId"]});
    let preview = world.session.call("session.history.previewRewind", wanted);
    let preview = preview.await;
    let done = world.rewind(&points[0], "conversation-and-files").await;
    assert_eq!(done["outcome"], "success", "{done}");
    assert_eq!(done["warning"], preview["warning"]);
    let named = names(&world, &done["skippedFiles"], Some("path"));
    let warning = done["warning"].as_str().unwrap_or_default();
    assert_eq!(warning.is_empty(), named.is_empty(), "{warning} {named:?}");
    let now = world.tree();
    for path in before.keys().filter(|path| !now.contains_key(*path)) {
        let is_named = named.iter().any(|name| path.starts_with(name));
        assert!(is_named, "{} is gone: {named:?}", path.display());
    }
    world.finish().await;
}
