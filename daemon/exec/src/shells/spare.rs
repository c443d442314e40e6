//! One shell opened ahead, for the next command that wants a fresh one. At most one per session,
//! used once, and gone when the loop rests.

use tokio::sync::watch;

use super::CommandContext;
use crate::terminal::Shell;

/// The shell that waits, if any.
pub(super) struct SpareShell {
    state: watch::Sender<State>,
}

#[derive(Default)]
enum State {
    #[default]
    None,
    Opening(CommandContext),
    Ready(CommandContext, Shell),
}

impl Default for SpareShell {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(State::None),
        }
    }
}

impl SpareShell {
    /// Whether one should be opened; who is told so opens it.
    pub(super) fn wants(&self, context: &CommandContext) -> bool {
        self.state.send_if_modified(|state| {
            let there = match &*state {
                State::None => false,
                State::Opening(_) => true,
                State::Ready(known, _) => known == context,
            };
            if !there {
                *state = State::Opening(context.clone());
            }
            !there
        })
    }

    /// Keeps the one that was opened, unless nobody wants it any more.
    pub(super) fn keep(&self, context: CommandContext, shell: Shell) {
        self.state.send_if_modified(|state| {
            let wanted = matches!(&*state, State::Opening(wanted) if *wanted == context);
            if wanted {
                *state = State::Ready(context, shell);
            }
            wanted
        });
    }

    /// None could be opened.
    pub(super) fn give_up(&self) {
        self.state.send_if_modified(|state| {
            let opening = matches!(state, State::Opening(_));
            if opening {
                *state = State::None;
            }
            opening
        });
    }

    /// Takes the one for these context, waiting for it while it is being opened.
    pub(super) async fn take(&self, context: &CommandContext) -> Option<Shell> {
        let mut changes = self.state.subscribe();
        let settled = |state: &State| !matches!(state, State::Opening(wanted) if wanted == context);
        // The sender lives as long as `self`: waiting cannot fail.
        changes.wait_for(settled).await.ok();
        let mut taken = None;
        self.state.send_if_modified(|state| {
            let fits = matches!(&*state, State::Ready(known, _) if known == context);
            if fits && let State::Ready(_, shell) = std::mem::take(state) {
                taken = Some(shell);
            }
            fits
        });
        taken.filter(Shell::alive)
    }

    pub(super) fn drop_it(&self) {
        self.state.send_if_modified(|state| {
            let there = !matches!(state, State::None);
            *state = State::None;
            there
        });
    }
}
