//! What lists and events say about agents: the truth about what they do, who they are, what they
//! used, and which agents they had.

use loopd_tests::{Daemon, Gate, Script, Session, Turn, call};
use serde_json::{Value, json};

use super::{background, daemon, execution_complete, kinds_told, last_said, says, task, task_of};

async fn intent(session: &Session, id: &str) -> Value {
    let progress = session
        .call("session.tasks.getProgress", json!({"id": id}))
        .await;
    progress["progress"]["latestIntent"].clone()
}

#[tokio::test]
async fn only_an_agent_without_a_slot_waits_for_one() {
    let (one, two) = (Gate::new(), Gate::new());
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([
                    background("t1", "dig deep", "digger"),
                    background("t2", "look far", "looker"),
                ]),
                Turn::any().says("they work"),
                Turn::any().says("one"),
                Turn::any().says("both"),
            ],
        ),
        super::worker("dig deep", "gold", &one),
        super::worker("look far", "a mast", &two),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .env("LOOPD_AGENTS_MAX_CONCURRENT", "1")
        .yolo()
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    one.reached().await;
    says(&mut session, "they work").await;
    assert_ne!(intent(&session, "digger").await, "waits for a free slot");
    assert_eq!(intent(&session, "looker").await, "waits for a free slot");
    one.open();
    two.reached().await;
    assert_ne!(intent(&session, "looker").await, "waits for a free slot");
    two.open();
    says(&mut session, "both").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_stops_an_idle_agent() {
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "what is pi", "sage")]),
                Turn::results(["agent_id: sage"]).says("it thinks"),
                Turn::user("\"sage\"").says("three"),
            ],
        ),
        ("what is pi", vec![Turn::user("what is pi").says("it is 3")]),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    assert_eq!(task_of(&session, "sage").await["status"], "idle");
    let sage = json!({"id": "sage"});
    let cancelled = session.call("session.tasks.cancel", sage.clone()).await;
    assert_eq!(cancelled, json!({"cancelled": true}));
    let task = task_of(&session, "sage").await;
    assert_eq!(task["status"], "cancelled");
    assert_eq!(task["latestResponse"], "it is 3");
    let again = session.call("session.tasks.cancel", sage).await;
    assert_eq!(again, json!({"cancelled": false}));
    assert_eq!(kinds_told(&session), [("agent_idle", "sage".to_owned())]);
    daemon.finish().await;
}

#[tokio::test]
async fn the_model_stops_an_idle_agent() {
    let stop = call("s", "stop_agent", json!({"agent_id": "sage"}));
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "what is pi", "sage")]),
                Turn::results(["agent_id: sage"]).says("it thinks"),
                Turn::user("\"sage\"").calls([stop]),
                Turn::results([
                    "The agent sage was idle and is stopped. The last it said:\n\nit is 3",
                ])
                .says("enough"),
            ],
        ),
        ("what is pi", vec![Turn::user("what is pi").says("it is 3")]),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    assert_eq!(last_said(&session), "enough");
    assert_eq!(task_of(&session, "sage").await["status"], "cancelled");
    daemon.finish().await;
}

#[tokio::test]
async fn all_background_agents_are_stopped_idle_ones_too() {
    let never = Gate::new();
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "what is pi", "sage")]),
                Turn::results(["agent_id: sage"]).says("it thinks"),
                Turn::user("\"sage\"").calls([background("t2", "dig deep", "digger")]),
                Turn::results(["agent_id: digger"]).says("it digs"),
                Turn::any().says("a pity"),
            ],
        ),
        ("what is pi", vec![Turn::user("what is pi").says("it is 3")]),
        super::worker("dig deep", "gold", &never),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    says(&mut session, "it digs").await;
    never.reached().await;
    let cancelled = session
        .call("session.cancelAllBackgroundAgents", json!({}))
        .await;
    assert_eq!(cancelled, 2);
    for id in ["sage", "digger"] {
        assert_eq!(task_of(&session, id).await["status"], "cancelled", "{id}");
    }
    says(&mut session, "a pity").await;
    daemon.finish().await;
}

fn events<'a>(all: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    all.iter().filter(move |event| event["type"] == kind)
}

