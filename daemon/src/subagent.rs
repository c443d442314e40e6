//! The agents of one session: who works, who waits for whom, who is given more to do.
//!
//! The agent tools and the task methods call it; it drives child sessions through [`ChildSpawner`] and
//! [`Child`], which `session` provides, and tells the parent's log what comes of them. One run is one
//! prompt to one agent: it takes a slot, lets the child work until it rests, and lets go of slot and
//! child. It decides no permission and words nothing that a model reads.
//!
//! Three verbs stay apart: to stop waiting ([`Subagents::promote`]), to interrupt ([`Child::abort`],
//! which a run uses), to cancel ([`Subagents::cancel`]).

mod child;
pub mod definitions;
#[cfg(test)]
pub(crate) mod fixture;
mod message;
mod output;
mod run;
mod slots;
mod table;
mod watcher;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopd_proto::event::task::{AgentWork, Execution, TaskWork};
use loopd_proto::id::{SessionId, TaskId, ToolCallId};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use loopd_exec::clock::Clock;
use loopd_exec::keep_alive::KeepAlive;
use loopd_exec::shells::TaskLog;
use loopd_kernel::command::{Command, TaskStart};

pub use child::{
    Child, ChildResult, ChildSpawner, ChildStatus, Isolation, RunLink, SpawnSpec, SubagentPlan,
    WorktreeEnd,
};
pub use message::Delivered;
pub use run::{RunEnd, RunEnding, SubagentRun};
pub use slots::{SlotLease, Slots};
use table::RunTable;
pub use watcher::{Activity, RunProgress, Watcher};

/// How many agents of one session may be at work or wait for a slot.
const MOST_RUNS: usize = 256;

/// What is asked of an agent.
#[derive(Debug, Clone)]
pub struct SubagentOrder {
    /// Which agent; without one, a fork where that is switched on, else the general one.
    pub agent_type: Option<String>,
    /// What to call it; made from the description when absent.
    pub name: Option<String>,
    pub description: String,
    pub prompt: String,
    pub model: Option<String>,
    /// How the caller wants to wait; the agent's definition may say otherwise.
    pub execution: Option<Execution>,
    pub isolation: Option<Isolation>,
    pub cwd: Option<String>,
    /// The call that starts it; none when a client does.
    pub call: Option<ToolCallId>,
}

/// Why an agent could not be started or reached, in words that a caller can act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubagentError {
    #[error("{0}")]
    Refused(String),
    #[error("There is no agent \"{wanted}\" in this session. {known}")]
    Unknown { wanted: String, known: String },
    #[error(
        "\"{0}\" is a shell command and not an agent; the shell tools read, write and stop it."
    )]
    NotAnAgent(TaskId),
    #[error("The agent {0} works by itself and takes no messages; start a new task instead.")]
    TakesNoMessages(TaskId),
    #[error("{limit} messages wait for the agent {id} already; wait until it has read some.")]
    InboxFull { id: TaskId, limit: usize },
    #[error(
        "{limit} agents of this session are at work already; wait for some of them or stop them."
    )]
    TooMany { limit: usize },
    #[error("The session has ended.")]
    SessionEnded,
    #[error("The agent could not be recorded, so it was not started: {0}")]
    NotStored(String),
}

/// What the agents of a session need.
pub struct SubagentsSetup {
    pub session: SessionId,
    /// Where output files go.
    pub folder: PathBuf,
    pub log: Arc<dyn TaskLog>,
    pub spawner: Arc<dyn ChildSpawner>,
    pub keep_alive: KeepAlive,
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
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an agent; it is on record when this resolves.
    pub async fn start(&self, order: SubagentOrder) -> Result<Started, SubagentError> {
        self.check_room()?;
        let plan = self.0.setup.spawner.plan(order.clone()).await;
        let plan = plan.map_err(SubagentError::Refused)?;
        let session: SessionId = self.0.clock.id().into();
        let id = self.table().reserve(&plan, &order);
        let started = self.begin(&id, session, order, plan).await;
        self.table().reserved.remove(&id);
        started
    }

    async fn begin(
        &self,
        id: &TaskId,
        session: SessionId,
        order: SubagentOrder,
        plan: SubagentPlan,
    ) -> Result<Started, SubagentError> {
        let spawner = &self.0.setup.spawner;
        let worktree = match plan.isolation {
            Some(Isolation::Worktree) => Some(
                spawner
                    .make_worktree(&session, &plan)
                    .await
                    .map_err(SubagentError::Refused)?,
            ),
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
            worktree: worktree.clone(),
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
            if let Some(worktree) = &worktree {
                spawner.settle_worktree(worktree).await;
            }
            return Err(SubagentError::NotStored(why));
        }
        let note = plan.note.clone();
        let task = SpawnSpec {
            task: id.clone(),
            call,
            session: work.session_id.clone(),
            plan,
            worktree,
        };
        let run = self.enroll(id, work.execution)?;
        self.launch(
            &run,
            work.clone(),
            run::RunStart::New(Box::new(task)),
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
    async fn record(&self, command: Command) -> Result<(), String> {
        tokio::select! {
            stored = self.0.setup.log.record(command) => stored,
            () = self.0.ended.cancelled() => Err("the session has ended".to_owned()),
        }
    }

    async fn tell(&self, command: Command) {
        if let Err(why) = self.record(command).await
            && !self.table().ended
        {
            tracing::warn!(session = %self.0.setup.session, why, "the session was not told about its agent");
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

/// Who cancels an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelledBy {
    /// The model, which learns the end from the result of its call.
    Model,
    /// A client; the model is told.
    Client,
    /// The turn that waits for it is aborted.
    Abort,
    /// The session ends and has said so.
    SessionEnds,
}

impl CancelledBy {
    /// Why the agent did not finish.
    fn reason(self) -> &'static str {
        match self {
            Self::Model => "who started it stopped it",
            Self::Client => "a client stopped it",
            Self::Abort => "the turn that waited for it was aborted",
            Self::SessionEnds => "its session ended",
        }
    }
}

/// Waits for whichever comes first.
pub async fn first(cancel: &CancellationToken, run: &SubagentRun) -> RunWait {
    tokio::select! {
        biased;
        ending = run.end() => RunWait::Ended(ending),
        () = run.promoted() => RunWait::Promoted,
        () = cancel.cancelled() => RunWait::Cancelled,
    }
}

/// What a caller that waits for an agent learns.
#[derive(Debug, Clone)]
pub enum RunWait {
    Ended(RunEnding),
    /// Somebody moved the agent to the background.
    Promoted,
    Cancelled,
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
