//! Coming and going: several connections on one session, goodbyes, vanished clients, resumes.

use std::collections::BTreeMap;
use std::sync::Arc;

use loopd::launch::{Launch, LaunchOptions};
use loopd_kernel::state::Phase;
use loopd_tests::{Client, Daemon, Gate, Lifeline, Script, Session, Turn, call};
use serde_json::{Value, json};

/// A model that runs what it is told to run and says `ok` to everything else.
async fn obedient() -> Script {
    Script::answering(|request| {
        let text = request.last_user_text();
        let asked_now = request
            .messages()
            .last()
            .is_some_and(|message| message["role"] == "user");
        match text.split_once("run: ") {
            Some((_, command)) if asked_now => {
                Turn::any().calls([call("c", "bash", json!({"command": command}))])
            }
            _ => Turn::any().says("ok"),
        }
    })
    .await
}

async fn not_found(session: &Session) {
    let error = session
        .refused("session.send", json!({"prompt": "hello?"}))
        .await;
    assert_eq!(error.code, -32603);
    let text = format!(
        "Request session.send failed with message: Session not found: {}",
        session.id
    );
    assert!(error.message.starts_with(&text), "{error}");
}

#[tokio::test]
async fn everyone_attached_hears_everything() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let mut one = daemon.client().create(json!({})).await;
    let mut two = daemon.client().resume(&one.id, json!({})).await;
    one.next("session.resume").await;
    one.ask("hello").await;
    two.next("session.idle").await;
    let after_resume = |session: &Session| {
        let events = session.events();
        let at = events
            .iter()
            .position(|event| event["type"] == "session.resume")
            .unwrap();
        events[at..].to_vec()
    };
    assert_eq!(after_resume(&one), after_resume(&two));
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_is_only_for_those_attached() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let stranger = daemon.client().session(&session.id);
    not_found(&stranger).await;
    for method in [
        "session.getMessages",
        "session.abort",
        "session.destroy",
        "session.eventLog.tail",
    ] {
        let error = stranger.refused(method, json!({})).await;
        assert!(
            error
                .message
                .contains(&format!("Session not found: {}", session.id)),
            "{error}"
        );
        assert!(error.message.contains("session.resume first"), "{error}");
    }
    let unknown = stranger
        .client()
        .refused("session.resume", json!({"sessionId": "nobody"}))
        .await;
    assert_eq!(
        unknown.message,
        "Request session.resume failed with message: Session not found: nobody"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn the_first_to_leave_detaches_and_the_last_ends_the_session() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let one = daemon.client().create(json!({})).await;
    let mut two = daemon.client().resume(&one.id, json!({})).await;
    one.destroy().await;
    not_found(&one).await;
    two.ask("hello").await;
    let heard = one
        .events()
        .iter()
        .any(|event| event["type"] == "user.message");
    assert!(!heard, "who has left hears no more");
    assert_eq!(two.count("session.shutdown"), 0);
    two.destroy().await;
    let end = two.next("session.shutdown").await;
    assert_eq!(end["data"]["shutdownType"], "routine");
    assert_eq!(
        end["data"]["modelMetrics"]["scripted"]["requests"]["count"],
        1
    );
    assert_eq!(
        end["data"]["modelMetrics"]["scripted"]["usage"]["inputTokens"],
        10
    );
    not_found(&two).await;
    assert_eq!(one.count("session.shutdown"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn ending_a_session_kills_what_it_runs() {
    let daemon = Daemon::builder()
        .script(obedient().await)
        .yolo()
        .start()
        .await;
    let lifeline = Lifeline::new(daemon.work());
    let session = daemon.client().create(json!({})).await;
    session.send(&format!("run: {}", lifeline.command())).await;
    let command = lifeline.started().await;
    session.destroy().await;
    command.ended().await;
    let mut session = session.client().resume(&session.id, json!({})).await;
    let complete = session.messages().await;
    let complete = complete
        .iter()
        .filter(|event| event["type"] == "tool.execution_complete");
    assert_eq!(complete.count(), 1);
    session.ask("go on").await;
    daemon.finish().await;
}

#[tokio::test]
async fn when_the_only_client_vanishes_the_turn_ends_and_no_new_one_begins() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("2"),
        Turn::user("three").says("3"),
    ])
    .await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    session.send("two").await;
    client.vanish().await;
    gate.open();
    let rests = |state: &loopd_kernel::state::State| matches!(state.phase, Phase::Idle);
    let state = daemon.until(&session.id, "the turn to end", rests).await;
    assert_eq!(
        state.queue.len(),
        1,
        "the next message waits for somebody to come"
    );
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    session.send("three").await;
    session.next("session.idle").await;
    daemon.finish().await;
}

