//! Tells whether something on disk still says what it said.

use std::fmt;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The SHA-256 of what something says, as 64 hexadecimal digits.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    /// Hashes parts. Where one part ends and the next begins counts.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut context = Context::new(&SHA256);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let digest = context.finish();
        let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
        Self(digits.collect())
    }

    /// Hashes a JSON value. The order of members and the white space between them do not count.
    pub fn of_json(value: &Value) -> Self {
        Self::of([sorted(value).to_string().as_bytes()])
    }

    /// Returns a hash that was made before.
    pub fn known(digits: &str) -> Self {
        Self(digits.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns a value with the members of all objects in the order of their names.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            let members = members.into_iter();
            Value::Object(
                members
                    .map(|(name, value)| (name.clone(), sorted(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed step fails the test")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_changes_with_what_is_said_and_only_with_that() {
        let hash = |text: &str| {
            ContentHash::of_json(&serde_json::from_str(text).expect("the text is JSON"))
        };
        let first = hash(r#"{"a": [1, {"c": 2, "b": 3}], "d": null}"#);
        assert_eq!(first, hash(r#"{"d":null,"a":[1,{"b":3,"c":2}]}"#));
        assert_ne!(first, hash(r#"{"d":null,"a":[1,{"b":3,"c":4}]}"#));
        assert_ne!(hash("[1,2]"), hash("[2,1]"));
        assert_ne!(
            ContentHash::of_json(&json!("1")),
            ContentHash::of_json(&json!(1))
        );
        let parts = |parts: &[&str]| ContentHash::of(parts.iter().map(|part| part.as_bytes()));
        assert_ne!(parts(&["ab", "c"]), parts(&["a", "bc"]));
        assert_eq!(first.as_str().len(), 64);
    }
}
