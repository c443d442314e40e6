//! Making room before a model call: what is cheapest comes first.
//!
//! The actor asks for room when the next request is large (`MakeRoom`). Old results of tools are
//! shortened if that wins enough. If that is not enough, the conversation is compacted, beside the call
//! or before it. The turn has begun by then and waits.

use loopd_proto::event::Durable;
use loopd_proto::event::compaction::CompactionTrigger;
use loopd_proto::event::room::{MakingRoom, Pruned, PrunedResult};
use loopd_proto::id::Seq;

use super::compaction::{self, Begins};
use crate::command::{DecideEnv, Decision, Effect, KeptOutput, RoomNeed};
use crate::compaction::{Protection, protection};
use crate::history::Entry;
use crate::prune;
use crate::state::{Stage, State, TurnKey};

/// Makes room for the model call of a turn that has begun, or lets it go out.
pub(super) fn make(state: &State, need: &RoomNeed, env: &mut DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    if !is_in(state, &need.turn, &Stage::Calling) {
        return decision;
    }
    let long = prune::candidates(state, need.request.own_limit());
    if long.is_empty() {
        protect(state, need, &mut decision, env);
        return decision;
    }
    decision
        .store(Durable::MakingRoom(MakingRoom {
            saving: long.clone(),
        }))
        .run(Effect::KeepOutputs {
            turn: need.turn.clone(),
            results: long,
        });
    decision
}

/// Calls the model, after or beside a compaction if the request is too large.
fn protect(state: &State, need: &RoomNeed, decision: &mut Decision, env: &mut DecideEnv<'_>) {
    let facts = &need.request;
    let begins = |through| Begins {
        through,
        trigger: CompactionTrigger::Threshold,
        instructions: None,
    };
    match protection(state, facts) {
        Protection::None => {}
        Protection::Beside(through) => compaction::begin(decision, facts, begins(through), env),
        Protection::Before(through) => {
            compaction::begin(decision, facts, begins(through), env);
            return compaction::wait(decision);
        }
        Protection::AfterRunning => return compaction::wait(decision),
    }
    decision.run(Effect::CallModel(need.turn.clone()));
}

/// Shortens the results whose whole texts were saved, and goes on with the model call.
pub(super) fn outputs_kept(state: &State, turn: &TurnKey, kept: Vec<KeptOutput>) -> Decision {
    let mut decision = Decision::default();
    if !is_in(state, turn, &Stage::MakingRoom) {
        return decision;
    }
    let results = kept.into_iter().filter_map(|kept| {
        let text = result_at(state, kept.at)?;
        Some(PrunedResult {
            at: kept.at,
            text: prune::shortened(text, &kept.whole),
        })
    });
    decision
        .store(Durable::Pruned(Pruned {
            results: results.collect(),
        }))
        .run(Effect::CallModel(turn.clone()));
    decision
}

/// Whether a turn is running and in this stage. A late report is about another one.
fn is_in(state: &State, turn: &TurnKey, wanted: &Stage) -> bool {
    let turn = state.turn_named(turn);
    turn.is_some_and(|turn| turn.stage == *wanted && !turn.aborting)
}

/// Returns the text of the result at a position in the log.
fn result_at(state: &State, at: Seq) -> Option<&str> {
    let entries = state.history.stored().iter();
    let mut found = entries.filter(|stored| stored.seq == at);
    found.find_map(|stored| match &stored.entry {
        Entry::Result { text, .. } => Some(text.as_str()),
        Entry::User(_) | Entry::Assistant(_) | Entry::Image { .. } => None,
    })
}

#[cfg(test)]
mod tests;
