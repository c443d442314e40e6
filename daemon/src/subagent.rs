//! The agents of one session: who works, who waits for whom, who is given more to do.
//!
//! The agent tools and the task methods call it; it drives child sessions through the traits of
//! `parent` and `child`, which `session` implements, and tells the parent's log what comes of them.
//! `definitions` says what can be started, `order` and `plan` what an order comes to, `run` is one
//! prompt to one agent, `slots` how many work at once, `inherit` what a child has from its parent.
//! Nothing here decides a permission or words what a model reads.
//!
//! Three verbs stay apart: to stop waiting ([`Subagents::promote`]), to interrupt
//! ([`child::Child::abort`], which a run uses), to cancel ([`Subagents::cancel`]).

pub mod child;
pub mod definitions;
mod error;
#[cfg(test)]
pub(crate) mod fixture;
pub mod inherit;
mod message;
mod order;
mod output;
pub mod parent;
mod plan;
mod run;
mod slots;
mod table;
mod watcher;
mod worktree;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use loopd_proto::event::task::{AgentWork, Execution, TaskWork};
use loopd_proto::id::{SessionId, TaskId};
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use loopd_exec::clock::Clock;
use loopd_exec::keep_alive::KeepAlive;
use loopd_exec::shells::{TaskLog, TaskLogError};
use loopd_exec::worktree::Worktrees;
use loopd_kernel::command::{Command, TaskStart};

pub use error::{ChildError, ParentEnded, PlanRefusal, RunFailure, SubagentError};
pub use message::Delivered;
pub use order::{Isolation, SpawnSpec, SubagentOrder, SubagentPlan};
use parent::{ChildSpawner, ParentSession};
pub use run::{CancelledBy, RunEnd, RunEnding, RunWait, SubagentRun, first};
pub use slots::{SlotLease, Slots};
use table::RunTable;
pub use watcher::{Activity, RunProgress};

/// How many agents of one session may be at work or wait for a slot.
const MOST_RUNS: usize = 256;

/// What the agents of a session need.
pub struct SubagentsSetup {
    pub session: SessionId,
    /// Where output files go.
    pub folder: PathBuf,
    pub log: Arc<dyn TaskLog>,
    pub parent: Arc<dyn ParentSession>,
    /// The copies of repositories in which agents work alone.
    pub worktrees: Worktrees,
    pub keep_alive: KeepAlive,
    /// Whether agents take more than one message.
    pub multi_turn: bool,
}

/// The agents of one session.
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

/// An agent that was started.
pub struct Started {
    pub id: TaskId,
    pub work: AgentWork,
    pub run: Arc<SubagentRun>,
    /// What the caller should know, such as a model that was not to be had.
    pub note: Option<String>,
}

impl Subagents {
    /// The agents of a session, until `ended` is cancelled.
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

    /// Starts an agent; it is on record when this resolves.
    pub async fn start(&self, order: SubagentOrder) -> Result<Started, SubagentError> {
        self.check_room()?;
        // Everything below is computed from this one look at the session.
        let spawner = self.0.setup.parent.look(plan::asked_by(&order)).await?;
        let plan = plan::plan(spawner.parent(), spawner.models(), &order);
        let plan = Box::pin(plan).await?;
        let session: SessionId = self.0.clock.id().into();
        let id = self.table().reserve(&plan, &order);
        let started = self.begin(&id, session, order, plan, spawner).await;
        self.table().reserved.remove(&id);
        started
    }

    async fn begin(
        &self,
        id: &TaskId,
        session: SessionId,
        order: SubagentOrder,
        plan: SubagentPlan,
        spawner: Arc<dyn ChildSpawner>,
    ) -> Result<Started, SubagentError> {
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
        Ok(Started {
            id: id.clone(),
            work,
            run,
            note,
        })
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

    /// Puts a run on the table.
    fn enroll(&self, id: &TaskId, execution: Execution) -> Result<Arc<SubagentRun>, SubagentError> {
        let run = Arc::new(SubagentRun::new(id.clone(), execution));
        let mut table = self.table();
        if table.ended {
            return Err(SubagentError::SessionEnded);
        }
        table.runs.insert(id.clone(), run.clone());
        Ok(run)
    }

    /// Lets a run go.
    fn launch(
        &self,
        run: &Arc<SubagentRun>,
        work: AgentWork,
        begin: run::RunStart,
        prompt: String,
    ) {
        let (agents, own) = (self.clone(), run.clone());
        let file = self.output_file(&run.id);
        let stay = self.0.setup.keep_alive.work();
        self.0.tasks.spawn(async move {
            agents.drive(own, work, begin, prompt, file).await;
            drop(stay);
        });
    }

    /// The run of an agent that is at work.
    pub fn run(&self, id: &TaskId) -> Option<Arc<SubagentRun>> {
        self.table().runs.get(id).cloned()
    }

    /// Lets an agent that is waited for go on by itself; says whether there was anything to do.
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

    /// Cancels an agent that is at work, and everything below it; it is on record when this resolves.
    pub async fn cancel(&self, id: &TaskId, by: CancelledBy) -> bool {
        let Some(run) = self.run(id) else {
            return false;
        };
        run.cancel(by);
        run.end().await;
        true
    }

    /// Cancels all agents that nobody waits for; says how many there were.
    pub async fn cancel_background(&self, by: CancelledBy) -> usize {
        let is_background = |run: &SubagentRun| run.execution() == Execution::Background;
        self.cancel_where(is_background, by).await
    }

    /// Cancels all agents that are at work.
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

    /// Tells the log, unless the session ends: then nobody reads what it is told.
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

    /// Ends all agents; they are gone when this resolves.
    pub async fn close(&self) {
        self.table().ended = true;
        self.0.ended.cancel();
        self.cancel_all(CancelledBy::SessionEnds).await;
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
