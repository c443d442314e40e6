//! What of the todos survives a daemon, and what becomes of a file that somebody tampered with.

use std::path::Path;

use loopd_tests::{Daemon, Turn};
use serde_json::{Value, json};

use super::{daemon, database, lines, result_of, sql};

const SETUP: &str = "INSERT INTO todos (id, title) VALUES ('a', 'One'), ('b', 'Two'); \
    INSERT INTO todo_deps VALUES ('b', 'a'); CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('hello')";

const LOOK: &str = "SELECT id FROM todos ORDER BY id; SELECT * FROM todo_deps; SELECT name FROM sqlite_master WHERE name = 'notes'";

/// A session with two todos and a table of its own, after its daemon was ended.
async fn ended(turns: Vec<Turn>) -> (Daemon, String, std::path::PathBuf) {
    let mut all = vec![
        Turn::user("go").calls([sql("s", SETUP)]),
        Turn::results(["Executed 4 statement(s)"]).says("done"),
    ];
    all.extend(turns);
    let mut daemon = daemon(all).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    let (id, file) = (session.id.clone(), database(&daemon, &session));
    assert!(file.is_file());
    daemon.restart().await;
    (daemon, id, file)
}

fn look() -> Vec<Turn> {
    vec![
        Turn::user("look").calls([sql("l", LOOK)]),
        Turn::results(["| a |"]).says("seen"),
    ]
}

#[tokio::test]
async fn a_resumed_session_has_its_todos_and_its_other_tables() {
    let (daemon, id, _) = ended(look()).await;
    let mut session = daemon.client().resume(&id, json!({})).await;
    assert_eq!(lines(&session).await, ["a pending", "b pending"]);
    session.ask("look").await;
    let seen = result_of(&session, "l");
    assert!(
        seen.contains("| b | a |") && seen.contains("| notes |"),
        "{seen}"
    );
    assert_eq!(session.count("todo.updated"), 0, "looking changes nothing");
    daemon.finish().await;
}

#[tokio::test]
async fn the_log_counts_and_not_the_file() {
    let (daemon, id, file) = ended(look()).await;
    std::fs::remove_file(&file).unwrap();
    let mut session = daemon.client().resume(&id, json!({})).await;
    assert_eq!(lines(&session).await, ["a pending", "b pending"]);
    assert!(!file.exists(), "reading the list needs no file");
    session.ask("look").await;
    let seen = result_of(&session, "l");
    assert!(
        seen.contains("| b | a |") && !seen.contains("| notes |"),
        "{seen}"
    );
    daemon.finish().await;
}

async fn with_tampered_file(tamper: impl FnOnce(&Path, &Path)) -> (String, Value) {
    let (daemon, id, file) = ended(look()).await;
    let outside = daemon.file("outside");
    std::fs::write(&outside, "precious").unwrap();
    std::fs::remove_file(&file).unwrap();
    tamper(&file, &outside);
    let mut session = daemon.client().resume(&id, json!({})).await;
    session.ask("look").await;
    let seen = result_of(&session, "l");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "precious");
    assert!(std::fs::symlink_metadata(&file).unwrap().is_file());
    let todos = session.call("loopd.todos", json!({})).await;
    daemon.finish().await;
    (seen, todos)
}

#[tokio::test]
async fn a_damaged_file_is_made_anew_and_the_model_is_told() {
    let (seen, todos) = with_tampered_file(|file, _| {
        std::fs::write(file, "this is no database, it is a text").unwrap();
    })
    .await;
    assert!(
        seen.starts_with("Note: the database of the session was damaged"),
        "{seen}"
    );
    assert!(seen.contains("| b | a |"), "{seen}");
    assert_eq!(todos["remaining"], 2);
}

#[tokio::test]
async fn a_link_in_place_of_the_file_is_not_followed() {
    let (seen, _) = with_tampered_file(|file, outside| {
        std::os::unix::fs::symlink(outside, file).unwrap();
    })
    .await;
    assert!(seen.contains("| b | a |"), "{seen}");
}

#[tokio::test]
async fn a_hard_link_in_place_of_the_file_is_not_written_through() {
    let (seen, _) = with_tampered_file(|file, outside| {
        std::fs::hard_link(outside, file).unwrap();
    })
    .await;
    assert!(seen.contains("| b | a |"), "{seen}");
}

/// The file of a session is changed while the session has it open.
async fn with_file_changed_meanwhile(change: impl FnOnce(&Path)) -> Vec<String> {
    let turns = [
        vec![
            Turn::user("go").calls([sql("s", SETUP)]),
            Turn::results(["Executed 4 statement(s)"]).says("done"),
        ],
        look(),
        vec![
            Turn::user("again").calls([sql("l2", LOOK)]),
            Turn::results(["| a |"]).says("seen"),
        ],
    ]
    .concat();
    let daemon = daemon(turns).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    let file = database(&daemon, &session);
    change(&file);
    session.ask("look").await;
    assert!(
        std::fs::read(&file)
            .unwrap()
            .starts_with(b"SQLite format 3")
    );
    session.ask("again").await;
    let seen = vec![result_of(&session, "l"), result_of(&session, "l2")];
    assert_eq!(lines(&session).await, ["a pending", "b pending"]);
    daemon.finish().await;
    seen
}

#[tokio::test]
async fn a_file_that_goes_while_the_session_lives_is_made_anew_and_the_model_is_told_once() {
    type Change = fn(&Path);
    let changes: [Change; 5] = [
        |file| std::fs::remove_file(file).unwrap(),
        |file| std::fs::rename(file, file.with_extension("away")).unwrap(),
        |file| std::fs::write(file, "").unwrap(),
        |file| std::fs::write(file, "this is no database, it is a text").unwrap(),
        |file| std::fs::remove_dir_all(file.parent().unwrap()).unwrap(),
    ];
    for change in changes {
        let seen = with_file_changed_meanwhile(change).await;
        assert!(
            seen[0].starts_with("Note: somebody removed or replaced the database"),
            "{seen:?}"
        );
        for told in &seen {
            assert!(
                told.contains("| b | a |") && !told.contains("| notes |"),
                "{told}"
            );
        }
        assert!(!seen[1].contains("Note:"), "{seen:?}");
    }
}
