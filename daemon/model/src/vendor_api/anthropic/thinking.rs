//! How much a model may think and how long its reply may be, for one request.
//!
//! Only `anthropic/request` calls it.

use serde_json::{Value, json};

use crate::opaque::{self, Format};
use loopd_kernel::model::{AssistantTurn, ModelMessage, ModelRequest};

use super::models::{self, ThinkingStyle};

/// The longest reply we ask for by ourselves, thinking not counted.
const USUAL_REPLY: u64 = 16_384;
/// The smallest budget that the server accepts.
const SMALLEST_BUDGET: u64 = 1_024;
/// What is left for the reply itself when the limit is tight.
const SMALLEST_REPLY: u64 = 1_024;

/// The limits of one request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Limits {
    pub(super) max_tokens: u64,
    pub(super) thinking: Option<Value>,
    pub(super) output_config: Option<Value>,
}

/// Decides the limits from the effort asked for and what the model can do.
pub(super) fn limits(request: &ModelRequest, configured: Option<u64>) -> Limits {
    let longest = configured.unwrap_or_else(|| models::output_limit(&request.model));
    let reply = configured.unwrap_or(longest.min(USUAL_REPLY)).max(1);
    let plain = Limits {
        max_tokens: reply,
        thinking: None,
        output_config: None,
    };
    let Some(effort) = request.reasoning_effort.as_deref() else {
        return plain;
    };
    if effort == "none" || inside_a_turn_without_thinking(&request.messages) {
        return plain;
    }
    match models::thinking_style(&request.model) {
        ThinkingStyle::None => plain,
        ThinkingStyle::Adaptive => Limits {
            max_tokens: longest,
            thinking: Some(json!({ "type": "adaptive" })),
            output_config: Some(json!({ "effort": word(effort) })),
        },
        ThinkingStyle::Budget => {
            let room = longest.saturating_sub(SMALLEST_REPLY);
            let budget = budget(effort).min(room);
            if budget < SMALLEST_BUDGET {
                return plain;
            }
            Limits {
                // The thinking counts as part of the reply.
                max_tokens: reply.saturating_add(budget).min(longest),
                thinking: Some(json!({ "type": "enabled", "budget_tokens": budget })),
                output_config: None,
            }
        }
    }
}

fn budget(effort: &str) -> u64 {
    match effort {
        "minimal" => SMALLEST_BUDGET,
        "low" => 4_096,
        "high" => 16_384,
        "xhigh" | "max" => 32_000,
        _ => 8_192,
    }
}

fn word(effort: &str) -> &str {
    match effort {
        "minimal" => "low",
        known => known,
    }
}

/// The server refuses to begin thinking between a call and its result.
fn inside_a_turn_without_thinking(messages: &[ModelMessage]) -> bool {
    if !matches!(messages.last(), Some(ModelMessage::ToolResult { .. })) {
        return false;
    }
    let last_turn = messages.iter().rev().find_map(|message| match message {
        ModelMessage::Assistant(turn) => Some(turn),
        ModelMessage::System(_) | ModelMessage::User(_) | ModelMessage::ToolResult { .. } => None,
    });
    last_turn.is_some_and(|turn| blocks(turn).is_empty())
}

/// The thinking blocks of a turn, in the form in which they go back.
pub(super) fn blocks(turn: &AssistantTurn) -> Vec<Value> {
    opaque::unwrap(Format::Anthropic, turn.reasoning.as_ref())
}
