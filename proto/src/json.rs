//! A member that may be absent, and may be null without being absent.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a present member as it is; with `default`, only an absent one becomes `None`.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
