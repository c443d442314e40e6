//! A fleet: workers carry out the todos of a session, several at a time, in the order of what depends
//! on what.

mod ends;
mod items;
mod limits;
mod plan;

use std::collections::BTreeMap;

use loopd_tests::script::Recorded;
use loopd_tests::{Daemon, Gate, Script, Session, Turn, call};
use serde_json::{Value, json};

const TODOS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

/// A diamond (a, then b and c, then d and after it l), one that fails (f, and g after it), and others.
fn setup() -> String {
    let rows: Vec<String> = TODOS
        .iter()
        .map(|id| format!("('{id}', 'do {id}')"))
        .collect();
    format!(
        "INSERT INTO todos (id, title) VALUES {}; INSERT INTO todo_deps (todo_id, depends_on) VALUES \
         ('b', 'a'), ('c', 'a'), ('d', 'b'), ('d', 'c'), ('l', 'd'), ('g', 'f')",
        rows.join(", ")
    )
}

fn sql(query: &str) -> loopd_tests::script::Call {
    call("s", "sql", json!({ "query": query }))
}

/// The todo that a worker was given; `None` for the session itself.
fn todo_of(request: &Recorded) -> Option<String> {
    let first = request.first_user_text();
    let line = first.lines().find_map(|line| line.strip_prefix("id: "))?;
    Some(line.to_owned())
}

async fn daemon(answer: impl FnMut(&Recorded) -> Turn + Send + 'static) -> Daemon {
    let script = Script::answering(answer).await;
    Daemon::builder().script(script).yolo().start().await
}

