//! Changes of the todo list. Each stores the whole list and tells clients that it changed.

use std::collections::BTreeSet;

use loopd_proto::event::session::Empty;
use loopd_proto::event::todo::{Todo, TodoList};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::TaskId;

use crate::command::{Answer, DecideEnv, Decision, Refusal};
use crate::state::State;
use crate::todos::{TodoInput, TodoProblem, check, rewritten};

/// Replaces the list by what a model wrote.
pub(super) fn write(
    state: &State,
    inputs: Vec<TodoInput>,
    env: &DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    let list = rewritten(&state.todos.list, inputs, env.now).map_err(Refusal::Todos)?;
    Ok(replace(state, list))
}

/// Stores a list that was made from the list of this revision.
pub(super) fn store(
    state: &State,
    by: Option<&TaskId>,
    base: u64,
    list: TodoList,
) -> Result<Decision, Refusal> {
    if base != state.todos.revision {
        return Err(Refusal::TodosChanged);
    }
    check(&list).map_err(Refusal::Todos)?;
    if let (Some(by), Some(fleet)) = (by, &state.fleet) {
        keep_items(&state.todos.list, fleet.todo_of(by), &list).map_err(Refusal::Todos)?;
    }
    Ok(replace(state, list))
}

/// Refuses that an agent ends, removes or rewrites what others carry out, or adds a todo that nobody has to
/// carry out any more. While a fleet is at work, a todo is ended by its worker, or by the agent and the person
/// that the list belongs to.
fn keep_items(before: &TodoList, own: Option<&str>, after: &TodoList) -> Result<(), TodoProblem> {
    let mut open = before.todos.iter().filter(|todo| !todo.status.is_over());
    let taken = open.find(|todo| match after.get(&todo.id) {
        None => true,
        Some(now) => now.status.is_over() && own != Some(todo.id.as_str()),
    });
    if let Some(todo) = taken {
        return Err(TodoProblem::OfFleet(todo.id.clone()));
    }
    for todo in &after.todos {
        match before.get(&todo.id) {
            None if todo.status.is_over() => {
                return Err(TodoProblem::AddedAsOver(todo.id.clone()));
            }
            Some(was) if own != Some(todo.id.as_str()) && !has_same_text(was, todo) => {
                return Err(TodoProblem::TextOfFleet(todo.id.clone()));
            }
            None | Some(_) => {}
        }
    }
    keep_order(before, own, after)
}

/// Whether a todo asks for the same work as before, with the same importance.
fn has_same_text(was: &Todo, is: &Todo) -> bool {
    (&was.content, &was.description, was.priority) == (&is.content, &is.description, is.priority)
}

/// Refuses that an agent changes what the todos of others wait for. A todo that is new has the dependencies
/// that it is written with.
fn keep_order(before: &TodoList, own: Option<&str>, after: &TodoList) -> Result<(), TodoProblem> {
    fn edges(list: &TodoList) -> BTreeSet<(&str, &str)> {
        let edges = list.dependencies.iter();
        edges
            .map(|edge| (edge.todo_id.as_str(), edge.depends_on.as_str()))
            .collect()
    }
    let (was, is) = (edges(before), edges(after));
    let is_open = |id: &str| before.get(id).is_some_and(|todo| !todo.status.is_over());
    let mut changed = was.symmetric_difference(&is);
    match changed.find(|(todo, _)| own != Some(*todo) && is_open(todo)) {
        Some((todo, _)) => Err(TodoProblem::OrderOfFleet((*todo).to_owned())),
        None => Ok(()),
    }
}

fn replace(state: &State, list: TodoList) -> Decision {
    let changes = list != state.todos.list;
    let mut decision = Decision::answering(Answer::Accepted(changes));
    if changes {
        updated(&mut decision, list);
    }
    decision
}

/// Stores a changed list.
pub(super) fn updated(decision: &mut Decision, list: TodoList) {
    decision
        .store(Durable::TodosUpdated(list))
        .tell(Ephemeral::TodosChanged(Empty {}));
}
