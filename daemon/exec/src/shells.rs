//! The shells of one session and the commands that run in them, in the foreground or background.
//!
//! The shell tools and the task methods call this module. It opens shells through `terminal`,
//! starts detached commands through `process`, and records background commands in the session's
//! log. Commands in one shell run one after another; different shells run in parallel. The module
//! decides no permission and writes no text for the model.

mod background;
mod client_exec;
mod closed;
mod command;
mod detached;
mod error;
mod slot;
mod spare;
mod table;
mod unattended;

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
use crate::sandbox::{NetworkAccess, Sandbox, ScratchFolder};
use crate::terminal::{Backend, CloseMode, CommandStartError, OutputFilters, Shell, ShellSpec};
use loopd_kernel::command::{Command, TaskEnd};
use loopd_kernel::state::State;

pub use client_exec::{ClientExec, ClientExecEnd, SignalOutcome};
pub use command::{AttachedCommand, CommandStatus, RunIn, WaitOutcome};
pub use detached::{DetachedCommand, LogExcerpt};
pub use error::{CloseReason, ShellError, TaskLogError};
use slot::{Retention, ShellSlot};
use spare::SpareShell;
use table::{MAX_SHELLS, ShellTable};

/// The type of the warning that a scratch folder of plan mode could not be removed.
const SCRATCH_LEFT: &str = "scratch_left";

/// Records commands in the log of a session.
pub trait TaskLog: Send + Sync + 'static {
    /// Resolves when the command is stored; fails when the session is gone or refuses the command.
    fn record(&self, command: Command) -> BoxFuture<'static, Result<(), TaskLogError>>;
}

/// What the shells of a session need.
pub struct ShellsSetup {
    pub session: SessionId,
    pub processes: Processes,
    /// The folder for large outputs and logs.
    pub scratch: PathBuf,
    /// Returns a file name that is not used in `scratch`.
    pub name_output: fn() -> String,
    /// Change what is written to the files of large outputs.
    pub filters: Arc<dyn OutputFilters>,
    pub log: Arc<dyn TaskLog>,
}

/// The backend, folder and environment of a command; they may differ from command to command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandContext {
    pub backend: Backend,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    /// Confines the command; a shell keeps the one that it was opened with.
    pub sandbox: Option<Sandbox>,
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct CommandOrder {
    /// The shell to run it in; `None` opens a new shell.
    pub shell: Option<ShellId>,
    pub command: String,
    pub description: String,
    /// The tool call that started it.
    pub call: Option<ToolCallId>,
    pub context: CommandContext,
    /// How long it may wait for earlier commands in the same shell.
    pub queue_timeout: Duration,
    pub cancel: CancellationToken,
    pub run_in: RunIn,
}

/// The shells and commands of one session.
#[derive(Clone)]
pub struct Shells(Arc<ShellsInner>);

struct ShellsInner {
    setup: ShellsSetup,
    clock: Clock,
    table: Mutex<ShellTable>,
    spare: SpareShell,
    client_execs: client_exec::ClientExecTable,
    tasks: TaskTracker,
    /// The scratch folder of the commands that run in a sandbox now.
    sandbox_scratch: Mutex<ScratchFolder>,
}

