//! The limits of the run that starts a fleet hold for its workers, and the daemon keeps them.

use super::*;

const PAIR: &str = "INSERT INTO todos (id, title) VALUES ('a', 'do a'), ('b', 'do b')";

/// Workers that call a tool again and again, or wait for `gate` with it.
async fn busy(gate: Option<Gate>) -> Daemon {
    daemon(move |request| {
        let last = request.last_user_text();
        let id = format!("c{}", request.messages().len());
        let looks = Turn::any().calls([call(&id, "glob", json!({"pattern": "*"}))]);
        match (todo_of(request), &gate) {
            (Some(_), Some(gate)) => looks.held_by(gate),
            (Some(_), None) => looks,
            (None, _) if last.contains("<fleet_ended>") => Turn::any().says("told"),
            (None, _) if !request.last_results().is_empty() => Turn::any().says("planned"),
            (None, _) => Turn::any().calls([sql(PAIR)]),
        }
    })
    .await
}

fn limit_codes(session: &Session) -> Vec<Value> {
    let events = session.events().into_iter();
    let errors = events.filter(|event| {
        event["type"] == "session.error"
            && event["agentId"].is_null()
            && event["data"]["errorType"] == "session_limits"
    });
    errors
        .map(|event| event["data"]["errorCode"].clone())
        .collect()
}

#[tokio::test]
async fn the_workers_make_no_more_calls_than_the_run_may() {
    let daemon = busy(None).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    let before = daemon.script().requests().len();
    let start = json!({"limits": {"maxTurns": 6}});
    session.call("session.fleet.start", start).await;
    let end = ended(&mut session).await;
    session.next("session.idle").await;
    assert_eq!(daemon.script().requests().len(), before + 6);
    assert_eq!(end["done"], 0, "{end}");
    assert_eq!(limit_codes(&session), ["session_limits_turns"]);
    // They were the limits of that fleet only.
    session.ask("begin").await;
    assert_eq!(limit_codes(&session).len(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn dividing_the_work_counts_and_a_slash_command_passes_its_limits_on() {
    let daemon = busy(None).await;
    let mut session = daemon.client().create(json!({})).await;
    let fleet = json!({"name": "fleet", "input": "build", "limits": {"maxTurns": 5}});
    session.call("session.commands.invoke", fleet).await;
    ended(&mut session).await;
    session.next("session.idle").await;
    assert_eq!(daemon.script().requests().len(), 5);
    assert_eq!(limit_codes(&session), ["session_limits_turns"]);
    daemon.finish().await;
}

#[tokio::test]
async fn the_time_of_the_run_stops_the_fleet() {
    let gate = Gate::new();
    let daemon = busy(Some(gate.clone())).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    let start = json!({"limits": {"timeoutMs": 1_500}});
    session.call("session.fleet.start", start).await;
    let end = ended(&mut session).await;
    session.next("session.idle").await;
    assert_eq!(end["ended"], "stopped", "{end}");
    assert_eq!(limit_codes(&session), ["session_limits_time"]);
    let left = statuses(&session).await;
    assert!(left.values().all(|status| status == "pending"), "{left:?}");
    let tasks = session.call("session.tasks.list", json!({})).await;
    assert!(!tasks.to_string().contains("\"running\""), "{tasks}");
    gate.open();
    daemon.finish().await;
}
