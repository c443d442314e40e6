//! Slash commands of files, over the wire: what they may run and read, what they set for their own turn
//! and for no other, and who has a name that several commands want.

mod builtins;
mod names;
mod parts;
mod scope;
mod subagent;

use std::fs;
use std::path::Path;

use loopd_tests::{Client, Daemon, Session};
use serde_json::{Value, json};

pub(crate) const INVOKE: &str = "session.commands.invoke";
pub(crate) const EXECUTE: &str = "session.commands.execute";
pub(crate) const LIST: &str = "session.commands.list";

/// Writes a command in Claude's format into the launch's folder.
pub(crate) fn command(daemon: &Daemon, name: &str, text: &str) {
    write(
        &daemon.work().join(format!(".claude/commands/{name}.md")),
        text,
    );
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Creates a session that finds files. It answers permission requests.
pub(crate) async fn session(daemon: &Daemon) -> Session {
    session_of(&daemon.client(), json!({})).await
}

pub(crate) async fn session_of(client: &Client, mut params: Value) -> Session {
    params["enableConfigDiscovery"] = true.into();
    params["requestPermission"] = true.into();
    client.create(params).await
}

/// Trusts the launch's folder with what it holds.
pub(crate) async fn trust(daemon: &Daemon) -> Value {
    let client = daemon.client();
    let shown = client.call("loopd.trust.show", json!({})).await;
    let params = json!({"path": shown["path"], "hash": shown["hash"]});
    client.call("loopd.trust.set", params).await;
    shown
}

/// Returns a command of the list.
pub(crate) async fn listed(session: &Session, name: &str) -> Option<Value> {
    let all = session.call(LIST, json!({})).await;
    let mut commands = all["commands"].as_array().unwrap().iter();
    commands.find(|it| it["name"] == name).cloned()
}
