use loopd_proto::event::todo::TodoDependency;

use super::*;

fn list(entries: &[(&str, TodoStatus, &[&str])]) -> TodoList {
    let todos = entries.iter().map(|(id, status, _)| Todo {
        id: (*id).to_owned(),
        content: format!("do {id}"),
        status: *status,
        priority: TodoPriority::Medium,
        description: None,
        created_at: "2026-01-01 00:00:00".to_owned(),
    });
    let edges = entries.iter().flat_map(|(id, _, on)| {
        on.iter().map(|on| TodoDependency {
            todo_id: (*id).to_owned(),
            depends_on: (*on).to_owned(),
        })
    });
    TodoList {
        todos: todos.collect(),
        dependencies: edges.collect(),
    }
}

const OPEN: TodoStatus = TodoStatus::Pending;
const DONE: TodoStatus = TodoStatus::Completed;

#[test]
fn a_circle_is_found_wherever_it_begins() {
    let diamond = list(&[
        ("a", OPEN, &[]),
        ("b", OPEN, &["a"]),
        ("c", OPEN, &["a"]),
        ("d", OPEN, &["b", "c"]),
    ]);
    assert_eq!(circle(&diamond), None);
    let tail = list(&[
        ("a", OPEN, &["b"]),
        ("b", OPEN, &["c"]),
        ("c", OPEN, &["d"]),
        ("d", OPEN, &["b"]),
    ]);
    assert_eq!(circle(&tail).unwrap_or_default(), ["b", "c", "d", "b"]);
    let itself = list(&[("a", OPEN, &["a"])]);
    assert_eq!(circle(&itself).unwrap_or_default(), ["a", "a"]);
    let over = list(&[("a", DONE, &["b"]), ("b", DONE, &["a"])]);
    assert_eq!(circle(&over), None, "what is done waits for nothing");
}

#[test]
fn what_is_ready_waits_for_nothing_that_is_open() {
    let mut todos = list(&[
        ("a", DONE, &[]),
        ("b", OPEN, &["a"]),
        ("c", OPEN, &["b"]),
        ("d", TodoStatus::Blocked, &[]),
        ("e", OPEN, &["d"]),
        ("f", OPEN, &["gone"]),
        ("g", OPEN, &[]),
    ]);
    if let Some(todo) = todos.todos.last_mut() {
        todo.priority = TodoPriority::High;
    }
    assert_eq!(ready(&todos, &BTreeSet::new()), ["g", "b", "f"]);
    let at_work = BTreeSet::from(["b".to_owned()]);
    assert_eq!(ready(&todos, &at_work), ["g", "f"]);
}

fn fleet(state: &mut State, workers: u32) {
    state.fleet = Some(Fleet::started(
        None,
        &FleetStarted {
            workers,
            agent_type: None,
            planned_by: None,
        },
    ));
}

#[test]
fn as_many_begin_as_there_are_workers() {
    let mut state = State::new("s".into());
    state.todos.list = list(&[("a", OPEN, &[]), ("b", OPEN, &[]), ("c", OPEN, &["a"])]);
    assert_eq!(next_step(&state), None, "there is no fleet");
    fleet(&mut state, 1);
    let starts = |state: &State| next_step(state).map(|step| step.start).unwrap_or_default();
    assert_eq!(starts(&state), ["a"]);
    fleet(&mut state, 3);
    assert_eq!(starts(&state), ["a", "b"]);
    if let Some(fleet) = &mut state.fleet {
        for todo in ["a", "b"] {
            let assigned = FleetAssigned {
                todo: todo.to_owned(),
                task: None,
            };
            fleet.assigned(&assigned);
        }
    }
    assert_eq!(next_step(&state), None, "nobody is asked for twice");
    if let Some(fleet) = &mut state.fleet {
        fleet.interrupted("a");
    }
    assert_eq!(starts(&state), ["a"], "it never began");
    if let Some(fleet) = &mut state.fleet {
        fleet.paused = true;
    }
    assert_eq!(next_step(&state), None);
}

#[test]
fn a_fleet_ends_when_nothing_is_left_that_can_be_done() {
    let mut state = State::new("s".into());
    state.todos.list = list(&[("a", TodoStatus::Blocked, &[]), ("b", OPEN, &["a"])]);
    fleet(&mut state, 2);
    let ends = next_step(&state).and_then(|step| step.ends);
    assert_eq!(ends, Some(FleetEnd::Finished));
}
