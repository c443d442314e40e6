//! The daemon is killed between the message that tells the model to go on and the answer.

use loopd_tests::Gate;

use super::*;

#[tokio::test]
async fn the_model_is_told_once_and_answers_after_the_restart() {
    let gate = Gate::new();
    let mut daemon = daemon([
        Turn::user("go").says("well"),
        nudged().says("never heard").held_by(&gate),
        // The same request again: the message is in the conversation and is not repeated.
        nudged().says("on my way"),
        nudged().calls([complete("c", "done")]),
    ])
    .await;
    let session = flying(&daemon, json!({})).await;
    let id = session.send("go").await;
    gate.reached().await;
    daemon
        .until(&session.id, "the nudge to be stored", |state| {
            state.autopilot.continues == 1 && state.turn().is_some()
        })
        .await;
    daemon.restart().await;
    gate.open();
    let wants = json!({"continuePendingWork": true});
    let mut session = daemon.client().resume(&session.id, wants).await;
    session.next("session.idle").await;
    let requests = daemon.script().requests();
    let told = |at: usize| {
        let messages = requests[at].messages().iter();
        messages
            .filter(|message| message["content"].to_string().contains(GO_ON))
            .count()
    };
    assert_eq!((told(1), told(2), told(3)), (1, 1, 2));
    let stored = session.messages().await;
    let nudges = stored
        .iter()
        .filter(|event| event["data"]["isAutopilotContinuation"] == true);
    assert_eq!(nudges.count(), 2);
    let now = status(&session).await;
    assert_eq!(now["continues"], 2, "the count survives");
    assert_eq!(now["lastStop"]["requestId"], id);
    daemon.finish().await;
}

#[tokio::test]
async fn without_a_wish_to_go_on_nothing_is_asked_of_the_model() {
    let gate = Gate::new();
    let mut daemon = daemon([
        Turn::user("go").says("well"),
        nudged().says("never heard").held_by(&gate),
        Turn::user("again").calls([complete("c", "done")]),
    ])
    .await;
    let session = flying(&daemon, json!({})).await;
    session.send("go").await;
    gate.reached().await;
    daemon
        .until(&session.id, "the nudge to be stored", |state| {
            state.autopilot.continues == 1 && state.turn().is_some()
        })
        .await;
    daemon.restart().await;
    gate.open();
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    assert_eq!(status(&session).await.get("requestId"), None);
    session.ask("again").await;
    assert_eq!(daemon.script().requests().len(), 3);
    daemon.finish().await;
}
