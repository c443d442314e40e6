//! Words for values that do not fit: what serde says about them, without the names of our types.
//!
//! Every error text of serde that a person, a model or a client can read goes through [`plain`] or
//! [`at_path`].

use std::fmt::Display;

/// Begins what serde says about the expected value.
const EXPECTED: &str = ", expected ";
/// Begins the place that the parsers of JSON and YAML add.
const PLACE: &str = " at line ";
/// Begins the place in a text of one line.
const IN_FIRST_LINE: &str = " at line 1 column ";
/// Begins what serde says about an enum whose forms have no tag.
const NO_VARIANT: &str = "data did not match any variant of untagged enum ";

/// Names the kind of value that serde expected, as readers of JSON call it.
const EXPECTATIONS: [(&str, &str); 27] = [
    ("a boolean", "true or false"),
    ("a borrowed string", "a string"),
    ("a map", "an object"),
    ("a sequence", "a list"),
    ("a string or map", "a string or an object"),
    ("field identifier", "a name"),
    ("string or map", "a string or an object"),
    ("unit", "null"),
    ("variant identifier", "a name"),
    ("i8", "a whole number from -128 to 127"),
    ("i16", "a whole number from -32768 to 32767"),
    ("i32", "a whole number of at most 32 bits"),
    ("i64", "a whole number of at most 64 bits"),
    ("isize", "a whole number"),
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number from 0 on"),
    ("usize", "a whole number from 0 on"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a nonzero u8", "a whole number from 1 to 255"),
    ("a nonzero u16", "a whole number from 1 to 65535"),
    ("a nonzero u32", "a whole number from 1 to 4294967295"),
    ("a nonzero u64", "a whole number from 1 on"),
    ("a nonzero usize", "a whole number from 1 on"),
    ("any valid JSON value", "a value"),
];

/// Names the kind of value that a type of ours stands for, by what serde puts before its name.
const TYPES: [(&str, &str); 12] = [
    ("struct ", "an object"),
    ("internally tagged enum ", "an object"),
    ("adjacently tagged enum ", "an object"),
    ("enum ", "one of the allowed values"),
    ("tuple ", "a list"),
    ("a tuple of size ", "a list"),
    ("an array of length ", "a list"),
    ("unit struct ", "null"),
    ("unit variant", "a name without a value"),
    ("newtype variant", "a name with a value"),
    ("newtype struct ", "a value"),
    ("value of ", "one of the allowed values"),
];

/// Names the kind of value that was there instead.
const FOUND: [(&str, &str); 9] = [
    ("map", "an object"),
    ("sequence", "a list"),
    ("unit value", "null"),
    ("Option value", "an optional value"),
    ("newtype struct", "a value"),
    ("unit variant", "a name without a value"),
    ("newtype variant", "a name with a value"),
    ("tuple variant", "a name with a list"),
    ("struct variant", "a name with an object"),
];

/// Returns the text of a serde error without the names of types.
pub fn plain(error: &impl Display) -> String {
    let text = error
        .to_string()
        .replacen("unknown variant `", "unknown value `", 1);
    if let Some((before, rest)) = text.split_once(NO_VARIANT) {
        let place = rest.find(PLACE).and_then(|at| rest.get(at..));
        let place = place.unwrap_or_default();
        return format!("{before}it has none of the allowed forms{place}");
    }
    // The last one: the value that was found is quoted before it and may contain anything.
    let Some((found, expected)) = text.rsplit_once(EXPECTED) else {
        return text;
    };
    let (expected, place) = match expected.find(PLACE) {
        Some(at) => expected.split_at(at),
        None => (expected, ""),
    };
    format!(
        "{}{EXPECTED}{}{place}",
        found_value(found),
        expectation(expected)
    )
}

/// Returns the text of a serde error without the names of types, after the path of the value.
pub fn at_path<E: Display + serde::de::Error>(error: &serde_path_to_error::Error<E>) -> String {
    let path = error.path().to_string();
    let text = plain(error.inner());
    // The path says where it is: what clients and models send has no lines.
    let text = match text.rfind(IN_FIRST_LINE) {
        Some(at) => text.get(..at).unwrap_or_default(),
        None => &text,
    };
    if path == "." {
        text.to_owned()
    } else {
        format!("{path}: {text}")
    }
}

fn expectation(text: &str) -> &str {
    let whole = EXPECTATIONS.iter().find(|(name, _)| *name == text);
    let kind = || TYPES.iter().find(|(start, _)| text.starts_with(start));
    whole.or_else(kind).map_or(text, |(_, words)| words)
}

fn found_value(text: &str) -> String {
    const TYPE: &str = "invalid type: ";
    let Some((before, value)) = text.rsplit_once(TYPE) else {
        return text.to_owned();
    };
    let words = FOUND.iter().find(|(name, _)| *name == value);
    let value = words.map_or(value, |(_, words)| words);
    format!("{before}{TYPE}{value}")
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests {
    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only parsed")]
    struct BashArgs {
        command: String,
        timeout: Option<u32>,
        mode: Option<Mode>,
        pair: Option<(u8, u8)>,
        words: Option<Words>,
        tagged: Option<Tagged>,
        on: Option<bool>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum Mode {
        Sync,
        Detached,
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only parsed")]
    enum Words {
        One(String),
        Many(Vec<String>),
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "type")]
    enum Tagged {
        A {},
    }

    fn said<T: DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
        at_path(&serde_path_to_error::deserialize::<_, T>(value).unwrap_err())
    }

    #[test]
    fn what_does_not_fit_is_named_without_the_types() {
        let with = |member: &str, value: Value| {
            let mut args = json!({"command": "ls"});
            args[member] = value;
            args
        };
        let mut sent =
            serde_json::Deserializer::from_str("{\"mode\": \"later\", \"command\": \"\"}");
        let error = serde_path_to_error::deserialize::<_, BashArgs>(&mut sent).unwrap_err();
        assert_eq!(
            at_path(&error),
            "mode: unknown value `later`, expected `sync` or `detached`"
        );
        let cases = [
            (
                json!("ls"),
                "invalid type: string \"ls\", expected an object",
            ),
            (json!([]), "invalid length 0, expected an object"),
            (json!({}), "missing field `command`"),
            (
                with("timeout", json!("soon")),
                "timeout: invalid type: string \"soon\", expected a whole number from 0 to 4294967295",
            ),
            (
                with("timeout", json!(-1)),
                "timeout: invalid value: integer `-1`, expected a whole number from 0 to 4294967295",
            ),
            (
                with("mode", json!(1)),
                "mode: invalid type: integer `1`, expected a string or an object",
            ),
            (
                with("mode", json!({"sync": 1})),
                "mode.sync: invalid type: integer `1`, expected null",
            ),
            (
                with("mode", json!("later")),
                "mode: unknown value `later`, expected `sync` or `detached`",
            ),
            (
                with("pair", json!({})),
                "pair: invalid type: an object, expected a list",
            ),
            (
                with("words", json!(5)),
                "words: it has none of the allowed forms",
            ),
            (
                with("tagged", json!(5)),
                "tagged: invalid type: integer `5`, expected an object",
            ),
            (
                with("on", json!("x, expected struct Y")),
                "on: invalid type: string \"x, expected struct Y\", expected true or false",
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(said::<BashArgs>(value.clone()), expected, "{value}");
        }
    }

    #[test]
    fn the_place_in_the_text_stays() {
        let error = serde_json::from_str::<BashArgs>("\n[]").unwrap_err();
        let text = plain(&error);
        assert!(
            text.contains("expected an object at line 2 column 2"),
            "{text}"
        );
        let error = serde_json::from_str::<Words>("5").unwrap_err();
        assert_eq!(plain(&error), "it has none of the allowed forms");
    }
}
