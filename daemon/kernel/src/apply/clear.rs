//! Folding that the conversation was cleared.

use loopd_proto::id::Seq;

use super::runs;
use crate::state::State;

/// Forgets the conversation, and what only matters in it. Todos, tasks, the plan, and what restricts the
/// run under way stay.
pub(super) fn cleared(state: &mut State) {
    state.history.clear();
    state.context_size.conversation_changed();
    state.added_context.clear();
    state.answer_cut = None;
    state.skills.forgotten_from(Seq::START);
    state.compaction.cleared(state.seq);
    if !state.is_busy() {
        // A run that was interrupted has nothing left to go on with.
        runs::abandon_unfinished(state);
        state.autopilot.abandon();
    }
}
