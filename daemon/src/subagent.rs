//! The sub-agents of one session: starting them, waiting for them, sending them messages.
//!
//! The agent tools and the task methods call this module. It drives child sessions through the
//! traits of `parent` and `child`, which `session` implements, and records their results in the
//! parent's log. `definitions` has the sub-agents that can be started, `order` and `plan` turn a
//! request into a plan, `run` is one prompt to one sub-agent, `slots` limits how many work at once,
//! `inherit` computes the permissions of a child. This module decides no permission and writes no
//! text for a model.
//!
//! Three operations are distinct: [`Subagents::promote`] ends the waiting, [`child::Child::abort`],
//! which a run uses, interrupts, and [`Subagents::cancel`] cancels.

pub mod child;
pub mod definitions;
mod error;
#[cfg(test)]
pub(crate) mod fixture;
mod left;
mod message;
mod order;
mod output;
pub mod parent;
pub mod permissions;
mod plan;
mod run;
mod slots;
mod table;
mod watcher;
mod worktree;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use loopd_proto::event::task::{AgentWork, Execution, TaskOutcome, TaskWork};
use loopd_proto::id::{SessionId, TaskId};
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::discovery::agents::AgentOrigin;
use loopd_exec::clock::Clock;
use loopd_exec::keep_alive::KeepAlive;
use loopd_exec::shells::{TaskLog, TaskLogError};
use loopd_exec::worktree::Worktrees;
use loopd_kernel::command::{Command, TaskEnd, TaskStart};
use loopd_kernel::tasks::Task;

pub use error::{ChildError, ParentEnded, PlanRefusal, RunFailure, SubagentError};
pub use message::Delivered;
pub use order::{Isolation, SpawnSpec, SubagentOrder, SubagentPlan};
use parent::{ChildSpawner, ParentSession};
pub use run::{CancelledBy, RunEnd, RunEnding, RunWait, SubagentRun, first};
pub use slots::{SlotLease, Slots};
pub use table::Renamed;
use table::RunTable;
pub use watcher::{Activity, RunProgress};

/// The most sub-agents of one session that may work or wait for a slot.
const MOST_RUNS: usize = 256;

/// What the sub-agents of a session need.
pub struct SubagentsSetup {
    pub session: SessionId,
    /// The folder of the output files.
    pub folder: PathBuf,
    pub log: Arc<dyn TaskLog>,
    pub parent: Arc<dyn ParentSession>,
    /// The worktrees that isolated sub-agents work in.
    pub worktrees: Worktrees,
    pub keep_alive: KeepAlive,
    /// Whether a sub-agent takes further messages after its first answer.
    pub multi_turn: bool,
}

/// The sub-agents of one session.
#[derive(Clone)]
pub struct Subagents(Arc<SubagentsInner>);

struct SubagentsInner {
    setup: SubagentsSetup,
    clock: Clock,
    table: Mutex<RunTable>,
    tasks: TaskTracker,
    ended: CancellationToken,
}

impl fmt::Debug for Subagents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subagents")
            .field("session", &self.0.setup.session)
            .finish_non_exhaustive()
    }
}

/// A sub-agent that was started.
pub struct Started {
    pub id: TaskId,
    pub work: AgentWork,
    pub run: Arc<SubagentRun>,
    /// Where its definition comes from; `None` for a fork.
    pub origin: Option<AgentOrigin>,
    pub renamed: Renamed,
    /// A note for the caller, for example about a model that was not available.
    pub note: Option<String>,
}

impl Subagents {
    /// Makes the sub-agents of a session; they live until `ended` is cancelled.
    pub fn new(setup: SubagentsSetup, ended: CancellationToken) -> Self {
        Self(Arc::new(SubagentsInner {
            setup,
            clock: Clock::default(),
            table: Mutex::default(),
            tasks: TaskTracker::new(),
            ended,
        }))
    }