#[tokio::test]
async fn events_say_who_an_agent_is_and_what_it_used_and_so_does_the_text_of_a_second_one() {
    let same = |id: &str| {
        task(
            id,
            json!({"prompt": "what is pi", "name": "same", "agent_type": "explore"}),
        )
    };
    let script = Script::answering(move |request| {
        if request.first_user_text().contains("what is pi") {
            return Turn::any().says("it is 3");
        }
        match request.last_user_text() {
            said if said.contains("second") && request.last_results().is_empty() => {
                Turn::any().calls([same("t2")])
            }
            said if said.contains("third") && request.last_results().is_empty() => {
                Turn::any().calls([background("t3", "what is pi", "later")])
            }
            said if said.contains("first") && request.last_results().is_empty() => {
                Turn::any().calls([same("t1")])
            }
            _ => Turn::any().says("thanks"),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("first").await;
    let first = execution_complete(&mut session, "t1").await;
    session.next("session.idle").await;
    session.send("second").await;
    let second = execution_complete(&mut session, "t2").await;
    session.next("session.idle").await;
    assert_eq!(first["result"]["content"], "it is 3", "nothing to add");
    let text = second["result"]["content"].as_str().unwrap();
    assert!(
        text.starts_with("it is 3\n\n") && text.contains("agent_id: same-2"),
        "{text}"
    );
    for (complete, id) in [(&first, "same"), (&second, "same-2")] {
        let facts = &complete["toolTelemetry"]["properties"];
        assert_eq!(facts["agentId"], id);
        assert_eq!(facts["status"], "completed");
        assert!(facts["sessionId"].is_string(), "{complete}");
        let metrics = &complete["toolTelemetry"]["metrics"];
        assert!(
            metrics["totalTokens"].is_u64() && metrics["durationMs"].is_u64(),
            "{complete}"
        );
    }
    session.send("third").await;
    says(&mut session, "thanks").await;
    session.next("session.idle").await;
    let all = session.events();
    for done in events(&all, "subagent.completed") {
        let data = &done["data"];
        assert_eq!(data["agentId"], done["agentId"]);
        assert!(
            data["sessionId"].is_string()
                && data["status"].is_string()
                && data["totalTokens"].is_u64()
                && data["durationMs"].is_u64(),
            "{done}"
        );
    }
    let told: Vec<_> = events(&all, "system.notification").collect();
    assert_eq!(told.len(), 1);
    let kind = &told[0]["data"]["kind"];
    assert_eq!(
        (&kind["agentId"], &kind["type"]),
        (&json!("later"), &json!("agent_idle"))
    );
    assert_eq!(kind["status"], "idle");
    assert!(
        kind["sessionId"].is_string()
            && kind["totalTokens"].is_u64()
            && kind["durationMs"].is_u64(),
        "{kind}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn the_text_of_a_custom_agent_and_of_a_failed_one_names_it() {
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([
                    task(
                        "t1",
                        json!({"prompt": "what is pi", "agent_type": "sage", "name": "pi"}),
                    ),
                    task("t2", json!({"prompt": "dig deep", "name": "digger"})),
                ]),
                Turn::any().says("thanks"),
            ],
        ),
        ("what is pi", vec![Turn::user("what is pi").says("it is 3")]),
        (
            "dig deep",
            vec![Turn::user("dig deep").fails(400, "the shovel broke")],
        ),
    ])
    .await;
    let folder = daemon.file(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\ndescription: Knows.\n---\nKnow.\n";
    std::fs::write(folder.join("sage.md"), text).unwrap();
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    let results = daemon.script().last_request().last_results();
    let own = |id: &str| {
        let text = results
            .iter()
            .find(|text| text.contains(&format!("agent_id: {id}")));
        text.unwrap_or_else(|| panic!("{id} is not named in {results:?}"))
    };
    assert!(own("pi").contains("it is 3") && own("pi").contains("status: completed"));
    assert!(own("digger").contains("the shovel broke") && own("digger").contains("status: failed"));
    daemon.finish().await;
}

#[tokio::test]
async fn agents_of_an_agent_that_is_done_stay_in_the_tree_also_after_a_restart() {
    let inner = json!({"prompt": "count all", "name": "counter"});
    let mut daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin")
                    .calls([task("t1", json!({"prompt": "ask around", "name": "asker"}))]),
                Turn::any().says("thanks"),
            ],
        ),
        (
            "ask around",
            vec![
                Turn::user("ask around").calls([task("t2", inner)]),
                Turn::results(["seven"]).says("they say seven"),
            ],
        ),
        ("count all", vec![Turn::user("count all").says("seven")]),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    let before = session.call("loopd.taskTree", json!({})).await;
    let asker = &before["tasks"][0];
    assert_eq!(asker["task"]["status"], "completed");
    assert_eq!(asker["children"][0]["task"]["id"], "asker.counter");
    assert_eq!(asker["children"][0]["task"]["result"], "seven");
    daemon.restart().await;
    let session = daemon.client().resume(&session.id, json!({})).await;
    let after = session.call("loopd.taskTree", json!({})).await;
    assert_eq!(after, before);
    daemon.finish().await;
}
