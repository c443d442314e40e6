//! Sessions under limits: what a sub-agent uses, a wait for the provider across a restart, and the end
//! of the time.

use loopd_tests::{Daemon, Gate, Script, Turn, call};
use serde_json::json;

use super::{Log, end, session, take};

/// A sub-agent answers, the next call of the model has to wait, and the daemon ends meanwhile.
pub(super) async fn provider_wait() -> Vec<Log> {
    let agent = json!({"description": "a part", "prompt": "do it", "name": "part", "mode": "sync"});
    let script = Script::play([
        Turn::user("one").calls([call("t", "task", agent)]),
        Turn::user("do it").says("done").uses(100, 10),
        Turn::any()
            .fails(429, "You have reached your limit.")
            .with_header("retry-after", "3600"),
    ]);
    let mut daemon = Daemon::with(script.await).await;
    let limits = json!({"sessionLimits": {"maxTokens": 1_000_000, "timeoutSeconds": 9_000}});
    let mut session = session(&daemon, "provider-wait", limits).await;
    session.send("one").await;
    session
        .next_where("the wait", |event| {
            event["type"] == "session.warning" && event["agentId"].is_null()
        })
        .await;
    drop(session);
    daemon.restart().await;
    let client = daemon.client();
    let pending = json!({"continuePendingWork": true});
    let mut session = client.resume("provider-wait", pending).await;
    let logs = take(&daemon).await;
    session.call("session.abort", json!({})).await;
    session.next("session.idle").await;
    daemon.finish().await;
    logs
}

/// The model does not answer in time.
pub(super) async fn time_up() -> Vec<Log> {
    let gate = Gate::new();
    let script = Script::play([Turn::user("one").says("never").held_by(&gate)]);
    let daemon = Daemon::with(script.await).await;
    let limits = json!({"sessionLimits": {"timeoutSeconds": 0.2}});
    let mut session = session(&daemon, "time-up", limits).await;
    session.ask("one").await;
    gate.open();
    end(daemon).await
}
