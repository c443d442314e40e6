//! Compares the content of a filled-in form with the schema that was asked for. Forms are flat: the
//! types, the required fields and the allowed values are checked, further rules are the asker's.

use serde_json::{Map, Value};

/// Returns why the content does not fit; the text names the field.
pub(super) fn check(schema: &Value, content: Option<&Value>) -> Result<(), String> {
    let empty = Value::Object(Map::new());
    let content = content.unwrap_or(&empty);
    let Some(fields) = content.as_object() else {
        return Err("content: an object is expected".to_owned());
    };
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            return Err(format!("content.{name}: it is required"));
        }
    }
    let known = schema.get("properties").and_then(Value::as_object);
    for (name, field) in known.into_iter().flatten() {
        if let Some(value) = fields.get(name) {
            check_field(field, value).map_err(|why| format!("content.{name}: {why}"))?;
        }
    }
    Ok(())
}

fn check_field(field: &Value, value: &Value) -> Result<(), String> {
    if let Some(kind) = field.get("type").and_then(Value::as_str) {
        let fits = match kind {
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64() || is_whole(value),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            // A type that the schema's author made up.
            _ => true,
        };
        if !fits {
            return Err(format!("{kind} is expected"));
        }
    }
    if let Some(items) = field.get("items") {
        let values = value.as_array().into_iter().flatten();
        for value in values {
            check_field(items, value)?;
        }
    }
    let allowed = allowed_values(field);
    if !allowed.is_empty() && !allowed.contains(&value) {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        return Err(format!("one of {} is expected", allowed.join(", ")));
    }
    Ok(())
}

/// Returns the values of `enum`, or of `oneOf` and `anyOf` with a `const` each; none means any.
fn allowed_values(field: &Value) -> Vec<&Value> {
    let list = |name: &str| {
        field
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let choices = list("oneOf").chain(list("anyOf"));
    let constants = choices.filter_map(|choice| choice.get("const"));
    list("enum").chain(constants).collect()
}

fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn content_fits_the_schema_or_the_field_is_named() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer"},
                "size": {"type": "string", "enum": ["s", "m"]},
                "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
                "pick": {"type": "string", "oneOf": [{"const": "x", "title": "X"}]},
            },
            "required": ["name"],
        });
        let full =
            json!({"name": "n", "age": 3, "size": "s", "tags": ["a"], "pick": "x", "more": 1});
        for fits in [full, json!({"name": ""}), json!({"name": "n", "age": 3.0})] {
            assert_eq!(check(&schema, Some(&fits)), Ok(()), "{fits}");
        }
        for (content, why) in [
            (json!([]), "content: an object is expected"),
            (json!({}), "content.name: it is required"),
            (json!({"name": 1}), "content.name: string is expected"),
            (
                json!({"name": "n", "age": "3"}),
                "content.age: integer is expected",
            ),
            (
                json!({"name": "n", "age": 3.5}),
                "content.age: integer is expected",
            ),
            (
                json!({"name": "n", "size": "l"}),
                "content.size: one of \"s\", \"m\" is expected",
            ),
            (
                json!({"name": "n", "tags": ["c"]}),
                "content.tags: one of \"a\", \"b\" is expected",
            ),
            (
                json!({"name": "n", "pick": "y"}),
                "content.pick: one of \"x\" is expected",
            ),
        ] {
            assert_eq!(
                check(&schema, Some(&content)),
                Err(why.to_owned()),
                "{content}"
            );
        }
        assert_eq!(
            check(&schema, None),
            Err("content.name: it is required".to_owned())
        );
        assert_eq!(check(&json!({}), None), Ok(()));
    }
}
