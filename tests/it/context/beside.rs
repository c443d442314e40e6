//! What models are asked beside the conversation: summaries for others, titles, what agents do.

use loopd_tests::script::Recorded;
use loopd_tests::{Daemon, Gate, Script, Turn, call};
use serde_json::{Value, json};

const HANDOFF: &str = "session.history.summarizeForHandoff";

fn asks_for_handoff(request: &Recorded) -> bool {
    request
        .last_user_text()
        .starts_with("Somebody else will take over this work")
}

/// The purposes of the calls that were recorded beside the conversation.
async fn purposes(daemon: &Daemon, id: &str) -> Vec<String> {
    let id = id.into();
    let store = daemon.app.services.store.clone();
    let log = store.read(&id, loopd_proto::id::Seq::START, 10_000).await;
    let log = log.unwrap().into_iter();
    let events = log.map(|event| serde_json::from_str::<Value>(&event.json).unwrap());
    let usage = events.filter(|event| event["type"] == "loopd.usage");
    usage
        .filter_map(|event| event["data"]["purpose"].as_str().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn a_handoff_is_written_by_the_model_around_what_the_log_knows() {
    let script = Script::answering(|request| {
        if asks_for_handoff(request) {
            return Turn::any()
                .says("## Goal\n\nA parser for towns.")
                .uses(900, 40);
        }
        Turn::any().says("a town by the sea")
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("describe a town").await;
    let before = daemon.script().last_request();
    let handoff = session.call(HANDOFF, json!({})).await;
    let summary = handoff["summary"].as_str().unwrap();
    for part in [
        "# describe a town",
        "A parser for towns",
        "- describe a town",
    ] {
        assert!(summary.contains(part), "{summary}");
    }
    assert!(handoff.get("problem").is_none(), "{handoff}");
    // The request begins as that of the turn did, and offers no tools.
    let asked = daemon.script().last_request();
    let same = before.messages().len();
    assert_eq!(asked.messages()[..same], before.messages()[..]);
    assert_eq!(asked.body["tools"], before.body["tools"]);
    assert_eq!(asked.body["tool_choice"], "none");
    // It is counted as such, and is no part of the conversation.
    assert_eq!(purposes(&daemon, &session.id).await, ["handoff"]);
    let events = session.events();
    let told = events
        .iter()
        .filter(|event| event["type"] == "assistant.usage");
    let told: Vec<_> = told
        .map(|event| event["data"]["interactionType"].clone())
        .collect();
    assert_eq!(told, ["conversation-agent", "conversation-handoff"]);
    session.ask("and another").await;
    let last = Value::from(daemon.script().last_request().messages().to_vec()).to_string();
    assert!(!last.contains("take over this work"), "{last}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_handoff_whose_model_fails_says_so_and_has_what_the_log_knows() {
    let script = Script::answering(|request| {
        if asks_for_handoff(request) {
            return Turn::any().fails(400, "not today");
        }
        Turn::any().says("a town by the sea")
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("describe a town").await;
    let handoff = session.call(HANDOFF, json!({})).await;
    assert!(
        handoff["problem"].as_str().unwrap().contains("not today"),
        "{handoff}"
    );
    let summary = handoff["summary"].as_str().unwrap();
    for part in ["could not be asked", "not today", "a town by the sea"] {
        assert!(summary.contains(part), "{summary}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn one_handoff_is_made_at_a_time_and_it_counts_if_nobody_waits() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::answering(move |request| {
        if asks_for_handoff(request) {
            return Turn::any().says("notes").uses(900, 40).held_by(&held);
        }
        Turn::any().says("a town by the sea")
    });
    let daemon = Daemon::with(script.await).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("describe a town").await;
    let first = session
        .client()
        .pending(HANDOFF, json!({"sessionId": session.id}));
    gate.reached().await;
    let second = session.call(HANDOFF, json!({})).await;
    let problem = second["problem"].as_str().unwrap();
    assert!(problem.contains("is being answered"), "{second}");
    drop(first);
    gate.open();
    session
        .next_where("the usage", |event| {
            event["data"]["interactionType"] == "conversation-handoff"
        })
        .await;
    assert_eq!(purposes(&daemon, &session.id).await, ["handoff"]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_handoff_is_no_way_around_the_limits() {
    let script = Script::answering(|request| {
        assert!(!asks_for_handoff(request), "the limit is reached");
        Turn::any().says("a town by the sea").uses(900, 100)
    });
    let daemon = Daemon::with(script.await).await;
    let limits = json!({"sessionLimits": {"maxTokens": 1_050}});
    let mut session = daemon.client().create(limits).await;
    session.ask("describe a town").await;
    let handoff = session.call(HANDOFF, json!({})).await;
    assert!(handoff["problem"].is_string(), "{handoff}");
    daemon.finish().await;
}

/// A model that answers, and makes titles.
async fn titling() -> Script {
    Script::answering(|request| {
        let messages = Value::from(request.messages().to_vec()).to_string();
        if messages.contains("You write titles") {
            assert_eq!(request.body["model"], "tiny");
            return Turn::any().says("\"Towns by the sea.\"\n").uses(60, 5);
        }
        Turn::any().says("well")
    })
    .await
}

#[tokio::test]
async fn a_title_is_made_by_a_model_only_if_one_is_configured() {
    let builder = Daemon::builder().script(titling().await);
    let daemon = builder.config("[titles]\nmodel = \"tiny\"\n").start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("please describe a town to me").await;
    let first = session.next("session.title_changed").await;
    assert_eq!(first["data"]["title"], "please describe a town to me");
    let second = session.next("session.title_changed").await;
    assert_eq!(second["data"]["title"], "Towns by the sea");
    let name = session.call("session.name.get", json!({})).await;
    assert_eq!(name["name"], "Towns by the sea", "{name}");
    assert_eq!(purposes(&daemon, &session.id).await, ["title"]);
    daemon
        .until(&session.id, "the end of the turn", |state| !state.is_busy())
        .await;
    session.ask("more").await;
    assert_eq!(session.count("session.title_changed"), 2);
    daemon.finish().await;

    let daemon = Daemon::with(titling().await).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("please describe a town to me").await;
    assert_eq!(session.count("session.title_changed"), 1);
    assert_eq!(daemon.script().requests().len(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_model_that_makes_no_title_leaves_the_first_words() {
    let script = Script::answering(|request| {
        if request.body["model"] == "tiny" {
            return Turn::any().fails(400, "no titles here");
        }
        Turn::any().says("well")
    });
    let builder = Daemon::builder().script(script.await);
    let daemon = builder.config("[titles]\nmodel = \"tiny\"\n").start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("a town").await;
    daemon.script().asked(2).await;
    let name = session.call("session.name.get", json!({})).await;
    assert_eq!(name["name"], "a town", "{name}");
    assert_eq!(session.count("session.error"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_says_beside_its_work_how_far_it_is() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::answering(move |request| {
        let first = request.first_user_text();
        if request
            .last_user_text()
            .starts_with("Somebody who watches you")
        {
            return Turn::any()
                .says("Looking for towns; found one.")
                .uses(300, 12);
        }
        if first.contains("look for towns") {
            if request.last_results().is_empty() {
                let look = json!({"path": "notes.txt"});
                return Turn::any().calls([call("v", "view", look)]);
            }
            return Turn::any().says("found three").held_by(&held);
        }
        if first.contains("begin") && request.messages().len() == 2 {
            let order = json!({
                "prompt": "look for towns", "description": "a search", "name": "searcher",
                "mode": "background",
            });
            return Turn::any().calls([call("c1", "task", order)]);
        }
        Turn::any().says("well")
    });
    let daemon = Daemon::builder().script(script.await).yolo().start().await;
    std::fs::write(daemon.file("notes.txt"), "one town").unwrap();
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    gate.reached().await;
    let asked = session
        .call("loopd.taskSummary", json!({"id": "searcher"}))
        .await;
    assert_eq!(asked, json!({"summary": "Looking for towns; found one."}));
    let unknown = session
        .refused("loopd.taskSummary", json!({"id": "nobody"}))
        .await;
    assert!(unknown.message.contains("nobody"), "{unknown:?}");
    let child = session.call("loopd.taskTree", json!({})).await;
    let child = child["tasks"][0]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(purposes(&daemon, &child).await, ["agent_summary"]);
    gate.open();
    session.next("system.notification").await;
    session.next("session.idle").await;
    let late = session
        .refused("loopd.taskSummary", json!({"id": "searcher"}))
        .await;
    assert!(late.message.contains("loopd.taskRead"), "{late:?}");
    // What the agent answers later knows nothing of the question.
    let requests = daemon.script().requests();
    let asked = requests.iter().filter(|request| {
        Value::from(request.messages().to_vec())
            .to_string()
            .contains("Somebody who watches you")
    });
    assert_eq!(asked.count(), 1);
    daemon.finish().await;
}
