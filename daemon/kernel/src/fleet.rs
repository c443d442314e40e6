//! A fleet: which todos have workers, and what has to be done next. It is a fold of the log.
//!
//! `decide/fleet.rs` turns the next step into events and effects.

use std::collections::{BTreeMap, BTreeSet};

use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::fleet::{
    FleetAssigned, FleetEnd, FleetOutcome, FleetProgress, FleetSettled, FleetStarted, FleetWorker,
};
use loopd_proto::event::task::TaskOutcome;
use loopd_proto::event::todo::{Todo, TodoList, TodoPriority, TodoStatus};
use loopd_proto::id::{MessageId, TaskId};
use loopd_proto::session::Mode;

use crate::state::{MessageEnd, Run, State};
use crate::tasks::{Task, TaskStatus};

/// The most workers of a fleet.
pub const MOST_WORKERS: u32 = 16;

/// The fleet of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Fleet {
    pub workers: u32,
    pub agent_type: Option<String>,
    /// How many todos it carries out at most, and how many it has begun.
    pub most_todos: u32,
    pub begun: u32,
    pub planned_by: Option<MessageId>,
    /// The run with limits that the workers belong to.
    pub run: Option<MessageId>,
    /// Whether the fleet waits, because its session was opened again without being told to go on.
    pub paused: bool,
    /// The todos that workers are at.
    pub members: BTreeMap<String, FleetMember>,
    /// What became of the others, oldest first.
    pub settled: Vec<FleetSettled>,
}

/// How far the worker of a todo is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetMember {
    /// A new worker was asked for.
    Starting,
    Working(TaskId),
    /// The daemon or the session ended meanwhile. There may not have been a worker yet.
    Interrupted(Option<TaskId>),
    /// An interrupted worker was asked to go on.
    Resuming(TaskId),
}

impl FleetMember {
    /// Returns the worker, once there is one.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Starting | Self::Interrupted(None) => None,
            Self::Working(task) | Self::Interrupted(Some(task)) | Self::Resuming(task) => {
                Some(task)
            }
        }
    }
}

impl Fleet {
    pub(super) fn started(known: Option<Self>, started: &FleetStarted) -> Self {
        let (members, settled, begun) = known.map_or_else(Default::default, |known| {
            (known.members, known.settled, known.begun)
        });
        Self {
            workers: started.workers.clamp(1, MOST_WORKERS),
            agent_type: started.agent_type.clone(),
            most_todos: started.most_todos.unwrap_or(u32::MAX),
            begun,
            planned_by: started.planned_by.clone(),
            run: started.run.as_ref().map(|run| run.id.clone()),
            paused: false,
            members,
            settled,
        }
    }

    pub(super) fn assigned(&mut self, assigned: &FleetAssigned) {
        let task = assigned.task.clone();
        if task.is_none() && !self.members.contains_key(&assigned.todo) {
            self.begun = self.begun.saturating_add(1);
        }
        let member = task.map_or(FleetMember::Starting, FleetMember::Resuming);
        self.members.insert(assigned.todo.clone(), member);
    }

    pub(super) fn interrupted(&mut self, todo: &str) {
        if let Some(member) = self.members.get_mut(todo) {
            *member = FleetMember::Interrupted(member.task().cloned());
        }
    }

    pub(super) fn settled(&mut self, settled: &FleetSettled) {
        self.members.remove(&settled.todo);
        self.settled.retain(|known| known.todo != settled.todo);
        self.settled.push(settled.clone());
    }

    /// Records that an agent works on a todo, for the first time or again.
    pub(super) fn has_worker(&mut self, todo: &str, task: &TaskId) {
        if let Some(member) = self.members.get_mut(todo) {
            *member = FleetMember::Working(task.clone());
        }
    }

    /// Returns how far the fleet is.
    pub fn progress(&self, list: &TodoList) -> FleetProgress {
        let count = |wanted: TodoStatus| {
            let todos = list.todos.iter();
            todos.filter(|todo| todo.status == wanted).count()
        };
        let running = self.members.iter().map(|(todo, member)| FleetWorker {
            todo_id: todo.clone(),
            agent_id: member.task().cloned(),
        });
        FleetProgress {
            total: list.todos.len() - count(TodoStatus::Cancelled),
            done: count(TodoStatus::Completed),
            blocked: count(TodoStatus::Blocked),
            waiting: count(TodoStatus::Pending) + self.left_in_progress(list),
            running: running.collect(),
            ended: None,
        }
    }