/// The command that a shell id refers to.
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
        let sandbox_scratch = Mutex::new(ScratchFolder::below(&setup.scratch));
        Self(Arc::new(ShellsInner {
            setup,
            sandbox_scratch,
            clock: Clock::default(),
            table: Mutex::default(),
            spare: SpareShell::default(),
            client_execs: client_exec::ClientExecTable::default(),
            tasks: TaskTracker::new(),
        }))
    }

    fn table(&self) -> MutexGuard<'_, ShellTable> {
        self.0.table.lock()
    }

    /// Runs a command in its shell, after the commands that were started there before it.
    pub async fn start(&self, order: CommandOrder) -> Result<Arc<AttachedCommand>, ShellError> {
        self.start_if(order, std::future::ready(Ok(()))).await
    }

    /// Does the same if the command may still begin when its turn has come; the error says why it may not.
    pub async fn start_if(
        &self,
        order: CommandOrder,
        may_begin: impl Future<Output = Result<(), String>>,
    ) -> Result<Arc<AttachedCommand>, ShellError> {
        let (id, slot) = self.slot(&order)?;
        let permit = tokio::select! {
            () = order.cancel.cancelled() => Err(ShellError::Interrupted),
            permit = tokio::time::timeout(order.queue_timeout, slot.acquire()) => {
                permit.map_err(|_| ShellError::StillBusy {
                    id: id.clone(),
                    command: slot.command().map(|command| command.command.clone()).unwrap_or_default(),
                })
            }
        };
        let started = match permit {
            Ok(permit) => match may_begin.await {
                Ok(()) => self.start_in(&slot, &id, &order, permit).await,
                Err(why) => Err(ShellError::NotPermitted(why)),
            },
            Err(error) => Err(error),
        };
        if started.is_err() && slot.is_unused() {
            self.table().slots.remove(&id);
        }
        started
    }

    /// Returns the slot for an order; creates it if there is none.
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
        let sandboxed = order.context.sandbox.is_some();
        match table.slots.get(&id) {
            Some(slot) if sandboxed && !slot.sandboxed => {
                let others = table.not_sandboxed();
                return Err(ShellError::NotSandboxed { id, others });
            }
            // Plan mode has ended, and its shells with it.
            Some(slot) if slot.sandboxed && !sandboxed => {
                table.slots.remove(&id);
            }
            Some(slot) => return Ok((id, slot.clone())),
            None => {}
        }
        if table.slots.len() >= MAX_SHELLS && !table.make_room() {
            return Err(ShellError::TooManyShells { limit: MAX_SHELLS });
        }
        let retention = match (&order.shell, order.run_in) {
            (None, RunIn::Foreground) => Retention::UntilRead,
            (Some(_), _) | (None, RunIn::Background) => Retention::UntilClosed,
        };
        let waiting = self.0.setup.processes.keep_alive().waiting();
        let slot = Arc::new(ShellSlot::new(retention, sandboxed, waiting));
        table.slots.insert(id.clone(), slot.clone());
        table.closed.forget(&id);
        Ok((id, slot))
    }

    async fn start_in(
        &self,
        slot: &Arc<ShellSlot>,
        id: &ShellId,
        order: &CommandOrder,
        permit: slot::SlotPermit,
    ) -> Result<Arc<AttachedCommand>, ShellError> {
        let mut shell = match slot.take_shell() {
            Some(shell) if shell.alive() => shell,
            Some(_) | None => self.open(slot.retention, id, order).await?,
        };
        let mut started = shell.start(&order.command).await;
        if matches!(started, Err(CommandStartError::Closed(_))) {
            // The shell ended between two commands. Its variables and folder are lost.
            shell = self.open(slot.retention, id, order).await?;
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
            drop(permit);
        });
        Ok(command)
    }

    async fn open(
        &self,
        retention: Retention,
        id: &ShellId,
        order: &CommandOrder,
    ) -> Result<Shell, ShellError> {
        let fresh = retention == Retention::UntilRead;
        if fresh && let Some(shell) = self.0.spare.take(&order.context).await {
            return Ok(shell);
        }
        let lifetime = match retention {
            Retention::UntilRead => Lifetime::Turn,
            Retention::UntilClosed => Lifetime::Session,
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
            filters: setup.filters.clone(),
            session: setup.session.clone(),
            lifetime,
            label,
            sandbox: context.sandbox.clone(),
        }
    }

    /// Closes the shell of a foreground command that ended, if it was opened for that command only.
    pub fn finish(&self, command: &AttachedCommand, context: &CommandContext) {
        if self.close_slot(&command.id, CloseReason::Finished, Retention::UntilRead) {
            self.open_spare(context);
        }
    }

    /// Closes the shell of a foreground command that was stopped, if it was opened for that command
    /// only.
    pub fn release(&self, command: &AttachedCommand) {
        self.close_slot(&command.id, CloseReason::Cancelled, Retention::UntilRead);
    }

    /// Closes the shell of a command whose caller was cancelled.
    pub fn abandon(&self, id: &ShellId) {
        self.close_slot(id, CloseReason::Cancelled, Retention::UntilClosed);
    }

    /// Closes a shell whose retention is at most `longest`; returns whether it closed one.
    fn close_slot(&self, id: &ShellId, reason: CloseReason, longest: Retention) -> bool {
        // Dropping a shell closes it.
        self.take_slot(id, reason, longest).is_some()
    }

    /// Takes a slot out of the table if its retention is at most `longest`, and returns its shell.
    fn take_slot(
        &self,
        id: &ShellId,
        reason: CloseReason,
        longest: Retention,
    ) -> Option<Option<Shell>> {
        let mut table = self.table();
        let closes = table
            .slots
            .get(id)
            .is_some_and(|slot| slot.retention == longest || longest == Retention::UntilClosed);
        if !closes {
            return None;
        }
        let slot = table.slots.remove(id)?;
        table.closed.remember(id.clone(), reason);
        Some(slot.take_shell())
    }

    /// Opens a spare shell for the next command that needs a new one.
    pub fn open_spare(&self, context: &CommandContext) {
        if context.backend != Backend::Terminal || !self.0.spare.start_opening(context) {
            return;
        }
        let (shells, context) = (self.clone(), context.clone());
        self.0.tasks.spawn(async move {
            let spec = shells.spec(&context, Lifetime::Turn, "shell".to_owned());
            let setup = &shells.0.setup;
            match Shell::open(&setup.processes, context.backend, spec).await {
                Ok(shell) => shells.0.spare.keep(context, shell),
                Err(error) => {
                    // The next command opens its own shell and reports the error.
                    tracing::debug!(session = %setup.session, %error, "no shell could be opened ahead");
                    shells.0.spare.opening_failed();
                }
            }
        });
    }

    /// Closes the spare shell; called when the agent loop is idle.
    pub fn drop_spare(&self) {
        self.0.spare.discard();
    }

    /// The command that a shell id refers to.
    pub fn find(&self, id: &ShellId) -> Result<FoundShell, ShellError> {
        let table = self.table();
        if let Some(command) = table.slots.get(id).and_then(|slot| slot.command()) {
            return Ok(FoundShell::Attached(command));
        }
        if let Some(detached) = table.detached.get(id) {
            return Ok(FoundShell::Detached(detached.clone()));
        }
        Err(match table.closed.reason(id) {
            Some(reason) => ShellError::Closed {
                id: id.clone(),
                reason,
            },
            None => ShellError::Unknown {
                id: id.clone(),
                known: table.known(),
            },
        })
    }

    /// Stops a command and closes its shell; all its processes are gone when this resolves.
    pub async fn stop(
        &self,
        id: &ShellId,
        reason: CloseReason,
    ) -> Result<CommandStatus, ShellError> {
        let status = match self.find(id)? {
            FoundShell::Attached(command) => {
                self.stopped_knowingly(id, reason).await;
                command.stop_for(reason).await;
                if let Some(shell) = self.take_slot(id, reason, Retention::UntilClosed).flatten() {
                    shell.close(CloseMode::Now).await;
                }
                command.status()
            }
            FoundShell::Detached(command) => {
                self.stopped_knowingly(id, reason).await;
                command.stop(reason).await
            }
        };
        Ok(status)
    }

    /// The open shells that do not run in a sandbox.
    pub fn not_sandboxed(&self) -> Vec<ShellId> {
        self.table().not_sandboxed()
    }

    /// Returns the sandbox for commands that start now. Its scratch folder is the same for all until
    /// the shells in the sandbox are closed.
    pub fn sandbox(&self, network: NetworkAccess) -> Sandbox {
        Sandbox {
            scratch: self.0.sandbox_scratch.lock().clone(),
            network,
        }
    }

    /// Closes the shells that run in a sandbox and stops their commands.
    pub fn close_sandboxed(&self) {
        let mut scratch = self.0.sandbox_scratch.lock();
        let renewed = scratch.renewed();
        let left = std::mem::replace(&mut *scratch, renewed);
        drop(scratch);
        let table = self.table();
        let sandboxed = table.slots.iter().filter(|(_, slot)| slot.sandboxed);
        let ids: Vec<ShellId> = sandboxed.map(|(id, _)| id.clone()).collect();
        drop(table);
        let shells = self.clone();
        self.0.tasks.spawn(async move {
            for id in ids {
                let reason = CloseReason::PlanModeEnded;
                // A shell without a command is only closed.
                shells.stop(&id, reason).await.ok();
                shells.close_slot(&id, reason, Retention::UntilClosed);
            }
            // It may have very many files.
            let removed = tokio::task::spawn_blocking(move || left.remove()).await;
            if let Ok(Err(told)) = removed {
                let warning = Command::file_warning(SCRATCH_LEFT, told);
                // A session that has ended has nobody to tell.
                shells.0.setup.log.record(warning).await.ok();
            }
        });
    }

    /// Records that the model knows how the command ends, unless a user ends it or nobody attends it:
    /// the model was promised to be told of the end.
    async fn stopped_knowingly(&self, id: &ShellId, reason: CloseReason) {
        if !matches!(reason, CloseReason::Cancelled | CloseReason::Unattended) {
            self.record_delivered(id).await;
        }
    }

    /// All commands: attached ones by shell id, then detached ones by shell id.
    pub fn list(&self) -> Vec<FoundShell> {
        let table = self.table();
        let attached = table.slots.values().filter_map(|slot| slot.command());
        let detached = table.detached.values().cloned().map(FoundShell::Detached);
        attached.map(FoundShell::Attached).chain(detached).collect()
    }

    /// The running foreground commands, the oldest first.
    pub fn foreground(&self) -> Vec<Arc<AttachedCommand>> {
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

    /// Restores detached commands and the ids of lost shells from the state of a loaded session.
    pub fn restore(&self, state: &State) {
        let mut table = self.table();
        for task in state.tasks.iter() {
            let Some(shell) = task.shell() else {
                continue;
            };
            if let (true, Some(log)) = (task.is_detached(), &shell.log_path) {
                let command = DetachedCommand::restored(task, shell, log, &self.0.setup.processes);
                table
                    .detached
                    .insert(shell.shell_id.clone(), command.clone());
                if task.is_running() {
                    self.watch_detached(command);
                }
            } else {
                table
                    .closed
                    .remember(shell.shell_id.clone(), CloseReason::Lost);
            }
        }
        for id in state.changed_shells.ids().map(ShellId::from) {
            if !table.detached.contains_key(&id) {
                table.closed.remember(id, CloseReason::Lost);
            }
        }
    }

    /// Returns why the shell of this id was closed, if a command in it would get a new one.
    pub fn lost(&self, id: &ShellId) -> Option<CloseReason> {
        let table = self.table();
        let is_open = table.slots.contains_key(id) || table.detached.contains_key(id);
        table.closed.reason(id).filter(|_| !is_open)
    }

    /// Ends every process that must not outlive the session; all are dead when this resolves.
    pub async fn close(&self) {
        let slots = {
            let mut table = self.table();
            table.ended = true;
            std::mem::take(&mut table.slots)
        };
        self.0.spare.discard();
        self.close_client_execs();
        drop(slots);
        self.0
            .setup
            .processes
            .end_session(&self.0.setup.session)
            .await;
        if let Err(told) = self.0.sandbox_scratch.lock().remove() {
            tracing::warn!(session = %self.0.setup.session, "{told}");
        }
    }
}

/// The end of a task that was stopped.
fn stopped_end(reason: CloseReason) -> TaskEnd {
    use loopd_proto::event::task::TaskOutcome;
    TaskEnd::new(TaskOutcome::Cancelled).because(match reason {
        CloseReason::Cancelled => "the user stopped it",
        CloseReason::Finished
        | CloseReason::Stopped
        | CloseReason::MadeRoom
        | CloseReason::Lost => "it was stopped",
        CloseReason::Unattended => {
            "it was stopped because it waited for input and no user was there for a long time"
        }
        CloseReason::PlanModeEnded => "it was stopped because plan mode ended",
    })
}

/// The end of a task that was not stopped.
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
