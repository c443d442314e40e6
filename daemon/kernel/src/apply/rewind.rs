//! Folding a rewind. `fold.rs` says what a whole log with rewinds comes to.

use loopd_proto::event::rewind::{RewindStarted, Rewound};

use crate::state::{Phase, Rewinding, State};

pub(super) fn started(state: &mut State, started: &RewindStarted) {
    state.phase = Phase::Rewinding(Box::new(Rewinding {
        started: started.clone(),
        began: state.seq,
    }));
}

/// Takes the conversation back as far as the state has it. What an undo brings back is known again
/// when the log is folded again.
pub(super) fn rewound(state: &mut State, rewound: &Rewound) {
    let began = match &state.phase {
        Phase::Rewinding(rewinding) if rewinding.started.rewind == rewound.rewind => {
            rewinding.began
        }
        _ => state.seq,
    };
    ended(state);
    state.rewinds.push(rewound, state.seq, began);
    if !rewound.mode.has_conversation() {
        return;
    }
    state.history.take_back_to(rewound.target.position);
    state.context_size.conversation_changed();
    state.tip.clone_from(&rewound.target.tip);
    state.visible = rewound.target.kept;
    state.added_context.clear();
    state.answer_cut = None;
    state.skills.forgotten_from(rewound.target.position);
    state.last_error = None;
    state.tasks.forgotten_from(rewound.target.position);
    // Nothing goes on that was left.
    super::runs::abandon_unfinished(state);
    state.autopilot.abandon();
}

pub(super) fn ended(state: &mut State) {
    if matches!(state.phase, Phase::Rewinding(_)) {
        state.phase = Phase::Idle;
    }
}
