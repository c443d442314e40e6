//! What a session and all its sub-agents may use together, what happens at a limit, and what follows
//! when a provider takes no requests for a while.

mod granted;
mod limits;
mod provider_waits;
mod run_limits;
mod settling;
mod trees;

use loopd_tests::Session;
use serde_json::{Value, json};

const UPDATE: &str = "session.options.update";

/// The errors of a session that say that a limit is reached: their codes and messages.
fn limit_errors(session: &Session) -> Vec<(String, String)> {
    let events = session.events().into_iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    events
        .filter(|event| event["type"] == "session.error" && event["agentId"].is_null())
        .filter(|event| event["data"]["errorType"] == "session_limits")
        .map(|event| {
            (
                text(&event["data"]["errorCode"]),
                text(&event["data"]["message"]),
            )
        })
        .collect()
}

/// The messages of the warnings of this type.
fn warnings(session: &Session, kind: &str) -> Vec<String> {
    let events = session.events().into_iter();
    events
        .filter(|event| event["type"] == "session.warning" && event["data"]["warningType"] == kind)
        .map(|event| event["data"]["message"].as_str().unwrap().to_owned())
        .collect()
}

async fn used(session: &Session) -> Value {
    let metrics = session.call("session.usage.getMetrics", json!({})).await;
    metrics["used"].clone()
}
