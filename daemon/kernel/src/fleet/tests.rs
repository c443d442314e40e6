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
    assert_eq!(ready(&todos, &BTreeSet::new()), ["g", "b"]);
    let at_work = BTreeSet::from(["b".to_owned()]);
    assert_eq!(ready(&todos, &at_work), ["g"]);
}

fn fleet(state: &mut State, workers: u32) {
    state.fleet = Some(Fleet::started(
        None,
        &FleetStarted {
            workers,
            agent_type: None,
            most_todos: None,
            planned_by: None,
            run: None,
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
fn what_somebody_left_in_progress_is_taken_up() {
    let mut state = State::new("s".into());
    state.todos.list = list(&[("a", TodoStatus::InProgress, &[]), ("b", OPEN, &["a"])]);
    fleet(&mut state, 2);
    let step = next_step(&state).map(|step| step.start);
    assert_eq!(step.unwrap_or_default(), ["a"]);
}

#[test]
fn what_depends_on_a_todo_that_is_not_there_is_blocked() {
    let mut state = State::new("s".into());
    state.todos.list = list(&[("a", OPEN, &["gone"]), ("b", OPEN, &["a"])]);
    fleet(&mut state, 2);
    let step = next_step(&state);
    let settled = step.as_ref().and_then(|step| step.settled.first());
    let reason = settled.and_then(|settled| settled.reason.clone());
    assert_eq!(
        reason.as_deref(),
        Some("it depends on gone, which is not in the list")
    );
    assert_eq!(
        settled.map(|settled| settled.outcome),
        Some(FleetOutcome::Blocked)
    );
    assert_eq!(step.and_then(|step| step.ends), Some(FleetEnd::Finished));
}

#[test]
fn a_fleet_carries_out_no_more_todos_than_it_may() {
    let mut state = State::new("s".into());
    state.todos.list = list(&[("a", OPEN, &[]), ("b", OPEN, &[]), ("c", OPEN, &[])]);
    fleet(&mut state, 3);
    if let Some(fleet) = &mut state.fleet {
        fleet.most_todos = 2;
    }
    let starts = |state: &State| next_step(state).map(|step| step.start).unwrap_or_default();
    assert_eq!(starts(&state), ["a", "b"]);
    if let Some(fleet) = &mut state.fleet {
        for todo in ["a", "b"] {
            let assigned = FleetAssigned {
                todo: todo.to_owned(),
                task: None,
            };
            fleet.assigned(&assigned);
            fleet.settled(&FleetSettled {
                todo: todo.to_owned(),
                outcome: FleetOutcome::Done,
                reason: None,
            });
        }
    }
    for todo in state.todos.list.todos.iter_mut().take(2) {
        todo.status = DONE;
    }
    let step = next_step(&state);
    assert_eq!(step.as_ref().map(|step| step.start.len()), Some(0));
    assert_eq!(step.and_then(|step| step.ends), Some(FleetEnd::Finished));
}

#[test]
fn a_fleet_ends_when_nothing_is_left_that_can_be_done() {
    let mut state = State::new("s".into());
    state.todos.list = list(&[("a", TodoStatus::Blocked, &[]), ("b", OPEN, &["a"])]);
    fleet(&mut state, 2);
    let ends = next_step(&state).and_then(|step| step.ends);
    assert_eq!(ends, Some(FleetEnd::Finished));
}
