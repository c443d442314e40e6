//! What a model call used where its provider does not say so, or says what cannot be true.
//!
//! Limits of tokens and money hold with every provider, so a call whose usage is not known counts with
//! an estimate: a token for every four bytes that were sent or received. Under a limit, a report of fewer
//! tokens than the texts can have counts with the fewest that they can have: a token for every sixteen bytes.
//! A report of more tokens than any model can read counts as none.

use super::model::{AssistantTurn, ModelMessage, Part, Usage};

/// The type of the warning that usage is estimated.
pub(crate) const ESTIMATED: &str = "usage_estimated";

/// The most bytes that a token of a text has on average, for any model. Usual texts have about four.
const MOST_BYTES: u64 = 16;

/// The most tokens of one kind that a call can have. A report of more is none.
const MOST_TOKENS: u64 = 1_000_000_000;

/// What a call sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentTokens {
    /// How many tokens it probably has.
    pub estimate: u64,
    /// How many it has at least, whatever its provider says. Counted only for calls under limits.
    pub least: Option<u64>,
}

impl SentTokens {
    /// What a call sends whose usage is believed.
    pub fn new(estimate: u64) -> Self {
        Self {
            estimate,
            least: None,
        }
    }

    /// What a call sends whose usage counts towards a limit.
    pub fn limited(estimate: u64, messages: &[ModelMessage]) -> Self {
        let bytes: usize = messages.iter().map(bytes_of_message).sum();
        Self {
            estimate,
            least: Some(bytes as u64 / MOST_BYTES),
        }
    }
}

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

/// Returns the usage that counts for a call with this answer, if it is not what was reported.
pub fn counted(
    reported: Usage,
    sent: SentTokens,
    answer: &AssistantTurn,
    lost: LostAttempts,
) -> Option<Usage> {
    let mut usage = possible(reported);
    let cached = usage
        .cache_read_tokens
        .saturating_add(usage.cache_write_tokens);
    if usage.input_tokens == 0 || cached > usage.input_tokens {
        usage.input_tokens = usage.input_tokens.max(sent.estimate);
        // What part of it came from a cache is not known, either.
        (usage.cache_read_tokens, usage.cache_write_tokens) = (0, 0);
    }
    let answered = bytes_of_answer(answer) as u64;
    if usage.output_tokens == 0 {
        usage.output_tokens = answered.div_ceil(4);
    }
    if let Some(least) = sent.least {
        usage.input_tokens = usage.input_tokens.max(least);
        usage.output_tokens = usage.output_tokens.max(answered / MOST_BYTES);
    }
    usage.input_tokens = usage.input_tokens.saturating_add(lost.input_tokens);
    usage.output_tokens = usage.output_tokens.saturating_add(lost.output_tokens);
    (usage != reported).then_some(usage)
}

/// Returns what was reported without the numbers that no call can have.
fn possible(reported: Usage) -> Usage {
    let believed = |tokens: u64| if tokens > MOST_TOKENS { 0 } else { tokens };
    Usage {
        input_tokens: believed(reported.input_tokens),
        output_tokens: believed(reported.output_tokens),
        cache_read_tokens: believed(reported.cache_read_tokens),
        cache_write_tokens: believed(reported.cache_write_tokens),
        reasoning_tokens: believed(reported.reasoning_tokens),
        ..reported
    }
}

/// Counts the bytes of the texts of a message. How many tokens images and documents have, each model
/// says in its own way.
fn bytes_of_message(message: &ModelMessage) -> usize {
    match message {
        ModelMessage::System(text) | ModelMessage::ToolResult { text, .. } => text.len(),
        ModelMessage::User(parts) => parts.iter().map(bytes_of_part).sum(),
        // Models do not read what they thought earlier. Arguments are left out: writing all of them out
        // for each call would cost more than they add.
        ModelMessage::Assistant(turn) => turn.text.len(),
    }
}

fn bytes_of_part(part: &Part) -> usize {
    match part {
        Part::Text(text) => text.len(),
        Part::Image { .. } | Part::Document { .. } => 0,
    }
}

/// Counts the bytes of an answer, of what it says about its reasoning too.
fn bytes_of_answer(answer: &AssistantTurn) -> usize {
    let reasoning = answer.reasoning.as_ref();
    let thought = reasoning.and_then(|reasoning| reasoning.text.as_deref());
    let calls = answer.calls.iter();
    let called = calls.map(|call| call.name.len() + call.arguments.to_string().len());
    answer.text.len() + thought.map_or(0, str::len) + called.sum::<usize>()
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
        let sent = SentTokens::new(500);
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
            (used(1_000_000_000, 2, 0), "12345678", None),
            (used(1_000_000_001, 2, 0), "12345678", Some(used(500, 2, 0))),
            (used(1 << 62, 2, 0), "12345678", Some(used(500, 2, 0))),
            (used(10, u64::MAX, 0), "12345678", Some(used(10, 2, 0))),
            (used(10, 2, u64::MAX), "12345678", Some(used(10, 2, 0))),
        ] {
            assert_eq!(
                counted(reported, sent, &said(text), none),
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
            counted(used(10, 2, 4), sent, &said("x"), lost),
            Some(used(1_010, 5, 4))
        );
    }

    #[test]
    fn a_report_of_less_than_the_texts_can_have_is_not_believed() {
        let answer = AssistantTurn {
            text: "x".repeat(1_600),
            ..AssistantTurn::default()
        };
        let messages = [
            ModelMessage::System("s".repeat(1_600)),
            ModelMessage::User(vec![
                Part::Text("u".repeat(800)),
                Part::Image {
                    media_type: "image/png".to_owned(),
                    base64: "i".repeat(1_000_000),
                },
            ]),
            ModelMessage::Assistant(answer.clone()),
            ModelMessage::ToolResult {
                call: "c".into(),
                text: "r".repeat(800),
            },
        ];
        let sent = SentTokens::limited(1_200, &messages);
        assert_eq!((sent.estimate, sent.least), (1_200, Some(300)));
        let none = LostAttempts::default();
        for (reported, counts) in [
            (used(1, 1, 0), Some(used(300, 100, 0))),
            (used(1, 1, 1), Some(used(300, 100, 1))),
            (used(299, 900, 0), Some(used(300, 900, 0))),
            (used(900, 99, 0), Some(used(900, 100, 0))),
            (used(300, 100, 0), None),
        ] {
            let limited = counted(reported, sent, &answer, none);
            assert_eq!(limited, counts, "{reported:?}");
            let free = counted(reported, SentTokens::new(1_200), &answer, none);
            assert_eq!(free, None, "{reported:?}");
        }
    }
}
