//! How large the next request to a model will be, in the tokens of that model.
//!
//! `tokens` counts texts in its own way. The provider of a model reports how many tokens a request
//! had. A report shows two things: how much a request takes besides the conversation (instructions,
//! tools, the form of messages), and by which factor the conversation grows faster or slower than what
//! is counted here. The size of the next request follows from both.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use loopd_proto::event::fact::CountedTokens;
use loopd_proto::id::Seq;

use super::state::State;

/// The most models whose reports are kept.
const MOST_MODELS: usize = 16;

/// How much of a factor is the last report's. The rest is that of all reports before.
const DECAY: f64 = 0.9;

/// Less growth than this says nothing about a factor, because a part of it is the form of messages.
const LEAST_GROWTH: f64 = 100.0;
const LEAST_STEP: u64 = 20;

/// The factors that are believed.
const FACTORS: std::ops::RangeInclusive<f64> = 0.5..=2.5;

/// What reports of providers say about the size of requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContextSize {
    calibrations: BTreeMap<String, Calibration>,
    /// What the last request was counted as.
    last: Option<CountedTokens>,
    /// The conversation of the last request whose usage was reported.
    base: Option<Base>,
    /// Counts how often entries of the conversation were removed or shortened.
    revision: u32,
    /// The revision when the running model call began.
    called_at: u32,
}

/// How many tokens the conversation had up to a position in the log.
#[derive(Debug, Clone, PartialEq)]
struct Base {
    tokens: u64,
    seq: Seq,
}

/// What is known about one model.
#[derive(Debug, Clone, Default, PartialEq)]
struct Calibration {
    /// By how much requests grew, by our own count and by the reports.
    counted_growth: f64,
    reported_growth: f64,
    /// The last report, and what was counted for that request.
    reported: u64,
    counted: CountedTokens,
}

/// The tokens of a request, in those of its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestSize {
    pub system: u64,
    pub tools: u64,
    pub conversation: u64,
}

impl RequestSize {
    pub fn total(&self) -> u64 {
        self.system
            .saturating_add(self.tools)
            .saturating_add(self.conversation)
    }
}

impl ContextSize {
    /// Notes that a model call begins.
    pub(crate) fn call_begins(&mut self) {
        self.called_at = self.revision;
    }

    /// Notes that entries of the conversation were removed or shortened.
    pub(crate) fn conversation_changed(&mut self) {
        self.revision = self.revision.wrapping_add(1);
        self.base = None;
    }

    /// Takes the report of a provider about the request of the running turn.
    pub(crate) fn reported(&mut self, model: &str, input: u64, counted: CountedTokens, seq: Seq) {
        self.last = Some(counted);
        if self.called_at == self.revision {
            self.base = Some(Base {
                tokens: counted.conversation,
                seq,
            });
        }
        if !is_plausible(input, counted) {
            return;
        }
        if !self.calibrations.contains_key(model) && self.calibrations.len() >= MOST_MODELS {
            self.calibrations.pop_first();
        }
        let known = self.calibrations.entry(model.to_owned()).or_default();
        known.learn(input, counted);
    }

    /// Returns the size of a request to a model, of which so much was counted.
    pub fn of_request(&self, model: &str, counted: CountedTokens) -> RequestSize {
        let nothing = Calibration::default();
        let known = self.calibrations.get(model).unwrap_or(&nothing);
        let factor = known.factor();
        let besides = known.besides_conversation(counted);
        let fixed = counted.system + counted.tools;
        let system = if fixed == 0 {
            besides
        } else {
            rounded(number(besides) * number(counted.system) / number(fixed))
        };
        RequestSize {
            system,
            tools: besides - system.min(besides),
            conversation: rounded(number(counted.conversation) * factor),
        }
    }

    /// Returns whether the last report is about the conversation as it is now, but for what came after.
    pub(crate) fn is_current(&self) -> bool {
        self.base.is_some()
    }

    /// Returns what the last request was counted as.
    pub fn last_counted(&self) -> Option<CountedTokens> {
        self.last
    }

    /// Returns how many tokens of a model one of our own is.
    pub fn factor(&self, model: &str) -> f64 {
        let known = self.calibrations.get(model);
        known.map_or(1.0, Calibration::factor)
    }
}

impl Calibration {
    fn learn(&mut self, reported: u64, counted: CountedTokens) {
        let same = counted.system == self.counted.system && counted.tools == self.counted.tools;
        let step = self.counted.conversation.abs_diff(counted.conversation);
        let grew = counted.conversation > self.counted.conversation;
        if self.reported > 0 && same && step >= LEAST_STEP && (reported > self.reported) == grew {
            let ratio = number(reported.abs_diff(self.reported)) / number(step);
            if FACTORS.contains(&ratio) {
                self.counted_growth = self.counted_growth * DECAY + number(step);
                self.reported_growth = self.reported_growth * DECAY + number(step) * ratio;
            }
        }
        (self.reported, self.counted) = (reported, counted);
    }

    fn factor(&self) -> f64 {
        if self.counted_growth < LEAST_GROWTH {
            return 1.0;
        }
        self.reported_growth / self.counted_growth
    }

    /// Returns how many tokens a request has besides its conversation.
    fn besides_conversation(&self, counted: CountedTokens) -> u64 {
        let factor = self.factor();
        let fixed = number(counted.system + counted.tools);
        if self.reported == 0 {
            return rounded(fixed * factor);
        }
        let then = number(self.reported) - factor * number(self.counted.conversation);
        let changed = fixed - number(self.counted.system + self.counted.tools);
        rounded(then + factor * changed)
    }
}

/// Whether a report can be about the request that was counted. Some servers report nothing or only
/// what their cache does not have; and not every model is given its tools.
fn is_plausible(reported: u64, counted: CountedTokens) -> bool {
    let least = counted.system.saturating_add(counted.conversation);
    let most = least.saturating_add(counted.tools);
    let bound = most.saturating_mul(4).saturating_add(1_000);
    reported.saturating_mul(10) >= least.saturating_mul(4) && reported <= bound
}

impl State {
    /// Returns how many tokens the conversation has by our own count.
    pub fn conversation_tokens(&self) -> u64 {
        match &self.context_size.base {
            Some(base) => base.tokens + self.history.tokens_after(base.seq),
            None => self.history.tokens(),
        }
    }
}

/// Returns how many tokens of a model so many of our own are.
pub(crate) fn scaled(tokens: u64, factor: f64) -> u64 {
    rounded(number(tokens) * factor)
}

#[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is not negative, and casts saturate"
)]
fn rounded(amount: f64) -> u64 {
    amount.max(0.0).round() as u64
}
