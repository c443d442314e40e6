//! Plan mode with a plan that waits for its answer, and a turn that waits for another model.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

use super::{Log, session, take};

/// A message begins plan mode, the first plan is not approved, the second one waits. The plan agent
/// is selected, which only plans.
pub(super) async fn plan_mode() -> Vec<Log> {
    let plan = |id: &str, summary: &str| {
        let arguments = json!({"summary": summary, "plan": "1. Look\n2. Do"});
        call(id, "exit_plan_mode", arguments)
    };
    let script = Script::play([
        Turn::user("one").calls([plan("first", "Short")]),
        Turn::any().calls([plan("second", "Shorter")]),
        Turn::any().says("done"),
    ]);
    let daemon = Daemon::with(script.await).await;
    let offer = json!({"requestExitPlanMode": true});
    let mut session = session(&daemon, "plan-mode", offer).await;
    let select = json!({"name": "plan"});
    session.call("session.agent.select", select).await;
    session.call("session.agent.deselect", json!({})).await;
    let message = json!({"prompt": "one", "agentMode": "plan"});
    session.call("session.send", message).await;
    let first = session.client().request("exitPlanMode.request").await;
    session.next("session.plan_changed").await;
    first.answer(json!({"approved": false, "feedback": "smaller"}));
    let second = session.client().request("exitPlanMode.request").await;
    session.next("session.plan_changed").await;
    let logs = take(&daemon).await;
    second.answer(json!({"approved": true}));
    session.next("session.idle").await;
    daemon.finish().await;
    logs
}

/// A rate limit of the user, and the question whether another model may go on.
pub(super) async fn rate_limited() -> Vec<Log> {
    let script = Script::play([
        Turn::user("one")
            .fails(429, "You have reached your limit.")
            .with_code("user_weekly_rate_limited")
            .with_header("retry-after", "3600"),
        Turn::user("one").says("done"),
    ]);
    let daemon = Daemon::with(script.await).await;
    let offer = json!({"requestAutoModeSwitch": true});
    let mut session = session(&daemon, "rate-limited", offer).await;
    session.send("one").await;
    let asked = session.client().request("autoModeSwitch.request").await;
    let logs = take(&daemon).await;
    asked.answer(json!({"response": "yes"}));
    session.next("session.idle").await;
    daemon.finish().await;
    logs
}
