//! Who is attached: the autopilot takes no turns for nobody.

use loopd_tests::Gate;

use super::*;

#[tokio::test]
async fn with_nobody_attached_it_waits_until_somebody_wants_the_work_to_go_on() {
    let gate = Gate::new();
    let daemon = daemon([
        Turn::user("go").says("well").held_by(&gate),
        nudged().calls([complete("c", "done")]),
    ])
    .await;
    let client = daemon.client();
    let session = flying_of(&client).await;
    let id = session.send("go").await;
    gate.reached().await;
    client.vanish().await;
    gate.open();
    let rests = daemon.until(&session.id, "the turn to end", |state| !state.is_busy());
    let rests = rests.await;
    assert_eq!(rests.autopilot.continues, 0);
    assert_eq!(rests.autopilot.request.as_ref().unwrap().as_str(), id);
    let wants = json!({"continuePendingWork": true});
    let mut session = daemon.client().resume(&session.id, wants).await;
    session.next("session.idle").await;
    assert_eq!(
        data(&session, "session.autopilot_stopped")[0]["requestId"],
        id
    );
    daemon.finish().await;
}

#[tokio::test]
async fn who_does_not_want_the_work_to_go_on_has_it_wait_for_a_message() {
    let gate = Gate::new();
    let daemon = daemon([
        Turn::user("go").says("well").held_by(&gate),
        Turn::user("again").calls([complete("c", "done")]),
    ])
    .await;
    let client = daemon.client();
    let session = flying_of(&client).await;
    session.send("go").await;
    gate.reached().await;
    client.vanish().await;
    gate.open();
    daemon
        .until(&session.id, "the turn to end", |state| !state.is_busy())
        .await;
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    assert_eq!(status(&session).await.get("requestId"), None);
    session.ask("again").await;
    assert_eq!(nudges(&session).len(), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_that_was_made_to_go_on_alone_does() {
    let gate = Gate::new();
    let daemon = daemon([
        Turn::user("go").says("well").held_by(&gate),
        nudged().calls([complete("c", "done alone")]),
    ])
    .await;
    let client = daemon.client();
    let session = client
        .create(json!({"autopilot": {"loopdUnattended": true}}))
        .await;
    set(&session, "autopilot").await;
    session.send("go").await;
    gate.reached().await;
    client.vanish().await;
    gate.open();
    daemon
        .until(&session.id, "the task to be complete", |state| {
            state.autopilot.stopped.is_some() && !state.is_busy()
        })
        .await;
    let session = daemon.client().resume(&session.id, json!({})).await;
    let now = status(&session).await;
    assert_eq!(now["completion"]["summary"], "done alone");
    daemon.finish().await;
}

async fn flying_of(client: &loopd_tests::Client) -> Session {
    let session = client.create(json!({})).await;
    set(&session, "autopilot").await;
    session
}
