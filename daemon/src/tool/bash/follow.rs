//! Waits for a command in front while everyone who watches sees what it prints.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::jobs::{Job, Pause};
use crate::shell::RunState;
use crate::tool::shell_output;

/// Waits, passing on what the command prints. Nobody who watches holds it up.
pub(super) async fn follow(
    job: &Job,
    wait: Duration,
    cancel: &CancellationToken,
    partial: &mpsc::Sender<String>,
) -> Pause {
    let pass_on = async {
        let mut changes = job.run.changes();
        // Ends with the command; what it printed last is passed on below.
        while changes.changed().await.is_ok() {
            if matches!(changes.borrow_and_update().state, RunState::Ended(_)) {
                break;
            }
            pass(job, partial);
        }
        std::future::pending::<()>().await;
    };
    let pause = tokio::select! {
        biased;
        pause = job.pause(wait, cancel) => pause,
        () = pass_on => Pause::Ended,
    };
    pass(job, partial);
    pause
}

fn pass(job: &Job, partial: &mpsc::Sender<String>) {
    if !job.run.has_unread() {
        return;
    }
    let piece = shell_output::piece(job.run.unread());
    if !piece.is_empty() && partial.try_send(piece).is_err() {
        tracing::trace!("partial output was dropped: nobody takes it fast enough");
    }
}
