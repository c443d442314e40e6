//! Folds a whole log into the state. A log with rewinds is read with the knowledge of all of them:
//! what no longer counts changes everything but the conversation.
//!
//! `apply` cannot bring a conversation back that an earlier event removed. After each rewind the
//! log is folded again, so that the live state is always what this fold comes to.

use std::collections::VecDeque;

use loopd_proto::event::rewind::Rewound;
use loopd_proto::event::{Durable, Head};
use loopd_proto::id::{EventId, Seq, SessionId};

use super::answer_cut::AnswerCut;
use super::apply::apply;
use super::compaction::Compaction;
use super::history::History;
use super::rewind::{HiddenRange, Rewinds, counts};
use super::skills::ActiveSkill;
use super::state::{State, UnansweredPermission};

/// A log that is being folded.
#[derive(Debug)]
pub struct Fold {
    state: State,
    hidden: Vec<HiddenRange>,
}

impl Fold {
    /// Starts with an empty state. `rewinds` are all rewinds of the log with their positions.
    pub fn new<'a>(id: SessionId, rewinds: impl IntoIterator<Item = (Seq, &'a Rewound)>) -> Self {
        let mut all = Rewinds::default();
        for (at, rewound) in rewinds {
            all.push(rewound, at, at);
        }
        Self {
            state: State::new(id),
            hidden: all.hidden(),
        }
    }

    /// Applies the event at a position. Positions that are left out count as events without effect.
    pub fn apply(&mut self, seq: Seq, head: &Head, event: &Durable) {
        self.state.seq = Seq(seq.0.saturating_sub(1));
        if counts(&self.hidden, seq) {
            apply(&mut self.state, head, event);
            return;
        }
        let kept = Conversation::take(&mut self.state);
        apply(&mut self.state, head, event);
        kept.put_back(&mut self.state);
    }

    /// Returns the state after the last event, which is at this position.
    pub fn finish(mut self, end: Seq) -> State {
        self.state.seq = end;
        self.state
    }
}

/// What a rewind of the conversation takes back.
struct Conversation {
    history: History,
    tip: Option<EventId>,
    visible: u64,
    added_context: Vec<String>,
    answer_cut: Option<AnswerCut>,
    loaded_skills: Vec<ActiveSkill>,
    unanswered: VecDeque<UnansweredPermission>,
    compaction: Compaction,
}

impl Conversation {
    fn take(state: &mut State) -> Self {
        Self {
            history: std::mem::take(&mut state.history),
            tip: state.tip.take(),
            visible: std::mem::take(&mut state.visible),
            added_context: std::mem::take(&mut state.added_context),
            answer_cut: state.answer_cut.take(),
            // These stay for the event: what it does depends on them.
            loaded_skills: state.skills.loaded().to_vec(),
            unanswered: state.unanswered.clone(),
            compaction: state.compaction.clone(),
        }
    }

    fn put_back(self, state: &mut State) {
        state.history = self.history;
        state.tip = self.tip;
        state.visible = self.visible;
        state.added_context = self.added_context;
        state.answer_cut = self.answer_cut;
        state.skills.put_back(self.loaded_skills);
        state.unanswered = self.unanswered;
        state.compaction.take_back(self.compaction);
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step fails the test"
)]
mod tests;
