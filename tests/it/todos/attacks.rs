//! SQL that tries to leave its database or to wear the daemon out. Each is refused or bounded, with
//! a reason, and nothing outside is touched.

use loopd_tests::Turn;
use serde_json::json;

use super::{daemon, end_of, lines, result_of, sql};

/// A query and a part of the reason.
const REFUSED: &[(&str, &str)] = &[
    (
        "ATTACH DATABASE '{out}/a.db' AS a",
        "other databases cannot be used",
    ),
    ("ATTACH ':memory:' AS a", "other databases cannot be used"),
    (
        "ATTACH 'file:{out}/b.db?mode=rwc' AS b; CREATE TABLE b.x (y)",
        "other databases cannot be used",
    ),
    (
        "/* ATTACH */ -- ATTACH\n aTtAcH '{out}/c.db' AS c",
        "other databases cannot be used",
    ),
    (
        "SELECT 1; SELECT 2; ATTACH '{out}/d.db' AS d",
        "other databases cannot be used",
    ),
    ("DETACH DATABASE main", "other databases cannot be used"),
    ("VACUUM", "VACUUM"),
    ("VACUUM INTO '{out}/e.db'", "VACUUM"),
    (
        "SELECT load_extension('{out}/evil')",
        "load_extension is not allowed",
    ),
    (
        "SELECT LOAD_EXTENSION('{out}/evil', 'init')",
        "is not allowed",
    ),
    (
        "SELECT readfile('/etc/passwd')",
        "no such function: readfile",
    ),
    (
        "SELECT writefile('{out}/f', 'x')",
        "no such function: writefile",
    ),
    (
        "SELECT edit('x', 'touch {out}/g')",
        "no such function: edit",
    ),
    (
        "SELECT fts3_tokenizer('simple')",
        "fts3_tokenizer is not allowed",
    ),
    (
        "PRAGMA writable_schema = ON",
        "PRAGMA writable_schema is not allowed",
    ),
    (
        "PRAGMA journal_mode = WAL",
        "PRAGMA journal_mode is not allowed",
    ),
    (
        "PRAGMA temp_store_directory = '{out}'",
        "PRAGMA temp_store_directory is not allowed",
    ),
    (
        "PRAGMA max_page_count = 1000000",
        "PRAGMA max_page_count is not allowed",
    ),
    (
        "PRAGMA database_list",
        "PRAGMA database_list is not allowed",
    ),
    (
        "SELECT * FROM pragma_database_list",
        "PRAGMA database_list is not allowed",
    ),
    (
        "PRAGMA hard_heap_limit = 0",
        "PRAGMA hard_heap_limit is not allowed",
    ),
    (
        "PRAGMA trusted_schema = 1; PRAGMA query_only = 0",
        "PRAGMA trusted_schema is not allowed",
    ),
    (
        "UPDATE sqlite_master SET sql = 'x'",
        "sqlite_master may not be modified",
    ),
    ("DELETE FROM sqlite_schema", "may not be modified"),
    (
        "CREATE TRIGGER t AFTER INSERT ON todos BEGIN DELETE FROM todos; END",
        "triggers are not allowed",
    ),
    (
        "CREATE TEMP TRIGGER t AFTER INSERT ON todos BEGIN SELECT 1; END",
        "triggers are not allowed",
    ),
    (
        "CREATE TEMP TABLE todos (id)",
        "temporary tables are not allowed",
    ),
    (
        "CREATE TEMP VIEW todo_deps AS SELECT 1",
        "temporary tables are not allowed",
    ),
    (
        "CREATE VIRTUAL TABLE v USING fts5(x)",
        "virtual tables are not allowed",
    ),
    (
        "CREATE VIRTUAL TABLE v USING csv(filename='/etc/passwd')",
        "virtual tables are not allowed",
    ),
    ("DROP TABLE todos", "the table todos belongs to the session"),
    ("ALTER TABLE ToDos RENAME TO gone", "belongs to the session"),
    (
        "ALTER TABLE todos ADD COLUMN x; ALTER TABLE todo_deps DROP COLUMN depends_on",
        "belongs to the session",
    ),
    (
        "CREATE UNIQUE INDEX i ON todos (status)",
        "the table todos belongs to the session",
    ),
    (
        "BEGIN; DELETE FROM todos; COMMIT",
        "each call is one transaction",
    ),
    ("COMMIT; DELETE FROM todos", "each call is one transaction"),
    (
        "SAVEPOINT s; DELETE FROM todos; RELEASE s",
        "each call is one transaction",
    ),
    (
        "INSERT OR ROLLBACK INTO todos (id, title) VALUES ('keep', 'x'); DELETE FROM todos",
        "UNIQUE constraint failed",
    ),
    (
        "DELETE FROM todos; SELECT no_such_column FROM todos",
        "no such column",
    ),
    (
        "UPDATE todos SET status = 'stolen'",
        "it is one of pending, in_progress, done",
    ),
    (
        "UPDATE todos SET priority = 'p0'",
        "it is one of high, medium, low",
    ),
    (
        "UPDATE todos SET title = x'00ff'",
        "todos.title has to be text",
    ),
    (
        "UPDATE todos SET title = NULL",
        "NOT NULL constraint failed",
    ),
    (
        "INSERT INTO todos (id, title) VALUES (zeroblob(1000000000), 'x')",
        "too big",
    ),
    ("SELECT randomblob(1000000000)", "too big"),
    ("SELECT length(hex(zeroblob(200000)))", "too big"),
    ("SELECT printf('%.*c', 1000000000, 'x')", "too big"),
    (
        "SELECT length(replace(printf('%.*c', 1000, 'x'), 'x', printf('%.*c', 1000, 'x')))",
        "too big",
    ),
    (
        "CREATE TABLE big AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1000) SELECT zeroblob(100000) AS b FROM c",
        "at most 16 MiB",
    ),
    (
        "INSERT INTO todos (id, title) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 600) SELECT n, n FROM c",
        "at most 500 entries",
    ),
    (
        "INSERT INTO todos (id, title) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 20000) SELECT n, n FROM c",
        "more than 10000 rows",
    ),
    (
        "INSERT INTO todos (id, title) VALUES ('l', printf('%.*c', 5000, 'x'))",
        "more than the limit of 4096",
    ),
    (";;; -- nothing\n /* at all */", "there is no statement"),
    (
        "SELECT * FROM todos WHERE id = 'unclosed",
        "unrecognized token",
    ),
    (
        "SELECT 1 \u{0} ; DROP TABLE todos",
        "the query has a NUL character",
    ),
];

