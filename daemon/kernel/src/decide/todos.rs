//! Changes of the todo list. Each stores the whole list and tells clients that it changed.

use loopd_proto::event::session::Empty;
use loopd_proto::event::todo::TodoList;
use loopd_proto::event::{Durable, Ephemeral};

use crate::command::{Answer, DecideEnv, Decision, Refusal};
use crate::state::State;
use crate::todos::{TodoInput, check, rewritten};

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
pub(super) fn store(state: &State, base: u64, list: TodoList) -> Result<Decision, Refusal> {
    if base != state.todos.revision {
        return Err(Refusal::TodosChanged);
    }
    check(&list).map_err(Refusal::Todos)?;
    Ok(replace(state, list))
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
