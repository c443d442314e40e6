//! Helpers to parse members of objects: members that may be null, and groups of members.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::parse_error::at_path;

/// Parses one group of members out of an object; the error names the member.
///
/// `serde(flatten)` is not used, because its errors do not name the member.
pub(crate) fn group<'de, T: Deserialize<'de>, E: serde::de::Error>(
    object: &'de RawValue,
) -> Result<T, E> {
    let mut reader = serde_json::Deserializer::from_str(object.get());
    serde_path_to_error::deserialize(&mut reader).map_err(|error| E::custom(at_path(&error)))
}

/// Parses a present member, which may be null. With `default`, only an absent one becomes `None`.
pub(crate) fn present<'de, D: Deserializer<'de>, T: From<Value>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Value::deserialize(deserializer).map(|value| Some(value.into()))
}
