//! How members of objects are read: those that may be null without being absent, and groups of them.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads one group of members out of an object; the error names the member.
///
/// Done by hand, because `serde(flatten)` forgets where in the object it was.
pub(crate) fn group<'de, T: Deserialize<'de>, E: serde::de::Error>(
    object: &'de RawValue,
) -> Result<T, E> {
    let mut reader = serde_json::Deserializer::from_str(object.get());
    serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| E::custom(format!("{}: {}", error.path(), error.inner())))
}

/// Reads a present member as it is; with `default`, only an absent one becomes `None`.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
