//! Several clients, and the daemon as a process.

use std::sync::{Arc, Mutex};

use loopd_sdk::{Activity, Error, PermissionDecision, SessionConfig};

use crate::home::{Home, kinds, until, within};

/// Reports that it was dropped.
struct Dropped(Option<tokio::sync::oneshot::Sender<()>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(tell) = self.0.take() {
            tell.send(()).ok();
        }
    }
}

#[tokio::test]
async fn the_first_answer_counts_and_the_other_handlers_are_dropped() {
    let home = Home::new();
    let (tell, withdrawn) = tokio::sync::oneshot::channel();
    let guard = Mutex::new(Some(Dropped(Some(tell))));
    let slow = SessionConfig::new().on_permission(move |_| {
        let guard = guard.lock().unwrap().take();
        async move {
            let _held = guard;
            std::future::pending().await
        }
    });
    let first = home.client().await;
    let session = first.create(slow).await.unwrap();
    let (ask, asked) = tokio::sync::oneshot::channel();
    let ask = Mutex::new(Some(ask));
    let (allow, allowed) = tokio::sync::watch::channel(());
    let quick = SessionConfig::new().on_permission(move |_| {
        if let Some(ask) = ask.lock().unwrap().take() {
            ask.send(()).ok();
        }
        let mut allowed = allowed.clone();
        async move {
            allowed.changed().await.ok();
            PermissionDecision::ApproveOnce {}
        }
    });
    let second = home.client().await;
    let joined = second.resume(session.id().clone(), quick).await.unwrap();
    let mut heard = joined.events();
    let working = tokio::spawn(async move { session.send_and_wait("run echo both").await });
    within("the second client to be asked", asked)
        .await
        .unwrap();
    allow.send(()).unwrap();
    let reply = within("the answer", working).await.unwrap().unwrap();
    assert!(reply.text.contains("both"));
    within("the first handler's end", withdrawn).await.unwrap();
    let heard = until(&mut heard, "session.idle").await;
    assert!(kinds(&heard).contains(&"assistant.message"));
}

#[tokio::test]
async fn a_question_stays_open_when_the_client_that_was_asked_leaves() {
    let home = Home::new();
    let client = home.client().await;
    let config = SessionConfig::new().on_permission(|_| std::future::pending());
    let session = client.create(config).await.unwrap();
    let id = session.id().clone();
    let mut events = session.events();
    session.send("run echo later").await.unwrap();
    until(&mut events, "permission.requested").await;
    drop(session);
    within("the client's end", client.close()).await;
    let client = home.client().await;
    let config =
        SessionConfig::new().on_permission(|_| async { PermissionDecision::ApproveOnce {} });
    let session = client.resume(id, config).await.unwrap();
    let mut events = session.events();
    let seen = until(&mut events, "session.idle").await;
    assert!(kinds(&seen).contains(&"tool.execution_complete"));
}

#[tokio::test]
async fn a_client_can_open_a_session_only_once() {
    let home = Home::new();
    let client = home.client().await;
    let session = client.create(SessionConfig::new()).await.unwrap();
    let again = client.resume(session.id().clone(), SessionConfig::new());
    assert!(matches!(again.await, Err(Error::AlreadyOpen(_))));
}

#[tokio::test]
async fn a_daemon_is_started_reports_its_status_and_stops() {
    let home = Home::new();
    let nobody = home.connect_to_running().await;
    assert!(matches!(nobody.err(), Some(Error::NotRunning { .. })));
    let client = home.client().await;
    let session = client.create(SessionConfig::new()).await.unwrap();
    let looking = home.connect_to_running().await.unwrap();
    let status = looking.daemon_status().await.unwrap();
    assert_eq!(status.connections, 2);
    let [live] = status.sessions.as_slice() else {
        panic!("one session was expected: {status:?}");
    };
    assert_eq!(&live.session_id, session.id());
    assert_eq!(live.activity, Activity::Idle);
    drop(session);
    client.close().await;
    within("the daemon's end", looking.stop_daemon())
        .await
        .unwrap();
    let nobody = home.connect_to_running().await;
    assert!(matches!(nobody.err(), Some(Error::NotRunning { .. })));
}

#[tokio::test]
async fn clients_that_start_at_once_share_one_daemon() {
    let home = Arc::new(Home::new());
    let start = || {
        let home = home.clone();
        tokio::spawn(async move {
            let client = home.client().await;
            let pid = client.daemon_status().await.unwrap().pid;
            (client, pid)
        })
    };
    let starting: Vec<_> = (0..4).map(|_| start()).collect();
    let mut pids = Vec::new();
    let mut clients = Vec::new();
    for started in starting {
        let (client, pid) = within("a client", started).await.unwrap();
        clients.push(client);
        pids.push(pid);
    }
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
}
