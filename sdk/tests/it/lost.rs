//! The daemon is killed while a client is connected.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use loopd_sdk::{
    Body, Durable, Error, Event, Events, PermissionDecision, Session, SessionConfig, Wait,
};
use tokio::sync::Semaphore;

use crate::home::{Home, kill_daemon, until, within};

fn allowing() -> SessionConfig {
    SessionConfig::new().on_permission(|_| async { PermissionDecision::ApproveOnce {} })
}

/// Takes events up to the next idle event.
async fn take(events: &mut Events, all: &mut Vec<Event>) {
    all.extend(until(events, "session.idle").await);
}

/// Checks that the stream delivered the events of the log: all, once, in order.
async fn assert_whole(session: &Session, delivered: &[Event]) {
    let durable = |events: &[Event]| -> Vec<String> {
        let durable = events
            .iter()
            .filter(|event| matches!(event.body, Body::Durable(_)));
        durable
            .map(|event| format!("{} {}", event.body.kind(), event.head.id))
            .collect()
    };
    let stored = session.history().await.unwrap();
    assert_eq!(durable(delivered), durable(&stored));
    let ids: HashSet<_> = delivered.iter().map(|event| &event.head.id).collect();
    assert_eq!(ids.len(), delivered.len(), "an event was delivered twice");
}

#[tokio::test]
async fn a_stream_goes_on_after_the_daemon_was_killed_between_turns() {
    let home = Home::new();
    let client = home.client().await;
    let session = client.create(allowing()).await.unwrap();
    let mut events = session.events();
    let mut delivered = Vec::new();
    for round in 0..4 {
        let prompt = format!("run echo round {round}");
        session.send(prompt.as_str()).await.unwrap();
        take(&mut events, &mut delivered).await;
        kill_daemon(&client).await;
    }
    let reply = within("an answer", session.send_and_wait("run echo last"))
        .await
        .unwrap();
    assert!(reply.text.contains("last"));
    take(&mut events, &mut delivered).await;
    assert_whole(&session, &delivered).await;
}

#[tokio::test]
async fn a_turn_cut_short_goes_on_and_reports_what_was_lost() {
    let home = Home::new();
    let client = home.client().await;
    let session = client.create(allowing()).await.unwrap();
    let mut events = session.events();
    let fifo = home.folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let prompt = format!("run echo begun; cat {}", fifo.display());
    let mut turn = session.turn(prompt, Wait::Session);
    loop {
        let event = within("the tool to run", turn.next()).await.unwrap();
        if event.body.kind() == "tool.execution_partial_result" {
            break;
        }
    }
    kill_daemon(&client).await;
    while within("the end", turn.next()).await.is_some() {}
    let answered = turn.finish();
    assert!(answered.is_ok(), "{answered:?}");
    let mut delivered = Vec::new();
    take(&mut events, &mut delivered).await;
    let outcome = delivered.iter().find_map(|event| match &event.body {
        Body::Durable(Durable::ToolComplete(done)) => Some(done.clone()),
        _ => None,
    });
    assert!(!outcome.unwrap().success);
    let reply = within("an answer", session.send_and_wait("hello")).await;
    assert!(reply.unwrap().text.contains("offline model"));
    take(&mut events, &mut delivered).await;
    assert_whole(&session, &delivered).await;
}

#[tokio::test]
async fn a_permission_that_was_open_is_decided_after_the_daemon_came_back() {
    let home = Home::new();
    let client = home.client().await;
    let gate = Arc::new(Semaphore::new(0));
    let times = Arc::new(Mutex::new(0));
    let (opens, counted) = (gate.clone(), times.clone());
    let config = SessionConfig::new().on_permission(move |_| {
        *counted.lock().unwrap() += 1;
        let opens = opens.clone();
        async move {
            opens.acquire().await.unwrap().forget();
            PermissionDecision::ApproveOnce {}
        }
    });
    let session = client.create(config).await.unwrap();
    let mut events = session.events();
    let working = session.clone();
    let working = tokio::spawn(async move { working.send_and_wait("run echo at last").await });
    let mut delivered = until(&mut events, "permission.requested").await;
    kill_daemon(&client).await;
    // Calls go on only after the session was resumed.
    within("the history", session.history()).await.unwrap();
    gate.add_permits(1);
    let reply = within("the answer", working).await.unwrap().unwrap();
    assert!(reply.text.contains("at last"), "{}", reply.text);
    take(&mut events, &mut delivered).await;
    assert_whole(&session, &delivered).await;
    assert_eq!(*times.lock().unwrap(), 1, "a question is asked once");
}

#[tokio::test]
async fn a_long_session_is_caught_up_from_its_last_cursor() {
    let home = Home::new();
    let client = home.client().await;
    let session = client.create(SessionConfig::new()).await.unwrap();
    let mut events = session.events();
    let mut delivered = Vec::new();
    for round in 0..60 {
        session.send(format!("hello {round}")).await.unwrap();
        take(&mut events, &mut delivered).await;
    }
    kill_daemon(&client).await;
    session.send("hello again").await.unwrap();
    take(&mut events, &mut delivered).await;
    assert_whole(&session, &delivered).await;
}

#[tokio::test]
async fn a_client_that_starts_no_daemon_stays_disconnected() {
    let home = Home::new();
    let _client = home.client().await;
    let looking = home.connect_to_running().await.unwrap();
    kill_daemon(&looking).await;
    let lost = loop {
        match within("an error", looking.daemon_status()).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(matches!(lost, Error::Lost(_)), "{lost}");
}
