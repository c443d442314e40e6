//! Keeps thinking that only its vendor can read, together with the format that it belongs to.
//!
//! `Reasoning.opaque` is one text. A vendor whose thinking is a list of objects wraps the list here,
//! so that after a change of model no vendor is sent the thinking of another. The Copilot API gives
//! a plain text, which stays as it is.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use loopd_kernel::model::Reasoning;

/// The format that the objects belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    Anthropic,
    Responses,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped {
    format: Format,
    items: Vec<Value>,
}

/// Wraps the objects of a turn; none for no objects.
pub(super) fn wrap(format: Format, items: Vec<Value>) -> Option<String> {
    if items.is_empty() {
        return None;
    }
    // Values that came out of JSON go back into it.
    serde_json::to_string(&Wrapped { format, items }).ok()
}

/// Gives back the objects of a format; none for thinking of other origins.
pub(super) fn unwrap(format: Format, reasoning: Option<&Reasoning>) -> Vec<Value> {
    let text = reasoning.and_then(|reasoning| reasoning.opaque.as_deref());
    match text.map(serde_json::from_str::<Wrapped>) {
        Some(Ok(wrapped)) if wrapped.format == format => wrapped.items,
        Some(Ok(_) | Err(_)) | None => Vec::new(),
    }
}

/// Tells whether [`wrap`] made a text.
pub(super) fn is_wrapped(text: &str) -> bool {
    serde_json::from_str::<Wrapped>(text).is_ok()
}
