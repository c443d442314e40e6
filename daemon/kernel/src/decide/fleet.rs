//! Fleets: begin, carry out the next step, end.

use std::collections::BTreeSet;

use loopd_proto::event::fact::{LoopOutcome, PendingMessage};
use loopd_proto::event::fleet::{
    FleetAssigned, FleetEnd, FleetEnded, FleetInterrupted, FleetOutcome, FleetSettled, FleetStarted,
};
use loopd_proto::event::session::{Empty, Warning};
use loopd_proto::event::task::TasksDelivered;
use loopd_proto::event::todo::{Todo, TodoList, TodoStatus};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::TaskId;
use loopd_proto::run_scope::{CommandRun, RunScope};
use loopd_proto::session::Mode;

use super::{queue, tell_idle, todos};
use crate::command::{
    Answer, DecideEnv, Decision, Effect, FleetOrder, RecoveredOutcome, Refusal, WorkerOrder,
};
use crate::fleet::{Fleet, FleetMember, FleetStep, circle, next_step, ready};
use crate::state::State;
use crate::tasks::Task;
use crate::texts::fleet as texts;

/// Returns why no fleet can begin now. Todos need not be there yet if the work is divided first, or if
/// a paused fleet goes on.
fn check(state: &State, needs_todos: bool, env: &DecideEnv<'_>) -> Result<(), Refusal> {
    if let Some(top) = env.top {
        return Err(Refusal::IsSubagent {
            what: "fleet",
            session: top.clone(),
        });
    }
    if state.has_fleet_at_work() {
        return Err(Refusal::FleetAtWork);
    }
    let list = &state.todos.list;
    if let Some(circle) = circle(list) {
        return Err(Refusal::TodoCircle(circle.join(" → ")));
    }
    let list = taken_up(list);
    let is_open = |todo: &&Todo| !todo.status.is_over();
    let mut open = list.todos.iter().filter(is_open).peekable();
    if needs_todos && open.peek().is_none() {
        return Err(Refusal::NoTodos);
    }
    if needs_todos && ready(&list, &BTreeSet::new()).is_empty() {
        let open = open.take(MOST_TOLD);
        let waits: Vec<String> = open.map(|todo| texts::waits(&list, &todo.id)).collect();
        return Err(Refusal::NoReadyTodo(waits.join("; ")));
    }
    Ok(())
}

/// How many todos a refusal names.
const MOST_TOLD: usize = 10;

/// Returns the list with which a fleet begins: what failed or was blocked before is tried again.
fn taken_up(list: &TodoList) -> TodoList {
    let mut list = list.clone();
    for todo in &mut list.todos {
        if todo.status == TodoStatus::Blocked {
            todo.status = TodoStatus::Pending;
        }
    }
    list
}

/// Begins a fleet, or lets a paused one go on.
pub(super) fn start(
    state: &State,
    order: FleetOrder,
    env: &mut DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    let prompt = order.prompt.filter(|prompt| !prompt.trim().is_empty());
    if env.planning(state).is_on() {
        return Err(Refusal::FleetWhilePlanning);
    }
    check(state, prompt.is_none() && state.fleet.is_none(), env)?;
    let scope = order.limits.map(|limits| RunScope {
        limits: Some(limits),
        ..RunScope::default()
    });
    let message = prompt.map(|prompt| PendingMessage {
        scope: scope.map(Box::new),
        display_prompt: Some(texts::deployed(&prompt)),
        attachments: order.attachments,
        sender: order.sender,
        ..PendingMessage::new(
            env.message(),
            texts::plan_first(&prompt),
            queue::delivered(state),
        )
    });
    let planned_by = message.as_ref().map(|message| message.id.clone());
    let run = order.limits.map(|limits| CommandRun {
        id: planned_by.clone().unwrap_or_else(|| env.message()),
        limits: Some(limits),
    });
    let mut decision = Decision::answering(match &planned_by {
        Some(message) => Answer::Message(message.clone()),
        None => Answer::Accepted(true),
    });
    decision.store(Durable::FleetStarted(FleetStarted {
        workers: order.workers.unwrap_or(env.fleet_workers),
        agent_type: order.agent_type,
        most_todos: Some(env.fleet_todos),
        planned_by,
        run,
    }));
    let list = taken_up(&state.todos.list);
    if list != state.todos.list {
        todos::updated(&mut decision, list);
    }
    if let Some(message) = message {
        queue::enqueue(state, message, &mut decision, env)?;
    }
    Ok(decision)
}

/// Returns why no fleet can carry out the plan of the session.
pub(super) fn check_plan(state: &State, env: &DecideEnv<'_>) -> Result<(), Refusal> {
    check(state, true, env)
}