    /// Counts the todos that are in progress and that no worker is at.
    fn left_in_progress(&self, list: &TodoList) -> usize {
        let todos = list.todos.iter();
        let left = todos.filter(|todo| todo.status == TodoStatus::InProgress);
        left.filter(|todo| !self.members.contains_key(&todo.id))
            .count()
    }

    /// Returns the todo list if the fleet stops now: what its workers are at waits again.
    pub(super) fn list_after_stop(&self, list: &TodoList) -> TodoList {
        let mut list = list.clone();
        for todo in &mut list.todos {
            if self.members.contains_key(&todo.id) && todo.status == TodoStatus::InProgress {
                todo.status = TodoStatus::Pending;
            }
        }
        list
    }

    /// Returns how the fleet ended.
    pub(super) fn result(&self, end: FleetEnd, list: &TodoList) -> FleetProgress {
        FleetProgress {
            running: Vec::new(),
            ended: Some(end),
            ..self.progress(list)
        }
    }
}

/// What a fleet does next.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetStep {
    /// The todos whose workers have come to rest.
    pub settled: Vec<FleetSettled>,
    /// The workers that were interrupted and go on, with their todos.
    pub go_on: Vec<(String, TaskId)>,
    /// The todos that get a new worker.
    pub start: Vec<String>,
    /// The todo list afterwards.
    pub list: TodoList,
    /// Set if the fleet ends with this step.
    pub ends: Option<FleetEnd>,
}

/// How far the run is in which the todos are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanningRun {
    /// It has not ended.
    Open,
    /// It has ended, or the todos were there before.
    Done,
    /// It was stopped or failed, so the list may be half of what was meant.
    Failed,
}

/// Returns the next step of the session's fleet; `None` if there is nothing to do now. Plan mode ends a
/// fleet: its workers may change nothing any more, so that what they answer says nothing about their todos.
pub fn next_step(state: &State) -> Option<FleetStep> {
    let fleet = state.fleet.as_ref().filter(|fleet| !fleet.paused)?;
    if state.mode == Mode::Plan {
        return Some(FleetStep {
            settled: Vec::new(),
            go_on: Vec::new(),
            start: Vec::new(),
            list: fleet.list_after_stop(&state.todos.list),
            ends: Some(FleetEnd::Stopped),
        });
    }
    let mut step = FleetStep {
        settled: Vec::new(),
        go_on: Vec::new(),
        start: Vec::new(),
        list: state.todos.list.clone(),
        ends: None,
    };
    let mut at_work = BTreeSet::new();
    for (todo, member) in &fleet.members {
        let status = state.todos.list.get(todo).map(|todo| todo.status);
        if let Some((outcome, reason)) = result(state, member, status) {
            set_status(&mut step.list, todo, status_of(outcome));
            step.settled.push(FleetSettled {
                todo: todo.clone(),
                outcome,
                reason,
            });
            continue;
        }
        at_work.insert(todo.clone());
        match member {
            FleetMember::Interrupted(Some(task)) => step.go_on.push((todo.clone(), task.clone())),
            FleetMember::Interrupted(None) => step.start.push(todo.clone()),
            FleetMember::Starting | FleetMember::Working(_) | FleetMember::Resuming(_) => {}
        }
    }
    match planning_run(state, fleet) {
        PlanningRun::Open => {}
        PlanningRun::Done => {
            let free = (fleet.workers as usize).saturating_sub(at_work.len());
            let left = fleet.most_todos.saturating_sub(fleet.begun) as usize;
            let free = free.min(left);
            block_unmet(&mut step);
            let ready = ready(&step.list, &at_work);
            step.start.extend(ready.into_iter().take(free));
            let is_done = at_work.is_empty() && step.start.is_empty();
            step.ends = is_done.then_some(FleetEnd::Finished);
        }
        PlanningRun::Failed => step.ends = at_work.is_empty().then_some(FleetEnd::Stopped),
    }
    for todo in &step.start {
        set_status(&mut step.list, todo, TodoStatus::InProgress);
    }
    let idle = step.settled.is_empty() && step.go_on.is_empty() && step.start.is_empty();
    (!idle || step.ends.is_some()).then_some(step)
}

