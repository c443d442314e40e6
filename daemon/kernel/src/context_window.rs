//! How much a model takes, and from which size of a request on room is made.

#[cfg(test)]
mod tests;

use serde_json::Value;

/// The most tokens that are kept free for an answer.
const MOST_OUTPUT: u64 = 32_000;

/// Before a summary is made, old results of tools are shortened: from this part of its threshold on.
const PRUNE_AT: f64 = 0.75;

/// What a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextWindow {
    /// The most tokens of a request and its answer together.
    pub limit: u64,
    /// The longest answer, if the model states it.
    pub output: Option<u64>,
}

impl ContextWindow {
    /// Returns how many tokens are kept free for the answer: as many as it may have, up to a bound and
    /// a quarter of the window.
    pub fn reserved(&self) -> u64 {
        let output = self.output.unwrap_or(0);
        output.min(MOST_OUTPUT).min(self.limit / 4)
    }

    /// Returns the most tokens that a request may have.
    pub fn prompt_limit(&self) -> u64 {
        self.limit - self.reserved()
    }
}

/// When a session makes room in its conversation by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoomRules {
    /// Whether it does so at all.
    pub enabled: bool,
    /// From which part of the limit on a summary is made while the loop goes on.
    pub background: f64,
    /// From which part of the limit on the loop waits for the summary.
    pub blocking: f64,
}

impl Default for RoomRules {
    fn default() -> Self {
        Self {
            enabled: true,
            background: 0.8,
            blocking: 0.95,
        }
    }
}

impl RoomRules {
    /// Returns the rules of a session's `infiniteSessions`; what it does not set is as usual.
    pub fn of(options: Option<&Value>) -> Self {
        let usual = Self::default();
        let part = |name: &str| {
            let given = options.and_then(|it| it.get(name)).and_then(Value::as_f64);
            given.filter(|part| (0.0..=1.0).contains(part))
        };
        let enabled = options.and_then(|it| it.get("enabled"));
        let blocking = part("bufferExhaustionThreshold").unwrap_or(usual.blocking);
        let background = part("backgroundCompactionThreshold").unwrap_or(usual.background);
        Self {
            enabled: enabled.and_then(Value::as_bool).unwrap_or(usual.enabled),
            background: background.min(blocking),
            blocking,
        }
    }

    /// Returns from how many tokens on old results of tools are shortened.
    pub fn prune_at(&self, window: ContextWindow) -> u64 {
        part_of(window.prompt_limit(), self.background * PRUNE_AT)
    }

    /// Returns from how many tokens on a summary is made while the loop goes on.
    pub fn background_at(&self, window: ContextWindow) -> u64 {
        part_of(window.prompt_limit(), self.background)
    }

    /// Returns from how many tokens on the loop waits.
    pub fn blocking_at(&self, window: ContextWindow) -> u64 {
        part_of(window.prompt_limit(), self.blocking)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a part of a number of tokens is not negative and not larger"
)]
fn part_of(tokens: u64, part: f64) -> u64 {
    (tokens as f64 * part) as u64
}
