//! All settings of `config.toml`, listed from the structs that read them.

use std::fmt::Write;

use schemars::schema_for;
use serde_json::{Map, Value};

use super::ConfigFile;

/// What stands in names for a name that the user chooses.
const CHOSEN: &str = "NAME";
/// The member of a schema with a default that is not the same everywhere, or that the code fills in.
const SHOWN_DEFAULT: &str = "shownDefault";

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The table, without brackets; empty for settings before the first table.
    pub table: String,
    pub key: String,
    /// What the value is, in words.
    pub kind: String,
    /// The value if nothing is set; `None` if there is none.
    pub default: Option<String>,
    pub help: String,
}

impl Setting {
    /// Returns the key with its table: `agents.max_depth`.
    pub fn path(&self) -> String {
        match self.table.as_str() {
            "" => self.key.clone(),
            table => format!("{table}.{}", self.key),
        }
    }
}

/// A table, and what it is about.
struct Table {
    name: String,
    help: String,
    settings: Vec<Setting>,
}

/// Returns all settings, in the order of the file.
pub fn settings() -> Vec<Setting> {
    let tables = tables().into_iter();
    tables.flat_map(|table| table.settings).collect()
}

fn tables() -> Vec<Table> {
    let schema = Value::from(schema_for!(ConfigFile));
    let mut tables = vec![Table {
        name: String::new(),
        help: String::new(),
        settings: Vec::new(),
    }];
    for (name, property) in properties(&schema) {
        let whole = resolved(&schema, property);
        let help = help(property, whole);
        match entries(whole).map(|entry| resolved(&schema, entry)) {
            // A table whose keys the user chooses, each with a table of its own.
            Some(entry) if has_properties(entry) => {
                let name = format!("{name}.{CHOSEN}");
                tables.push(table(&schema, name, help, entry));
            }
            _ if has_properties(whole) => {
                tables.push(table(&schema, name.clone(), help, whole));
            }
            _ => {
                if let Some(first) = tables.first_mut() {
                    first.settings.push(setting("", name, property));
                }
            }
        }
    }
    tables
}

fn table(schema: &Value, name: String, help: String, whole: &Value) -> Table {
    let settings = properties(whole).map(|(key, property)| {
        let value = resolved(schema, property);
        let chosen = entries(value).is_some();
        let (table, key) = if chosen {
            (format!("{name}.{key}"), CHOSEN.to_owned())
        } else {
            (name.clone(), key.clone())
        };
        setting(&table, &key, property)
    });
    Table {
        settings: settings.collect(),
        name,
        help,
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let members = schema.get("properties").and_then(Value::as_object);
    members.into_iter().flat_map(Map::iter)
}

fn has_properties(schema: &Value) -> bool {
    schema.get("properties").is_some()
}

/// Returns the schema of the values of a table whose keys the user chooses.
fn entries(schema: &Value) -> Option<&Value> {
    let entries = schema.get("additionalProperties")?;
    entries.is_object().then_some(entries)
}

/// Follows a reference.
fn resolved<'s>(schema: &'s Value, property: &'s Value) -> &'s Value {
    let reference = property.get("$ref").and_then(Value::as_str);
    let name = reference.and_then(|reference| reference.strip_prefix("#/$defs/"));
    name.and_then(|name| schema.get("$defs")?.get(name))
        .unwrap_or(property)
}

fn text<'s>(schema: &'s Value, member: &str) -> Option<&'s str> {
    schema.get(member).and_then(Value::as_str)
}

fn help(property: &Value, whole: &Value) -> String {
    let text = text(property, "description").or(text(whole, "description"));
    let words: Vec<&str> = text.unwrap_or_default().split_whitespace().collect();
    words.join(" ")
}

fn setting(table: &str, key: &str, property: &Value) -> Setting {
    let shown = text(property, SHOWN_DEFAULT).map(str::to_owned);
    let default = property.get("default");
    let default = default.filter(|value| !value.is_null() && **value != Value::from(Map::new()));
    Setting {
        table: table.to_owned(),
        key: key.to_owned(),
        kind: kind(property),
        default: shown.or_else(|| default.map(in_toml)),
        help: help(property, property),
    }
}

fn in_toml(value: &Value) -> String {
    value.to_string()
}

/// Says what a value is, in words.
fn kind(property: &Value) -> String {
    let types = property.get("type");
    let mut types: Vec<&str> = match types {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    types.retain(|name| *name != "null");
    match types.first().copied() {
        Some("boolean") => "true or false",
        Some("integer" | "number") => "number",
        Some("array") => "list of texts",
        _ => "text",
    }
    .to_owned()
}

/// Returns the reference as a part of a Markdown page.
pub fn markdown() -> String {
    let mut page = String::new();
    for table in tables() {
        if !table.name.is_empty() {
            let _ = write!(page, "\n## `[{}]`\n\n{}\n", table.name, table.help);
        }
        page.push_str("\n| key | value | default | |\n|---|---|---|---|\n");
        for setting in &table.settings {
            let key = setting.path();
            let key = key
                .strip_prefix(&format!("{}.", table.name))
                .unwrap_or(&key);
            let default = setting.default.as_deref();
            let default = default.map_or_else(String::new, |text| format!("`{text}`"));
            let _ = writeln!(
                page,
                "| `{key}` | {} | {default} | {} |",
                setting.kind, setting.help
            );
        }
    }
    page
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn every_setting_says_what_it_does_and_can_be_set() {
        let settings = settings();
        assert!(settings.len() > 35, "{}", settings.len());
        for setting in &settings {
            assert!(
                setting.help.ends_with('.'),
                "{}: {:?}",
                setting.path(),
                setting.help
            );
            let value = match setting.kind.as_str() {
                "true or false" => "true",
                "number" => "7",
                "list of texts" => "[\"a\"]",
                _ if setting.key == "backend" => "\"process\"",
                _ => "\"a\"",
            };
            let table = setting.table.replace(CHOSEN, "x");
            let key = setting.key.replace(CHOSEN, "x");
            // A price needs both of these.
            let price = match setting.table.as_str() {
                "prices.NAME" => "input = 1\noutput = 2\n".replace(&format!("{key} = "), "# "),
                _ => String::new(),
            };
            let text = match table.as_str() {
                "" => format!("{key} = {value}\n"),
                table => format!("[{table}]\n{price}{key} = {value}\n"),
            };
            let read = Config::read(&text, "config.toml");
            let problem = read.models.problem.unwrap_or_default();
            assert!(
                !problem.contains("unknown field") && !problem.contains("line "),
                "{text}{problem}"
            );
        }
    }

    #[test]
    fn the_settings_have_the_names_and_defaults_of_the_file() {
        let settings = settings();
        let of = |path: &str| settings.iter().find(|it| it.path() == path).unwrap();
        assert_eq!(of("agents.max_depth").default.as_deref(), Some("6"));
        assert_eq!(of("mcp.first_wait").default.as_deref(), Some("2.0"));
        assert_eq!(of("provider.NAME.type").default.as_deref(), Some("openai"));
        assert_eq!(of("provider.NAME.vision").kind, "true or false");
        assert_eq!(of("fallback_models").kind, "list of texts");
        assert_eq!(of("agents.models.NAME").kind, "text");
        assert_eq!(of("prices.NAME.input").kind, "number");
        assert_eq!(of("shell.backend").default.as_deref(), Some("terminal"));
    }
}
