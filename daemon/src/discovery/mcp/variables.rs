//! Replaces the names of variables in an entry: `$NAME`, `${NAME}`, `${NAME:-else}`, `${env:NAME}`,
//! and `{env:NAME}` of opencode.

/// A variable that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("names the variable {0}, which is not set; set it, or write ${{{0}:-VALUE}}")]
pub struct MissingVariable(pub String);

/// Replaces all names in a text. What only looks like a name stays.
pub fn expand(
    text: &str,
    value: &dyn Fn(&str) -> Option<String>,
) -> Result<String, MissingVariable> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        let (before, from) = rest.split_at(at);
        expanded.push_str(before);
        if let Some(Found { name, other, after }) = next(from) {
            match value(name).or_else(|| other.map(str::to_owned)) {
                Some(value) => expanded.push_str(&value),
                None => return Err(MissingVariable(name.to_owned())),
            }
            rest = after;
        } else {
            let mut letters = from.chars();
            expanded.extend(letters.next());
            rest = letters.as_str();
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

struct Found<'a> {
    name: &'a str,
    /// What counts if the variable is not set.
    other: Option<&'a str>,
    after: &'a str,
}

/// Reads the name at the beginning of a text.
fn next(text: &str) -> Option<Found<'_>> {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    if let Some(inner) = text.strip_prefix("${") {
        let (inside, after) = inner.split_once('}')?;
        let (name, other) = match inside.split_once(":-") {
            Some((name, other)) => (name, Some(other)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        // VS Code names folders and inputs in the same way; they are looked up like variables.
        let is_known = is_name(name) || name.starts_with("input:");
        return is_known.then_some(Found { name, other, after });
    }
    if let Some(inner) = text.strip_prefix("{env:") {
        let (name, after) = inner.split_once('}')?;
        return is_name(name).then_some(Found {
            name,
            other: None,
            after,
        });
    }
    let inner = text.strip_prefix('$')?;
    let end = inner
        .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .unwrap_or(inner.len());
    let (name, after) = inner.split_at(end);
    is_name(name).then_some(Found {
        name,
        other: None,
        after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_in_all_spellings() {
        let value = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "LONG_2" => Some("two".to_owned()),
            _ => None,
        };
        let table = [
            ("plain", Ok("plain")),
            ("$A", Ok("1")),
            ("x$A/y", Ok("x1/y")),
            ("${A}${LONG_2}", Ok("1two")),
            ("${B:-else}", Ok("else")),
            ("${B:-}", Ok("")),
            ("${A:-else}", Ok("1")),
            ("Bearer {env:A}", Ok("Bearer 1")),
            ("${env:A}", Ok("1")),
            (
                "$5 and $ and {json: 1} and ${}",
                Ok("$5 and $ and {json: 1} and ${}"),
            ),
            ("${not closed", Ok("${not closed")),
            ("a ${B} b", Err("B")),
            ("$B", Err("B")),
            ("${input:key}", Err("input:key")),
        ];
        for (text, expected) in table {
            let expanded = expand(text, &value);
            let expanded = expanded.as_deref().map_err(|missing| missing.0.as_str());
            assert_eq!(expanded, expected, "{text}");
        }
    }
}
