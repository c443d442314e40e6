//! The todo list: one list for `todowrite`, `todoread` and `sql`, stored with every change.

mod agents;
mod attacks;
mod stored;

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

async fn daemon(turns: Vec<Turn>) -> Daemon {
    Daemon::with(Script::play(turns).await).await
}

fn sql(id: &str, query: &str) -> loopd_tests::script::Call {
    call(
        id,
        "sql",
        json!({"description": "work on todos", "query": query}),
    )
}

fn write(id: &str, todos: Value) -> loopd_tests::script::Call {
    call(id, "todowrite", json!({ "todos": todos }))
}

fn read(id: &str) -> loopd_tests::script::Call {
    call(id, "todoread", json!({}))
}

/// The data of the event that ends a call.
fn end_of(session: &Session, id: &str) -> Value {
    let events = session.events();
    let complete = events.iter().find(|event| {
        event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == id
    });
    complete.unwrap_or_else(|| panic!("{id} has no result"))["data"].clone()
}

/// The text that the model got for a call.
fn result_of(session: &Session, id: &str) -> String {
    let data = end_of(session, id);
    let text = data["result"]["content"].as_str();
    text.or(data["error"]["message"].as_str())
        .unwrap()
        .to_owned()
}

/// The list as `id status` lines.
async fn lines(session: &Session) -> Vec<String> {
    let read = session
        .call("session.plan.readSqlTodosWithDependencies", json!({}))
        .await;
    let rows = read["rows"].as_array().unwrap().iter();
    rows.map(|row| {
        format!(
            "{} {}",
            row["id"].as_str().unwrap(),
            row["status"].as_str().unwrap()
        )
    })
    .collect()
}

fn database(daemon: &Daemon, session: &Session) -> std::path::PathBuf {
    let folder = daemon.home().join("session-state").join(&session.id);
    folder.join("session.db")
}

#[tokio::test]
async fn a_fresh_session_has_no_todos_and_no_database() {
    let daemon = daemon(vec![]).await;
    let session = daemon.client().create(json!({})).await;
    let rows = session.call("session.plan.readSqlTodos", json!({})).await;
    assert_eq!(rows, json!({"rows": []}));
    let both = session
        .call("session.plan.readSqlTodosWithDependencies", json!({}))
        .await;
    assert_eq!(both, json!({"rows": [], "dependencies": []}));
    let own = session.call("loopd.todos", json!({})).await;
    assert_eq!(
        own,
        json!({"todos": [], "dependencies": [], "remaining": 0})
    );
    assert!(!database(&daemon, &session).exists());
    daemon.finish().await;
}

