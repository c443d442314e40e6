//! A model that feeds itself: each notification lets it start another agent in the background.

use loopd_tests::{Daemon, Script, Session, Turn};
use serde_json::json;

use super::background;

/// A daemon whose model starts an agent whenever it is told something.
async fn restless(most: u32) -> Daemon {
    let mut started = 0;
    let script = Script::answering(move |request| {
        if request.first_user_text().contains("a small thing") {
            return Turn::any().says("done");
        }
        if !request.last_results().is_empty() {
            return Turn::any().says("it works");
        }
        started += 1;
        let call = background(
            &format!("t{started}"),
            "a small thing",
            &format!("A{started}"),
        );
        Turn::any().calls([call])
    })
    .await;
    Daemon::builder()
        .script(script)
        .config(&format!("[agents]\nmax_wakes = {most}\n"))
        .start()
        .await
}

fn told(session: &Session) -> usize {
    let events = session.events();
    let told = events
        .iter()
        .filter(|event| event["data"]["warningType"] == "wake_limit");
    told.count()
}

#[tokio::test]
async fn notifications_start_so_many_runs_and_a_message_lets_it_go_on() {
    let mut daemon = restless(3).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    let state = daemon.state(&session.id).await;
    let ran = (state.wakes.runs, state.tasks.undelivered().len());
    // The message and three notifications each started an agent; the last end waits.
    assert_eq!(ran, (3, 1));
    assert_eq!(told(&session), 1);
    // It is a fold: a restart does not let it go on.
    daemon.restart().await;
    let wants = json!({"continuePendingWork": true});
    let mut session = daemon.client().resume(&session.id, wants).await;
    assert_eq!(daemon.state(&session.id).await.wakes.runs, 3);
    session.ask("go on").await;
    let request = daemon.script().requests();
    let answered = request
        .iter()
        .filter(|request| request.last_user_text().contains("go on"));
    assert_eq!(answered.count(), 1);
    let after = daemon.state(&session.id).await.wakes.runs;
    assert_eq!((after, told(&session)), (3, 1), "it counts anew");
    daemon.finish().await;
}

/// In autopilot mode nobody looks, and the run that a notification starts may nudge itself.
#[tokio::test]
async fn in_autopilot_mode_a_model_that_feeds_itself_comes_to_an_end() {
    let daemon = restless(3).await;
    let mut session = daemon.client().create(json!({})).await;
    session
        .call("session.mode.set", json!({"mode": "autopilot"}))
        .await;
    session.send("begin").await;
    session.next("session.autopilot_stopped").await;
    session
        .next_where("the end of all work", |event| {
            event["type"] == "session.idle"
        })
        .await;
    let asked = daemon.script().requests().len();
    let state = daemon.state(&session.id).await;
    assert!(state.wakes.runs <= 3, "{}", state.wakes.runs);
    // The limit of nudges and the one of wakes bound it together.
    assert!(asked < 60, "{asked}");
    daemon.finish().await;
}
