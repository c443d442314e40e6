//! One run of a sub-agent: one prompt, from taking a slot until the sub-agent is idle.

mod drive;

use std::sync::Arc;

use loopd_proto::event::task::{Execution, WorkUsage};
use loopd_proto::id::TaskId;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::error::RunFailure;
use super::order::SpawnSpec;
use super::parent::ChildSpawner;
use super::watcher::{RunProgress, Watcher};

/// The most messages that may wait for a working sub-agent.
const MOST_MESSAGES: usize = 64;

/// Whether the run makes a new session or reopens one.
pub(super) enum RunStart {
    New(Box<SpawnSpec>, Arc<dyn ChildSpawner>),
    Again,
    /// The sub-agent has no new prompt: it hears of a command that it had left running.
    Woken,
    /// The sub-agent waits for an answer since before the daemon was started again.
    Rejoined,
}

/// What a child is told when its run begins.
pub(super) enum FirstStep {
    Say(String),
    Wake,
    /// Nothing: it waits already.
    Wait,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct RunEnding {
    pub end: RunEnd,
    /// The answer of the sub-agent, or its last text.
    pub response: Option<String>,
    /// Why the answer is not complete, although the sub-agent has come to its end.
    pub unfinished: Option<String>,
    /// What its calls had until they were interrupted with it.
    pub cut_calls: Option<String>,
    pub usage: WorkUsage,
    /// A text about the worktree, if it was not removed.
    pub worktree: Option<String>,
    /// How long the run took.
    pub duration_ms: u64,
    /// The commands that go on, by their ids in the session that started the sub-agent.
    pub left: Vec<TaskId>,
}

impl RunEnding {
    fn cancelled() -> Self {
        Self {
            end: RunEnd::Cancelled,
            response: None,
            unfinished: None,
            cut_calls: None,
            usage: WorkUsage::default(),
            worktree: None,
            duration_ms: 0,
            left: Vec::new(),
        }
    }

    fn failed(why: impl Into<RunFailure>) -> Self {
        Self {
            end: RunEnd::Failed(why.into()),
            ..Self::cancelled()
        }
    }
}

#[derive(Debug, Clone)]
pub enum RunEnd {
    Answered,
    Failed(RunFailure),
    Cancelled,
}

/// One prompt to one sub-agent.
pub struct SubagentRun {
    pub id: TaskId,
    inner: Mutex<RunState>,
    cancel: CancellationToken,
    ending: watch::Sender<Option<RunEnding>>,
    promoted: watch::Sender<bool>,
    posted: Notify,
    watcher: Mutex<Option<Arc<Watcher>>>,
}

struct RunState {
    execution: Execution,
    /// Messages for the sub-agent; `None` once the run takes no more.
    inbox: Option<Vec<String>>,
    cancelled: Option<CancelledBy>,
}

/// Whether a run took a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Posted {
    Taken,
    Full {
        limit: usize,
    },
    /// The run takes no more messages.
    Closed,
}

impl SubagentRun {
    pub(super) fn new(id: TaskId, execution: Execution) -> Self {
        Self {
            id,
            inner: Mutex::new(RunState {
                execution,
                inbox: Some(Vec::new()),
                cancelled: None,
            }),
            cancel: CancellationToken::new(),
            ending: watch::Sender::new(None),
            promoted: watch::Sender::new(false),
            posted: Notify::new(),
            watcher: Mutex::default(),
        }
    }

    /// Moves the run to the background; returns false if it was there already or is done.
    pub(super) fn release(&self) -> bool {
        let mut inner = self.inner.lock();
        if inner.execution == Execution::Background || inner.inbox.is_none() {
            return false;
        }
        inner.execution = Execution::Background;
        true
    }

    pub(super) fn say_promoted(&self) {
        self.promoted.send_replace(true);
    }

    /// Resolves when the sub-agent was moved to the background.
    pub async fn promoted(&self) {
        let mut promoted = self.promoted.subscribe();
        // The sender lives as long as the run.
        promoted.wait_for(|promoted| *promoted).await.ok();
    }