/// Starts a turn whose model call is held, then cuts the client off.
async fn vanished_in_a_turn(daemon: &Daemon, gate: &Gate) -> String {
    let client = daemon.client();
    let session = client.create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    client.vanish().await;
    session.id
}

async fn resumed(client: &Client, id: &str, params: Value) -> (Session, Value) {
    let mut session = client.resume(id, params).await;
    let event = session.next("session.resume").await;
    (session, event["data"].clone())
}

#[tokio::test]
async fn joining_an_attended_session_touches_nothing() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let one = daemon.client().create(json!({})).await;
    one.send("one").await;
    gate.reached().await;
    let (mut two, resume) = resumed(&daemon.client(), &one.id, json!({})).await;
    assert_eq!(resume["sessionWasActive"], true);
    gate.open();
    two.next("assistant.message").await;
    let idle = two.next("session.idle").await;
    assert_eq!(idle["data"].get("aborted"), None);
    daemon.finish().await;
}

#[tokio::test]
async fn resuming_an_unattended_session_to_continue_lets_its_work_go_on() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let id = vanished_in_a_turn(&daemon, &gate).await;
    let params = json!({"continuePendingWork": true});
    let (mut session, resume) = resumed(&daemon.client(), &id, params).await;
    assert_eq!(
        (&resume["sessionWasActive"], &resume["continuePendingWork"]),
        (&json!(false), &json!(true))
    );
    gate.open();
    session.next("assistant.message").await;
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn resuming_an_unattended_session_otherwise_closes_its_turn() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("never heard").held_by(&gate),
        Turn::user("two").says("2"),
    ])
    .await;
    let id = vanished_in_a_turn(&daemon, &gate).await;
    let (mut session, resume) = resumed(&daemon.client(), &id, json!({})).await;
    assert_eq!(resume["sessionWasActive"], false);
    daemon.script().hung_up().await;
    session.ask("two").await;
    let stored = session.messages().await;
    let starts = stored
        .iter()
        .filter(|event| event["type"] == "assistant.turn_start")
        .count();
    let ends = stored
        .iter()
        .filter(|event| event["type"] == "assistant.turn_end")
        .count();
    assert_eq!((starts, ends), (2, 2));
    daemon.finish().await;
}

#[tokio::test]
async fn resuming_an_unattended_session_kills_what_its_closed_turn_runs() {
    let daemon = Daemon::builder()
        .script(obedient().await)
        .yolo()
        .start()
        .await;
    let lifeline = Lifeline::new(daemon.work());
    let client = daemon.client();
    let session = client.create(json!({})).await;
    session.send(&format!("run: {}", lifeline.command())).await;
    let command = lifeline.started().await;
    client.vanish().await;
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    command.ended().await;
    session.ask("go on").await;
    daemon.finish().await;
}

