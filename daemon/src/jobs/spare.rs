//! One shell opened ahead, for the next command that wants a fresh one. At most one per session,
//! used once, and gone when the loop rests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Surroundings;
use crate::shell::Shell;

/// The shell that waits, if any.
#[derive(Default)]
pub(super) struct Spare {
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    None,
    Opening(Surroundings),
    Ready(Surroundings, Shell),
}

impl Spare {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one should be opened; who is told so opens it.
    pub(super) fn wants(&self, surroundings: &Surroundings) -> bool {
        let mut state = self.state();
        let there = match &*state {
            State::None => false,
            State::Opening(_) => true,
            State::Ready(known, _) => known == surroundings,
        };
        if !there {
            *state = State::Opening(surroundings.clone());
        }
        !there
    }

    /// Keeps the one that was opened, unless nobody wants it any more.
    pub(super) fn keep(&self, surroundings: Surroundings, shell: Shell) {
        let mut state = self.state();
        if matches!(&*state, State::Opening(wanted) if *wanted == surroundings) {
            *state = State::Ready(surroundings, shell);
        }
    }

    pub(super) fn give_up(&self) {
        let mut state = self.state();
        if matches!(*state, State::Opening(_)) {
            *state = State::None;
        }
    }

    /// Takes the one that waits, if it is for these surroundings.
    pub(super) fn take(&self, surroundings: &Surroundings) -> Option<Shell> {
        let mut state = self.state();
        if !matches!(&*state, State::Ready(known, _) if known == surroundings) {
            return None;
        }
        match std::mem::take(&mut *state) {
            State::Ready(_, shell) if shell.alive() => Some(shell),
            State::Ready(..) | State::Opening(_) | State::None => None,
        }
    }

    pub(super) fn drop_it(&self) {
        *self.state() = State::None;
    }
}
