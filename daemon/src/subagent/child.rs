//! The interface of a child session for its run. `session` implements [`Child`]; tests may, too.
//!
//! The child's session reports its status from its log after each commit. The session alone owns
//! the [`RunLink`], so that the run also notices an end that is in no log.

use std::sync::Arc;

use futures::future::BoxFuture;
use loopd_proto::event::Durable;
use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::task::WorkUsage;
use loopd_proto::id::TaskId;
use loopd_proto::time::Timestamp;
use tokio::sync::watch;

use super::error::ChildError;
use super::slots::SlotLease;
use super::watcher::Watcher;
use loopd_kernel::tasks::{Ending, Task};

/// A live child session.
pub trait Child: Send + Sync + 'static {
    /// Returns whether the child had received no message when it was made or opened.
    fn is_new(&self) -> bool;

    /// Sends the child a message: at once if it is idle, else before its next model call. The child
    /// reports its new status before this resolves.
    fn say(&self, message: String) -> BoxFuture<'static, Result<(), ChildError>>;

    /// Interrupts the work of the child.
    fn abort(&self) -> BoxFuture<'static, ()>;

    /// Lets the child rest: it does not begin to work by itself any more. Returns its commands that
    /// still run, or `None` if it has begun to work again.
    fn release(&self) -> BoxFuture<'static, Option<Vec<Task>>>;

    /// Returns whether commands have ended that the child has not been told of.
    fn has_news(&self) -> BoxFuture<'static, bool>;

    /// Lets the child work on what it has not been told of yet.
    fn wake(&self) -> BoxFuture<'static, Result<(), ChildError>>;

    /// Waits until a command of the child has ended; `None` if the child is gone.
    fn command_end(&self, id: TaskId) -> BoxFuture<'static, Option<CommandEnding>>;

    /// Returns the last of what a command of the child has printed so far.
    fn command_output(&self, id: TaskId) -> BoxFuture<'static, String>;

    /// Stops a command of the child; returns whether it ran.
    fn stop_command(&self, id: TaskId) -> BoxFuture<'static, bool>;

    /// Closes the child as it is. Its log says nothing of it, so that its open questions stay open.
    fn close(&self) -> BoxFuture<'static, ()>;

    /// Ends the child and its commands; its log stays.
    fn stop(&self) -> BoxFuture<'static, ()>;
}

/// How a command ended that a child had left running.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandEnding {
    pub ending: Ending,
    /// The last of its output.
    pub output: String,
}

/// The status of a child, from what is committed in its log.
#[derive(Debug, Clone)]
pub enum ChildStatus {
    AtWork,
    /// The agent loop of the child has ended, and no message waits.
    Rests(Arc<ChildResult>),
    /// The session ended before the child had finished its work.
    Gone(ChildError),
}

/// How a child's work ended, and its response since its run began.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildResult {
    /// The outcome in `loopd.loop_ended`.
    pub outcome: Option<LoopOutcome>,
    /// The last text of the model.
    pub response: Option<String>,
    /// Why the answer is not what was asked for, although the loop came to its end: it was cut off or
    /// withheld, or there is none.
    pub unfinished: Option<String>,
    /// What calls had until they were interrupted with the child.
    pub cut_calls: Option<String>,
    pub error: Option<String>,
    /// Whether the error says that a limit is reached.
    pub limited: bool,
    pub usage: WorkUsage,
}

/// Links a child's session to the run that drives it.
#[derive(Debug)]
pub struct RunLink {
    watcher: Arc<Watcher>,
    lease: Arc<SlotLease>,
    status: watch::Sender<ChildStatus>,
}

impl RunLink {
    /// Makes a link, and the receiver of the status for the run.
    pub(super) fn new(watcher: Arc<Watcher>, lease: Arc<SlotLease>) -> (Self, StatusUpdates) {
        let (status, updates) = watch::channel(ChildStatus::AtWork);
        let link = Self {
            watcher,
            lease,
            status,
        };
        (link, StatusUpdates(updates))
    }

    pub fn lease(&self) -> &Arc<SlotLease> {
        &self.lease
    }

    /// Passes on an event that is being stored in the child's log.
    pub fn stored(&self, at: Timestamp, event: &Durable) {
        self.watcher.stored(at, event);
    }

    /// Reports the status of the child; a child that is gone stays gone.
    pub fn report(&self, status: ChildStatus) {
        self.status
            .send_if_modified(|known| match (&known, &status) {
                (ChildStatus::Gone(_), _) | (ChildStatus::AtWork, ChildStatus::AtWork) => false,
                (ChildStatus::AtWork | ChildStatus::Rests(_), _) => {
                    *known = status;
                    true
                }
            });
    }
}

/// The status of a child, for its run.
pub(super) struct StatusUpdates(watch::Receiver<ChildStatus>);

impl StatusUpdates {
    /// Returns the current status of the child.
    pub(super) fn now(&mut self) -> ChildStatus {
        self.0.borrow_and_update().clone()
    }

    /// Waits until the status differs from that of the last call of [`StatusUpdates::now`].
    pub(super) async fn changed(&mut self) -> Result<(), ChildError> {
        // The session dropped the link without a last report, so it panicked.
        self.0.changed().await.map_err(|_| ChildError::Crashed)
    }
}
