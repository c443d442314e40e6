//! The commands of one session: which shell runs what, in what order, in front or in the background.
//!
//! The shell tools and the task methods call it; it opens shells through `shell`, starts detached
//! commands through `process`, and tells the session's log what goes on in the background. Commands
//! to one shell run in order, different shells run in parallel. It decides no permission and words
//! nothing that the model reads.

mod background;
mod client_exec;
mod closed;
mod command;
mod detached;
mod error;
mod slot;
mod spare;
mod table;

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use loopd_proto::id::{SessionId, ShellId, ToolCallId};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::process::{Lifetime, Processes};
use crate::terminal::{Backend, CommandStartError, Shell, ShellSpec};
use loopd_kernel::command::{Command, TaskEnd};
use loopd_kernel::state::State;

pub use client_exec::{ClientExec, ClientExecEnd};
pub use command::{AttachedCommand, CommandStatus, RunIn, WaitOutcome};
pub use detached::{DetachedCommand, LogExcerpt};
pub use error::{Closed, ShellError, TaskLogError};
use slot::{Keep, ShellSlot};
use spare::SpareShell;
use table::{MAX_SHELLS, ShellTable};

/// Where a session's log is told what goes on.
pub trait TaskLog: Send + Sync + 'static {
    /// Resolves when the command is stored, or says that the session is gone or refused it.
    fn record(&self, command: Command) -> BoxFuture<'static, Result<(), TaskLogError>>;
}

/// What the shells of a session need.
pub struct ShellsSetup {
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
pub struct CommandContext {
    pub backend: Backend,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct CommandOrder {
    /// The shell to run it in; without one, a fresh shell.
    pub shell: Option<ShellId>,
    pub command: String,
    pub description: String,
    /// The call that wants it.
    pub call: Option<ToolCallId>,
    pub context: CommandContext,
    /// How long it may wait for the shell to be free.
    pub patience: Duration,
    pub cancel: CancellationToken,
    pub run_in: RunIn,
}

/// The commands of one session.
#[derive(Clone)]
pub struct Shells(Arc<ShellsInner>);

struct ShellsInner {
    setup: ShellsSetup,
    clock: Clock,
    table: Mutex<ShellTable>,
    spare: SpareShell,
    direct: client_exec::Running,
    tasks: TaskTracker,
}

/// What a shell id stands for.
#[derive(Clone)]
pub enum FoundShell {
    Attached(Arc<AttachedCommand>),
    Detached(Arc<DetachedCommand>),
}

impl fmt::Debug for Shells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shells")
            .field("session", &self.0.setup.session)
            .finish_non_exhaustive()
    }
}

impl Shells {
    pub fn new(setup: ShellsSetup) -> Self {
        Self(Arc::new(ShellsInner {
            setup,
            clock: Clock::default(),
            table: Mutex::default(),
            spare: SpareShell::default(),
            direct: client_exec::Running::default(),
            tasks: TaskTracker::new(),
        }))
    }

