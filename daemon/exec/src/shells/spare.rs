//! One shell that is opened in advance for the next command that needs a new one. A session has at
//! most one. It is used once, and closed when the agent loop is idle.

use tokio::sync::watch;

use super::CommandContext;
use crate::terminal::Shell;

/// The spare shell of a session, if there is one.
pub(super) struct SpareShell {
    state: watch::Sender<SpareState>,
}

#[derive(Default)]
enum SpareState {
    #[default]
    None,
    Opening(CommandContext),
    Ready(CommandContext, Shell),
}

impl Default for SpareShell {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(SpareState::None),
        }
    }
}

impl SpareShell {
    /// Marks the spare shell as opening; on `true` the caller must open it, on `false` there is
    /// one.
    pub(super) fn start_opening(&self, context: &CommandContext) -> bool {
        self.state.send_if_modified(|state| {
            let present = match &*state {
                SpareState::None => false,
                SpareState::Opening(_) => true,
                SpareState::Ready(known, _) => known == context,
            };
            if !present {
                *state = SpareState::Opening(context.clone());
            }
            !present
        })
    }

    /// Stores an opened shell; closes it if it was discarded in the meantime.
    pub(super) fn keep(&self, context: CommandContext, shell: Shell) {
        self.state.send_if_modified(|state| {
            let wanted = matches!(&*state, SpareState::Opening(wanted) if *wanted == context);
            if wanted {
                *state = SpareState::Ready(context, shell);
            }
            wanted
        });
    }

    /// Notes that the shell could not be opened.
    pub(super) fn opening_failed(&self) {
        self.state.send_if_modified(|state| {
            let opening = matches!(state, SpareState::Opening(_));
            if opening {
                *state = SpareState::None;
            }
            opening
        });
    }

    /// Takes the spare shell for this context; waits while it is being opened.
    pub(super) async fn take(&self, context: &CommandContext) -> Option<Shell> {
        let mut changes = self.state.subscribe();
        let settled =
            |state: &SpareState| !matches!(state, SpareState::Opening(wanted) if wanted == context);
        // The sender lives as long as `self`: waiting cannot fail.
        changes.wait_for(settled).await.ok();
        let mut taken = None;
        self.state.send_if_modified(|state| {
            let usable = matches!(&*state, SpareState::Ready(known, _) if known == context);
            if usable && let SpareState::Ready(_, shell) = std::mem::take(state) {
                taken = Some(shell);
            }
            usable
        });
        taken.filter(Shell::alive)
    }

    pub(super) fn discard(&self) {
        self.state.send_if_modified(|state| {
            let present = !matches!(state, SpareState::None);
            *state = SpareState::None;
            present
        });
    }
}
