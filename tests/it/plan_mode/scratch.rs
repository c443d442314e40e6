//! The scratch folder of plan mode: nothing that was put in its place before leads elsewhere.

use std::os::unix::fs::symlink;

use super::*;

#[tokio::test]
async fn links_that_were_there_before_plan_mode_are_not_followed() {
    for place in ["temp", "temp/sandbox"] {
        let daemon = daemon(vec![
            Turn::user("go").calls([bash("c", "echo x > \"$TMPDIR/written.txt\"")]),
            Turn::any().says("done"),
        ])
        .await;
        let mut session = daemon.client().create(json!({})).await;
        let place = daemon
            .home()
            .join("session-state")
            .join(session.id.as_str())
            .join(place);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(daemon.work(), &place).unwrap();
        set(&session, "plan").await;
        session.ask("go").await;
        assert_eq!(files(daemon.work()), [], "{}", result_of(&session, "c"));
        daemon.finish().await;
    }
}

#[tokio::test]
async fn each_plan_mode_has_a_folder_of_its_own_that_its_commands_share() {
    let daemon = daemon(vec![
        Turn::user("one").calls([bash("a", "echo kept > \"$TMPDIR/note\"")]),
        Turn::any().calls([bash("b", "cat \"$TMPDIR/note\"")]),
        Turn::any().says("1"),
        Turn::user("two").calls([bash("c", "cat \"$TMPDIR/note\"")]),
        Turn::any().says("2"),
    ])
    .await;
    let mut session = planning(&daemon).await;
    session.ask("one").await;
    assert!(result_of(&session, "b").contains("kept"));
    set(&session, "interactive").await;
    set(&session, "plan").await;
    session.ask("two").await;
    let told = result_of(&session, "c");
    assert!(told.contains("No such file"), "{told}");
    daemon.finish().await;
}

/// The scratch folders that a session has now.
fn scratch_folders(daemon: &Daemon, session: &Session) -> Vec<String> {
    let state = daemon.home().join("session-state");
    let mut found = Vec::new();
    let mut waiting = vec![state.join(session.id.as_str())];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("sandbox-") {
                found.push(name);
            } else if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    found
}

#[tokio::test]
async fn the_folder_is_removed_with_all_that_is_in_it_when_the_session_ends() {
    let daemon = daemon(vec![
        Turn::user("go").calls([bash(
            "c",
            "mkdir -p \"$TMPDIR/a/b\"; echo x > \"$TMPDIR/a/b/c\"; ln -s \"$PWD\" \"$TMPDIR/link\"",
        )]),
        Turn::any().says("done"),
    ])
    .await;
    std::fs::write(daemon.file("mine"), "").unwrap();
    let mut session = planning(&daemon).await;
    session.ask("go").await;
    assert_eq!(scratch_folders(&daemon, &session).len(), 1);
    daemon.live(&session.id).stop().await;
    assert_eq!(scratch_folders(&daemon, &session), Vec::<String>::new());
    assert!(daemon.file("mine").exists(), "no link is followed");
    daemon.finish().await;
}