fn planning_run(state: &State, fleet: &Fleet) -> PlanningRun {
    let Some(id) = &fleet.planned_by else {
        return PlanningRun::Done;
    };
    let is_of = |run: Option<&Run>| run.is_some_and(|run| run.messages.contains(id));
    let waits = state.queue.iter().any(|item| item.id() == id)
        || state.steering.iter().any(|message| message.id == *id);
    if waits || is_of(state.run()) || is_of(state.unfinished.as_ref()) {
        return PlanningRun::Open;
    }
    match state.end_of(id) {
        // So much has ended since that the state dropped it.
        None => PlanningRun::Done,
        Some(MessageEnd::Removed) => PlanningRun::Failed,
        Some(MessageEnd::Ran { outcome, .. }) => match outcome {
            LoopOutcome::Done => PlanningRun::Done,
            LoopOutcome::Failed | LoopOutcome::Aborted | LoopOutcome::Interrupted => {
                PlanningRun::Failed
            }
        },
    }
}

/// Returns how a worker ended; `None` if it has not.
fn result(
    state: &State,
    member: &FleetMember,
    status: Option<TodoStatus>,
) -> Option<(FleetOutcome, Option<String>)> {
    let Some(status) = status else {
        let reason = "it is no longer in the list".to_owned();
        return Some((FleetOutcome::Cancelled, Some(reason)));
    };
    let FleetMember::Working(task) = member else {
        return None;
    };
    let Some(task) = state.tasks.get(task.as_str()) else {
        let reason = "its worker is no longer listed".to_owned();
        return Some((FleetOutcome::Blocked, Some(reason)));
    };
    match &task.status {
        TaskStatus::Running => None,
        TaskStatus::Ended(ending) if ending.outcome != TaskOutcome::Completed => {
            let reason = ending.reason.clone();
            let reason = reason.unwrap_or_else(|| "its worker did not finish".to_owned());
            Some((FleetOutcome::Blocked, Some(reason)))
        }
        // A worker may have said itself how it ended.
        TaskStatus::Idle { .. } | TaskStatus::Ended(_) => Some(match status {
            TodoStatus::InProgress | TodoStatus::Completed => (FleetOutcome::Done, None),
            TodoStatus::Cancelled => (FleetOutcome::Cancelled, None),
            TodoStatus::Blocked | TodoStatus::Pending => {
                let reason = "its worker says that it cannot be done yet".to_owned();
                (FleetOutcome::Blocked, Some(reason))
            }
        }),
    }
}

fn status_of(outcome: FleetOutcome) -> TodoStatus {
    match outcome {
        FleetOutcome::Done => TodoStatus::Completed,
        FleetOutcome::Blocked => TodoStatus::Blocked,
        FleetOutcome::Cancelled => TodoStatus::Cancelled,
    }
}

fn set_status(list: &mut TodoList, id: &str, status: TodoStatus) {
    let mut todos = list.todos.iter_mut();
    if let Some(todo) = todos.find(|todo| todo.id == id) {
        todo.status = status;
    }
}

/// Blocks the todos that depend on what is not in the list: that is never done.
fn block_unmet(step: &mut FleetStep) {
    let waiting = step.list.todos.iter();
    let waiting = waiting.filter(|todo| todo.status == TodoStatus::Pending);
    let unmet = waiting.filter_map(|todo| {
        let missing = missing_dependencies(&step.list, &todo.id);
        (!missing.is_empty()).then(|| (todo.id.clone(), missing.join(", ")))
    });
    let unmet: Vec<(String, String)> = unmet.collect();
    for (todo, missing) in unmet {
        set_status(&mut step.list, &todo, TodoStatus::Blocked);
        step.settled.push(FleetSettled {
            todo,
            outcome: FleetOutcome::Blocked,
            reason: Some(format!("it depends on {missing}, which is not in the list")),
        });
    }
}

