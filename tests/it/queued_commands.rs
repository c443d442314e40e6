//! Slash commands that wait in the queue for a client, when that client leaves or another one comes.

use loopd_tests::{Daemon, Gate, Session, Turn};
use serde_json::{Value, json};

fn deploys() -> Value {
    json!({"commands": [{"name": "deploy", "description": "Deploys"}]})
}

async fn enqueue(session: &Session) {
    let params = json!({"command": "/deploy now"});
    session.call("session.commands.enqueue", params).await;
}

/// Waits for the warning that the command failed.
async fn failed(session: &mut Session) -> String {
    let what = "the warning that the command failed";
    let event = session
        .next_where(what, |event| {
            event["type"] == "session.warning" && event["data"]["warningType"] == "command_failed"
        })
        .await;
    let message = event["data"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("/deploy now"), "{message}");
    message
}

#[tokio::test]
async fn a_command_fails_by_name_when_the_client_that_runs_it_vanishes() {
    let daemon = Daemon::playing([Turn::user("next").says("ok")]).await;
    let mut other = daemon.client().create(json!({})).await;
    let owner = daemon.client();
    let mut session = owner.resume(&other.id, deploys()).await;
    enqueue(&other).await;
    session.next("command.queued").await;
    other.send("next").await;
    owner.vanish().await;
    let why = failed(&mut other).await;
    assert!(why.contains("left"), "{why}");
    other.next("command.completed").await;
    other.next("session.idle").await;
    assert_eq!(other.count("user.message"), 1, "the queue went on");
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_still_waits_fails_with_its_client_and_blocks_nobody() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("2"),
    ])
    .await;
    let mut other = daemon.client().create(json!({})).await;
    let owner = daemon.client().resume(&other.id, deploys()).await;
    other.send("one").await;
    gate.reached().await;
    enqueue(&owner).await;
    other.send("two").await;
    owner.destroy().await;
    failed(&mut other).await;
    gate.open();
    other.next("session.idle").await;
    assert_eq!(other.count("user.message"), 2);
    assert_eq!(other.count("command.queued"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn with_the_last_client_the_command_ends_and_the_next_client_goes_on() {
    let daemon = Daemon::playing([Turn::user("next").says("ok")]).await;
    let owner = daemon.client();
    let mut session = owner.create(json!({})).await;
    // No client has said that it runs this command; whoever is attached may answer.
    enqueue(&session).await;
    session.next("command.queued").await;
    owner.vanish().await;
    let mut again = daemon.client().resume(&session.id, json!({})).await;
    let stored = again.messages().await;
    let warning = stored
        .iter()
        .find(|event| event["type"] == "session.warning");
    let warning = warning.unwrap()["data"]["message"].as_str().unwrap();
    assert!(warning.contains("/deploy now"), "{warning}");
    again.ask("next").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_that_joins_and_runs_the_command_is_shown_it() {
    let daemon = Daemon::playing([]).await;
    let mut owner = daemon.client().create(deploys()).await;
    enqueue(&owner).await;
    let first = owner.next("command.queued").await;
    let mut joined = daemon.client().resume(&owner.id, deploys()).await;
    let shown = joined.next("command.queued").await;
    assert_eq!(shown["data"], first["data"]);
    let request = shown["data"]["requestId"].clone();
    owner.destroy().await;
    let method = "session.commands.respondToQueuedCommand";
    let answer = json!({"requestId": request, "result": {"handled": true}});
    let answered = joined.call(method, answer).await;
    assert_eq!(answered, json!({"success": true}), "another client runs it");
    joined.next("session.idle").await;
    assert_eq!(joined.count("session.warning"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn after_a_restart_a_waiting_command_goes_to_a_client_that_runs_it_or_fails() {
    for (offer, fails) in [(deploys(), false), (json!({}), true)] {
        let gate = Gate::new();
        let turns = [
            Turn::user("one").says("never said").held_by(&gate),
            Turn::user("two").says("2"),
        ];
        let mut daemon = Daemon::playing(turns).await;
        let session = daemon.client().create(deploys()).await;
        session.send("one").await;
        gate.reached().await;
        enqueue(&session).await;
        daemon.restart().await;
        gate.open();
        let mut again = daemon.client().resume(&session.id, offer).await;
        again.send("two").await;
        if fails {
            failed(&mut again).await;
        } else {
            let queued = again.next("command.queued").await;
            let request = queued["data"]["requestId"].clone();
            let done = json!({"requestId": request});
            let done = again
                .call("session.commands.handlePendingCommand", done)
                .await;
            assert_eq!(done, json!({"success": true}));
        }
        again.next("session.idle").await;
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_command_that_ran_when_the_daemon_died_is_told_as_interrupted() {
    let mut daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(deploys()).await;
    enqueue(&session).await;
    session.next("command.queued").await;
    daemon.restart().await;
    let again = daemon.client().resume(&session.id, json!({})).await;
    let stored = again.messages().await;
    let warning = stored
        .iter()
        .find(|event| event["type"] == "session.warning");
    let warning = warning.unwrap()["data"]["message"].as_str().unwrap();
    assert!(warning.contains("/deploy now"), "{warning}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_report_about_an_unknown_command_is_said_to_be_unwanted_and_a_failure_is_told() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(deploys()).await;
    let method = "session.commands.handlePendingCommand";
    let unknown = session.call(method, json!({"requestId": "no-such"})).await;
    let unwanted = json!({"success": true, "waitedFor": false});
    assert_eq!(unknown, unwanted);
    enqueue(&session).await;
    let queued = session.next("command.queued").await;
    let request = queued["data"]["requestId"].clone();
    let report = json!({"requestId": request, "error": "no disk space"});
    let taken = session.call(method, report.clone()).await;
    assert_eq!(taken, json!({"success": true}));
    let why = failed(&mut session).await;
    assert!(why.contains("no disk space"), "{why}");
    assert_eq!(session.call(method, report).await, unwanted);
    session.next("session.idle").await;
    daemon.finish().await;
}