    pub fn execution(&self) -> Execution {
        self.inner.lock().execution
    }

    pub(super) fn cancel(&self, by: CancelledBy) {
        self.inner.lock().cancelled.get_or_insert(by);
        self.cancel.cancel();
    }

    /// Returns whether the run ends because its session is closed and can be opened again.
    fn is_closed(&self) -> bool {
        self.inner.lock().cancelled == Some(CancelledBy::Closed)
    }

    /// Resolves when the run has ended and its end is in the log.
    pub async fn end(&self) -> RunEnding {
        let mut ending = self.ending.subscribe();
        let ended = ending.wait_for(Option::is_some).await;
        let ended = ended.ok().and_then(|ending| ending.clone());
        ended.unwrap_or_else(RunEnding::cancelled)
    }

    /// Queues a message for the sub-agent.
    pub(super) fn post(&self, message: String) -> Posted {
        let mut inner = self.inner.lock();
        let Some(inbox) = inner.inbox.as_mut() else {
            return Posted::Closed;
        };
        if inbox.len() >= MOST_MESSAGES {
            return Posted::Full {
                limit: MOST_MESSAGES,
            };
        }
        inbox.push(message);
        drop(inner);
        self.posted.notify_one();
        Posted::Taken
    }

    /// Ends a run that was never started.
    pub(super) fn give_up(&self) {
        self.inner.lock().inbox = None;
        self.ending.send_replace(Some(RunEnding::cancelled()));
    }

    fn take_posted(&self) -> Vec<String> {
        let mut inner = self.inner.lock();
        inner.inbox.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Closes the inbox; if messages wait, leaves it open and returns them.
    fn close_inbox(&self) -> Result<(), Vec<String>> {
        let mut inner = self.inner.lock();
        match inner.inbox.take() {
            Some(waiting) if !waiting.is_empty() => {
                inner.inbox = Some(Vec::new());
                Err(waiting)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Opens the inbox again for a sub-agent that works again.
    fn reopen_inbox(&self) {
        self.inner.lock().inbox.get_or_insert_default();
    }

    /// Closes the inbox at the end of the run; returns the messages that were not delivered.
    fn finish(&self) -> (Execution, Vec<String>) {
        let mut inner = self.inner.lock();
        (inner.execution, inner.inbox.take().unwrap_or_default())
    }

    /// Returns the progress of the sub-agent.
    pub fn progress(&self) -> RunProgress {
        let watcher = self.watcher.lock().clone();
        watcher
            .map(|watcher| watcher.progress())
            .unwrap_or_default()
    }
}

/// Who cancels a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelledBy {
    /// The model, which learns about the end from the result of its tool call.
    Model,
    /// A client; the model is told about it.
    Client,
    /// The abort of the turn that waits for the sub-agent.
    Abort,
    /// The end of the session, which is in its log already.
    SessionEnds,
    /// The session is closed and can be opened again. No log says that the sub-agent was stopped, so
    /// that a question of it stays open.
    Closed,
}

impl CancelledBy {
    /// Returns the reason why the sub-agent did not finish.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Model => "who started it stopped it",
            Self::Client => "a client stopped it",
            Self::Abort => "the turn that waited for it was aborted",
            Self::SessionEnds | Self::Closed => "its session ended",
        }
    }
}

/// Waits until the run ends, is moved to the background, or the wait is cancelled.
pub async fn first(cancel: &CancellationToken, run: &SubagentRun) -> RunWait {
    tokio::select! {
        biased;
        ending = run.end() => RunWait::Ended(ending),
        () = run.promoted() => RunWait::Promoted,
        () = cancel.cancelled() => RunWait::Cancelled,
    }
}

/// The result of waiting for a run.
#[derive(Debug, Clone)]
pub enum RunWait {
    Ended(RunEnding),
    /// The sub-agent was moved to the background.
    Promoted,
    Cancelled,
}