#[tokio::test]
async fn every_attack_is_refused_with_its_reason_and_touches_nothing() {
    let out = tempfile::tempdir().unwrap();
    let out_name = out.path().to_str().unwrap().to_owned();
    let setup = sql(
        "setup",
        "INSERT INTO todos (id, title) VALUES ('keep', 'Keep me')",
    );
    let mut turns = vec![Turn::user("go").calls([setup])];
    let mut expected = "1 row(s) inserted";
    for (number, (query, reason)) in REFUSED.iter().enumerate() {
        let query = query.replace("{out}", &out_name);
        turns.push(Turn::results([expected]).calls([sql(&format!("a{number}"), &query)]));
        expected = reason;
    }
    turns.push(Turn::results([expected]).says("all done"));
    let daemon = daemon(turns).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    for (number, (query, reason)) in REFUSED.iter().enumerate() {
        let id = format!("a{number}");
        let text = result_of(&session, &id);
        assert!(text.starts_with("Nothing was changed: "), "{query}: {text}");
        assert!(text.contains(reason), "{query}: {text}");
        assert_eq!(end_of(&session, &id)["success"], false, "{query}");
    }
    assert_eq!(lines(&session).await, ["keep pending"]);
    assert_eq!(session.count("todo.updated"), 1);
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
    let folder = daemon.home().join("session-state").join(&session.id);
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("db"))
        .collect();
    files.sort();
    assert_eq!(files, ["session.db"]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_query_without_end_is_stopped() {
    let endless =
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c";
    let daemon = daemon(vec![
        Turn::user("go").calls([sql("e", endless)]),
        Turn::results(["took longer than 2 seconds"]).calls([sql("s", "SELECT 7 * 6")]),
        Turn::results(["| 42 |"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    assert_eq!(end_of(&session, "e")["success"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn functions_that_would_take_minutes_in_one_row_do_not_hold_up_the_session() {
    let slow = "instr(zeroblob(250000), zeroblob(125000) || x'01')";
    let row = format!("SELECT {}", vec![slow; 90].join(", "));
    let daemon = daemon(vec![
        Turn::user("go").calls([sql("r", &row)]),
        Turn::results(["1 row(s) returned"]).calls([sql("s", "SELECT 7 * 6")]),
        Turn::results(["| 42 |"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_stops_a_query() {
    let endless =
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c";
    let daemon = daemon(vec![Turn::user("go").calls([sql("e", endless)])]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    session.next("tool.execution_start").await;
    session.call("session.abort", json!({})).await;
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true);
    assert_eq!(end_of(&session, "e")["success"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_query_returns_is_bounded() {
    let many = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 100000) SELECT n FROM c";
    let long = "SELECT printf('%.*c', 100000, 'x') AS text";
    let returning = "CREATE TABLE n (i); INSERT INTO n WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1000) SELECT n FROM c RETURNING i; SELECT count(*) AS c FROM n";
    let statements = "SELECT 1; ".repeat(101);
    let daemon = daemon(vec![
        Turn::user("go").calls([sql("m", many)]),
        Turn::results(["200 row(s) returned"]).calls([sql("l", long)]),
        Turn::results(["[cut, 100000 bytes in all]"]).calls([sql("r", returning)]),
        Turn::results(["There are more rows"]).calls([sql("c", "SELECT count(*) AS c FROM n")]),
        Turn::results(["| 1000 |"]).calls([sql("s", &statements)]),
        Turn::results(["at most 100 statements"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    assert!(result_of(&session, "m").contains("There are more rows"));
    assert!(result_of(&session, "l").len() < 5000);
    daemon.finish().await;
}
