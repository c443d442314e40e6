//! Room in the context of a model.

use loopd_proto::id::Seq;

use crate::context_size::RequestSize;
use crate::context_window::{ContextWindow, RoomRules};
use crate::prune::WholeText;
use crate::state::TurnKey;

/// A model call that is about to go out, and how large it is.
#[derive(Debug, Clone)]
pub struct RoomNeed {
    pub turn: TurnKey,
    pub request: RequestFacts,
}

/// The size of the next request, and what its model takes.
#[derive(Debug, Clone)]
pub struct RequestFacts {
    pub model: String,
    pub window: ContextWindow,
    pub rules: RoomRules,
    pub size: RequestSize,
    /// How many tokens of the model one of our own is.
    pub factor: f64,
    /// Whether the last call used more than the model takes beside the longest answer.
    pub overflowed: bool,
}

impl RequestFacts {
    /// Returns how many tokens of our own the model takes in a request.
    pub fn own_limit(&self) -> u64 {
        self.in_own(self.window.prompt_limit())
    }

    /// Returns how many tokens of our own so many of the model are.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "numbers of tokens are far below 2^53 and not negative"
    )]
    pub fn in_own(&self, tokens: u64) -> u64 {
        (tokens as f64 / self.factor) as u64
    }

    /// Returns whether room has to be thought of at all.
    pub fn is_large(&self) -> bool {
        let is_large = self.size.total() >= self.rules.prune_at(self.window);
        self.rules.enabled && (is_large || self.overflowed)
    }
}

/// The whole text of a result, which is about to be shortened.
#[derive(Debug)]
pub struct KeptOutput {
    /// The position of the event that has the result.
    pub at: Seq,
    pub whole: WholeText,
}
