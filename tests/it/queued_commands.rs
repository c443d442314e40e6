//! Slash commands that wait in the queue for a client, when that client leaves or another one comes.

use loopd_tests::{Daemon, Gate, Script, Session, Turn};
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

/// Reports that the command of a request has run, as SDKs do after `command.execute`.
async fn ran(session: &Session, request: &Value) -> Value {
    let method = "session.commands.handlePendingCommand";
    session.call(method, json!({"requestId": request})).await
}

#[tokio::test]
async fn a_command_of_a_client_runs_there_when_its_turn_comes() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("2"),
    ])
    .await;
    let mut owner = daemon.client().create(deploys()).await;
    let mut other = daemon.client().resume(&owner.id, json!({})).await;
    other.send("one").await;
    gate.reached().await;
    let params = json!({"command": "/Deploy  now", "displayText": "Deploy it"});
    other.call("session.commands.enqueue", params).await;
    other.send("two").await;
    let waiting = other.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(waiting["items"][0]["displayText"], "Deploy it", "{waiting}");
    assert_eq!(owner.count("command.execute"), 0, "it waits");
    gate.open();
    let execute = owner.next("command.execute").await;
    let request = execute["data"]["requestId"].clone();
    assert_eq!(
        execute["data"],
        json!({"requestId": request, "command": "/Deploy  now", "commandName": "deploy", "args": "now"})
    );
    let queued = other.next("command.queued").await;
    assert_eq!(queued["data"]["requestId"], request, "one request");
    assert_eq!(
        daemon.script().requests().len(),
        1,
        "what is behind it waits"
    );
    assert_eq!(ran(&owner, &request).await, json!({"success": true}));
    let over = other.next("command.completed").await;
    assert_eq!(over["data"]["requestId"], request);
    other.next("session.idle").await;
    assert_eq!(other.count("user.message"), 2);
    assert_eq!(other.count("command.execute"), 0, "it is the owner's");
    assert_eq!(other.count("session.warning"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn only_the_client_that_runs_a_command_answers_for_it() {
    let daemon = Daemon::playing([]).await;
    let mut owner = daemon.client().create(deploys()).await;
    let mut joined = daemon.client().resume(&owner.id, deploys()).await;
    // The client that attached last runs it.
    enqueue(&owner).await;
    let execute = joined.next("command.execute").await;
    let request = execute["data"]["requestId"].clone();
    let method = "session.commands.respondToQueuedCommand";
    let no = json!({"requestId": request, "result": {"handled": false}});
    let answered = owner.call(method, no.clone()).await;
    assert_eq!(answered, json!({"success": false}));
    let unwanted = json!({"success": true, "waitedFor": false});
    assert_eq!(ran(&owner, &request).await, unwanted);
    // A client that comes while it runs is shown it, and does not run it again.
    let mut late = daemon.client().resume(&owner.id, deploys()).await;
    let shown = late.next("command.queued").await;
    assert_eq!(shown["data"]["requestId"], request);
    assert_eq!(joined.call(method, no).await, json!({"success": true}));
    let why = failed(&mut owner).await;
    assert!(why.contains("no client ran it"), "{why}");
    owner.next("session.idle").await;
    assert_eq!(
        owner.count("command.execute") + late.count("command.execute"),
        0
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_is_not_run_again_when_the_client_that_ran_it_leaves() {
    let daemon = Daemon::playing([Turn::user("next").says("ok")]).await;
    let mut other = daemon.client().create(deploys()).await;
    let owner = daemon.client();
    let mut session = owner.resume(&other.id, deploys()).await;
    enqueue(&other).await;
    session.next("command.execute").await;
    other.send("next").await;
    owner.vanish().await;
    let why = failed(&mut other).await;
    assert!(why.contains("left before its end"), "{why}");
    other.next("command.completed").await;
    other.next("session.idle").await;
    assert_eq!(other.count("command.execute"), 0);
    assert_eq!(other.count("user.message"), 1, "the queue went on");
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_that_joins_runs_a_command_that_nobody_ran() {
    let daemon = Daemon::playing([]).await;
    let mut first = daemon.client().create(json!({})).await;
    enqueue(&first).await;
    let queued = first.next("command.queued").await;
    let mut joined = daemon.client().resume(&first.id, deploys()).await;
    let shown = joined.next("command.queued").await;
    assert_eq!(shown["data"], queued["data"]);
    let execute = joined.next("command.execute").await;
    let request = execute["data"]["requestId"].clone();
    assert_eq!(request, queued["data"]["requestId"]);
    assert_eq!(ran(&joined, &request).await, json!({"success": true}));
    joined.next("session.idle").await;
    assert_eq!(joined.count("session.warning"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_no_client_answers_does_not_block_the_queue_for_ever() {
    for (offer, why) in [
        (json!({}), "no client ran it within 1 seconds"),
        (deploys(), "did not report its end within 1 seconds"),
    ] {
        let script = Script::play([Turn::user("next").says("ok")]).await;
        let builder = Daemon::builder().script(script);
        let daemon = builder.config("command_timeout = 1").start().await;
        let mut session = daemon.client().create(offer).await;
        enqueue(&session).await;
        session.next("command.queued").await;
        session.send("next").await;
        let told = failed(&mut session).await;
        assert!(told.contains(why), "{told}");
        session.next("session.idle").await;
        assert_eq!(session.count("user.message"), 1, "the queue went on");
        daemon.finish().await;
    }
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
