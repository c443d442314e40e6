//! MCP servers over the wire, with real processes: `mcp/server.py` behaves well or badly on demand.

mod agents;
mod broken;
mod calls;
mod config;
mod lifecycle;
mod logins;
mod methods;
mod permissions;
mod pushed;
mod questions;
mod sampling;
mod shared;
pub(crate) mod tasks;

use std::path::PathBuf;

use loopd_tests::Session;
use serde_json::{Value, json};

/// Returns the test server.
pub(crate) fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("it/mcp/server.py")
}

/// Returns the configuration of the test server with this behaviour and these further arguments.
fn server(behaviour: &str, more: &[&str]) -> Value {
    let mut args = vec![program().display().to_string(), behaviour.to_owned()];
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    json!({"type": "local", "command": "python3", "args": args, "tools": ["*"]})
}

/// Returns the status of a server, as the list has it.
async fn listed(session: &Session, name: &str) -> Value {
    let listed = session.call("session.mcp.list", json!({})).await;
    let servers = listed["servers"].as_array().unwrap().clone();
    let mut servers = servers.into_iter();
    servers
        .find(|server| server["name"] == name)
        .unwrap_or_default()
}

/// Starts the servers of a session and waits until this one has this status.
async fn until(session: &mut Session, name: &str, status: &str) -> Value {
    let now = listed(session, name).await;
    if now["status"] == status {
        return now;
    }
    let what = format!("{name} becomes {status}");
    session
        .next_where(&what, |event| {
            event["type"] == "session.mcp_server_status_changed"
                && event["data"]["serverName"] == name
                && event["data"]["status"] == status
        })
        .await;
    listed(session, name).await
}

/// Returns the last result of a tool call.
fn last_result(session: &Session) -> Value {
    let events = session.events();
    let mut events = events.iter().rev();
    let found = events.find(|event| event["type"] == "tool.execution_complete");
    found.unwrap()["data"].clone()
}

/// Reads a file that a server writes; empty if it is not there.
fn noted(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Whether a process is there.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    // A zombie process counts as gone.
    stat.is_ok_and(|stat| !stat.contains(") Z"))
}
