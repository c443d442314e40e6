//! A child session as the run that drives it sees it. `session` implements [`Child`]; a test may, too.
//!
//! How a child stands comes from its log: its session reports it after each commit. The run learns
//! also of an end that is in no log, because the session alone owns the [`RunLink`].

use std::sync::Arc;

use futures::future::BoxFuture;
use loopd_proto::event::Durable;
use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::task::WorkUsage;
use loopd_proto::time::Timestamp;
use tokio::sync::watch;

use super::error::ChildError;
use super::slots::SlotLease;
use super::watcher::Watcher;

/// A live child session.
pub trait Child: Send + Sync + 'static {
    /// Whether nobody had spoken to it when it was made or opened.
    fn is_new(&self) -> bool;

    /// Gives it a message: at once when it rests, else before its next model call. How the child
    /// stands after that is reported before this resolves.
    fn say(&self, message: String) -> BoxFuture<'static, Result<(), ChildError>>;

    /// Interrupts what it does.
    fn abort(&self) -> BoxFuture<'static, ()>;

    /// Ends it; its log stays.
    fn stop(&self) -> BoxFuture<'static, ()>;
}

/// How a child stands, by what is committed in its log.
#[derive(Debug, Clone)]
pub enum ChildStatus {
    AtWork,
    /// Its loop ended, and nothing waits for it.
    Rests(Arc<ChildResult>),
    /// Its session is gone without having come to rest.
    Gone(ChildError),
}

/// How a child came to rest, and what it said since its run began.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildResult {
    /// As `loopd.loop_ended` has it.
    pub outcome: Option<LoopOutcome>,
    /// The last thing it said.
    pub response: Option<String>,
    pub error: Option<String>,
    pub usage: WorkUsage,
}

/// What ties a child's session to the run that drives it.
#[derive(Debug)]
pub struct RunLink {
    watcher: Arc<Watcher>,
    lease: Arc<SlotLease>,
    status: watch::Sender<ChildStatus>,
}

impl RunLink {
    /// A link, and what the run learns through it.
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

    /// Something is being stored in the child's log.
    pub fn stored(&self, at: Timestamp, event: &Durable) {
        self.watcher.stored(at, event);
    }

    /// Says how the child stands; what is gone stays gone.
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

/// How a child stands, for its run.
pub(super) struct StatusUpdates(watch::Receiver<ChildStatus>);

impl StatusUpdates {
    /// How the child stands now.
    pub(super) fn now(&mut self) -> ChildStatus {
        self.0.borrow_and_update().clone()
    }

    /// Waits until the child stands otherwise than at the last call of [`StatusUpdates::now`].
    pub(super) async fn changed(&mut self) -> Result<(), ChildError> {
        // The link was dropped without a word: its session panicked.
        self.0.changed().await.map_err(|_| ChildError::Crashed)
    }
}