/// Returns what a todo depends on that is not in the list.
fn missing_dependencies<'a>(list: &'a TodoList, id: &str) -> Vec<&'a str> {
    let edges = list.dependencies.iter().filter(|edge| edge.todo_id == id);
    let wanted = edges.map(|edge| edge.depends_on.as_str());
    wanted.filter(|on| list.get(on).is_none()).collect()
}

/// Returns what the todos of a list wait for that is not done yet.
fn open_dependencies<'a>(list: &'a TodoList, id: &'a str) -> impl Iterator<Item = &'a Todo> {
    let edges = list
        .dependencies
        .iter()
        .filter(move |edge| edge.todo_id == id);
    edges
        .filter_map(|edge| list.get(&edge.depends_on))
        .filter(|todo| todo.status != TodoStatus::Completed)
}

/// Returns the todos that can be begun, the most important first. What somebody has left in progress, and
/// no worker is at, is begun again.
pub(crate) fn ready(list: &TodoList, at_work: &BTreeSet<String>) -> Vec<String> {
    let mut ready: Vec<&Todo> = list
        .todos
        .iter()
        .filter(|todo| matches!(todo.status, TodoStatus::Pending | TodoStatus::InProgress))
        .filter(|todo| !at_work.contains(&todo.id))
        .filter(|todo| open_dependencies(list, &todo.id).next().is_none())
        .filter(|todo| missing_dependencies(list, &todo.id).is_empty())
        .collect();
    ready.sort_by_key(|todo| match todo.priority {
        TodoPriority::High => 0,
        TodoPriority::Medium => 1,
        TodoPriority::Low => 2,
    });
    ready.into_iter().map(|todo| todo.id.clone()).collect()
}

/// Returns the todos of a circle of dependencies, in order, if there is one among those that are
/// still to be done. The first is repeated at the end.
pub fn circle(list: &TodoList) -> Option<Vec<String>> {
    let mut known = BTreeSet::new();
    for todo in list.todos.iter().filter(|todo| !todo.status.is_over()) {
        let mut path: Vec<&str> = Vec::new();
        // One entry for each todo of the path: what it waits for and has not been looked at.
        let mut open: Vec<Vec<&str>> = vec![vec![todo.id.as_str()]];
        while let Some(next) = open.last_mut() {
            let Some(id) = next.pop() else {
                open.pop();
                known.extend(path.pop());
                continue;
            };
            if let Some(at) = path.iter().position(|before| *before == id) {
                let circle = path.iter().skip(at).chain([&id]);
                return Some(circle.map(|id| (*id).to_owned()).collect());
            }
            if known.contains(id) {
                continue;
            }
            path.push(id);
            open.push(
                open_dependencies(list, id)
                    .map(|todo| todo.id.as_str())
                    .collect(),
            );
        }
    }
    None
}

/// Returns what a todo waits for that is not done or not there, by id.
pub fn waits_for(list: &TodoList, id: &str) -> Vec<String> {
    let open = open_dependencies(list, id).map(|todo| todo.id.clone());
    let missing = missing_dependencies(list, id).into_iter();
    open.chain(missing.map(str::to_owned)).collect()
}

impl Fleet {
    /// Returns whether the fleet has begun as many todos as it may, and others are left.
    pub(super) fn is_used_up(&self, list: &TodoList) -> bool {
        self.begun >= self.most_todos && !ready(list, &BTreeSet::new()).is_empty()
    }

    /// Returns the todo that an agent carries out, alone or for a worker above it.
    pub(super) fn todo_of(&self, agent: &TaskId) -> Option<&str> {
        let is_of = |worker: &TaskId| {
            let below = agent.as_str().strip_prefix(worker.as_str());
            below.is_some_and(|below| below.is_empty() || below.starts_with('.'))
        };
        let mut members = self.members.iter();
        let found = members.find(|(_, member)| member.task().is_some_and(is_of));
        found.map(|(todo, _)| todo.as_str())
    }
}

impl State {
    /// Whether a fleet is at work, so that the session is not idle.
    pub fn has_fleet_at_work(&self) -> bool {
        self.fleet.as_ref().is_some_and(|fleet| !fleet.paused)
    }
}

impl Task {
    /// Returns the todo that the task carries out for a fleet.
    pub fn todo(&self) -> Option<&str> {
        self.agent().and_then(|agent| agent.todo.as_deref())
    }
}

#[cfg(test)]
mod tests;