#[tokio::test]
async fn queued_messages_outlive_the_daemon() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("never heard").held_by(&gate),
        Turn::user("two").says("2"),
        Turn::user("three").says("3"),
    ])
    .await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    session.send("two").await;
    client.vanish().await;
    // As far as the session can tell, this is a new process.
    daemon.live(&session.id).stop().await;
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["items"][0]["displayText"], "two");
    session.send("three").await;
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_join_can_be_silent() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let mut one = daemon.client().create(json!({})).await;
    let mut two = daemon
        .client()
        .resume(&one.id, json!({"disableResume": true}))
        .await;
    one.ask("hello").await;
    two.next("session.idle").await;
    assert_eq!(one.count("session.resume"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_resume_can_change_the_configuration() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let client = daemon.client();
    let session = client.create(json!({"model": "another"})).await;
    let folder = daemon.file("folder");
    std::fs::create_dir(&folder).unwrap();
    session.destroy().await;
    let params = json!({"workingDirectory": folder, "availableTools": ["view"]});
    let mut session = client.resume(&session.id, params).await;
    session.ask("hello").await;
    assert_eq!(daemon.script().last_request().tools(), ["view"]);
    assert_eq!(
        daemon.state(&session.id).await.cwd,
        folder.to_str().unwrap()
    );
    daemon.finish().await;
}

#[tokio::test]
async fn shutting_a_launch_down_ends_its_sessions_and_nobody_elses() {
    let daemon = Daemon::playing([Turn::user("still here").says("yes")]).await;
    let ours = daemon.client();
    let mut one = ours.create(json!({})).await;
    let other = daemon.client_of(daemon.new_launch());
    let mut two = other.create(json!({})).await;
    assert_eq!(ours.call("runtime.shutdown", json!({})).await, Value::Null);
    one.next("session.shutdown").await;
    let error = ours.refused("ping", json!({})).await;
    assert_eq!(error.code, -32603);
    two.ask("still here").await;
    assert!(
        other
            .notes("session.lifecycle")
            .iter()
            .all(|note| note["sessionId"] == two.id.as_str()),
        "another launch's sessions are not announced"
    );
    let found = other
        .call("session.getMetadata", json!({"sessionId": one.id}))
        .await;
    assert_eq!(
        found["session"]["sessionId"],
        one.id.as_str(),
        "its log stays"
    );
    daemon.finish().await;
}

/// A session that lost its client with one message answered and one waiting.
async fn left_with_a_queue(daemon: &Daemon, gate: &Gate) -> String {
    let client = daemon.client();
    let session = client.create(json!({"requestPermission": true})).await;
    session.send("one").await;
    gate.reached().await;
    session.send("two").await;
    client.vanish().await;
    gate.open();
    let rests = |state: &loopd_kernel::state::State| matches!(state.phase, Phase::Idle);
    daemon.until(&session.id, "the turn to end", rests).await;
    session.id
}

#[tokio::test]
async fn who_wants_pending_work_to_go_on_gets_the_queue_going() {
    let gate = Gate::new();
    let one = Turn::user("one").says("1").held_by(&gate);
    let daemon = Daemon::playing([one, Turn::user("two").says("2")]).await;
    let id = left_with_a_queue(&daemon, &gate).await;
    let params = json!({"continuePendingWork": true});
    let mut session = daemon.client().resume(&id, params).await;
    let message = session.next("assistant.message").await;
    assert_eq!(message["data"]["content"], "2");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn who_only_looks_on_starts_nothing_and_changes_nothing() {
    let gate = Gate::new();
    let command = json!({"command": "echo $GREETING"});
    let daemon = Daemon::builder()
        .script(
            Script::play([
                Turn::user("one").says("1").held_by(&gate),
                Turn::user("two").calls([call("c", "bash", command)]),
                Turn::results(["hello"]).says("2"),
            ])
            .await,
        )
        .env("GREETING", "hello")
        .start()
        .await;
    let id = left_with_a_queue(&daemon, &gate).await;
    let bare = Launch::new(
        daemon.work().into(),
        BTreeMap::new(),
        LaunchOptions::default(),
    );
    let observer = daemon.client_of(Arc::new(bare));
    let looking_on = json!({"loopdObserver": true, "continuePendingWork": true});
    let mut seen = observer.resume(&id, looking_on).await;
    assert_eq!(daemon.state(&id).await.queue.len(), 1);
    let offer = json!({"requestPermission": true, "continuePendingWork": true});
    let client = daemon.client();
    let mut session = client.resume(&id, offer).await;
    let (request, _) = session.permission().await;
    // With only the observer left the question waits for somebody; nobody is refused.
    client.vanish().await;
    let client = daemon.client();
    let offer = json!({"requestPermission": true, "continuePendingWork": true});
    let session = client.resume(&id, offer).await;
    assert!(
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    seen.next("session.idle").await;
    daemon.finish().await;
}
