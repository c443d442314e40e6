//! What is known about Anthropic's models: what the server lists, and what only their names tell.
//!
//! A name that tells nothing gets the careful limits.

use serde_json::Value;

use loopd_kernel::model::{ImageLimits, ModelInfo};

/// The context size of every model that does not say another.
const CONTEXT_TOKENS: u64 = 200_000;

/// How a model is told how much to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingStyle {
    /// It cannot.
    None,
    /// By a number of tokens.
    Budget,
    /// By a word for the effort; it finds the amount itself.
    Adaptive,
}

/// Reads one entry of the list of models.
pub(super) fn model_info(id: &str, model: &Value) -> ModelInfo {
    let number = |name: &str| model.get(name).and_then(Value::as_u64).filter(|n| *n > 0);
    let efforts: &[&str] = match thinking_style(id) {
        ThinkingStyle::None => &[],
        ThinkingStyle::Budget | ThinkingStyle::Adaptive => &["low", "medium", "high"],
    };
    ModelInfo {
        id: id.to_owned(),
        name: model
            .get("display_name")
            .and_then(Value::as_str)
            .unwrap_or(id)
            .to_owned(),
        vision: model
            .pointer("/capabilities/image_input/supported")
            .and_then(Value::as_bool)
            .unwrap_or(true),
        images: ImageLimits::default(),
        max_context_tokens: Some(number("max_input_tokens").unwrap_or(CONTEXT_TOKENS)),
        max_output_tokens: Some(number("max_tokens").unwrap_or_else(|| output_limit(id))),
        reasoning_efforts: efforts.iter().map(|&effort| effort.to_owned()).collect(),
    }
}

/// How long a model's reply may be by its name; a safe value for names nobody knows.
pub(super) fn output_limit(model: &str) -> u64 {
    match version(model) {
        None | Some((3, 5)) => 8_192,
        Some((0..=2, _) | (3, 0..=4)) => 4_096,
        Some((4, 0 | 1)) if model.contains("opus") => 32_000,
        Some(_) => 64_000,
    }
}

/// How a model is asked to think, by its name.
pub(super) fn thinking_style(model: &str) -> ThinkingStyle {
    match version(model) {
        None | Some((0..=2, _) | (3, 0..=6)) => ThinkingStyle::None,
        Some((3, _) | (4, 0..=5)) => ThinkingStyle::Budget,
        Some(_) => ThinkingStyle::Adaptive,
    }
}

/// Reads the version out of names such as `claude-3-5-haiku-20241022` and `claude-opus-4.5`.
fn version(model: &str) -> Option<(u32, u32)> {
    let model = model.to_ascii_lowercase();
    let (_, rest) = model.split_once("claude")?;
    let mut numbers = rest
        .split(['-', '.', '@', ':', '_', '/'])
        // A date is not a version.
        .filter(|word| word.len() <= 2)
        .filter_map(|word| word.parse::<u32>().ok());
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests;