    fn table(&self) -> MutexGuard<'_, RunTable> {
        self.0.table.lock()
    }

    /// Starts a sub-agent; its start is in the log when this resolves.
    pub async fn start(&self, order: SubagentOrder) -> Result<Started, SubagentError> {
        self.check_room()?;
        // Everything below is computed from this one snapshot of the session.
        let spawner = self.0.setup.parent.look(plan::asked_by(&order)).await?;
        let plan = plan::plan(spawner.parent(), spawner.models(), &order);
        let plan = Box::pin(plan).await?;
        let session: SessionId = self.0.clock.id().into();
        let origin = plan.origin;
        let (id, renamed) = self.table().reserve(&plan, &order);
        let begun = self.begin(&id, session, order, plan, spawner).await;
        self.table().reserved.remove(&id);
        let (work, run, note) = begun?;
        Ok(Started {
            id,
            work,
            run,
            origin,
            renamed,
            note,
        })
    }

    async fn begin(
        &self,
        id: &TaskId,
        session: SessionId,
        order: SubagentOrder,
        plan: SubagentPlan,
        spawner: Arc<dyn ChildSpawner>,
    ) -> Result<(AgentWork, Arc<SubagentRun>, Option<String>), SubagentError> {
        let worktrees = &self.0.setup.worktrees;
        let copy = match plan.isolation {
            Some(Isolation::Worktree) => {
                let env = spawner.environment();
                let made = worktree::make(worktrees, &session, &plan.cwd, &env).await;
                Some(made.map_err(SubagentError::NoWorktree)?)
            }
            None => None,
        };
        let work = AgentWork {
            agent_type: plan.profile.agent_type.clone(),
            name: plan.profile.display_name.clone(),
            prompt: order.prompt.clone(),
            session_id: session,
            execution: plan.execution,
            model: plan.model.clone(),
            requested_model: order.model.clone(),
            output_file: Some(self.output_file(id).to_string_lossy().into_owned()),
            worktree: copy.clone(),
            todo: order.todo.clone(),
            command: order.command.clone(),
            limits: plan.profile.limits.clone(),
        };
        let call = order.call;
        let start = TaskStart {
            id: id.clone(),
            call: call.clone(),
            description: order.description,
            started_at: None,
            work: TaskWork::Agent(Box::new(work.clone())),
        };
        if let Err(why) = self.record(Command::TaskStarted(Box::new(start))).await {
            if let Some(copy) = &copy {
                worktree::settle(worktrees, copy, &spawner.environment()).await;
            }
            return Err(SubagentError::NotStored(why));
        }
        if order.answers_person && work.execution == Execution::Sync {
            // Before it begins, so that its end wakes no model.
            let told = Command::TasksDelivered(vec![id.clone()]);
            self.record(told).await.map_err(SubagentError::NotStored)?;
        }
        let note = plan.note.clone();
        let spec = SpawnSpec {
            task: id.clone(),
            call,
            session: work.session_id.clone(),
            plan,
            worktree: copy,
        };
        let run = self.enroll(id, work.execution)?;
        self.launch(
            &run,
            work.clone(),
            run::RunStart::New(Box::new(spec), spawner),
            order.prompt,
        );
        Ok((work, run, note))
    }

    fn check_room(&self) -> Result<(), SubagentError> {
        let table = self.table();
        if table.ended {
            return Err(SubagentError::SessionEnded);
        }
        if table.runs.len() >= MOST_RUNS {
            return Err(SubagentError::TooMany { limit: MOST_RUNS });
        }
        Ok(())
    }

    fn output_file(&self, id: &TaskId) -> PathBuf {
        self.0.setup.folder.join(format!("{id}.md"))
    }

    /// Adds a run to the table.
    fn enroll(&self, id: &TaskId, execution: Execution) -> Result<Arc<SubagentRun>, SubagentError> {
        let run = Arc::new(SubagentRun::new(id.clone(), execution));
        let mut table = self.table();
        if table.ended {
            return Err(SubagentError::SessionEnded);
        }
        table.runs.insert(id.clone(), run.clone());
        Ok(run)
    }

    /// Starts the task of a run.
    fn launch(
        &self,
        run: &Arc<SubagentRun>,
        work: AgentWork,
        begin: run::RunStart,
        prompt: String,
    ) {
        let (agents, own) = (self.clone(), run.clone());
        let file = self.output_file(&run.id);
        // What the sub-agent does is counted in its own session.
        let stay = self.0.setup.keep_alive.waiting();
        self.0.tasks.spawn(async move {
            agents.drive(own, work, begin, prompt, file).await;
            drop(stay);
        });
    }

    /// Goes on with the run of a sub-agent that waits for an answer since before this session was
    /// opened again. Returns `None` if it has a run already.
    pub fn rejoin(&self, task: &Task) -> Option<Started> {
        let work = task.agent()?.clone();
        if self.run(&task.id).is_some() {
            return None;
        }
        let run = self.enroll(&task.id, work.execution).ok()?;
        self.launch(&run, work.clone(), run::RunStart::Rejoined, String::new());
        Some(Started {
            id: task.id.clone(),
            work,
            run,
            origin: None,
            renamed: Renamed::No,
            note: None,
        })
    }

    /// Returns the run of a sub-agent that is at work.
    pub fn run(&self, id: &TaskId) -> Option<Arc<SubagentRun>> {
        self.table().runs.get(id).cloned()
    }

    /// Moves a sub-agent to the background; returns whether it was in the foreground.
    pub async fn promote(&self, id: &TaskId) -> bool {
        let Some(run) = self.run(id) else {
            return false;
        };
        if !run.release() {
            return false;
        }
        self.tell(Command::TaskPromoted(id.clone())).await;
        run.say_promoted();
        true
    }

    /// Cancels a sub-agent that works, is idle or has left commands running, and all below it; its
    /// end is in the log when this resolves. Returns false if there was nothing to stop.
    pub async fn cancel(&self, id: &TaskId, by: CancelledBy) -> bool {
        loop {
            if let Some(run) = self.run(id) {
                run.cancel(by);
                run.end().await;
                return true;
            }
            match self.enroll_if_free(id) {
                Ok(Some(place)) => return self.retire(&place, by).await,
                // Another caller was faster; look again.
                Ok(None) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends an idle sub-agent. `place` keeps others from starting it meanwhile.
    async fn retire(&self, place: &SubagentRun, by: CancelledBy) -> bool {
        let tasks = self.tasks().await.unwrap_or_default();
        let mut idle = tasks.iter().filter(|task| task.is_idle());
        let is_idle = idle.any(|task| task.id == place.id);
        if is_idle {
            self.tell(Command::TaskEnded {
                id: place.id.clone(),
                end: TaskEnd::new(TaskOutcome::Cancelled).because(by.reason()),
            })
            .await;
        }
        let had_commands = self.stop_kept(&place.id, by).await;
        self.table().runs.remove(&place.id);
        place.give_up();
        is_idle || had_commands
    }

    /// Cancels all sub-agents in the background, also idle ones; returns how many there were.
    pub async fn cancel_background(&self, by: CancelledBy) -> usize {
        let is_background = |run: &SubagentRun| run.execution() == Execution::Background;
        let mut cancelled = self.cancel_where(is_background, by).await;
        let tasks = self.tasks().await.unwrap_or_default();
        for idle in tasks.iter().filter(|task| task.is_idle()) {
            cancelled += usize::from(self.cancel(&idle.id, by).await);
        }
        cancelled
    }

    /// Cancels all sub-agents that are at work.
    pub async fn cancel_all(&self, by: CancelledBy) {
        self.cancel_where(|_| true, by).await;
    }

    async fn cancel_where(&self, chosen: impl Fn(&SubagentRun) -> bool, by: CancelledBy) -> usize {
        let mut runs: Vec<Arc<SubagentRun>> = self.table().runs.values().cloned().collect();
        runs.retain(|run| chosen(run));
        for run in &runs {
            run.cancel(by);
        }
        for run in &runs {
            run.end().await;
        }
        runs.len()
    }

    /// Records a command in the log. Fails if the session ends, because it then no longer replies.
    async fn record(&self, command: Command) -> Result<(), TaskLogError> {
        tokio::select! {
            stored = self.0.setup.log.record(command) => stored,
            () = self.0.ended.cancelled() => Err(TaskLogError::SessionEnded),
        }
    }

    async fn tell(&self, command: Command) {
        if let Err(why) = self.record(command).await
            && !self.table().ended
        {
            tracing::warn!(session = %self.0.setup.session, %why, "the session was not told about its agent");
        }
    }

    /// Ends all sub-agents; they have ended when this resolves.
    pub async fn close(&self, by: CancelledBy) {
        self.table().ended = true;
        self.0.ended.cancel();
        self.cancel_all(by).await;
        self.stop_all_kept().await;
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
