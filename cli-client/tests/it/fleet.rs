//! `loop "/fleet …"`: the fleet is waited for, shown as it goes, and its end is the exit code.

use loopd_sdk::{Client, Mode, SessionConfig};
use loopd_tests::script::{Call, Recorded};
use loopd_tests::{Gate, Turn, call};
use serde_json::json;

use crate::home::{Home, RunOutput, interrupt, read_until, stderr};
use crate::model::Model;

fn sql(query: &str) -> Call {
    call("s", "sql", json!({ "query": query }))
}

fn todo_of(request: &Recorded) -> Option<String> {
    let first = request.first_user_text();
    let line = first.lines().find_map(|line| line.strip_prefix("id: "))?;
    Some(line.to_owned())
}

/// A model that divides the work into walls and a roof; `work` says what becomes of a todo.
fn building(mut work: impl FnMut(&str, &Recorded) -> Turn + Send + 'static) -> Model {
    Model::answering(move |request| {
        let last = request.last_user_text();
        match todo_of(request) {
            Some(todo) => work(&todo, request),
            None if last.contains("<fleet_ended>") => Turn::any().says("The house stands."),
            None if !request.last_results().is_empty() => Turn::any().says("divided"),
            None => Turn::any().calls([sql(
                "INSERT INTO todos (id, title) VALUES ('walls', 'Build walls'), ('roof', 'Build a roof'); \
                 INSERT INTO todo_deps VALUES ('roof', 'walls')",
            )]),
        }
    })
}

#[test]
fn it_waits_for_the_fleet_and_prints_what_the_agent_says_of_it() {
    let home = Home::new();
    let model = building(|todo, _| Turn::any().says(&format!("built {todo}")));
    let said = model.run(&home, &["-p", "/fleet Build a house"]);
    assert_eq!((said.code, said.out.as_str()), (0, "The house stands.\n"));
    assert_eq!(said.err, "", "nothing but the answer");
    model.finish();
}

#[test]
fn todos_are_shown_as_a_checklist_and_the_fleet_in_lines() {
    let home = Home::new();
    let model = building(|todo, _| Turn::any().says(&format!("built {todo}")));
    let said = model.run(&home, &["/fleet Build a house"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "The house stands.\n", "{said:?}");
    for shown in [
        "todos: 0 of 2 done\n  [ ] Build walls\n  [ ] Build a roof\n",
        "  [>] Build walls\n",
        "fleet: 0 of 2 done, 1 waits; at work: walls\n",
        "  [x] Build walls\n",
        "fleet finished: 2 of 2 done\n",
    ] {
        assert!(said.err.contains(shown), "{shown:?}: {}", said.err);
    }
    model.finish();
}

#[test]
fn what_is_left_undone_ends_with_5() {
    let home = Home::new();
    let model = building(|todo, _| match todo {
        "walls" => Turn::any().fails(401, "no stones"),
        _ => Turn::any().says("done"),
    });
    let said = model.run(&home, &["/fleet Build a house"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(
        said.err
            .contains("fleet finished: 0 of 2 done, 1 blocked, 1 not begun"),
        "{said:?}"
    );
    model.finish();
}

#[test]
fn the_model_that_fails_ends_with_1_and_a_limit_with_4() {
    let home = Home::new();
    let model = Model::answering(|_| Turn::any().fails(401, "no key"));
    let said = model.run(&home, &["-p", "/fleet Build a house"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("no key"), "{said:?}");
    model.finish();
    let home = Home::new();
    let model = building(|_, _| Turn::any().says("built").uses(9_000, 9));
    let budget = ["--budget-tokens", "9000", "-p", "/fleet Build a house"];
    let said = model.run(&home, &budget);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("of the 9000 tokens"), "{said:?}");
    model.finish();
}

#[test]
fn a_fleet_that_takes_too_long_is_stopped() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = building(move |_, _| Turn::any().says("never").held_by(&held));
    let said = model.run(&home, &["--timeout", "3", "/fleet Build a house"]);
    assert_eq!(said.code, 124, "{said:?}");
    assert!(said.err.contains("fleet stopped: 0 of 2 done"), "{said:?}");
    gate.open();
    model.finish();
}

#[test]
fn an_interrupt_stops_the_fleet_and_keeps_the_session() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = building(move |_, request| {
        if request.last_user_text().contains("again") {
            return Turn::any().says("built");
        }
        Turn::any().says("never").held_by(&held)
    });
    let mut child = model.start(&home, &["/fleet Build a house"]);
    let mut err = stderr(&mut child);
    read_until(&mut err, "at work: walls");
    model.asked(3);
    interrupt(&child);
    let rest = read_until(&mut err, "the session is kept: loop resume ");
    assert!(rest.contains("fleet stopped"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    gate.open();
    model.finish();
}

#[test]
fn a_fleet_makes_no_more_calls_than_the_run_may() {
    let home = Home::new();
    let model = building(|_, request| {
        let id = format!("c{}", request.messages().len());
        Turn::any().calls([call(&id, "glob", json!({"pattern": "*"}))])
    });
    let args = ["--yolo", "--max-turns", "6", "-p", "/fleet Build a house"];
    let said = model.run(&home, &args);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("6 of the 6 model calls"), "{said:?}");
    assert_eq!(model.requests(), 6, "{said:?}");
    model.finish();
}

#[test]
fn a_fleet_that_plan_mode_stops_ends_with_5() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = building(move |_, _| Turn::any().says("built").held_by(&held));
    let child = model.start(&home, &["-p", "/fleet Build a house"]);
    // The work is divided in two calls, and then a worker begins.
    model.asked(3);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::connect(home.connect_options()).await.unwrap();
        let id = home.last_session();
        let session = client
            .resume(id.as_str(), SessionConfig::new())
            .await
            .unwrap();
        session.set_mode(Mode::Plan).await.unwrap();
        client.close().await;
    });
    let said: RunOutput = child.wait_with_output().unwrap().into();
    gate.open();
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("in plan mode"), "{said:?}");
    model.finish();
}
