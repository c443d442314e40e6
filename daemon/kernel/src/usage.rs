//! What a model call used where its provider does not say so, or says what cannot be true.
//!
//! Limits of tokens and money hold with every provider, so a call whose usage is not known counts with
//! an estimate: a token for every four bytes that were sent or received.

use super::model::{AssistantTurn, Usage};

/// The type of the warning that usage is estimated.
pub(crate) const ESTIMATED: &str = "usage_estimated";

/// What attempts used that gave no reply: they were sent, and their replies broke off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LostAttempts {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

impl LostAttempts {
    /// Adds an attempt.
    pub fn add(&mut self, sent: u64, received: u64) {
        self.input_tokens = self.input_tokens.saturating_add(sent);
        self.output_tokens = self.output_tokens.saturating_add(received);
    }

    /// Returns the usage of these attempts and nothing else; `None` if there were none.
    pub fn usage(self) -> Option<Usage> {
        (self != Self::default()).then_some(Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            ..Usage::default()
        })
    }
}

/// Returns the usage that counts for a call with this answer, if it is not what was reported. `sent`
/// estimates the input.
pub fn counted(
    reported: Usage,
    sent: u64,
    answer: &AssistantTurn,
    lost: LostAttempts,
) -> Option<Usage> {
    let mut usage = reported;
    let cached = usage
        .cache_read_tokens
        .saturating_add(usage.cache_write_tokens);
    if usage.input_tokens == 0 || cached > usage.input_tokens {
        usage.input_tokens = usage.input_tokens.max(sent);
        // What part of it came from a cache is not known, either.
        (usage.cache_read_tokens, usage.cache_write_tokens) = (0, 0);
    }
    if usage.output_tokens == 0 {
        usage.output_tokens = answered(answer);
    }
    usage.input_tokens = usage.input_tokens.saturating_add(lost.input_tokens);
    usage.output_tokens = usage.output_tokens.saturating_add(lost.output_tokens);
    (usage != reported).then_some(usage)
}

/// Estimates the tokens of a text: one for every four bytes.
fn estimate(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// Estimates how many tokens an answer has.
fn answered(answer: &AssistantTurn) -> u64 {
    let reasoning = answer.reasoning.as_ref();
    let thought = reasoning.and_then(|reasoning| reasoning.text.as_deref());
    let calls = answer
        .calls
        .iter()
        .map(|call| estimate(&call.name).saturating_add(estimate(&call.arguments.to_string())));
    estimate(&answer.text)
        .saturating_add(thought.map_or(0, estimate))
        .saturating_add(calls.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input: u64, output: u64, cached: u64) -> Usage {
        Usage {
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: cached,
            ..Usage::default()
        }
    }

    #[test]
    fn what_is_missing_or_cannot_be_is_estimated() {
        let said = |text: &str| AssistantTurn {
            text: text.to_owned(),
            ..AssistantTurn::default()
        };
        let none = LostAttempts::default();
        for (reported, text, counts) in [
            (used(10, 2, 0), "12345678", None),
            (used(10, 2, 10), "12345678", None),
            (used(10, 0, 0), "", None),
            (used(0, 0, 0), "", Some(used(500, 0, 0))),
            (used(0, 0, 0), "12345678", Some(used(500, 2, 0))),
            (used(0, 7, 0), "12345678", Some(used(500, 7, 0))),
            (used(10, 0, 0), "123456789", Some(used(10, 3, 0))),
            (used(10, 2, 11), "12345678", Some(used(500, 2, 0))),
            (used(900, 2, 901), "12345678", Some(used(900, 2, 0))),
        ] {
            assert_eq!(
                counted(reported, 500, &said(text), none),
                counts,
                "{reported:?} {text}"
            );
        }
        let mut lost = LostAttempts::default();
        assert_eq!(lost.usage(), None);
        lost.add(500, 3);
        lost.add(500, 0);
        assert_eq!(lost.usage(), Some(used(1_000, 3, 0)));
        assert_eq!(
            counted(used(10, 2, 4), 500, &said("x"), lost),
            Some(used(1_010, 5, 4))
        );
    }
}
