//! A session whose log cannot be written says so, goes on to be read, and goes on by itself when
//! writing works again: no client has to resume, and nothing that was acknowledged is lost.

use loopd_proto::wire::ErrorObject;
use loopd_tests::{Commits, Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

/// A daemon whose model answers every message, after a call of `bash` if the message asks for one.
async fn start(commits: &Commits) -> (Daemon, Session) {
    let script = Script::answering(|request| {
        let wants_tool = request.last_user_text().contains("run");
        if wants_tool && request.last_results().is_empty() {
            Turn::any().calls([call("c", "bash", json!({"command": "echo ran >> made"}))])
        } else {
            Turn::any().says("answered")
        }
    })
    .await;
    let builder = Daemon::builder().script(script).commits(commits).yolo();
    let daemon = builder.start().await;
    let session = daemon.client().create(json!({})).await;
    (daemon, session)
}

async fn send(session: &Session, prompt: &str) -> Result<Value, ErrorObject> {
    session
        .try_call("session.send", json!({"prompt": prompt}))
        .await
}

async fn count_stored(session: &Session, kind: &str) -> usize {
    let messages = session.call("session.getMessages", json!({})).await;
    let events = messages["events"].as_array().unwrap().clone();
    events.iter().filter(|event| event["type"] == kind).count()
}

fn assert_names_the_disk(error: &ErrorObject) {
    assert_eq!(error.code, -32004, "{error:?}");
    let message = &error.message;
    assert!(message.contains("no space is left for"), "{message}");
}

#[tokio::test]
async fn a_request_fails_with_the_cause_and_the_session_goes_on() {
    let commits = Commits::default();
    let (daemon, mut session) = start(&commits).await;
    session.send("one").await;
    session.next("session.idle").await;
    commits.fill_disk();
    for _ in 0..3 {
        assert_names_the_disk(&send(&session, "two").await.unwrap_err());
        // Reads go on.
        assert_eq!(count_stored(&session, "user.message").await, 1);
    }
    let told = session.next("session.error").await;
    assert_eq!(told["data"]["errorType"], "storage");
    let words = told["data"]["message"].as_str().unwrap();
    assert!(words.contains("no space is left"), "{words}");
    assert!(words.contains("refused and changed nothing"), "{words}");
    assert_eq!(session.count("session.error"), 1, "told once");
    commits.free_disk();
    session.send("three").await;
    session.next("session.idle").await;
    assert_eq!(count_stored(&session, "user.message").await, 2);
    daemon.finish().await;
}

#[tokio::test]
async fn a_turn_goes_on_by_itself_when_there_is_room_again() {
    // Each of these events is the first of a transaction that reports something.
    for kind in [
        "assistant.message",
        "tool.execution_start",
        "tool.execution_complete",
    ] {
        let commits = Commits::default();
        let (daemon, mut session) = start(&commits).await;
        let mut commit = commits.hold(kind);
        session.send("run").await;
        commit.reached().await;
        commits.fill_disk();
        commit.fail();
        commits.failed(2).await;
        let error = session.next("session.error").await;
        assert_eq!(error["data"]["errorType"], "storage");
        let words = error["data"]["message"].as_str().unwrap();
        assert!(words.contains("goes on by itself"), "{words}");
        assert!(!words.contains("changed nothing"), "{words}");
        assert_eq!(
            session.count(kind),
            0,
            "{kind} was shown before it was stored"
        );
        assert_names_the_disk(&send(&session, "more").await.unwrap_err());
        commits.free_disk();
        session.next("session.idle").await;
        let made = std::fs::read_to_string(daemon.file("made")).unwrap();
        assert_eq!(made, "ran\n", "{kind}");
        assert_eq!(count_stored(&session, "tool.execution_complete").await, 1);
        session.send("again").await;
        session.next("session.idle").await;
        daemon.finish().await;
    }
}

/// Approves a command, which makes a file, while the disk is full.
async fn approved_on_a_full_disk(
    commits: &Commits,
    answers: impl IntoIterator<Item = Turn>,
) -> (Daemon, Session) {
    let command = json!({"command": "echo ran >> made"});
    let mut turns = vec![Turn::user("go").calls([call("c", "bash", command)])];
    turns.extend(answers);
    let script = Script::play(turns).await;
    let builder = Daemon::builder().script(script).commits(commits);
    let daemon = builder.start().await;
    let offer = json!({"requestPermission": true});
    let mut session = daemon.client().create(offer).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    commits.fill_disk();
    let answer = json!({"requestId": request, "result": {"kind": "approve-once"}});
    let method = "session.permissions.handlePendingPermissionRequest";
    let error = session.try_call(method, answer).await.unwrap_err();
    assert!(error.message.contains("keeps this"), "{error:?}");
    let data = error.data.expect("programs can tell that it is kept");
    assert_eq!(data.to_string(), r#"{"kept":true}"#);
    let answer = json!({"requestId": request, "result": {"kind": "reject"}});
    let error = session.try_call(method, answer).await.unwrap_err();
    assert!(error.message.contains("answered already"), "{error:?}");
    assert_eq!(error.data, None, "a second answer is not kept");
    assert!(!daemon.file("made").exists());
    (daemon, session)
}

#[tokio::test]
async fn an_answer_to_a_permission_is_kept_until_it_can_be_stored() {
    let commits = Commits::default();
    let (daemon, mut session) = approved_on_a_full_disk(&commits, [Turn::any().says("done")]).await;
    commits.free_disk();
    session.next("session.idle").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn what_was_approved_before_an_abort_does_not_run_after_it() {
    let commits = Commits::default();
    let (daemon, mut session) = approved_on_a_full_disk(&commits, []).await;
    let abort = session.try_call("session.abort", json!({})).await;
    abort.unwrap_err();
    commits.free_disk();
    session.next("abort").await;
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn what_was_approved_runs_after_an_abort_that_spares_its_turn() {
    let commits = Commits::default();
    let (daemon, mut session) = approved_on_a_full_disk(&commits, [Turn::any().says("done")]).await;
    let other = json!({"onlyMessageId": "of-another-turn"});
    let interrupt = session.try_call("session.interruptMainTurn", other).await;
    interrupt.unwrap_err();
    commits.free_disk();
    session.next("session.idle").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_stops_the_work_at_once_although_it_cannot_be_stored() {
    let commits = Commits::default();
    let script = Script::play([Turn::user("go").calls([call(
        "c",
        "bash",
        json!({"command": "touch began; sleep 600"}),
    )])])
    .await;
    let builder = Daemon::builder().script(script).commits(&commits).yolo();
    let daemon = builder.start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    session.next("tool.execution_start").await;
    commits.fill_disk();
    let error = session
        .try_call("session.abort", json!({}))
        .await
        .unwrap_err();
    assert!(error.message.contains("keeps this"), "{error:?}");
    commits.free_disk();
    session.next("abort").await;
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_that_could_not_be_created_does_not_exist() {
    let commits = Commits::default();
    let (daemon, _session) = start(&commits).await;
    commits.fill_disk();
    let client = daemon.client();
    let refused = client
        .try_call("session.create", json!({"sessionId": "late"}))
        .await;
    assert_names_the_disk(&refused.unwrap_err());
    assert!(daemon.app.sessions.get(&"late".into()).is_none());
    commits.free_disk();
    client
        .call("session.create", json!({"sessionId": "late"}))
        .await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_reply_that_the_store_refuses_fails_its_turn_and_not_the_session() {
    let commits = Commits::default();
    let (daemon, mut session) = start(&commits).await;
    let mut commit = commits.hold("assistant.message");
    session.send("one").await;
    commit.reached().await;
    commit.refuse();
    let error = session.next("session.error").await;
    assert_eq!(error["data"]["errorType"], "storage");
    session.next("session.idle").await;
    session.send("two").await;
    session.next("session.idle").await;
    assert_eq!(count_stored(&session, "assistant.message").await, 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_whose_log_cannot_be_read_either_says_that_it_is_damaged() {
    let commits = Commits::default();
    let (daemon, mut session) = start(&commits).await;
    session.send("one").await;
    session.next("session.idle").await;
    commits.fill_disk();
    commits.set_unreadable(true);
    assert_names_the_disk(&send(&session, "two").await.unwrap_err());
    for method in ["session.queue.pendingItems", "session.name.get"] {
        let error = session.try_call(method, json!({})).await.unwrap_err();
        assert_eq!(error.code, -32004, "{error:?}");
        assert!(error.message.contains("damaged"), "{error:?}");
    }
    let error = send(&session, "three").await.unwrap_err();
    assert!(error.message.contains("damaged"), "{error:?}");
    commits.set_unreadable(false);
    commits.free_disk();
    session.send("four").await;
    session.next("session.idle").await;
    assert_eq!(count_stored(&session, "user.message").await, 2);
    daemon.finish().await;
}

#[tokio::test]
async fn a_sub_agent_waits_for_the_disk_and_its_parent_waits_for_it() {
    let commits = Commits::default();
    let script = Script::answering(|request| {
        let is_agent = request.last_user_text().contains("find it");
        let start = json!({"description": "a part", "prompt": "find it", "name": "finder",
                           "agent_type": "general-purpose"});
        match (is_agent, request.last_results().len()) {
            (true, _) => Turn::any().says("found"),
            (false, 0) => Turn::any().calls([call("t", "task", start)]),
            (false, _) => Turn::any().says("done"),
        }
    })
    .await;
    let builder = Daemon::builder().script(script).commits(&commits).yolo();
    let daemon = builder.start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    session.next("subagent.started").await;
    let mut commit = commits.hold("assistant.message");
    commit.reached().await;
    commits.fill_disk();
    commit.fail();
    commits.failed(2).await;
    session.next("session.error").await;
    commits.free_disk();
    let done = session.next("tool.execution_complete").await;
    assert_eq!(done["data"]["success"], true, "{done}");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn ten_full_disks_during_turns_lose_nothing_that_was_acknowledged() {
    let commits = Commits::default();
    let (daemon, mut session) = start(&commits).await;
    let mut acknowledged = 0;
    for round in 0..10 {
        session.send("run").await;
        acknowledged += 1;
        if round % 2 == 0 {
            session.next("assistant.message").await;
        }
        commits.fill_disk();
        for _ in 0..3 {
            let refused = send(&session, "not now").await.unwrap_err();
            assert_names_the_disk(&refused);
        }
        commits.free_disk();
        session.next("session.idle").await;
        assert_eq!(count_stored(&session, "user.message").await, acknowledged);
        assert_eq!(
            count_stored(&session, "tool.execution_complete").await,
            acknowledged
        );
    }
    let made = std::fs::read_to_string(daemon.file("made")).unwrap();
    assert_eq!(made.lines().count(), acknowledged, "no tool ran twice");
    assert!(session.count("session.error") <= 10);
    daemon.finish().await;
}

#[tokio::test]
async fn work_that_a_client_wants_to_continue_goes_on_when_there_is_room_again() {
    let commits = Commits::default();
    let script = Script::answering(|request| match request.last_results().len() {
        0 => Turn::any().calls([call(
            "c",
            "bash",
            json!({"command": "touch began; sleep 600"}),
        )]),
        _ => Turn::any().says("answered"),
    })
    .await;
    let builder = Daemon::builder().script(script).commits(&commits).yolo();
    let mut daemon = builder.start().await;
    let mut session = daemon.client().create(json!({})).await;
    let message = json!({"prompt": "go", "messageId": "m"});
    session.call("session.send", message.clone()).await;
    session.next("tool.execution_start").await;
    daemon.restart().await;
    // What the kill interrupted is closed in the log. The disk is full when the work is to go on.
    let mut woken = commits.hold("loopd.woken");
    let options = json!({"continuePendingWork": true, "disableResume": true});
    let client = daemon.client();
    let mut session = client.resume(&session.id, options).await;
    woken.reached().await;
    commits.fill_disk();
    woken.fail();
    session.next("session.error").await;
    let status = client.call("loopd.daemonStatus", json!({})).await;
    assert_eq!(status["sessions"][0]["activity"], "working", "{status}");
    // Whoever waited for the answer asks again on the new connection.
    let mut again = message;
    again["sessionId"] = json!(session.id);
    let waits = client.start("session.sendAndWait", again);
    commits.free_disk();
    let answered = waits.await.unwrap();
    let answered = answered["response"]["data"]["content"].clone();
    assert_eq!(answered, "answered");
    session.next("session.idle").await;
    daemon.finish().await;
}
