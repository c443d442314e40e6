//! Waits for a command in the foreground, and passes on its output meanwhile.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::tool::{Partial, shell_output};
use loopd_exec::shells::{AttachedCommand, WaitOutcome};
use loopd_exec::terminal::CommandState;

/// Waits for the command and passes on its output. A slow reader does not hold up the command.
pub(super) async fn follow(
    command: &AttachedCommand,
    wait: Duration,
    cancel: &CancellationToken,
    partial: &mpsc::Sender<Partial>,
) -> WaitOutcome {
    let pass_on = async {
        let mut changes = command.run.changes();
        // The loop ends with the command. Its last output is passed on below.
        while changes.changed().await.is_ok() {
            if matches!(changes.borrow_and_update().state, CommandState::Ended(_)) {
                break;
            }
            pass(command, partial);
        }
        std::future::pending::<()>().await;
    };
    let pause = tokio::select! {
        biased;
        pause = command.wait(wait, cancel) => pause,
        () = pass_on => WaitOutcome::Ended,
    };
    pass(command, partial);
    pause
}

fn pass(command: &AttachedCommand, partial: &mpsc::Sender<Partial>) {
    if !command.run.has_unread() {
        return;
    }
    let piece = shell_output::piece(command.run.unread());
    if !piece.is_empty() && partial.try_send(Partial::Output(piece)).is_err() {
        tracing::trace!("partial output was dropped: nobody takes it fast enough");
    }
}
