//! How the other parts of `loop` reach the conversation that owns the screen: they print above its
//! live region, and ask questions in it.

use std::sync::Arc;

use loopd_sdk::PermissionDecision;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use super::question::{LineQuestion, PermissionQuestion, PermissionText, Question};

/// How many questions may wait to be shown; more than a person can read.
const MOST_QUESTIONS: usize = 256;

/// A conversation that owns the screen. Clones reach the same one.
#[derive(Clone)]
pub(crate) struct ChatHandle {
    shared: Arc<HandleShared>,
    questions: mpsc::Sender<Question>,
}

#[derive(Default)]
struct HandleShared {
    printed: Mutex<String>,
    has_printed: Notify,
    stopped: Notify,
}

impl ChatHandle {
    pub(super) fn new() -> (Self, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(MOST_QUESTIONS);
        let shared = Arc::default();
        (Self { shared, questions }, asked)
    }

    /// Prints a text above the live region.
    pub(crate) fn print(&self, text: &str) {
        self.shared.printed.lock().push_str(text);
        self.shared.has_printed.notify_one();
    }

    pub(crate) fn take_printed(&self) -> String {
        std::mem::take(&mut *self.shared.printed.lock())
    }

    pub(super) async fn has_printed(&self) {
        self.shared.has_printed.notified().await;
    }

    /// Stops a command of the conversation.
    pub(super) fn stop(&self) {
        self.shared.stopped.notify_waiters();
    }

    /// Waits until the person stops what runs.
    pub(crate) async fn stopped(&self) {
        self.shared.stopped.notified().await;
    }

    /// Asks for a line. Returns `None` if nobody answers; then the question stays open.
    pub(crate) async fn ask(&self, text: &str, prompt: &str) -> Option<String> {
        let (reply, answer) = oneshot::channel();
        let question = Question::Line(LineQuestion::new(text, prompt, reply));
        self.questions.send(question).await.ok()?;
        answer.await.ok()
    }

    /// Asks for a permission. Returns `None` if nobody answers; then the question stays open.
    pub(crate) async fn decide(&self, text: PermissionText) -> Option<PermissionDecision> {
        let (reply, answer) = oneshot::channel();
        let question = Question::Permission(PermissionQuestion::new(text, reply));
        self.questions.send(question).await.ok()?;
        answer.await.ok()
    }
}
