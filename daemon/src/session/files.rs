//! Changes of a session's own files, made one at a time, each followed by its event.
//!
//! No other change runs while a change finds out whether its file is new. The log has the changes
//! in the order in which they were made.

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::running::RunningEffects;
use super::{Message, SessionError, SessionHandle};
use loopd_kernel::command::Command;

/// The most changes that may wait.
const MOST_WAITING: usize = 256;

/// A change together with its event and its reply.
pub(super) type FileChange = BoxFuture<'static, ()>;

/// The task that makes the changes; it starts with the first change.
#[derive(Default)]
pub(super) struct FileWriter {
    queue: Option<mpsc::Sender<FileChange>>,
}

impl FileWriter {
    /// Queues a change. If the queue is full, the change and its reply are dropped.
    pub(super) fn push(&mut self, mut change: FileChange, tasks: &mut RunningEffects) {
        if let Some(queue) = &self.queue {
            match queue.try_send(change) {
                Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => return,
                // The task has panicked, so a new one starts.
                Err(mpsc::error::TrySendError::Closed(back)) => change = back,
            }
        }
        let (queue, mut waiting) = mpsc::channel(MOST_WAITING);
        tasks.spawn(async move {
            change.await;
            while let Some(change) = waiting.recv().await {
                change.await;
            }
        });
        self.queue = Some(queue);
    }
}

impl SessionHandle {
    /// Changes a file of the session, then stores the event of the change, if there is one.
    /// `change` may block.
    pub fn change_file<E, F>(
        &self,
        change: F,
    ) -> impl Future<Output = Result<(), E>> + Send + use<E, F>
    where
        E: From<SessionError> + Send + 'static,
        F: FnOnce() -> Result<Option<Command>, E> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let session = self.clone();
        let work = async move {
            let done = session.make(change).await;
            // The send fails if the caller has stopped waiting; the file is changed all the same.
            reply.send(done).ok();
        };
        let posted = self.post(Message::ChangeFile(work.boxed()));
        let session = self.clone();
        async move {
            posted?;
            answer.await.unwrap_or_else(|_| {
                Err(E::from(if session.is_closed() {
                    SessionError::Ended(session.id)
                } else {
                    SessionError::Overloaded(session.id)
                }))
            })
        }
    }

    async fn make<E, F>(&self, change: F) -> Result<(), E>
    where
        E: From<SessionError> + Send + 'static,
        F: FnOnce() -> Result<Option<Command>, E> + Send + 'static,
    {
        let changed = tokio::task::spawn_blocking(change).await;
        let changed = changed.map_err(|error| {
            tracing::error!(session = %self.id, %error, "a file could not be changed");
            SessionError::FileNotChanged(self.id.clone())
        })?;
        if let Some(event) = changed? {
            self.command(event).await?;
        }
        Ok(())
    }
}
