//! One shell opened ahead, for the next command that wants a fresh one. At most one per session,
//! used once, and gone when the loop rests.

use tokio::sync::watch;

use super::Surroundings;
use crate::shell::Shell;

/// The shell that waits, if any.
pub(super) struct Spare {
    state: watch::Sender<State>,
}

#[derive(Default)]
enum State {
    #[default]
    None,
    Opening(Surroundings),
    Ready(Surroundings, Shell),
}

impl Default for Spare {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(State::None),
        }
    }
}

impl Spare {
    /// Whether one should be opened; who is told so opens it.
    pub(super) fn wants(&self, surroundings: &Surroundings) -> bool {
        self.state.send_if_modified(|state| {
            let there = match &*state {
                State::None => false,
                State::Opening(_) => true,
                State::Ready(known, _) => known == surroundings,
            };
            if !there {
                *state = State::Opening(surroundings.clone());
            }
            !there
        })
    }

    /// Keeps the one that was opened, unless nobody wants it any more.
    pub(super) fn keep(&self, surroundings: Surroundings, shell: Shell) {
        self.state.send_if_modified(|state| {
            let wanted = matches!(&*state, State::Opening(wanted) if *wanted == surroundings);
            if wanted {
                *state = State::Ready(surroundings, shell);
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

    /// Takes the one for these surroundings, waiting for it while it is being opened.
    pub(super) async fn take(&self, surroundings: &Surroundings) -> Option<Shell> {
        let mut changes = self.state.subscribe();
        let settled =
            |state: &State| !matches!(state, State::Opening(wanted) if wanted == surroundings);
        // The sender lives as long as `self`: waiting cannot fail.
        changes.wait_for(settled).await.ok();
        let mut taken = None;
        self.state.send_if_modified(|state| {
            let fits = matches!(&*state, State::Ready(known, _) if known == surroundings);
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
