//! What comes while a compaction is running: it is neither lost nor summarised.

use loopd_tests::script::Recorded;
use loopd_tests::{Daemon, Gate, Script, Turn, call};
use serde_json::{Value, json};

fn asks_for_summary(request: &Recorded) -> bool {
    let asked = request.last_user_text();
    asked.starts_with("Please create a detailed summary")
}

fn text(request: &Recorded) -> String {
    Value::from(request.messages().to_vec()).to_string()
}

#[tokio::test]
async fn an_agent_that_finishes_during_a_compaction_is_told_after_the_summary() {
    let (summary, agent) = (Gate::new(), Gate::new());
    let (held, works) = (summary.clone(), agent.clone());
    let script = Script::answering(move |request| {
        if asks_for_summary(request) {
            return Turn::any()
                .says("<overview>towns</overview>")
                .held_by(&held);
        }
        if request.first_user_text().contains("look for towns") {
            return Turn::any().says("found three").held_by(&works);
        }
        if request.last_user_text().contains("begin") && request.last_results().is_empty() {
            let order = json!({
                "prompt": "look for towns",
                "description": "a search",
                "name": "searcher",
                "mode": "background",
            });
            return Turn::any().calls([call("c1", "task", order)]);
        }
        Turn::any().says("well")
    });
    let daemon = Daemon::builder().script(script.await).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    session.next("assistant.idle").await;
    agent.reached().await;
    let compacting = session.start("session.history.compact", json!({}));
    summary.reached().await;
    agent.open();
    session.next("system.notification").await;
    session.next("assistant.idle").await;
    assert_eq!(session.count("session.compaction_complete"), 0);
    summary.open();
    let done = compacting.await.unwrap();
    assert_eq!(done["success"], true, "{done}");
    session.ask("and now?").await;
    let last = text(&daemon.script().last_request());
    let at = |part: &str| {
        let found = last.find(part);
        found.unwrap_or_else(|| panic!("{part} is not in {last}"))
    };
    assert!(at("<overview>towns") < at("system_notification"), "{last}");
    assert!(!last.contains("look for towns"), "{last}");
    daemon.finish().await;
}

#[tokio::test]
async fn what_steers_a_turn_that_waits_for_a_compaction_is_in_its_next_request() {
    let gate = Gate::new();
    let held = gate.clone();
    let mut seen = 0;
    let script = Script::answering(move |request| {
        if asks_for_summary(request) {
            return Turn::any()
                .says("<overview>towns</overview>")
                .held_by(&held);
        }
        seen += 1;
        if seen == 2 {
            return Turn::any()
                .fails(400, "prompt is too long")
                .with_code("context_length_exceeded");
        }
        Turn::any().says(&format!("well, {}", "a town by the sea ".repeat(60)))
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(super::window(100_000)).await;
    session.ask("first question").await;
    session.send("second question").await;
    gate.reached().await;
    let steer = json!({"prompt": "only coasts", "mode": "immediate"});
    session.call("session.send", steer).await;
    gate.open();
    let complete = session.next("session.compaction_complete").await;
    assert_eq!(complete["data"]["success"], true, "{complete}");
    session.next("session.idle").await;
    let last = text(&daemon.script().last_request());
    for part in ["<overview>towns", "second question", "only coasts"] {
        assert!(last.contains(part), "{part} is not in {last}");
    }
    daemon.finish().await;
}
