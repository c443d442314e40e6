//! Tasks on MCP servers that a session has in its registry: each is followed to its end, which the log
//! then says. They belong to the session, not to the turn that began them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_mcp::port::CallRef;
use loopd_mcp::{CallError, CallResult, FollowedTask, Server, TaskHandle, TaskSupport};
use loopd_proto::event::task::{ExternalWork, McpTaskWork, TaskOutcome, TaskWork};
use loopd_proto::id::{TaskId, ToolCallId};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::super::large_output::{self, OutputLimits};
use crate::redaction::file::FileMasks;
use loopd_exec::keep_alive::KeepAlive;
use loopd_exec::shells::{TaskLog, TaskLogError};
use loopd_kernel::command::{Command, Refusal, TaskEnd, TaskStart};
use loopd_kernel::tasks::Task;

/// The type under which these tasks are listed.
const MCP_TASK: &str = "mcp-task";
/// The most notes about progress that wait to be recorded; further ones are dropped.
pub(super) const MOST_NOTES: usize = 16;
/// The shortest time between two notes of a task in the log.
const BETWEEN_NOTES: Duration = Duration::from_secs(2);
/// How long servers may take to be told that nobody wants their tasks any more.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);
/// The most names that are tried for a task.
const MOST_NAMES: usize = 1_000;
/// The longest arguments that are kept with a task.
const LONGEST_PROMPT: usize = 16_000;

/// What the tasks of a session need.
pub struct McpTasksSetup {
    pub log: Arc<dyn TaskLog>,
    pub keep_alive: KeepAlive,
    /// The folder for long results.
    pub scratch: PathBuf,
    /// The secrets that these must not hold.
    pub masks: FileMasks,
    /// How long a call waits for a task before it goes to the background.
    pub patience: Duration,
}

/// The tasks on MCP servers of one session.
#[derive(Clone)]
pub struct McpTasks(Arc<Inner>);

struct Inner {
    setup: McpTasksSetup,
    jobs: Mutex<BTreeMap<TaskId, Job>>,
    next: AtomicU64,
    tracker: TaskTracker,
    /// Cancelled when the session ends.
    ended: CancellationToken,
}

/// One task that is followed.
#[derive(Clone)]
struct Job {
    /// Cancels the task on its server.
    cancel: CancellationToken,
    /// Cancelled when the task has ended, or its server was told to end it.
    told: CancellationToken,
    /// Cancelled when the end of the task is in the log.
    done: CancellationToken,
}

/// What becomes of tasks when their session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtClose {
    /// They go on on their servers.
    Leave,
    Cancel,
}

/// A task that goes to the background.
pub struct BackgroundTask {
    pub call: ToolCallId,
    pub work: McpTaskWork,
    /// The arguments of the call.
    pub arguments: String,
    pub following: Following,
}

/// A task that is being followed.
pub struct Following {
    pub end: BoxFuture<'static, Result<CallResult, CallError>>,
    /// What the server says about its progress.
    pub notes: mpsc::Receiver<String>,
    /// Cancels the task on its server.
    pub cancel: CancellationToken,
}

impl Following {
    /// Goes on with a task that began before, on this server.
    fn again(server: &Arc<Server>, task: &McpTaskWork, call: Option<&ToolCallId>) -> Self {
        let (notes, heard) = mpsc::channel(MOST_NOTES);
        let cancel = CancellationToken::new();
        let followed = FollowedTask {
            handle: TaskHandle {
                id: task.task_id.clone(),
                dialect: task.dialect,
            },
            started: None,
            label: CallRef(call.map(|call| call.as_str().to_owned())),
            notes,
            cancel: cancel.clone(),
        };
        let server = server.clone();
        Self {
            end: async move { server.follow(followed).await }.boxed(),
            notes: heard,
            cancel,
        }
    }
}

impl fmt::Debug for McpTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpTasks").finish_non_exhaustive()
    }
}

impl McpTasks {
    pub fn new(setup: McpTasksSetup) -> Self {
        Self(Arc::new(Inner {
            setup,
            jobs: Mutex::default(),
            next: AtomicU64::new(1),
            tracker: TaskTracker::new(),
            ended: CancellationToken::new(),
        }))
    }

