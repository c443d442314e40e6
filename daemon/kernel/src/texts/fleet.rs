//! What models read about a fleet: the one that plans it, its workers, and the one that hears of its
//! end.

use std::fmt::Write as _;

use loopd_proto::event::fleet::{FleetOutcome, FleetProgress};
use loopd_proto::event::todo::{Todo, TodoList, TodoStatus};

use loopd_proto::id::TaskId;

use crate::fleet::{Fleet, waits_for};
use crate::state::State;

/// The longest part of an answer that others read, in characters.
const LONGEST_ANSWER: usize = 2000;

/// What people are told when plan mode begins while a fleet is at work.
pub(crate) const STOPPED_BY_PLAN_MODE: &str = "The fleet was stopped, because the session is in plan mode, in which its workers may change nothing. \
     What they were at waits again; leave plan mode and send /fleet to go on.";

/// How the start of a fleet is shown.
pub(crate) fn deployed(prompt: &str) -> String {
    format!("Fleet deployed: {prompt}")
}

/// Asks the model to divide the work. The workers are started by the session.
pub(crate) fn plan_first(prompt: &str) -> String {
    format!(
        "This request is to be carried out by a fleet: when your turn has ended, every todo of this session whose \
         dependencies are done is given to a worker of its own, several at the same time, until none is left. \
         You are told when the fleet has ended.\n\n\
         Your part now is to divide the work:\n\
         - Look at the todos that there are. Write what is missing with the tool sql: one row in todos for each piece that one \
         worker can do alone, with an id that says what it is and a description from which somebody who knows nothing of \
         this conversation can do it: files, goal, limits, how to check it.\n\
         - Write into todo_deps only what really has to be done first; the rest is done at the same time. Pieces that change the same \
         files depend on one another.\n\
         - Leave all of them pending and start no agents for them yourself, then end your turn with a short overview.\n\
         - If the request is too small to be divided, do it yourself and write no todos.\n\n\
         The request: {prompt}"
    )
}

/// The prompt of a worker.
pub(crate) fn work(state: &State, list: &TodoList, todo: &Todo) -> String {
    let mut text = format!(
        "You are one of several workers who carry out a list of todos at the same time. Yours is:\n\n\
         id: {}\ntitle: {}\n",
        todo.id, todo.content
    );
    if let Some(description) = &todo.description {
        // Writing to a string cannot fail.
        write!(text, "\n{description}\n").ok();
    }
    let before = list.dependencies.iter();
    for edge in before.filter(|edge| edge.todo_id == todo.id) {
        let Some(done) = list.get(&edge.depends_on) else {
            continue;
        };
        write!(text, "\nDone before: {} ({})\n", done.content, done.id).ok();
        let mut tasks = state.tasks.iter();
        let worker = tasks.find(|task| task.todo() == Some(done.id.as_str()));
        if let Some(said) = worker.and_then(|worker| worker.latest_response()) {
            writeln!(text, "{}", cut(said)).ok();
        }
    }
    text.push_str(
        "\nDo this and nothing else: other todos belong to other workers, who may be changing other files now. \
         If it turns out that it cannot be done, run UPDATE todos SET status = 'blocked' WHERE id = '",
    );
    text.push_str(&todo.id.replace('\'', "''"));
    text.push_str(
        "' with the tool sql and say why. Otherwise leave the status alone: your answer ends the todo. \
         Answer with what you did, how you checked it and what others have to know.",
    );
    text
}

/// What a worker is told after an interruption.
pub(crate) const GO_ON: &str = "The daemon was stopped while you were at work and is running again. Look at how far your todo is \
    before you go on: your last step may have been carried out in part. Then finish it.";

/// Tells people which workers were interrupted, and what lets them go on.
pub(crate) fn interrupted(cut: &[(&str, Option<&TaskId>)]) -> String {
    let workers: Vec<String> = cut
        .iter()
        .map(|(todo, agent)| match agent {
            Some(agent) => format!("{todo} (agent {agent})"),
            None => format!("{todo} (not begun)"),
        })
        .collect();
    format!(
        "The fleet was interrupted while it worked on: {}. These workers go on from where they were when the \
         session is resumed with continuePendingWork, or when the fleet is started again without a prompt (/fleet).",
        workers.join(", ")
    )
}

/// What the model is told when the fleet has ended.
pub(crate) fn finished(state: &State, fleet: &Fleet, list: &TodoList) -> String {
    let mut text = format!(
        "<fleet_ended>\n{}\n",
        finished_shortly(&fleet.progress(list))
    );
    for settled in &fleet.settled {
        let outcome = match settled.outcome {
            FleetOutcome::Done => "done",
            FleetOutcome::Blocked => "blocked",
            FleetOutcome::Cancelled => "cancelled",
        };
        // Writing to a string cannot fail.
        write!(text, "\n- {}: {outcome}", settled.todo).ok();
        if let Some(reason) = &settled.reason {
            write!(text, ", because {}", cut(reason)).ok();
        }
        let mut tasks = state.tasks.iter();
        let worker = tasks.find(|task| task.todo() == Some(settled.todo.as_str()));
        if let Some(worker) = worker {
            write!(text, " (agent {})", worker.id).ok();
        }
    }
    for todo in &list.todos {
        if matches!(todo.status, TodoStatus::Pending | TodoStatus::InProgress) {
            write!(text, "\n- {}", waits(list, &todo.id)).ok();
        }
    }
    if fleet.is_used_up(list) {
        write!(text, "\n\n{}", used_up(fleet.most_todos)).ok();
    }
    text.push_str(
        "\n</fleet_ended>\n\nCheck what the workers did: read_agent shows an answer in full. See whether the request is fulfilled as a \
         whole, deal with what is blocked if you can, and tell the user what came of it.",
    );
    text
}

/// Says why a todo was not begun.
pub(crate) fn waits(list: &TodoList, id: &str) -> String {
    let on = waits_for(list, id);
    if on.is_empty() {
        return format!("{id}: not begun");
    }
    let on = on.into_iter().map(|on| match list.get(&on) {
        Some(todo) if todo.status == TodoStatus::Cancelled => format!("{on} (cancelled)"),
        Some(_) => on,
        None => format!("{on} (not in the list)"),
    });
    let on: Vec<String> = on.collect();
    format!("{id}: not begun, because it waits for {}", on.join(", "))
}

/// Says that a fleet has begun as many todos as it may.
pub(crate) fn used_up(most: u32) -> String {
    format!(
        "The fleet has carried out {most} todos, as many as one fleet may (max_fleet_todos); what is left waits for another one."
    )
}

/// The end of a fleet in one line.
pub(crate) fn finished_shortly(progress: &FleetProgress) -> String {
    format!(
        "Fleet ended: {} of {} done, {} blocked, {} not begun",
        progress.done, progress.total, progress.blocked, progress.waiting
    )
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_ANSWER) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
