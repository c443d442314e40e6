//! How an agent's session is when a run of it begins, which decides how it is spoken to.

use loopd_kernel::command::SendPlace;
use loopd_kernel::state::State;
use loopd_proto::id::Seq;

/// Why an agent that was interrupted at once cannot go on.
pub(super) const NEVER_BEGAN: &str =
    "it was interrupted before it could begin, so there is nothing to go on with; start a new task";

/// How an agent's session was when its run began.
pub(super) struct Beginning {
    /// Where its log ended.
    pub(super) since: Seq,
    /// Nobody had spoken to it.
    pub(super) is_new: bool,
    /// Where messages go: behind those that it had no time to read before.
    pub(super) place: SendPlace,
}

impl Beginning {
    pub(super) fn of(state: &State) -> Self {
        let waits = !state.queue.is_empty();
        Self {
            since: state.seq,
            is_new: state.totals.user_requests == 0 && !waits,
            place: if waits {
                SendPlace::Enqueue
            } else {
                SendPlace::Immediate
            },
        }
    }
}