#[tokio::test]
async fn statements_of_one_call_are_carried_out_together_and_clients_are_told() {
    let query = "INSERT INTO todos (id, title, status) VALUES ('alpha', 'First todo', 'pending');\n\
        INSERT INTO todos (id, title, status) VALUES ('beta', 'Second todo', 'done');\n\
        INSERT INTO todo_deps (todo_id, depends_on) VALUES ('beta', 'alpha');";
    let expected = "Executed 3 statement(s):\n\n\
        1. INSERT\n   1 row(s) inserted. Last inserted row ID: 1.\n\n\
        2. INSERT\n   1 row(s) inserted. Last inserted row ID: 2.\n\n\
        3. INSERT\n   1 row(s) inserted. Last inserted row ID: 1.";
    let daemon = daemon(vec![
        Turn::user("go").calls([sql("s", query)]),
        Turn::results([expected]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    assert_eq!(result_of(&session, "s"), expected);
    assert_eq!(session.count("permission.requested"), 0);
    assert_eq!(session.count("session.todos_changed"), 1);
    let events = session.events();
    let at = |kind: &str| events.iter().position(|event| event["type"] == kind);
    assert!(at("todo.updated") < at("tool.execution_complete"));
    let updated = &events[at("todo.updated").unwrap()]["data"];
    assert_eq!(updated["todos"][1]["content"], "Second todo");
    assert_eq!(updated["todos"][1]["status"], "completed");
    assert_eq!(updated["todos"][1]["priority"], "medium");
    let read = session
        .call("session.plan.readSqlTodosWithDependencies", json!({}))
        .await;
    assert_eq!(read["rows"][0]["title"], "First todo");
    assert_eq!(read["rows"][1]["status"], "done");
    assert_eq!(
        read["dependencies"],
        json!([{"todoId": "beta", "dependsOn": "alpha"}])
    );
    let made = read["rows"][0]["createdAt"].as_str().unwrap();
    assert_eq!((made.len(), &made[10..11]), (19, " "), "{made}");
    daemon.finish().await;
}

#[tokio::test]
async fn both_tools_see_one_list() {
    let list = json!([
        {"id": "a", "content": "Read", "status": "completed", "priority": "high"},
        {"id": "b", "content": "Write", "status": "in_progress"},
        {"content": "Test", "depends_on": ["b"]},
    ]);
    let daemon = daemon(vec![
        Turn::user("go").calls([write("w", list)]),
        Turn::results(["\"content\": \"Test\""]).calls([sql(
            "s",
            "SELECT id, title, status, priority FROM todos; SELECT * FROM todo_deps",
        )]),
        Turn::results(["| a | Read | done | high |"]).calls([sql(
            "u",
            "UPDATE todos SET status = 'completed', description = 'well' WHERE id = 'b'",
        )]),
        Turn::results(["1 row(s) updated."]).calls([
            read("r"),
            sql("q", "SELECT status FROM todos WHERE id = 'b'"),
        ]),
        Turn::results(["\"status\": \"completed\"", "| done |"]).calls([write(
            "w2",
            json!([{"id": "b", "content": "Write it"}, {"content": "Test", "status": "cancelled"}]),
        )]),
        Turn::results(["Write it"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    assert_eq!(
        result_of(&session, "s"),
        "Executed 2 statement(s):\n\n1. SELECT\n   3 row(s) returned:\n   \n   \
         | id | title | status | priority |\n   | --- | --- | --- | --- |\n   \
         | a | Read | done | high |\n   | b | Write | in_progress | medium |\n   \
         | 1 | Test | pending | medium |\n\n2. SELECT\n   1 row(s) returned:\n   \n   \
         | todo_id | depends_on |\n   | --- | --- |\n   | 1 | b |"
    );
    let title = |id: &str| end_of(&session, id)["toolTelemetry"]["properties"]["title"].clone();
    assert_eq!(title("w"), "2 todos left");
    assert_eq!(title("u"), "1 todo left");
    assert_eq!(title("r"), "1 todo left");
    let own = session.call("loopd.todos", json!({})).await;
    assert_eq!(own["remaining"], 1);
    let todos = own["todos"].as_array().unwrap();
    let b = &todos[0];
    // What the model does not write stays as it was.
    assert_eq!(
        (&b["content"], &b["status"]),
        (&json!("Write it"), &json!("pending"))
    );
    assert_eq!(b["description"], "well");
    assert_eq!((&todos[1]["id"], todos.len()), (&json!("1"), 2));
    assert_eq!(
        own["dependencies"],
        json!([{"todoId": "1", "dependsOn": "b"}])
    );
    assert_eq!(session.count("todo.updated"), 3, "only changes are stored");
    daemon.finish().await;
}

#[tokio::test]
async fn calls_at_the_same_time_lose_nothing() {
    let mut calls: Vec<_> = (0..12)
        .map(|n| {
            let query = format!("INSERT INTO todos (id, title) VALUES ('t{n}', 'Todo {n}')");
            sql(&format!("s{n}"), &query)
        })
        .collect();
    calls.push(sql("note", "CREATE TABLE notes (text TEXT)"));
    let count = calls.len();
    let daemon = daemon(vec![
        Turn::user("go").calls(calls),
        Turn::results(
            vec!["successfully"; 0]
                .into_iter()
                .chain((0..count).map(|n| {
                    if n < 12 {
                        "1 row(s) inserted"
                    } else {
                        "Schema operation completed successfully."
                    }
                })),
        )
        .says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    assert_eq!(lines(&session).await.len(), 12);
    assert_eq!(session.count("todo.updated"), 12);
    daemon.finish().await;
}

#[tokio::test]
async fn a_list_that_cannot_be_is_refused_with_its_reason_and_changes_nothing() {
    let many: Vec<Value> = (0..501)
        .map(|n| json!({"content": format!("todo {n}")}))
        .collect();
    let long = "x".repeat(5000);
    let cases = [
        (
            json!([{"content": "a", "id": "x"}, {"content": "b", "id": "x"}]),
            "two todos have the id \"x\"",
        ),
        (json!([{"content": "  "}]), "a todo has no content"),
        (json!([{"content": "a", "id": ""}]), "a todo has no id"),
        (
            json!([{"content": "a", "status": "finished"}]),
            "todos[0].status",
        ),
        (
            json!([{"content": "a", "priority": "urgent"}]),
            "todos[0].priority",
        ),
        (json!([{"status": "pending"}]), "content"),
        (json!("all of it"), "todos"),
        (
            json!([{"content": "a", "id": "x", "depends_on": ["x"]}]),
            "\"x\" depends on itself",
        ),
        (
            json!([{"content": "a", "id": "x", "depends_on": ["y"]}]),
            "depends on \"y\", which is not in the list",
        ),
        (json!(many), "at most 500 entries"),
        (
            json!([{"content": long}]),
            "has 5000 bytes, more than the limit of 4096",
        ),
    ];
    let mut turns = vec![Turn::user("go").calls([write(
        "first",
        json!([{"id": "keep", "content": "Keep me"}]),
    )])];
    let mut expected = "Keep me";
    for (number, (todos, reason)) in cases.iter().enumerate() {
        let id = format!("c{number}");
        turns.push(Turn::results([expected]).calls([write(&id, todos.clone())]));
        expected = reason;
    }
    turns.push(Turn::results([expected]).says("done"));
    let daemon = daemon(turns).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    for number in 0..cases.len() {
        assert_eq!(end_of(&session, &format!("c{number}"))["success"], false);
    }
    assert_eq!(lines(&session).await, ["keep pending"]);
    assert_eq!(session.count("todo.updated"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn plans_are_made_with_todos() {
    let daemon = daemon(vec![
        Turn::user("go").calls([
            write("w", json!([{"id": "a", "content": "Look"}])),
            sql("s", "INSERT INTO todos (id, title) VALUES ('b', 'Change')"),
        ]),
        Turn::results(["Look", "1 row(s) inserted"]).says("planned"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    let mode = json!({"mode": "plan"});
    session.call("session.mode.set", mode).await;
    session.ask("go").await;
    assert_eq!(session.count("permission.requested"), 0);
    assert!(!lines(&session).await.is_empty());
    daemon.finish().await;
}

#[tokio::test]
async fn calls_of_one_message_change_the_list_in_their_order() {
    let todos = json!([{"id": "a", "content": "do a"}]);
    let mut calls = vec![
        write("w", todos),
        sql(
            "u",
            "UPDATE todos SET status = 'in_progress' WHERE id = 'a'",
        ),
        read("r"),
    ];
    let many = (0..12).map(|number| {
        let query = format!("INSERT INTO todos (id, title) VALUES ('t{number:02}', 't')");
        sql(&format!("s{number}"), &query)
    });
    calls.extend(many);
    calls.push(sql(
        "l",
        "SELECT group_concat(id) FROM (SELECT id FROM todos ORDER BY rowid)",
    ));
    let daemon = daemon(vec![
        Turn::user("go").calls(calls),
        Turn::any().says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    assert!(
        result_of(&session, "r").contains("in_progress"),
        "{}",
        result_of(&session, "r")
    );
    let last = result_of(&session, "l");
    assert!(
        last.contains("a,t00,t01,t02,t03,t04,t05,t06,t07,t08,t09,t10,t11"),
        "{last}"
    );
    daemon.finish().await;
}
