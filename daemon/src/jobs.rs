//! The commands of one session: which shell runs what, in what order, in front or in the background.
//!
//! The shell tools and the task methods call it; it opens shells through `shell`, starts detached
//! commands through `process`, and tells the session's log what goes on in the background. Commands
//! to one shell run in order, different shells run in parallel. It decides no permission and words
//! nothing that the model reads.

mod background;
mod detached;
mod direct;
mod error;
mod job;
mod memory;
mod seat;
mod spare;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use loopd_proto::id::{SessionId, ShellId, ToolCallId};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ports::Ports;
use crate::process::{Lifetime, Processes};
use crate::shell::{Backend, Shell, ShellSpec, StartError};
use loopd_kernel::command::{Command, TaskEnd};
use loopd_kernel::state::State;

pub use detached::{DetachedJob, LogPart};
pub use direct::{Direct, DirectEnd};
pub use error::{Closed, JobError};
pub use job::{Ending, Job, Pause, Place};
use seat::{Keep, Seat};
use spare::Spare;
use table::{MAX_SHELLS, Table};

/// Where a session's log is told what goes on.
pub trait TaskLog: Send + Sync + 'static {
    /// Resolves when the command is stored, or says that the session is gone or refused it.
    fn record(&self, command: Command) -> BoxFuture<'static, Result<(), String>>;
}

/// What the jobs of a session need.
pub struct Setup {
    pub session: SessionId,
    pub processes: Processes,
    /// The folder for large outputs and logs.
    pub scratch: PathBuf,
    /// Makes a name that no other file of `scratch` has.
    pub name_output: fn() -> String,
    pub log: Arc<dyn TaskLog>,
}

/// Where commands run, which may change from one command to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    pub backend: Backend,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct Order {
    /// The shell to run it in; without one, a fresh shell.
    pub shell: Option<ShellId>,
    pub command: String,
    pub description: String,
    /// The call that wants it.
    pub call: Option<ToolCallId>,
    pub surroundings: Surroundings,
    /// How long it may wait for the shell to be free.
    pub patience: Duration,
    pub cancel: CancellationToken,
    pub place: Place,
}

/// The commands of one session.
#[derive(Clone)]
pub struct Jobs(Arc<Inner>);

struct Inner {
    setup: Setup,
    ports: Ports,
    table: Mutex<Table>,
    spare: Spare,
    direct: direct::Running,
    tasks: TaskTracker,
}

/// What a shell id stands for.
#[derive(Clone)]
pub enum Found {
    Attached(Arc<Job>),
    Detached(Arc<DetachedJob>),
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs")
            .field("session", &self.0.setup.session)
            .finish_non_exhaustive()
    }
}

