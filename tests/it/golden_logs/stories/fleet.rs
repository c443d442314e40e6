//! Todos that a fleet carries out across the end of a daemon, a research, and a fleet that waits.

use loopd_tests::{Daemon, Gate, Script, Turn, call};
use serde_json::json;

use super::{Log, session, take};

/// The first worker is interrupted and goes on, the second one waits when the session is suspended.
pub(super) async fn fleet() -> Vec<Log> {
    let (first, second) = (Gate::new(), Gate::new());
    let (held, later) = (first.clone(), second.clone());
    let mut asked = 0;
    let script = Script::answering(move |request| {
        let last = request.last_user_text();
        let has = |text: &str| request.first_user_text().contains(text);
        if has("id: one\n") && last.contains("The daemon was stopped") {
            return Turn::any().says("did one");
        }
        if has("id: one\n") {
            return Turn::any().says("never read").held_by(&held);
        }
        if has("id: two\n") {
            return Turn::any().says("never read").held_by(&later);
        }
        asked += 1;
        let add = |id: &str| {
            let query = format!("INSERT INTO todos (id, title) VALUES ('{id}', 'Do {id}')");
            call(&format!("s{id}"), "sql", json!({ "query": query }))
        };
        match asked {
            1 => Turn::any().calls([add("one")]),
            5 => Turn::any().calls([add("two")]),
            _ => Turn::any().says("ok"),
        }
    });
    let mut daemon = Daemon::with(script.await).await;
    let mut before = session(&daemon, "fleet", json!({})).await;
    before.ask("one").await;
    before.call("session.fleet.start", json!({})).await;
    first.reached().await;
    daemon.restart().await;
    let options = json!({"continuePendingWork": true});
    let mut session = daemon.client().resume(&before.id, options).await;
    // The model hears of the end of the fleet.
    session.next("session.idle").await;
    let topic = json!({"topic": "Why?", "path": "why.md"});
    session.call("loopd.research", topic).await;
    session.next("session.idle").await;
    session.ask("two").await;
    session.call("session.fleet.start", json!({})).await;
    second.reached().await;
    session.call("session.suspend", json!({})).await;
    let logs = take(&daemon).await;
    first.open();
    second.open();
    daemon.finish().await;
    logs
}
