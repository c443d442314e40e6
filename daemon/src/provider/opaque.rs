//! Thinking that only its maker can read, kept with the name of the format it belongs to.
//!
//! A turn's `Reasoning.opaque` is one text. A wire format whose thinking is a list of objects wraps
//! it here, so that after a change of model nobody is sent another vendor's thinking. The Copilot
//! API gives a plain text, which stays as it is.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Whose objects they are.
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

/// Gives back the objects that belong to a format; nothing for texts of other origins.
pub(super) fn unwrap(format: Format, text: Option<&str>) -> Vec<Value> {
    match text.map(serde_json::from_str::<Wrapped>) {
        Some(Ok(wrapped)) if wrapped.format == format => wrapped.items,
        Some(Ok(_) | Err(_)) | None => Vec::new(),
    }
}

/// Tells whether a text was made here.
pub(super) fn is_wrapped(text: &str) -> bool {
    serde_json::from_str::<Wrapped>(text).is_ok()
}
