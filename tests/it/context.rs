//! The context of a session: how much of it is used, how room is made, and what survives that.

mod accounting;
mod beside;
mod clearing;
mod compaction;
mod hooks;
mod long;
mod pruning;
mod races;
mod refused_files;

use loopd_tests::script::Recorded;
use serde_json::{Value, json};

/// The options of a session whose model takes so many tokens and has only tools that read.
fn window(tokens: u64) -> Value {
    json!({
        "modelCapabilities": {"limits": {"max_context_window_tokens": tokens}},
        "availableTools": ["view", "grep", "todowrite"],
    })
}

/// Counts the tokens of a request as some other model would: what its texts have, times a factor, and
/// something for each message.
fn foreign_tokens(request: &Recorded, factor: f64) -> u64 {
    let texts = [&request.body["messages"], &request.body["tools"]].map(Value::to_string);
    let counted: u64 = texts
        .iter()
        .map(|text| loopd_kernel::tokens::count(text))
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let tokens = counted as f64 * factor;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small positive numbers"
    )]
    let tokens = tokens as u64;
    tokens + 7 * request.messages().len() as u64
}
