//! Changes the user's own file of servers, `mcp-config.json` in the home of the daemon. What else is in
//! the file stays.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::discovery::mcp::{McpEntry, check_name};
use crate::regular_file;

/// The largest file.
const LARGEST: u64 = 1024 * 1024;
const SERVERS: &str = "mcpServers";
const DISABLED: &str = "disabledServers";

/// One change at a time: a change is a reading and a writing.
static CHANGING: Mutex<()> = Mutex::new(());

/// Why the file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("config: the server {0}")]
    Invalid(String),
    #[error("there is a server `{0}` already; change it with mcp.config.update")]
    Exists(String),
    #[error("there is no server `{0}` in {1}; mcp.config.list shows those that there are")]
    Missing(String, String),
    #[error("{file} {why}; nothing was changed")]
    File { file: String, why: String },
}

/// Returns the file of the user's own servers.
pub fn file(home: &Path) -> PathBuf {
    home.join("mcp-config.json")
}

/// Returns the servers of the file as they are written there.
pub fn list(home: &Path) -> Result<Map<String, Value>, FileError> {
    let path = file(home);
    let mut content = read(&path)?;
    match content.remove(SERVERS) {
        None => Ok(Map::new()),
        Some(Value::Object(servers)) => Ok(servers),
        Some(_) => Err(wrong(&path, "has a member `mcpServers` that is no object")),
    }
}

/// Adds a server.
pub fn add(home: &Path, name: &str, config: Map<String, Value>) -> Result<(), FileError> {
    check(name, &config)?;
    change(home, |servers, _| {
        if servers.contains_key(name) {
            return Err(FileError::Exists(name.to_owned()));
        }
        servers.insert(name.to_owned(), Value::Object(config));
        Ok(())
    })
}

/// Replaces a server.
pub fn update(home: &Path, name: &str, config: Map<String, Value>) -> Result<(), FileError> {
    check(name, &config)?;
    change(home, |servers, _| {
        let known = servers.get_mut(name).ok_or_else(|| missing(home, name))?;
        *known = Value::Object(config);
        Ok(())
    })
}

/// Removes a server.
pub fn remove(home: &Path, name: &str) -> Result<(), FileError> {
    change(home, |servers, disabled| {
        disabled.retain(|it| it != name);
        match servers.remove(name) {
            Some(_) => Ok(()),
            None => Err(missing(home, name)),
        }
    })
}

/// Lets new sessions use these servers or do without them. They may come from any file.
pub fn switch(home: &Path, names: &[String], on: Switch) -> Result<(), FileError> {
    change(home, |_, disabled| {
        disabled.retain(|it| !names.contains(it));
        if on == Switch::Off {
            disabled.extend(names.iter().cloned());
        }
        Ok(())
    })
}

/// Whether servers are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

fn check(name: &str, config: &Map<String, Value>) -> Result<(), FileError> {
    check_name(name).map_err(FileError::Invalid)?;
    McpEntry::read(config).map_err(FileError::Invalid)?;
    Ok(())
}

fn missing(home: &Path, name: &str) -> FileError {
    FileError::Missing(name.to_owned(), file(home).display().to_string())
}

fn wrong(path: &Path, why: impl Into<String>) -> FileError {
    FileError::File {
        file: path.display().to_string(),
        why: why.into(),
    }
}

fn read(path: &Path) -> Result<Map<String, Value>, FileError> {
    let text = match regular_file::read_text(path, LARGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(wrong(path, format!("cannot be read: {error}"))),
    };
    let mut json = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
    if json_strip_comments::strip(&mut json).is_err() || json.trim().is_empty() {
        "{}".clone_into(&mut json);
    }
    serde_json::from_str(&json).map_err(|error| wrong(path, format!("is not valid JSON: {error}")))
}

fn change(
    home: &Path,
    change: impl FnOnce(&mut Map<String, Value>, &mut Vec<String>) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let _alone = CHANGING.lock();
    let path = file(home);
    let mut content = read(&path)?;
    let mut servers = match content.remove(SERVERS) {
        None => Map::new(),
        Some(Value::Object(servers)) => servers,
        Some(_) => return Err(wrong(&path, "has a member `mcpServers` that is no object")),
    };
    let disabled = content.remove(DISABLED);
    let disabled = disabled.as_ref().and_then(Value::as_array).cloned();
    let disabled = disabled.unwrap_or_default().into_iter();
    let mut disabled: Vec<String> = disabled
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    change(&mut servers, &mut disabled)?;
    content.insert(SERVERS.to_owned(), Value::Object(servers));
    if !disabled.is_empty() {
        content.insert(DISABLED.to_owned(), disabled.into());
    }
    write(home, &path, &content)
        .map_err(|error| wrong(&path, format!("cannot be written: {error}")))
}

/// Writes the file at once. Others may not read it: there are keys in it.
fn write(home: &Path, path: &Path, content: &Map<String, Value>) -> std::io::Result<()> {
    let mut text = serde_json::to_string_pretty(content)?;
    text.push('\n');
    let mut new = tempfile::NamedTempFile::new_in(home)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed step fails the test")]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn servers_are_added_changed_switched_and_removed() {
        let home = tempfile::tempdir().expect("a folder");
        let home = home.path();
        let config = || object(json!({"command": "node", "args": ["x"]}));
        assert!(list(home).expect("no file").is_empty());
        add(home, "one", config()).expect("added");
        assert!(matches!(
            add(home, "one", config()),
            Err(FileError::Exists(_))
        ));
        assert!(matches!(
            add(home, "two", object(json!({}))),
            Err(FileError::Invalid(_))
        ));
        assert!(matches!(
            update(home, "two", config()),
            Err(FileError::Missing(..))
        ));
        update(home, "one", object(json!({"url": "https://a"}))).expect("changed");
        switch(home, &["one".to_owned()], Switch::Off).expect("off");
        assert_eq!(crate::discovery::mcp::disabled_names(&file(home)), ["one"]);
        switch(home, &["one".to_owned()], Switch::On).expect("on");
        assert!(crate::discovery::mcp::disabled_names(&file(home)).is_empty());
        let listed = list(home).expect("a list");
        assert_eq!(listed.get("one"), Some(&json!({"url": "https://a"})));
        remove(home, "one").expect("removed");
        assert!(matches!(remove(home, "one"), Err(FileError::Missing(..))));
    }

    #[test]
    fn what_else_is_in_the_file_stays_and_a_broken_file_is_left_alone() {
        let home = tempfile::tempdir().expect("a folder");
        let path = file(home.path());
        std::fs::write(
            &path,
            r#"{"other": [1], /* mine */ "mcpServers": {"a": {"command": "b"}}}"#,
        )
        .expect("written");
        let config = object(json!({"command": "c"}));
        add(home.path(), "b", config.clone()).expect("added");
        let text = std::fs::read_to_string(&path).expect("a file");
        let content: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(content.pointer("/other/0"), Some(&json!(1)));
        assert_eq!(content.pointer("/mcpServers/a/command"), Some(&json!("b")));
        std::fs::write(&path, "{ broken").expect("written");
        assert!(matches!(
            add(home.path(), "d", config),
            Err(FileError::File { .. })
        ));
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "{ broken");
    }
}