    fn table(&self) -> MutexGuard<'_, ShellTable> {
        self.0.table.lock()
    }

    /// Runs a command in its shell, after those that came before it.
    pub async fn start(&self, order: CommandOrder) -> Result<Arc<AttachedCommand>, ShellError> {
        let (id, slot) = self.slot(&order)?;
        let turn = tokio::select! {
            () = order.cancel.cancelled() => Err(ShellError::Interrupted),
            turn = tokio::time::timeout(order.patience, slot.line()) => {
                turn.map_err(|_| ShellError::StillBusy {
                    id: id.clone(),
                    command: slot.command().map(|command| command.command.clone()).unwrap_or_default(),
                })
            }
        };
        let started = match turn {
            Ok(turn) => self.start_in(&slot, &id, &order, turn).await,
            Err(error) => Err(error),
        };
        if started.is_err() && slot.is_unused() {
            self.table().slots.remove(&id);
        }
        started
    }

    /// The slot for an order, made when there is none.
    fn slot(&self, order: &CommandOrder) -> Result<(ShellId, Arc<ShellSlot>), ShellError> {
        let mut table = self.table();
        if table.ended {
            return Err(ShellError::SessionEnded);
        }
        let id = match &order.shell {
            Some(id) => id.clone(),
            None => table.next_name(),
        };
        if let Some(detached) = table.detached.get(&id) {
            if detached.is_running() {
                return Err(ShellError::Detached(id));
            }
            table.detached.remove(&id);
        }
        if let Some(slot) = table.slots.get(&id) {
            return Ok((id, slot.clone()));
        }
        if table.slots.len() >= MAX_SHELLS && !table.make_room() {
            return Err(ShellError::TooManyShells { limit: MAX_SHELLS });
        }
        let keep = match (&order.shell, order.run_in) {
            (None, RunIn::Foreground) => Keep::UntilRead,
            (Some(_), _) | (None, RunIn::Background) => Keep::Open,
        };
        let slot = Arc::new(ShellSlot::new(keep));
        table.slots.insert(id.clone(), slot.clone());
        table.closed.forget(&id);
        Ok((id, slot))
    }

    async fn start_in(
        &self,
        slot: &Arc<ShellSlot>,
        id: &ShellId,
        order: &CommandOrder,
        turn: slot::SlotPermit,
    ) -> Result<Arc<AttachedCommand>, ShellError> {
        let mut shell = match slot.take_shell() {
            Some(shell) if shell.alive() => shell,
            Some(_) | None => self.open(slot.keep, id, order).await?,
        };
        let mut started = shell.start(&order.command).await;
        if matches!(started, Err(CommandStartError::Closed(_))) {
            // It ended between two commands; what it knew is gone with it.
            shell = self.open(slot.keep, id, order).await?;
            started = shell.start(&order.command).await;
        }
        let run = started.map_err(ShellError::Start)?;
        let pid = shell.pid();
        slot.put_shell(shell);
        let command = Arc::new(AttachedCommand::new(
            id.clone(),
            order,
            run,
            pid,
            self.0.clock.now(),
        ));
        slot.set_command(command.clone());
        let (shells, watched) = (self.clone(), command.clone());
        self.0.tasks.spawn(async move {
            shells.watch(&watched).await;
            drop(turn);
        });
        Ok(command)
    }

    async fn open(
        &self,
        keep: Keep,
        id: &ShellId,
        order: &CommandOrder,
    ) -> Result<Shell, ShellError> {
        let fresh = keep == Keep::UntilRead;
        if fresh && let Some(shell) = self.0.spare.take(&order.context).await {
            return Ok(shell);
        }
        let lifetime = match keep {
            Keep::UntilRead => Lifetime::Turn,
            Keep::Open => Lifetime::Session,
        };
        let label = format!("shell {id}: {}", order.command);
        let spec = self.spec(&order.context, lifetime, label);
        let backend = order.context.backend;
        let opened = Shell::open(&self.0.setup.processes, backend, spec);
        opened.await.map_err(ShellError::Open)
    }

    fn spec(&self, context: &CommandContext, lifetime: Lifetime, label: String) -> ShellSpec {
        let setup = &self.0.setup;
        ShellSpec {
            cwd: context.cwd.clone(),
            env: context.env.clone(),
            scratch: setup.scratch.clone(),
            name_output: setup.name_output,
            session: setup.session.clone(),
            lifetime,
            label,
        }
    }

    /// A command ended in front: what was opened for it alone is closed.
    pub fn finish(&self, command: &AttachedCommand, context: &CommandContext) {
        if self.let_go(&command.id, Closed::Finished, Keep::UntilRead) {
            self.warm(context);
        }
    }

    /// A command was stopped in front: what was opened for it alone is closed.
    pub fn release(&self, command: &AttachedCommand) {
        self.let_go(&command.id, Closed::Cancelled, Keep::UntilRead);
    }

    /// Closes the shell of a command that nobody waits for any more.
    pub fn abandon(&self, id: &ShellId) {
        self.let_go(id, Closed::Cancelled, Keep::Open);
    }

    /// Closes a shell that is kept no longer than this; says whether there was one.
    fn let_go(&self, id: &ShellId, how: Closed, keep: Keep) -> bool {
        let mut table = self.table();
        let goes = table
            .slots
            .get(id)
            .is_some_and(|slot| slot.keep == keep || keep == Keep::Open);
        if goes && let Some(slot) = table.slots.remove(id) {
            table.closed.remember(id.clone(), how);
            // Dropping a shell closes it.
            drop(slot.take_shell());
        }
        goes
    }

    /// Opens a shell ahead of the next command that wants a fresh one.
    pub fn warm(&self, context: &CommandContext) {
        if context.backend != Backend::Terminal || !self.0.spare.wants(context) {
            return;
        }
        let (shells, context) = (self.clone(), context.clone());
        self.0.tasks.spawn(async move {
            let spec = shells.spec(&context, Lifetime::Turn, "shell".to_owned());
            let setup = &shells.0.setup;
            match Shell::open(&setup.processes, context.backend, spec).await {
                Ok(shell) => shells.0.spare.keep(context, shell),
                Err(error) => {
                    // The command that would have used it opens its own and reports what is wrong.
                    tracing::debug!(session = %setup.session, %error, "no shell could be opened ahead");
                    shells.0.spare.give_up();
                }
            }
        });
    }

    /// The loop rests: nothing is opened ahead.
    pub fn rest(&self) {
        self.0.spare.drop_it();
    }

    /// What a shell id stands for.
    pub fn find(&self, id: &ShellId) -> Result<FoundShell, ShellError> {
        let table = self.table();
        if let Some(command) = table.slots.get(id).and_then(|slot| slot.command()) {
            return Ok(FoundShell::Attached(command));
        }
        if let Some(detached) = table.detached.get(id) {
            return Ok(FoundShell::Detached(detached.clone()));
        }
        Err(match table.closed.how(id) {
            Some(how) => ShellError::Closed {
                id: id.clone(),
                how,
            },
            None => ShellError::Unknown {
                id: id.clone(),
                known: table.known(),
            },
        })
    }

    /// Stops a command and closes its shell.
    pub async fn stop(&self, id: &ShellId, how: Closed) -> Result<CommandStatus, ShellError> {
        let ending = match self.find(id)? {
            FoundShell::Attached(command) => {
                self.tell_delivered(id).await;
                command.stop().await;
                self.let_go(id, how, Keep::Open);
                command.ending()
            }
            FoundShell::Detached(command) => {
                self.tell_delivered(id).await;
                command.stop().await
            }
        };
        Ok(ending)
    }

    /// All shells, in the order of their names.
    pub fn list(&self) -> Vec<FoundShell> {
        let table = self.table();
        let attached = table.slots.values().filter_map(|slot| slot.command());
        let detached = table.detached.values().cloned().map(FoundShell::Detached);
        attached.map(FoundShell::Attached).chain(detached).collect()
    }

    /// The commands that the loop waits for, the oldest first.
    pub fn in_front(&self) -> Vec<Arc<AttachedCommand>> {
        let mut shells: Vec<Arc<AttachedCommand>> = self
            .table()
            .slots
            .values()
            .filter_map(|slot| slot.command())
            .filter(|command| command.run_in() == RunIn::Foreground && command.is_running())
            .collect();
        shells.sort_by_key(|command| command.started_at);
        shells
    }

    /// Takes over what a loaded log knows: detached commands, and shells that are gone.
    pub fn take_over(&self, state: &State) {
        let mut table = self.table();
        for task in state.tasks.iter() {
            let Some(shell) = task.shell() else {
                continue;
            };
            if let (true, Some(log)) = (task.is_detached(), &shell.log_path) {
                let found = DetachedCommand::found(task, shell, log, &self.0.setup.processes);
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
        let slots = {
            let mut table = self.table();
            table.ended = true;
            std::mem::take(&mut table.slots)
        };
        self.0.spare.drop_it();
        self.drop_direct();
        drop(slots);
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
