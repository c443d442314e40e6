//! What becomes of the todos of a fleet: when one counts as done, who may end it, and what a fleet takes
//! up.

use super::*;

/// Two todos, the second one after the first.
const TWO: &str = "INSERT INTO todos (id, title) VALUES ('a', 'do a'), ('b', 'do b'); \
                   INSERT INTO todo_deps (todo_id, depends_on) VALUES ('b', 'a')";

/// A model that writes todos when it is told to begin; `work` says what becomes of each.
async fn carrying_out(
    setup: &'static str,
    mut work: impl FnMut(&str, &Recorded) -> Turn + Send + 'static,
) -> Daemon {
    daemon(move |request| {
        let last = request.last_user_text();
        match todo_of(request) {
            Some(todo) => work(&todo, request),
            None if last.contains("<fleet_ended>") => Turn::any().says("told"),
            None if !request.last_results().is_empty() => Turn::any().says("planned"),
            None => Turn::any().calls([sql(setup)]),
        }
    })
    .await
}

/// Begins a session with the todos, and a fleet that carries them out.
async fn carried_out(daemon: &Daemon) -> (Session, Value) {
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    session.call("session.fleet.start", json!({})).await;
    let end = ended(&mut session).await;
    session.next("session.idle").await;
    (session, end)
}