    /// Returns how long a call waits for a task before it goes to the background.
    pub fn patience(&self, support: TaskSupport) -> Duration {
        match support {
            TaskSupport::Required => Duration::ZERO,
            TaskSupport::Optional | TaskSupport::Forbidden => self.0.setup.patience,
        }
    }

    /// Puts a task into the registry and follows it; its start is in the log when this resolves. A task
    /// that cannot be listed is cancelled.
    pub async fn keep(&self, task: BackgroundTask) -> Result<TaskId, String> {
        let BackgroundTask {
            call,
            work,
            arguments,
            following,
        } = task;
        let id = match self.record_start(call, work, &arguments).await {
            Ok(id) => id,
            Err(error) => {
                following.cancel.cancel();
                // The server is told; what the task came to until then is of no use.
                following.end.await.ok();
                return Err(error.to_string());
            }
        };
        self.follow(id.clone(), following);
        Ok(id)
    }

    async fn record_start(
        &self,
        call: ToolCallId,
        work: McpTaskWork,
        arguments: &str,
    ) -> Result<TaskId, TaskLogError> {
        let prompt: String = arguments.chars().take(LONGEST_PROMPT).collect();
        let mut tried = 0;
        loop {
            let number = self.0.next.fetch_add(1, Ordering::Relaxed);
            let id = TaskId::new(format!("mcp-{number}"));
            let start = TaskStart {
                id: id.clone(),
                call: Some(call.clone()),
                description: format!("{} of {}", work.tool, work.server),
                started_at: None,
                work: TaskWork::External(ExternalWork {
                    agent_type: MCP_TASK.to_owned(),
                    prompt: prompt.clone(),
                    mcp: Some(work.clone()),
                }),
            };
            tried += 1;
            match self.record(Command::TaskStarted(Box::new(start))).await {
                Ok(()) => return Ok(id),
                Err(TaskLogError::Refused(Refusal::TaskExists(_))) if tried < MOST_NAMES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Goes on with tasks that an earlier daemon, or an earlier stay of the session in memory, has left
    /// running. A task whose server is not there any more has failed.
    pub async fn rejoin(&self, tasks: Vec<(Task, Option<Arc<Server>>)>) {
        for (task, server) in tasks {
            let mcp = task.external().and_then(|work| work.mcp.as_ref());
            let (Some(mcp), false) = (mcp, self.0.jobs.lock().contains_key(&task.id)) else {
                continue;
            };
            if let Some(server) = server {
                let following = Following::again(&server, mcp, task.call.as_ref());
                self.follow(task.id.clone(), following);
            } else {
                let why = format!("the MCP server {} is not there any more", mcp.server);
                self.tell(Command::TaskEnded {
                    id: task.id.clone(),
                    end: TaskEnd::new(TaskOutcome::Failed).because(why),
                })
                .await;
            }
        }
    }

    /// Follows a task to its end and records it.
    fn follow(&self, id: TaskId, mut following: Following) {
        let job = Job {
            cancel: following.cancel.clone(),
            told: CancellationToken::new(),
            done: CancellationToken::new(),
        };
        self.0.jobs.lock().insert(id.clone(), job.clone());
        let at_work = self.0.setup.keep_alive.work();
        let tasks = self.clone();
        self.0.tracker.spawn(async move {
            let _at_work = at_work;
            let ended = tokio::select! {
                ended = tasks.to_the_end(&id, &mut following) => Some(ended),
                () = tasks.0.ended.cancelled() => None,
            };
            job.told.cancel();
            if let Some(ended) = ended {
                let end = tasks.task_end(ended).await;
                tasks
                    .tell(Command::TaskEnded {
                        id: id.clone(),
                        end,
                    })
                    .await;
            }
            tasks.0.jobs.lock().remove(&id);
            job.done.cancel();
        });
    }

    /// Waits for the end of a task. Of what the server says meanwhile the log gets the newest now and
    /// then.
    async fn to_the_end(
        &self,
        id: &TaskId,
        following: &mut Following,
    ) -> Result<CallResult, CallError> {
        let mut newest = None;
        let mut not_before = Instant::now();
        loop {
            tokio::select! {
                ended = &mut following.end => return ended,
                Some(note) = following.notes.recv() => newest = Some(note),
                () = tokio::time::sleep_until(not_before), if newest.is_some() => {
                    not_before = Instant::now() + BETWEEN_NOTES;
                    if let Some(note) = newest.take() {
                        let id = id.clone();
                        self.tell(Command::TaskNoted { id, note }).await;
                    }
                }
            }
        }
    }

    async fn task_end(&self, ended: Result<CallResult, CallError>) -> TaskEnd {
        match ended {
            Ok(result) => {
                let failed = result.is_error;
                let text = self.result_text(result).await;
                if failed {
                    TaskEnd::new(TaskOutcome::Failed).because(text)
                } else {
                    TaskEnd {
                        result: Some(text),
                        ..TaskEnd::new(TaskOutcome::Completed)
                    }
                }
            }
            Err(CallError::Cancelled) => {
                TaskEnd::new(TaskOutcome::Cancelled).because("it was cancelled")
            }
            Err(CallError::CancelledByServer) => {
                TaskEnd::new(TaskOutcome::Cancelled).because("its server cancelled it")
            }
            Err(error) => {
                let why = self.bound(error.to_string()).await;
                TaskEnd::new(TaskOutcome::Failed).because(why)
            }
        }
    }

    async fn result_text(&self, result: CallResult) -> String {
        let mut text = result.text;
        let left_out = result.binaries.len();
        if left_out > 0 {
            text += "\n[";
            text += &left_out.to_string();
            text += " images or files of this result are left out.]";
        }
        self.bound(text).await
    }

    /// Writes a long text to a file.
    async fn bound(&self, mut text: String) -> String {
        let McpTasksSetup { scratch, masks, .. } = &self.0.setup;
        masks.get().clean_in_place(&mut text);
        large_output::bound(text, scratch, OutputLimits::default()).await
    }

    /// Returns whether the task is followed here.
    pub fn has(&self, id: &TaskId) -> bool {
        self.0.jobs.lock().contains_key(id)
    }

    /// Cancels a task here and on its server; its end is in the log when this resolves. Returns whether
    /// there was such a task.
    pub async fn cancel(&self, id: &TaskId) -> bool {
        let job = self.0.jobs.lock().get(id).cloned();
        let Some(job) = job else {
            return false;
        };
        job.cancel.cancel();
        job.done.cancelled().await;
        true
    }

    /// Cancels all tasks; returns how many there were.
    pub async fn cancel_all(&self) -> usize {
        let ids: Vec<TaskId> = self.0.jobs.lock().keys().cloned().collect();
        let cancelled = futures::future::join_all(ids.iter().map(|id| self.cancel(id))).await;
        cancelled.into_iter().filter(|it| *it).count()
    }

    /// Waits until a task has ended; at once if there is none.
    pub async fn end_of(&self, id: &TaskId) {
        let job = self.0.jobs.lock().get(id).cloned();
        if let Some(job) = job {
            job.done.cancelled().await;
        }
    }

    /// Records a command. Fails if the session ends, because it then no longer replies.
    async fn record(&self, command: Command) -> Result<(), TaskLogError> {
        tokio::select! {
            stored = self.0.setup.log.record(command) => stored,
            () = self.0.ended.cancelled() => Err(TaskLogError::SessionEnded),
        }
    }

    async fn tell(&self, command: Command) {
        if let Err(why) = self.record(command).await
            && !self.0.ended.is_cancelled()
        {
            tracing::warn!(%why, "the session was not told about a task on an MCP server");
        }
    }

    /// Stops following tasks. With `Cancel` their servers are told that nobody wants them any more.
    pub async fn close(&self, what: AtClose) {
        if what == AtClose::Cancel {
            for job in self.0.jobs.lock().values() {
                job.cancel.cancel();
            }
            let jobs: Vec<Job> = self.0.jobs.lock().values().cloned().collect();
            let told = futures::future::join_all(jobs.iter().map(|job| job.told.cancelled()));
            tokio::time::timeout(CLOSED_WITHIN, told).await.ok();
        }
        self.0.ended.cancel();
        self.0.tracker.close();
        self.0.tracker.wait().await;
    }
}
