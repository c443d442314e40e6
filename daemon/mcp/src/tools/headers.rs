//! Arguments of a tool that are also sent as headers (`x-mcp-header`). A tool whose schema names such
//! headers wrongly must not be called.

use std::collections::HashSet;

use serde_json::{Map, Value};

const HEADER: &str = "x-mcp-header";

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is the schema of all arguments.
    Root,
    /// It is that of an argument, or of a member of one.
    Property,
    /// It is a part of something else, such as a list or an alternative.
    Elsewhere,
}

/// Checks the headers that a schema of arguments names. The error says what is wrong with the first.
pub(super) fn check(schema: &Map<String, Value>) -> Result<(), String> {
    walk(schema, Place::Root, &mut HashSet::new())
}

fn walk(
    schema: &Map<String, Value>,
    place: Place,
    names: &mut HashSet<String>,
) -> Result<(), String> {
    if let Some(name) = schema.get(HEADER) {
        check_one(schema, name, place, names)?;
    }
    for (member, value) in schema {
        match (member.as_str(), value) {
            // These hold values, not schemas.
            (HEADER | "default" | "const" | "enum" | "examples", _) => {}
            ("properties", Value::Object(properties)) => {
                let below = match place {
                    Place::Root | Place::Property => Place::Property,
                    Place::Elsewhere => Place::Elsewhere,
                };
                walk_all(properties.values(), below, names)?;
            }
            (
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties",
                Value::Object(schemas),
            ) => walk_all(schemas.values(), Place::Elsewhere, names)?,
            (_, value) => walk_all(std::iter::once(value), Place::Elsewhere, names)?,
        }
    }
    Ok(())
}

fn walk_all<'a>(
    values: impl Iterator<Item = &'a Value>,
    place: Place,
    names: &mut HashSet<String>,
) -> Result<(), String> {
    for value in values {
        match value {
            Value::Object(schema) => walk(schema, place, names)?,
            Value::Array(items) => walk_all(items.iter(), Place::Elsewhere, names)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(())
}

fn check_one(
    schema: &Map<String, Value>,
    name: &Value,
    place: Place,
    names: &mut HashSet<String>,
) -> Result<(), String> {
    let is_token =
        |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
    let plain = name
        .as_str()
        .filter(|name| !name.is_empty() && name.chars().all(is_token));
    let Some(plain) = plain else {
        return Err(format!("its {HEADER} {name} is no name of a header"));
    };
    if place != Place::Property {
        return Err(format!("its {HEADER} `{plain}` belongs to no argument"));
    }
    let kind = schema.get("type").and_then(Value::as_str);
    if !matches!(kind, Some("string" | "integer" | "boolean")) {
        return Err(format!(
            "its {HEADER} `{plain}` is for an argument that is no string, integer or boolean"
        ));
    }
    if !names.insert(plain.to_ascii_lowercase()) {
        return Err(format!("its {HEADER} `{plain}` is there twice"));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::panic, reason = "a failed step fails the test")]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(schema: Value) -> Result<(), String> {
        let Value::Object(schema) = schema else {
            panic!("a schema is an object");
        };
        check(&schema)
    }

    #[test]
    fn headers_are_named_on_plain_arguments_once() {
        let text = |name: Value| json!({"type": "string", "x-mcp-header": name});
        let of = |name: Value| json!({"properties": {"a": text(name)}});
        let nested =
            json!({"properties": {"a": {"type": "object", "properties": {"b": text(json!("X"))}}}});
        for right in [
            of(json!("Region")),
            nested,
            json!({"$defs": {"x-mcp-header": {}}}),
        ] {
            assert_eq!(checked(right.clone()), Ok(()), "{right}");
        }
        let list = json!({"properties": {"a": {"type": "array", "items": text(json!("X"))}}});
        let number = json!({"properties": {"a": {"type": "number", "x-mcp-header": "X"}}});
        let twice = json!({"properties": {"a": text(json!("X")), "b": text(json!("x"))}});
        for wrong in [
            of(json!("")),
            of(json!("a b")),
            of(json!("a:b")),
            of(json!("ä")),
            of(json!(7)),
            of(json!(null)),
            json!({"x-mcp-header": "X"}),
            list,
            number,
            twice,
            json!({"anyOf": [of(json!("X"))]}),
        ] {
            assert!(checked(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
