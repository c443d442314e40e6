//! One run: one prompt to one agent, from its slot to its rest.

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

/// How many messages may wait for an agent that is at work.
const MOST_MESSAGES: usize = 64;

/// Whether the agent's session is new.
pub(super) enum RunStart {
    New(Box<SpawnSpec>, Arc<dyn ChildSpawner>),
    Again,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct RunEnding {
    pub end: RunEnd,
    /// What the agent answered, or the last it said.
    pub response: Option<String>,
    pub usage: WorkUsage,
    /// What became of the copy it worked in.
    pub worktree: Option<String>,
}

impl RunEnding {
    fn cancelled() -> Self {
        Self {
            end: RunEnd::Cancelled,
            response: None,
            usage: WorkUsage::default(),
            worktree: None,
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

/// One prompt to one agent.
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
    /// Messages for the agent; none once it takes no more.
    inbox: Option<Vec<String>>,
    cancelled: Option<CancelledBy>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Posted {
    Taken,
    Full {
        limit: usize,
    },
    /// The run takes no more.
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

    /// Stops the waiting; false when nobody waits or the agent is done.
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

    /// Resolves when somebody moved the agent to the background.
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

    /// Resolves when the run is over and on record.
    pub async fn end(&self) -> RunEnding {
        let mut ending = self.ending.subscribe();
        let ended = ending.wait_for(Option::is_some).await;
        let ended = ended.ok().and_then(|ending| ending.clone());
        ended.unwrap_or_else(RunEnding::cancelled)
    }

    /// Leaves a message for the agent.
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

    /// The run will not take place.
    pub(super) fn give_up(&self) {
        self.inner.lock().inbox = None;
        self.ending.send_replace(Some(RunEnding::cancelled()));
    }

    fn take_posted(&self) -> Vec<String> {
        let mut inner = self.inner.lock();
        inner.inbox.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes no more messages, unless some wait.
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

    /// The run is over: takes no more messages, and gives back those that were never heard.
    fn finish(&self) -> (Execution, Vec<String>) {
        let mut inner = self.inner.lock();
        (inner.execution, inner.inbox.take().unwrap_or_default())
    }

    /// How the agent gets on.
    pub fn progress(&self) -> RunProgress {
        let watcher = self.watcher.lock().clone();
        watcher
            .map(|watcher| watcher.progress())
            .unwrap_or_default()
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