#[tokio::test]
async fn an_answer_that_is_cut_withheld_or_missing_ends_no_todo() {
    for (reason, says, why) in [
        ("length", "half", "limit of output tokens"),
        ("content_filter", "half", "content filter"),
        ("stop", "", "without an answer"),
    ] {
        let daemon = carrying_out(TWO, move |_, _| {
            let turn = Turn::any().says(says);
            match reason {
                "stop" => turn,
                reason => turn.stops_by(reason),
            }
        })
        .await;
        let (session, end) = carried_out(&daemon).await;
        assert_eq!(
            (&end["done"], &end["blocked"], &end["waiting"]),
            (&json!(0), &json!(1), &json!(1)),
            "{reason}: {end}"
        );
        assert_eq!(statuses(&session).await["a"], "blocked", "{reason}");
        let told = daemon.script().last_request().last_user_text();
        assert!(told.contains(why), "{reason}: {told}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_worker_that_was_allowed_nothing_has_done_nothing() {
    let script = Script::answering(|request| {
        let last = request.last_user_text();
        match todo_of(request) {
            Some(_) if request.last_results().is_empty() => Turn::any().calls([call(
                "t",
                "bash",
                json!({"command": "touch made", "description": "make"}),
            )]),
            Some(_) => Turn::any().says("could not"),
            None if last.contains("<fleet_ended>") => Turn::any().says("told"),
            None if !request.last_results().is_empty() => Turn::any().says("planned"),
            None => Turn::any().calls([sql(TWO)]),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    let (session, end) = carried_out(&daemon).await;
    assert_eq!(
        (&end["done"], &end["blocked"]),
        (&json!(0), &json!(1)),
        "{end}"
    );
    assert_eq!(statuses(&session).await["b"], "pending");
    daemon.finish().await;
}

#[tokio::test]
async fn a_worker_ends_no_todo_of_another_and_removes_none() {
    let daemon = carrying_out(
        "INSERT INTO todos (id, title) VALUES ('a', 'do a'), ('b', 'do b'), ('c', 'do c'); \
         INSERT INTO todo_deps (todo_id, depends_on) VALUES ('b', 'a'), ('c', 'b')",
        |todo, request| match (todo, request.last_results().as_slice()) {
            ("a", []) => Turn::any().calls([
                call(
                    "x",
                    "sql",
                    json!({"query": "UPDATE todos SET status = 'done' WHERE id = 'b'"}),
                ),
                call(
                    "y",
                    "sql",
                    json!({"query": "DELETE FROM todos WHERE id = 'c'"}),
                ),
                call(
                    "z",
                    "sql",
                    json!({"query": "UPDATE todos SET status = 'cancelled' WHERE id = 'c'"}),
                ),
            ]),
            ("a", results) => {
                assert!(
                    results
                        .iter()
                        .all(|text| text.contains("only its own worker ends it")),
                    "{results:?}"
                );
                Turn::any().says("built a")
            }
            (todo, _) => Turn::any().says(&format!("built {todo}")),
        },
    )
    .await;
    let (_, end) = carried_out(&daemon).await;
    assert_eq!(
        (&end["done"], &end["total"]),
        (&json!(3), &json!(3)),
        "{end}"
    );
    let requests = daemon.script().requests();
    for todo in ["b", "c"] {
        let mut workers = requests.iter().filter_map(todo_of);
        assert!(workers.any(|it| it == todo), "{todo} had a worker");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_worker_does_not_change_what_the_todos_of_others_wait_for() {
    let daemon = carrying_out(
        "INSERT INTO todos (id, title) VALUES ('a', 'do a'), ('b', 'do b'), ('c', 'do c'); \
         INSERT INTO todo_deps (todo_id, depends_on) VALUES ('b', 'a'), ('c', 'b')",
        |todo, request| {
            let query = |id: &str, query: &str| call(id, "sql", json!({ "query": query }));
            match (todo, request.last_results().as_slice()) {
                ("a", []) => Turn::any().calls([
                    query("w", "DELETE FROM todo_deps WHERE todo_id = 'c'"),
                    query(
                        "x",
                        "UPDATE todo_deps SET depends_on = 'a' WHERE todo_id = 'c'",
                    ),
                    query(
                        "y",
                        "UPDATE todo_deps SET todo_id = 'a' WHERE todo_id = 'b'",
                    ),
                    query("z", "INSERT INTO todo_deps VALUES ('b', 'c')"),
                ]),
                ("a", results) if results.len() == 4 => {
                    let refused = |text: &String| text.contains("changes what it depends on");
                    assert!(results.iter().all(refused), "{results:?}");
                    // What is new, and what is its own, is its own affair.
                    Turn::any().calls([query(
                        "n",
                        "INSERT INTO todos (id, title) VALUES ('d', 'do d'); \
                         INSERT INTO todo_deps VALUES ('d', 'c')",
                    )])
                }
                ("a", results) => {
                    assert!(!results[0].contains("Nothing was changed"), "{results:?}");
                    Turn::any().says("built a")
                }
                (todo, _) => Turn::any().says(&format!("built {todo}")),
            }
        },
    )
    .await;
    let (_, end) = carried_out(&daemon).await;
    assert_eq!(end["done"], 4, "{end}");
    let requests = daemon.script().requests();
    let mut begun: Vec<String> = requests.iter().filter_map(todo_of).collect();
    begun.dedup();
    assert_eq!(begun, ["a", "b", "c", "d"]);
    daemon.finish().await;
}

#[tokio::test]
async fn what_was_left_in_progress_is_carried_out() {
    let daemon = carrying_out(
        "INSERT INTO todos (id, title, status) VALUES ('a', 'do a', 'in_progress')",
        |todo, _| Turn::any().says(&format!("built {todo}")),
    )
    .await;
    let (session, end) = carried_out(&daemon).await;
    assert_eq!(
        (&end["done"], &end["total"]),
        (&json!(1), &json!(1)),
        "{end}"
    );
    assert_eq!(statuses(&session).await["a"], "completed");
    daemon.finish().await;
}

#[tokio::test]
async fn another_fleet_takes_up_what_failed() {
    let mut tries = 0;
    let daemon = carrying_out(TWO, move |todo, _| {
        tries += 1;
        match tries {
            1 => Turn::any().fails(400, "no stones"),
            _ => Turn::any().says(&format!("built {todo}")),
        }
    })
    .await;
    let (mut session, end) = carried_out(&daemon).await;
    assert_eq!(
        (&end["blocked"], &end["waiting"]),
        (&json!(1), &json!(1)),
        "{end}"
    );
    session.call("session.fleet.start", json!({})).await;
    let end = ended(&mut session).await;
    session.next("session.idle").await;
    assert_eq!(end["done"], 2, "{end}");
    let error = session.refused("session.fleet.start", json!({})).await;
    assert!(error.message.contains("no todos to carry out"), "{error}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_todo_that_waits_for_one_that_is_not_there_is_blocked_and_told() {
    let daemon = carrying_out(
        "INSERT INTO todos (id, title) VALUES ('a', 'do a'), ('b', 'do b'); \
         INSERT INTO todo_deps (todo_id, depends_on) VALUES ('b', 'gone')",
        |todo, _| Turn::any().says(&format!("built {todo}")),
    )
    .await;
    let (session, end) = carried_out(&daemon).await;
    assert_eq!(
        (&end["done"], &end["blocked"]),
        (&json!(1), &json!(1)),
        "{end}"
    );
    let told = daemon.script().last_request().last_user_text();
    assert!(
        told.contains("depends on gone, which is not in the list"),
        "{told}"
    );
    let error = session.refused("session.fleet.start", json!({})).await;
    assert!(
        error
            .message
            .contains("b: not begun, because it waits for gone (not in the list)"),
        "{error}"
    );
    session
        .call("session.mode.set", json!({"mode": "plan"}))
        .await;
    let error = session
        .refused("session.fleet.start", json!({"prompt": "x"}))
        .await;
    assert!(error.message.contains("plan mode"), "{error}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_worker_does_not_rewrite_the_work_of_others_or_add_work_as_done() {
    let daemon = carrying_out(TWO, |todo, request| {
        match (todo, request.last_results().as_slice()) {
            ("a", []) => Turn::any().calls([
                call(
                    "x",
                    "sql",
                    json!({"query": "UPDATE todos SET title = 'do something else' WHERE id = 'b'"}),
                ),
                call(
                    "y",
                    "sql",
                    json!({"query": "UPDATE todos SET description = 'quite different' WHERE id = 'b'"}),
                ),
                call(
                    "z",
                    "sql",
                    json!({"query": "INSERT INTO todos (id, title, status) VALUES ('c', 'do c', 'done')"}),
                ),
                call(
                    "own",
                    "sql",
                    json!({"query": "UPDATE todos SET description = 'as it turned out' WHERE id = 'a'"}),
                ),
            ]),
            ("a", [title, text, added, own]) => {
                assert!(title.contains("no other worker rewrites it"), "{title}");
                assert!(text.contains("no other worker rewrites it"), "{text}");
                assert!(added.contains("add it as pending"), "{added}");
                assert!(!own.contains("Nothing was changed"), "{own}");
                Turn::any().says("built a")
            }
            (todo, _) => {
                let prompt = request.first_user_text();
                assert!(prompt.contains("title: do b\n"), "{todo}: {prompt}");
                assert!(!prompt.contains("quite different"), "{prompt}");
                Turn::any().says("built b")
            }
        }
    })
    .await;
    let (_, end) = carried_out(&daemon).await;
    assert_eq!(
        (&end["done"], &end["total"]),
        (&json!(2), &json!(2)),
        "{end}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn plan_mode_stops_a_fleet_and_its_todos_wait_again() {
    let gate = Gate::new();
    let held = gate.clone();
    let daemon = carrying_out(TWO, move |todo, _| {
        Turn::any().says(&format!("built {todo}")).held_by(&held)
    })
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    session.call("session.fleet.start", json!({})).await;
    gate.reached().await;
    session
        .call("session.mode.set", json!({"mode": "plan"}))
        .await;
    let end = ended(&mut session).await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(
        (&end["ended"], &end["done"], &end["waiting"]),
        (&json!("stopped"), &json!(0), &json!(2)),
        "{end}"
    );
    let statuses = statuses(&session).await;
    assert_eq!((&*statuses["a"], &*statuses["b"]), ("pending", "pending"));
    let warnings: Vec<Value> = session
        .events()
        .into_iter()
        .filter(|event| event["type"] == "session.warning")
        .map(|event| event["data"]["warningType"].clone())
        .collect();
    assert!(warnings.contains(&json!("fleet_stopped")), "{warnings:?}");
    let requests = daemon.script().requests();
    let workers: Vec<String> = requests.iter().filter_map(todo_of).collect();
    assert_eq!(workers, ["a"], "no worker began in plan mode");
    // Outside plan mode the work is taken up again.
    session
        .call("session.mode.set", json!({"mode": "interactive"}))
        .await;
    session.call("session.fleet.start", json!({})).await;
    let end = ended(&mut session).await;
    assert_eq!(
        (&end["ended"], &end["done"]),
        (&json!("finished"), &json!(2))
    );
    session.next("session.idle").await;
    daemon.finish().await;
}