/// Lets a fleet carry out the plan of the session when the run has ended that proposed it.
pub(super) fn carry_out_plan(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) {
    let run = state.run();
    decision.store(Durable::FleetStarted(FleetStarted {
        workers: env.fleet_workers,
        agent_type: None,
        most_todos: Some(env.fleet_todos),
        planned_by: run.and_then(|run| run.origin.clone()),
        run: state.limited_command(),
    }));
}

/// Carries out the next step of the fleet.
pub(super) fn advance(state: &State, env: &mut DecideEnv<'_>) -> Result<Decision, Refusal> {
    let mut decision = Decision::default();
    let Some((fleet, step)) = state.fleet.as_ref().zip(next_step(state)) else {
        return Ok(decision);
    };
    if !env.attended {
        return Ok(decision);
    }
    if state.mode == Mode::Plan {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: "fleet_stopped".to_owned(),
            message: texts::STOPPED_BY_PLAN_MODE.to_owned(),
            url: None,
        }));
        stop_workers(state, fleet, &mut decision);
        return Ok(decision);
    }
    let mut after = fleet.clone();
    for settled in &step.settled {
        after.settled(settled);
        decision.store(Durable::FleetSettled(settled.clone()));
    }
    if step.list != state.todos.list {
        todos::updated(&mut decision, step.list.clone());
    }
    for (todo, task) in &step.go_on {
        assign(&mut decision, &mut after, todo, Some(task.clone()));
        decision.run(Effect::ContinueWorker {
            todo: todo.clone(),
            task: task.clone(),
            message: texts::GO_ON.to_owned(),
        });
    }
    for id in &step.start {
        let Some(todo) = step.list.get(id) else {
            continue;
        };
        assign(&mut decision, &mut after, id, None);
        decision.run(Effect::StartWorker(WorkerOrder {
            todo: id.clone(),
            title: todo.content.clone(),
            prompt: texts::work(state, &step.list, todo),
            agent_type: fleet.agent_type.clone(),
        }));
    }
    match step.ends {
        None => {
            decision.tell(Ephemeral::FleetProgress(after.progress(&step.list)));
        }
        Some(FleetEnd::Finished) => finish(state, &after, &step, &mut decision, env)?,
        Some(FleetEnd::Stopped) => {
            ended(&mut decision, &after, &step.list, FleetEnd::Stopped);
            // An abort has told it already.
            if !state.is_busy() && state.last_outcome != Some(LoopOutcome::Aborted) {
                tell_idle(state, &mut decision, None);
            }
        }
    }
    Ok(decision)
}

fn assign(decision: &mut Decision, fleet: &mut Fleet, todo: &str, task: Option<TaskId>) {
    let assigned = FleetAssigned {
        todo: todo.to_owned(),
        task,
    };
    fleet.assigned(&assigned);
    decision.store(Durable::FleetAssigned(assigned));
}

/// Ends a fleet that has nothing more to do, and tells the model what came of it.
fn finish(
    state: &State,
    fleet: &Fleet,
    step: &FleetStep,
    decision: &mut Decision,
    env: &mut DecideEnv<'_>,
) -> Result<(), Refusal> {
    ended(decision, fleet, &step.list, FleetEnd::Finished);
    if fleet.is_used_up(&step.list) {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: "fleet_limit".to_owned(),
            message: texts::used_up(fleet.most_todos),
            url: None,
        }));
    }
    if fleet.settled.is_empty() {
        // The model had nothing for workers to do and has said so itself.
        if !state.is_busy() {
            tell_idle(state, decision, None);
        }
        return Ok(());
    }
    let message = PendingMessage {
        display_prompt: Some(texts::finished_shortly(&fleet.progress(&step.list))),
        source: Some("fleet".to_owned()),
        origin: fleet.planned_by.clone().or_else(|| fleet.run.clone()),
        ..PendingMessage::new(
            env.message(),
            texts::finished(state, fleet, &step.list),
            queue::delivered(state),
        )
    };
    queue::enqueue(state, message, decision, env)
}

/// Ends a fleet. `list` is the todo list afterwards.
fn ended(decision: &mut Decision, fleet: &Fleet, list: &TodoList, reason: FleetEnd) {
    decision
        .store(Durable::FleetEnded(FleetEnded { reason }))
        .tell(Ephemeral::FleetProgress(fleet.result(reason, list)));
}

