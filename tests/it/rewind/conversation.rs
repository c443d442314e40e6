//! Going back in the log: what clients see, what is refused, and what a restart finds.

use loopd_tests::{Daemon, Gate, Turn};
use serde_json::json;

use super::support::{World, bash, create};

#[tokio::test]
async fn any_event_can_be_cut_at_and_what_was_cut_is_unknown_from_then_on() {
    let daemon = Daemon::playing([
        Turn::user("one").says("first"),
        Turn::user("two").says("second"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    session.ask("two").await;
    let events = session.messages().await;
    let at = events
        .iter()
        .rposition(|it| it["type"] == "assistant.message")
        .unwrap();
    let cut = events[at]["id"].clone();
    let result = session
        .call("session.history.truncate", json!({"eventId": cut}))
        .await;
    assert_eq!(
        result["eventsRemoved"],
        (events.len() - at) as u64,
        "{result}"
    );
    assert_eq!(session.messages().await, events[..at]);
    // The event is gone for every method.
    session
        .refused("session.history.truncate", json!({"eventId": cut}))
        .await;
    let params = json!({"sessionId": session.id, "toEventId": cut});
    session.client().refused("sessions.fork", params).await;
    let read = session
        .call("session.eventLog.read", json!({"max": 1000}))
        .await;
    let ids: Vec<_> = read["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert!(!ids.contains(&&cut), "{ids:?}");
    // What comes next hangs on the last event that counts.
    session
        .call("session.name.set", json!({"name": "again"}))
        .await;
    session
        .call("session.mode.set", json!({"mode": "plan"}))
        .await;
    let last = session.messages().await.pop().unwrap();
    assert_eq!(last["type"], "session.mode_changed");
    assert_eq!(last["parentId"], events[at - 1]["id"]);
    daemon.finish().await;
}

#[tokio::test]
async fn work_that_goes_on_is_named_and_nothing_is_taken_back() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("first"),
        Turn::user("two").says("second").held_by(&gate),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    let first = session.messages().await;
    let first = first
        .iter()
        .find(|it| it["type"] == "user.message")
        .unwrap()["id"]
        .clone();
    session.send("two").await;
    session.next("assistant.turn_start").await;
    let listed = session
        .call("session.history.listRewindPoints", json!({}))
        .await;
    assert_eq!(listed["unavailableReason"], "session-busy");
    assert_eq!(listed["points"], json!([]));
    let wanted = json!({"eventId": first, "mode": "conversation"});
    let busy = session.call("session.history.rewind", wanted.clone()).await;
    assert_eq!(busy["outcome"], "session-busy");
    assert!(
        busy["error"]
            .as_str()
            .unwrap()
            .contains("a turn (session.abort)"),
        "{busy}"
    );
    let refused = session
        .refused("session.history.truncate", json!({"eventId": first}))
        .await;
    assert!(
        refused.message.contains("a turn (session.abort)"),
        "{}",
        refused.message
    );
    gate.open();
    session.next("session.idle").await;
    assert_eq!(
        session.call("session.history.rewind", wanted).await["outcome"],
        "success"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_in_the_background_has_to_be_stopped_first() {
    let mut background = bash("sleep 1000");
    background.1["mode"] = json!("async");
    background.1["shellId"] = json!("server");
    background.2 = "";
    let turns = vec![vec![background]];
    let mut world = World::new(&turns, |_| {}).await;
    world.turn(0).await;
    let events = world.session.messages().await;
    let first = events
        .iter()
        .find(|it| it["type"] == "user.message")
        .unwrap()
        .clone();
    let wanted = json!({"eventId": first["id"], "mode": "conversation"});
    let busy = world
        .session
        .call("session.history.rewind", wanted.clone())
        .await;
    assert_eq!(busy["outcome"], "session-busy");
    assert!(
        busy["error"]
            .as_str()
            .unwrap()
            .contains("the command server"),
        "{busy}"
    );
    let listed = world
        .session
        .call("session.history.listRewindPoints", json!({}))
        .await;
    assert_eq!(listed["unavailableReason"], "session-busy", "{listed}");
    let work = listed["work"].as_str().unwrap();
    assert!(work.contains("the command server"), "{work}");
    world
        .session
        .call("session.tasks.cancel", json!({"id": "server"}))
        .await;
    let done = world.session.call("session.history.rewind", wanted).await;
    assert_eq!(done["outcome"], "success", "{done}");
    world.finish().await;
}

#[tokio::test]
async fn a_restart_finds_the_session_where_it_was_taken_back_to() {
    let turns = vec![vec![create("a.txt", "a")], vec![create("b.txt", "b")]];
    let mut world = World::new(&turns, |_| {}).await;
    world.turn(0).await;
    world.turn(1).await;
    let points = world.points().await;
    world.rewind(&points[1], "conversation-and-files").await;
    let before = world.session.messages().await;
    world.daemon.restart().await;
    let client = world.daemon.client();
    world.session = client.resume(&world.session.id, json!({})).await;
    let said = world.said().await;
    assert_eq!(said.len(), 1, "{said:?}");
    let after = world.session.messages().await;
    assert_eq!(after[..before.len()], before, "and what came since");
    // The rewind can still be undone.
    let undone = world.undo().await;
    assert_eq!(undone["outcome"], "success", "{undone}");
    assert_eq!(world.said().await.len(), 2);
    assert_eq!(world.read("b.txt"), "b");
    world.finish().await;
}

#[tokio::test]
async fn only_user_messages_and_only_known_ones_are_points() {
    let turns = vec![vec![create("a.txt", "a")]];
    let mut world = World::new(&turns, |_| {}).await;
    world.turn(0).await;
    let events = world.session.messages().await;
    let reply = events
        .iter()
        .find(|it| it["type"] == "assistant.message")
        .unwrap();
    for (event, why) in [
        (reply["id"].clone(), "no user message"),
        (json!("nobody"), "no event nobody"),
    ] {
        let params = json!({"eventId": event, "mode": "conversation"});
        let refused = world
            .session
            .refused("session.history.rewind", params)
            .await;
        assert!(refused.message.contains(why), "{}", refused.message);
    }
    let nothing = world.session.refused("loopd.rewind", json!({})).await;
    assert!(
        nothing.message.contains("no rewind to undo"),
        "{}",
        nothing.message
    );
    world.finish().await;
}
