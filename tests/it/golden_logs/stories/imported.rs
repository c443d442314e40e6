//! A session that was exported, deleted, and imported again: what was approved before does not count.

use loopd_tests::Turn;
use serde_json::json;

use super::{Log, end, session, started};
use crate::bundles::{export, import};

pub(super) async fn imported() -> Vec<Log> {
    let daemon = started([
        Turn::user("hello").says("hi"),
        Turn::user("again").says("yes"),
    ])
    .await;
    let mut session = session(&daemon, "imported", json!({})).await;
    let rules = json!({
        "scope": "session",
        "add": [{"kind": "shell", "argument": "cargo:*"}],
        "loopdDeny": [{"kind": "shell", "argument": "rm"}],
    });
    session.call("session.permissions.modifyRules", rules).await;
    session.ask("hello").await;
    let (text, _) = export(session.client(), "imported").await;
    let client = session.client().clone();
    client
        .call("session.delete", json!({"sessionId": "imported"}))
        .await;
    import(&client, &text, json!({})).await;
    let mut session = client.resume("imported", json!({})).await;
    session.ask("again").await;
    end(daemon).await
}
