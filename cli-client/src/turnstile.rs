//! Lets questions wait until the events before them are shown: a question arrives beside the events,
//! and would otherwise come before the line of the tool that it is about.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};

/// How many questions may wait; more than a person can read.
const MOST: usize = 256;
/// How long a question waits at most, if nobody shows events.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Where questions wait. Clones share it.
#[derive(Clone)]
pub(crate) struct Turnstile {
    sender: mpsc::Sender<oneshot::Sender<()>>,
    waiting: Arc<Mutex<mpsc::Receiver<oneshot::Sender<()>>>>,
}

/// A question that waits.
pub(crate) struct WaitingQuestion(oneshot::Sender<()>);

impl WaitingQuestion {
    /// Lets it be asked.
    pub(crate) fn release(self) {
        // It fails if the question was answered elsewhere in the meantime.
        self.0.send(()).ok();
    }
}

impl Turnstile {
    pub(crate) fn new() -> Self {
        let (sender, waiting) = mpsc::channel(MOST);
        Self {
            sender,
            waiting: Arc::new(Mutex::new(waiting)),
        }
    }

    /// Waits until what came before is shown.
    pub(crate) async fn pass(&self) {
        let (sender, released) = oneshot::channel();
        if self.sender.try_send(sender).is_ok() {
            // Whether it was released or nobody is there to release it: it is asked now.
            tokio::time::timeout(LONGEST_WAIT, released).await.ok();
        }
    }

    /// Waits for a question. To be polled only when no event is left to show.
    pub(crate) async fn next(&self) -> WaitingQuestion {
        loop {
            if let Some(sender) = self.waiting.lock().await.recv().await
                && !sender.is_closed()
            {
                return WaitingQuestion(sender);
            }
        }
    }
}