/// Records that a worker could not be started. What does not depend on its todo goes on.
pub(super) fn not_started(state: &State, todo: String, why: String) -> Decision {
    let mut decision = Decision::default();
    let fleet = state.fleet.as_ref();
    let Some(fleet) = fleet.filter(|fleet| fleet.members.contains_key(&todo)) else {
        return decision;
    };
    let mut list = state.todos.list.clone();
    for entry in list.todos.iter_mut().filter(|entry| entry.id == todo) {
        entry.status = TodoStatus::Blocked;
    }
    let settled = FleetSettled {
        todo,
        outcome: FleetOutcome::Blocked,
        reason: Some(why),
    };
    let mut after = fleet.clone();
    after.settled(&settled);
    decision.store(Durable::FleetSettled(settled));
    decision.tell(Ephemeral::FleetProgress(after.progress(&list)));
    if list != state.todos.list {
        todos::updated(&mut decision, list);
    }
    decision
}

/// Stops the fleet and its workers. Their todos wait again.
pub(super) fn stop(state: &State) -> Decision {
    let Some(fleet) = &state.fleet else {
        return Decision::answering(Answer::Accepted(false));
    };
    let mut decision = Decision::answering(Answer::Accepted(true));
    stop_workers(state, fleet, &mut decision);
    decision
}

fn stop_workers(state: &State, fleet: &Fleet, decision: &mut Decision) {
    let workers: Vec<TaskId> = running(state, fleet).map(|task| task.id.clone()).collect();
    close(state, fleet, decision);
    if workers.is_empty() && !state.is_busy() && !state.tasks.has_agents_at_work() {
        tell_idle(state, decision, None);
    }
    decision.run(Effect::CancelWorkers(workers));
}

/// Ends the fleet whose run has used up its time. The agents of the session are stopped by the caller.
pub(super) fn time_up(state: &State, decision: &mut Decision) {
    let of_run = |fleet: &&Fleet| fleet.run.is_some() && !fleet.paused;
    if let Some(fleet) = state.fleet.as_ref().filter(of_run) {
        close(state, fleet, decision);
    }
}

/// Ends a fleet before its todos are done. Those that are in progress wait again.
fn close(state: &State, fleet: &Fleet, decision: &mut Decision) {
    let list = fleet.list_after_stop(&state.todos.list);
    if list != state.todos.list {
        todos::updated(decision, list.clone());
    }
    ended(decision, fleet, &list, FleetEnd::Stopped);
}

fn running<'a>(state: &'a State, fleet: &'a Fleet) -> impl Iterator<Item = &'a Task> {
    let tasks = fleet.members.values().filter_map(FleetMember::task);
    let tasks = tasks.filter_map(|task| state.tasks.get(task.as_str()));
    tasks.filter(|task| task.is_running())
}

/// Lets a fleet wait whose session ends or is suspended.
pub(super) fn pause(state: &State, decision: &mut Decision) {
    if state.has_fleet_at_work() {
        interrupted(state, &[], decision);
        decision.store(Durable::FleetPaused(Empty {}));
    }
}

/// Records which workers were interrupted. `known` has what the logs of others say.
pub(super) fn interrupted(state: &State, known: &[RecoveredOutcome], decision: &mut Decision) {
    let Some(fleet) = &state.fleet else {
        return;
    };
    let mut told = Vec::new();
    let mut cut = Vec::new();
    for (todo, member) in &fleet.members {
        match member {
            FleetMember::Starting | FleetMember::Resuming(_) => {}
            FleetMember::Interrupted(_) => continue,
            FleetMember::Working(task) => {
                let outcome = known.iter().find(|outcome| outcome.task() == task);
                let task = state.tasks.get(task.as_str());
                let Some(task) = task.filter(|task| task.is_running()) else {
                    continue;
                };
                if matches!(outcome, Some(RecoveredOutcome::Waits(_))) {
                    continue;
                }
                // The end of the fleet tells about its workers.
                told.push(task.id.clone());
                match outcome {
                    Some(RecoveredOutcome::Ended(_, end)) if end.lost => {}
                    Some(_) => continue,
                    None => {}
                }
            }
        }
        cut.push((todo.as_str(), member.task()));
        decision.store(Durable::FleetInterrupted(FleetInterrupted {
            todo: todo.clone(),
        }));
    }
    if !cut.is_empty() {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: "fleet_interrupted".to_owned(),
            message: texts::interrupted(&cut),
            url: None,
        }));
    }
    if !told.is_empty() {
        decision.store(Durable::TasksDelivered(TasksDelivered { ids: told }));
    }
}

/// Ends the fleet of a copied log. It goes on in the session whose log was copied.
pub(super) fn close_copied(state: &State, decision: &mut Decision) {
    if state.fleet.is_some() {
        decision.store(Durable::FleetEnded(FleetEnded {
            reason: FleetEnd::Stopped,
        }));
    }
}
