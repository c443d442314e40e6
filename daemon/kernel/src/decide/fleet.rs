//! Fleets: begin, carry out the next step, end.

use loopd_proto::event::fact::PendingMessage;
use loopd_proto::event::fleet::{
    FleetAssigned, FleetEnd, FleetEnded, FleetInterrupted, FleetOutcome, FleetProgress,
    FleetSettled, FleetStarted,
};
use loopd_proto::event::session::Empty;
use loopd_proto::event::task::TasksDelivered;
use loopd_proto::event::todo::TodoStatus;
use loopd_proto::event::turn::Delivered;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::TaskId;

use super::{queue, tell_idle, todos};
use crate::command::{
    Answer, DecideEnv, Decision, Effect, FleetOrder, RecoveredOutcome, Refusal, WorkerOrder,
};
use crate::fleet::{Fleet, FleetMember, FleetStep, circle, next_step};
use crate::state::State;
use crate::tasks::Task;
use crate::texts::fleet as texts;

/// Begins a fleet, or lets a paused one go on.
pub(super) fn start(
    state: &State,
    order: FleetOrder,
    env: &mut DecideEnv<'_>,
) -> Result<Decision, Refusal> {
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
    let prompt = order.prompt.filter(|prompt| !prompt.trim().is_empty());
    let goes_on = state.fleet.is_some();
    let is_open = |status: TodoStatus| matches!(status, TodoStatus::Pending);
    if prompt.is_none() && !goes_on && !list.todos.iter().any(|todo| is_open(todo.status)) {
        return Err(Refusal::NoTodos);
    }
    let mut decision = Decision::default();
    let message = prompt.map(|prompt| PendingMessage {
        id: env.message(),
        prompt: texts::plan_first(&prompt),
        display_prompt: Some(texts::deployed(&prompt)),
        attachments: Vec::new(),
        agent_mode: None,
        switches_to: None,
        source: None,
        delivery: if state.is_busy() {
            Delivered::Queued
        } else {
            Delivered::Idle
        },
        sender: order.sender,
        answers: None,
        scope: None,
        required_tool: None,
    });
    decision.store(Durable::FleetStarted(FleetStarted {
        workers: order.workers,
        agent_type: order.agent_type,
        planned_by: message.as_ref().map(|message| message.id.clone()),
    }));
    if let Some(message) = message {
        queue::enqueue(state, message, &mut decision, env)?;
    }
    decision.answer = Answer::Accepted(true);
    Ok(decision)
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
    if step.ends {
        finish(state, &after, &step, &mut decision, env)?;
    } else {
        decision.tell(Ephemeral::FleetProgress(after.progress(&step.list)));
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
    ended(decision, fleet.progress(&step.list), FleetEnd::Finished);
    if fleet.settled.is_empty() {
        // The model had nothing for workers to do and has said so itself.
        if !state.is_busy() {
            tell_idle(state, decision, None);
        }
        return Ok(());
    }
    let message = PendingMessage {
        id: env.message(),
        prompt: texts::finished(state, fleet, &step.list),
        display_prompt: Some(texts::finished_shortly(&fleet.progress(&step.list))),
        attachments: Vec::new(),
        agent_mode: None,
        switches_to: None,
        source: Some("fleet".to_owned()),
        delivery: if state.is_busy() {
            Delivered::Queued
        } else {
            Delivered::Idle
        },
        sender: None,
        answers: None,
        scope: None,
        required_tool: None,
    };
    queue::enqueue(state, message, decision, env)
}

fn ended(decision: &mut Decision, progress: FleetProgress, reason: FleetEnd) {
    decision
        .store(Durable::FleetEnded(FleetEnded { reason }))
        .tell(Ephemeral::FleetProgress(FleetProgress {
            ended: Some(reason),
            ..progress
        }));
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
    let mut list = state.todos.list.clone();
    for todo in &mut list.todos {
        if fleet.members.contains_key(&todo.id) && todo.status == TodoStatus::InProgress {
            todo.status = TodoStatus::Pending;
        }
    }
    let workers: Vec<TaskId> = running(state, fleet).map(|task| task.id.clone()).collect();
    let progress = fleet.progress(&list);
    if list != state.todos.list {
        todos::updated(&mut decision, list);
    }
    ended(
        &mut decision,
        FleetProgress {
            running: Vec::new(),
            ..progress
        },
        FleetEnd::Stopped,
    );
    if workers.is_empty() && !state.is_busy() && !state.tasks.has_agents_at_work() {
        tell_idle(state, &mut decision, None);
    }
    decision.run(Effect::CancelWorkers(workers));
    decision
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
        decision.store(Durable::FleetInterrupted(FleetInterrupted {
            todo: todo.clone(),
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
