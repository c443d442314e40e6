//! Rules that are added and removed one by one, and an approval that lasts.

use loopd_tests::{Daemon, Script, Turn};
use serde_json::json;

use super::{Log, bash, end, session};

pub(super) async fn changed_rules() -> Vec<Log> {
    let script = Script::answering(|request| match request.last_results().len() {
        0 => Turn::any().calls([bash("c", "touch made")]),
        _ => Turn::any().says("done"),
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = session(&daemon, "changed-rules", json!({})).await;
    let read = json!({"kind": "read"});
    let cargo = json!({"kind": "shell", "argument": "cargo:*"});
    let git = json!({"kind": "shell", "argument": "git status"});
    for change in [
        json!({"scope": "session", "add": [read, cargo]}),
        json!({"scope": "session", "removeAll": true}),
        json!({"scope": "session", "add": [git, cargo]}),
        json!({"scope": "session", "remove": [git]}),
    ] {
        session
            .call("session.permissions.modifyRules", change)
            .await;
    }
    session.send("run").await;
    let (request, _) = session.permission().await;
    let lasting = json!({"kind": "approve-for-session"});
    assert!(session.decide(&request, lasting).await);
    session.next("session.idle").await;
    end(daemon).await
}
