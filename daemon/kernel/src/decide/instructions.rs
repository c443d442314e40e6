//! Instructions that follow because a file near them was used.

use loopd_proto::event::Durable;
use loopd_proto::event::hook::ContextAdded;
use loopd_proto::id::ToolCallId;

use crate::command::Decision;
use crate::state::State;
use crate::texts::instructions::{InstructionText, following, is_given};

/// Adds those instructions to the conversation that it does not have: calls that run at the same time
/// may find the same ones.
pub(super) fn apply_now(
    state: &State,
    call: ToolCallId,
    mut files: Vec<InstructionText>,
) -> Decision {
    let mut decision = Decision::default();
    files.retain(|file| !is_given(state, &file.path));
    if !files.is_empty() {
        decision.store(Durable::ContextAdded(ContextAdded {
            text: following(&files),
            tool_call_id: Some(call),
        }));
    }
    decision
}