async fn statuses(session: &Session) -> BTreeMap<String, String> {
    let todos = session.call("loopd.todos", json!({})).await;
    let todos = todos["todos"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    todos
        .iter()
        .map(|todo| (text(&todo["id"]), text(&todo["status"])))
        .collect()
}

fn progress(session: &Session) -> Vec<Value> {
    let events = session.events().into_iter();
    let progress = events.filter(|event| event["type"] == "loopd.fleet_progress");
    progress.map(|event| event["data"].clone()).collect()
}

async fn ended(session: &mut Session) -> Value {
    let event = session
        .next_where("the end of the fleet", |event| {
            event["type"] == "loopd.fleet_progress" && !event["data"]["ended"].is_null()
        })
        .await;
    event["data"].clone()
}

#[tokio::test]
async fn twelve_todos_three_workers_one_failure_and_one_kill() {
    let (b, e) = (Gate::new(), Gate::new());
    let (held_b, held_e) = (b.clone(), e.clone());
    let mut daemon = daemon(move |request| {
        let last = request.last_user_text();
        let Some(todo) = todo_of(request) else {
            return if !request.last_results().is_empty() {
                Turn::any().says("planned")
            } else if last.contains("<fleet_ended>") {
                Turn::any().says("the fleet is home")
            } else {
                Turn::any().calls([sql(&setup())])
            };
        };
        if last.contains("The daemon was stopped") {
            return Turn::any().says(&format!("finished {todo} after all"));
        }
        match todo.as_str() {
            "f" => Turn::any().fails(400, "this one fails"),
            "b" => Turn::any().says("never read").held_by(&held_b),
            "e" => Turn::any().says("never read").held_by(&held_e),
            _ => Turn::any().says(&format!("finished {todo}")),
        }
    })
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    let started = session
        .call("session.fleet.start", json!({"maxWorkers": 3}))
        .await;
    assert_eq!(started, json!({"started": true}));
    b.reached().await;
    e.reached().await;
    // All others have ended that do not wait for these two.
    session
        .next_where("the end of the others", |event| {
            let data = &event["data"];
            event["type"] == "loopd.fleet_progress" && data["done"] == 6 && data["blocked"] == 1
        })
        .await;
    let mut before = progress(&session);
    daemon.restart().await;
    let options = json!({"continuePendingWork": true});
    let mut session = daemon.client().resume(&session.id, options).await;
    let stored = session.messages().await;
    let told = stored
        .iter()
        .find(|event| event["type"] == "session.warning");
    let told = told.expect("people are told what was cut")["data"]["message"].to_string();
    assert!(
        told.contains("b (agent ") && told.contains("e (agent "),
        "{told}"
    );
    assert!(!told.contains("f (agent "), "that one had failed: {told}");
    let end = ended(&mut session).await;
    session.next("session.idle").await;
    assert_eq!(
        (
            &end["done"],
            &end["blocked"],
            &end["waiting"],
            &end["total"]
        ),
        (&json!(10), &json!(1), &json!(1), &json!(12)),
        "{end}"
    );
    let statuses = statuses(&session).await;
    for id in TODOS {
        let expected = match id {
            "f" => "blocked",
            "g" => "pending",
            _ => "completed",
        };
        assert_eq!(statuses[id], expected, "{id}");
    }
    before.extend(progress(&session));
    let most = before
        .iter()
        .map(|it| it["running"].as_array().unwrap().len());
    assert_eq!(most.max(), Some(3), "three at a time");
    // Each worker began once, after what it depends on had ended.
    let requests = daemon.script().requests();
    let begun: Vec<String> = requests
        .iter()
        .filter(|request| request.messages().len() == 2)
        .filter_map(todo_of)
        .collect();
    let mut each = begun.clone();
    each.sort();
    each.retain(|id| id != "f");
    let expected = TODOS.iter().filter(|id| !matches!(**id, "f" | "g"));
    assert_eq!(each, expected.copied().collect::<Vec<_>>());
    let at = |id: &str| begun.iter().position(|begun| begun == id).unwrap();
    assert!(at("a") < at("b") && at("a") < at("c"));
    assert!(at("b") < at("d") && at("c") < at("d") && at("d") < at("l"));
    let of_d = requests
        .iter()
        .find(|request| todo_of(request).as_deref() == Some("d"));
    let of_d = of_d.unwrap().first_user_text();
    assert!(
        of_d.contains("finished b after all") && of_d.contains("finished c"),
        "{of_d}"
    );
    let told = requests.last().unwrap().last_user_text();
    assert!(told.contains("- f: blocked, because"), "{told}");
    assert!(
        told.contains("- g: not begun, because it waits for f"),
        "{told}"
    );
    let status = session.call("loopd.fleetStatus", json!({})).await;
    assert_eq!(
        (&status["active"], &status["paused"], &status["last"]),
        (&json!(false), &json!(false), &end)
    );
    b.open();
    e.open();
    daemon.finish().await;
}

#[tokio::test]
async fn a_request_is_divided_before_workers_begin() {
    let daemon = daemon(|request| {
        let last = request.last_user_text();
        match todo_of(request) {
            Some(todo) => Turn::any().says(&format!("built {todo}")),
            None if !request.last_results().is_empty() => Turn::any().says("divided"),
            None if last.contains("<fleet_ended>") => Turn::any().says("all built"),
            None => Turn::any().calls([sql(
                "INSERT INTO todos (id, title) VALUES ('walls', 'Walls'), ('roof', 'Roof'); \
                 INSERT INTO todo_deps VALUES ('roof', 'walls')",
            )]),
        }
    })
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session
        .call("session.fleet.start", json!({"prompt": "Build a house"}))
        .await;
    let asked = session.next("user.message").await;
    assert_eq!(asked["data"]["content"], "Fleet deployed: Build a house");
    let end = ended(&mut session).await;
    assert_eq!(
        (&end["done"], &end["ended"]),
        (&json!(2), &json!("finished"))
    );
    session.next("session.idle").await;
    assert_eq!(
        session.count("session.idle"),
        1,
        "a fleet is one piece of work"
    );
    assert_eq!(session.count("system.notification"), 0);
    let said: Vec<Value> = session
        .events()
        .into_iter()
        .filter(|event| event["type"] == "assistant.message" && event["agentId"].is_null())
        .map(|event| event["data"]["content"].clone())
        .collect();
    assert_eq!(said.last().unwrap(), "all built");
    daemon.finish().await;
}

#[tokio::test]
async fn a_request_that_is_not_divided_ends_like_any_other() {
    let daemon = daemon(|_| Turn::any().says("it was small")).await;
    let mut session = daemon.client().create(json!({})).await;
    let prompt = json!({"prompt": "Say it"});
    session.call("session.fleet.start", prompt).await;
    session.next("session.idle").await;
    assert_eq!(daemon.script().requests().len(), 1);
    let status = session.call("loopd.fleetStatus", json!({})).await;
    assert_eq!(status["active"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn what_cannot_be_started_is_refused_with_its_reason() {
    let gate = Gate::new();
    let held = gate.clone();
    let daemon = daemon(move |request| match todo_of(request) {
        Some(_) => Turn::any().says("done").held_by(&held),
        None if !request.last_results().is_empty() => Turn::any().says("ok"),
        // The text of the message follows the time.
        None => Turn::any().calls([sql(request.last_user_text().rsplit("\n\n").next().unwrap())]),
    })
    .await;
    let mut session = daemon.client().create(json!({})).await;
    let start = "session.fleet.start";
    let error = session.refused(start, json!({})).await;
    assert!(
        error.message.contains("there are no todos to carry out"),
        "{error}"
    );
    let error = session
        .refused(start, json!({"prompt": "x", "maxWorkers": 99}))
        .await;
    assert!(error.message.contains("not between 1 and 16"), "{error}");
    session
        .ask("INSERT INTO todos (id, title) VALUES ('x', 'X'), ('y', 'Y'), ('z', 'Z'); INSERT INTO todo_deps VALUES ('x', 'y'), ('y', 'z'), ('z', 'x')")
        .await;
    let error = session.refused(start, json!({})).await;
    assert!(error.message.contains("x → y → z → x"), "{error}");
    session.ask("DELETE FROM todo_deps").await;
    session.call(start, json!({"maxWorkers": 2})).await;
    gate.reached().await;
    let error = session.refused(start, json!({})).await;
    assert!(error.message.contains("a fleet is at work"), "{error}");
    let status = session.call("loopd.fleetStatus", json!({})).await;
    assert_eq!(
        (
            &status["active"],
            status["progress"]["running"].as_array().unwrap().len()
        ),
        (&json!(true), 2)
    );
    let stopped = session.call("loopd.fleetStop", json!({})).await;
    assert_eq!(stopped, json!({"stopped": true}));
    session.next("session.idle").await;
    let statuses = statuses(&session).await;
    assert!(
        statuses.values().all(|status| status == "pending"),
        "{statuses:?}"
    );
    let stopped = session.call("loopd.fleetStop", json!({})).await;
    assert_eq!(stopped, json!({"stopped": false}));
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn a_resumed_session_waits_before_its_fleet_goes_on() {
    let gate = Gate::new();
    let held = gate.clone();
    let mut daemon = daemon(move |request| {
        let last = request.last_user_text();
        match todo_of(request) {
            Some(_) if last.contains("The daemon was stopped") => Turn::any().says("done"),
            Some(_) => Turn::any().says("never read").held_by(&held),
            None if !request.last_results().is_empty() => Turn::any().says("ok"),
            None if last.contains("<fleet_ended>") => Turn::any().says("home"),
            None => Turn::any().calls([sql("INSERT INTO todos (id, title) VALUES ('x', 'X')")]),
        }
    })
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    session.call("session.fleet.start", json!({})).await;
    gate.reached().await;
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    let stored = session.messages().await;
    let told = stored
        .iter()
        .find(|event| event["type"] == "session.warning");
    let told = &told.expect("people are told what was cut")["data"];
    assert_eq!(told["warningType"], "fleet_interrupted");
    let words = told["message"].as_str().unwrap();
    for part in ["x (agent ", "continuePendingWork", "/fleet"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let asked = daemon.script().requests().len();
    let status = session.call("loopd.fleetStatus", json!({})).await;
    assert_eq!(
        (&status["active"], &status["paused"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        daemon.script().requests().len(),
        asked,
        "no model call of its own"
    );
    session.call("session.fleet.start", json!({})).await;
    let end = ended(&mut session).await;
    assert_eq!(end["done"], 1);
    session.next("session.idle").await;
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn a_prompt_that_is_to_be_charged_for_is_refused_by_name() {
    let daemon = Daemon::playing([Turn::any().says("small")]).await;
    let mut session = daemon.client().create(json!({})).await;
    let method = "session.fleet.start";
    let params = json!({"prompt": "Build", "billable": true});
    let refused = session.refused(method, params).await;
    assert!(refused.message.contains("billable"), "{}", refused.message);
    assert_eq!(daemon.script().requests().len(), 0, "nothing has begun");
    let params = json!({"prompt": "Build", "billable": false});
    session.call(method, params).await;
    session.next("session.idle").await;
    daemon.finish().await;
}