impl Jobs {
    pub fn new(setup: Setup) -> Self {
        Self(Arc::new(Inner {
            setup,
            ports: Ports::default(),
            table: Mutex::default(),
            spare: Spare::default(),
            direct: direct::Running::default(),
            tasks: TaskTracker::new(),
        }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a command in its shell, after those that came before it.
    pub async fn start(&self, order: Order) -> Result<Arc<Job>, JobError> {
        let (id, seat) = self.seat(&order)?;
        let turn = tokio::select! {
            () = order.cancel.cancelled() => Err(JobError::Interrupted),
            turn = tokio::time::timeout(order.patience, seat.line()) => {
                turn.map_err(|_| JobError::StillBusy {
                    id: id.clone(),
                    command: seat.job().map(|job| job.command.clone()).unwrap_or_default(),
                })
            }
        };
        let started = match turn {
            Ok(turn) => self.start_in(&seat, &id, &order, turn).await,
            Err(error) => Err(error),
        };
        if started.is_err() && seat.is_unused() {
            self.table().seats.remove(&id);
        }
        started
    }

    /// The seat for an order, made when there is none.
    fn seat(&self, order: &Order) -> Result<(ShellId, Arc<Seat>), JobError> {
        let mut table = self.table();
        if table.ended {
            return Err(JobError::SessionEnded);
        }
        let id = match &order.shell {
            Some(id) => id.clone(),
            None => table.next_name(),
        };
        if let Some(detached) = table.detached.get(&id) {
            if detached.is_running() {
                return Err(JobError::Detached(id));
            }
            table.detached.remove(&id);
        }
        if let Some(seat) = table.seats.get(&id) {
            return Ok((id, seat.clone()));
        }
        if table.seats.len() >= MAX_SHELLS && !table.make_room() {
            return Err(JobError::TooManyShells { limit: MAX_SHELLS });
        }
        let keep = match (&order.shell, order.place) {
            (None, Place::Front) => Keep::UntilRead,
            (Some(_), _) | (None, Place::Back) => Keep::Open,
        };
        let seat = Arc::new(Seat::new(keep));
        table.seats.insert(id.clone(), seat.clone());
        table.closed.forget(&id);
        Ok((id, seat))
    }

    async fn start_in(
        &self,
        seat: &Arc<Seat>,
        id: &ShellId,
        order: &Order,
        turn: seat::Turn,
    ) -> Result<Arc<Job>, JobError> {
        let mut shell = match seat.take_shell() {
            Some(shell) if shell.alive() => shell,
            Some(_) | None => self.open(seat.keep, id, order).await?,
        };
        let mut started = shell.start(&order.command).await;
        if matches!(started, Err(StartError::Closed(_))) {
            // It ended between two commands; what it knew is gone with it.
            shell = self.open(seat.keep, id, order).await?;
            started = shell.start(&order.command).await;
        }
        let run = started.map_err(JobError::Start)?;
        let pid = shell.pid();
        seat.put_shell(shell);
        let job = Arc::new(Job::new(id.clone(), order, run, pid, self.0.ports.now()));
        seat.set_job(job.clone());
        let (jobs, watched) = (self.clone(), job.clone());
        self.0.tasks.spawn(async move {
            jobs.watch(&watched).await;
            drop(turn);
        });
        Ok(job)
    }

    async fn open(&self, keep: Keep, id: &ShellId, order: &Order) -> Result<Shell, JobError> {
        let fresh = keep == Keep::UntilRead;
        if fresh && let Some(shell) = self.0.spare.take(&order.surroundings).await {
            return Ok(shell);
        }
        let lifetime = match keep {
            Keep::UntilRead => Lifetime::Turn,
            Keep::Open => Lifetime::Session,
        };
        let label = format!("shell {id}: {}", order.command);
        let spec = self.spec(&order.surroundings, lifetime, label);
        let backend = order.surroundings.backend;
        let opened = Shell::open(&self.0.setup.processes, backend, spec);
        opened.await.map_err(JobError::Open)
    }

    fn spec(&self, surroundings: &Surroundings, lifetime: Lifetime, label: String) -> ShellSpec {
        let setup = &self.0.setup;
        ShellSpec {
            cwd: surroundings.cwd.clone(),
            env: surroundings.env.clone(),
            scratch: setup.scratch.clone(),
            name_output: setup.name_output,
            session: setup.session.clone(),
            lifetime,
            label,
        }
    }

    /// A command ended in front: what was opened for it alone is closed.
    pub fn finish(&self, job: &Job, surroundings: &Surroundings) {
        if self.let_go(&job.id, Closed::Finished, Keep::UntilRead) {
            self.warm(surroundings);
        }
    }

    /// A command was stopped in front: what was opened for it alone is closed.
    pub fn release(&self, job: &Job) {
        self.let_go(&job.id, Closed::Cancelled, Keep::UntilRead);
    }

    /// Closes the shell of a command that nobody waits for any more.
    pub fn abandon(&self, id: &ShellId) {
        self.let_go(id, Closed::Cancelled, Keep::Open);
    }

    /// Closes a shell that is kept no longer than this; says whether there was one.
    fn let_go(&self, id: &ShellId, how: Closed, keep: Keep) -> bool {
        let mut table = self.table();
        let goes = table
            .seats
            .get(id)
            .is_some_and(|seat| seat.keep == keep || keep == Keep::Open);
        if goes && let Some(seat) = table.seats.remove(id) {
            table.closed.remember(id.clone(), how);
            // Dropping a shell closes it.
            drop(seat.take_shell());
        }
        goes
    }

    /// Opens a shell ahead of the next command that wants a fresh one.
    pub fn warm(&self, surroundings: &Surroundings) {
        if surroundings.backend != Backend::Terminal || !self.0.spare.wants(surroundings) {
            return;
        }
        let (jobs, surroundings) = (self.clone(), surroundings.clone());
        self.0.tasks.spawn(async move {
            let spec = jobs.spec(&surroundings, Lifetime::Turn, "shell".to_owned());
            let setup = &jobs.0.setup;
            match Shell::open(&setup.processes, surroundings.backend, spec).await {
                Ok(shell) => jobs.0.spare.keep(surroundings, shell),
                Err(error) => {
                    // The command that would have used it opens its own and reports what is wrong.
                    tracing::debug!(session = %setup.session, %error, "no shell could be opened ahead");
                    jobs.0.spare.give_up();
                }
            }
        });
    }

    /// The loop rests: nothing is opened ahead.
    pub fn rest(&self) {
        self.0.spare.drop_it();
    }

    /// What a shell id stands for.
    pub fn find(&self, id: &ShellId) -> Result<Found, JobError> {
        let table = self.table();
        if let Some(job) = table.seats.get(id).and_then(|seat| seat.job()) {
            return Ok(Found::Attached(job));
        }
        if let Some(detached) = table.detached.get(id) {
            return Ok(Found::Detached(detached.clone()));
        }
        Err(match table.closed.how(id) {
            Some(how) => JobError::Closed {
                id: id.clone(),
                how,
            },
            None => JobError::Unknown {
                id: id.clone(),
                known: table.known(),
            },
        })
    }

    /// Stops a command and closes its shell.
    pub async fn stop(&self, id: &ShellId, how: Closed) -> Result<Ending, JobError> {
        let ending = match self.find(id)? {
            Found::Attached(job) => {
                self.tell_heard(id).await;
                job.stop().await;
                self.let_go(id, how, Keep::Open);
                job.ending()
            }
            Found::Detached(job) => {
                self.tell_heard(id).await;
                job.stop().await
            }
        };
        Ok(ending)
    }

    /// All shells, in the order of their names.
    pub fn list(&self) -> Vec<Found> {
        let table = self.table();
        let attached = table.seats.values().filter_map(|seat| seat.job());
        let detached = table.detached.values().cloned().map(Found::Detached);
        attached.map(Found::Attached).chain(detached).collect()
    }

    /// The commands that the loop waits for, the oldest first.
    pub fn in_front(&self) -> Vec<Arc<Job>> {
        let mut jobs: Vec<Arc<Job>> = self
            .table()
            .seats
            .values()
            .filter_map(|seat| seat.job())
            .filter(|job| job.place() == Place::Front && job.is_running())
            .collect();
        jobs.sort_by_key(|job| job.started_at);
        jobs
    }

    /// Takes over what a loaded log knows: detached commands, and shells that are gone.
    pub fn take_over(&self, state: &State) {
        let mut table = self.table();
        for task in state.tasks.iter() {
            let Some(shell) = task.shell() else {
                continue;
            };
            if let (true, Some(log)) = (task.is_detached(), &shell.log_path) {
                let found = DetachedJob::found(task, shell, log, &self.0.setup.processes);
                table.detached.insert(shell.shell_id.clone(), found.clone());
                if task.is_running() {
                    self.watch_detached(found);
                }
            } else {
                table.closed.remember(shell.shell_id.clone(), Closed::Lost);
            }
        }
    }

    /// Ends everything that may not outlive the session; it is dead when this resolves.
    pub async fn close(&self) {
        let seats = {
            let mut table = self.table();
            table.ended = true;
            std::mem::take(&mut table.seats)
        };
        self.0.spare.drop_it();
        self.drop_direct();
        drop(seats);
        self.0
            .setup
            .processes
            .end_session(&self.0.setup.session)
            .await;
    }
}

/// How a task ended that nobody stopped.
fn task_end(exit_code: Option<i32>, reason: Option<String>) -> TaskEnd {
    use loopd_proto::event::task::TaskOutcome;
    let outcome = match exit_code {
        Some(0) => TaskOutcome::Completed,
        Some(_) | None => TaskOutcome::Failed,
    };
    TaskEnd {
        exit_code,
        reason,
        ..TaskEnd::new(outcome)
    }
}
