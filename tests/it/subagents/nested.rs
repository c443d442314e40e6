//! Agents of agents: how deep, who is who, what they take together, and how many work at once.

use std::collections::BTreeMap;

use loopd_tests::{Daemon, Gate, Script, Turn};
use serde_json::{Value, json};

use super::{background, kinds_told, last_said, task};

/// A conversation that hands the work on, and says what comes back.
fn hands_on<'a>(prompt: &'a str, to: Value, says: &str) -> (&'a str, Vec<Turn>) {
    (
        prompt,
        vec![
            Turn::user(prompt).calls([task("t", to)]),
            Turn::results([""]).says(says),
        ],
    )
}

#[tokio::test]
async fn they_go_as_deep_as_they_may_and_one_at_a_time_is_enough() {
    let too_deep =
        "Agents may be 3 deep here, and this one would be the 4th. Do the work yourself.";
    let script = Script::voices([
        hands_on(
            "level zero",
            json!({"prompt": "level one", "name": "one"}),
            "done at the top",
        ),
        hands_on(
            "level one",
            json!({"prompt": "level two", "name": "two", "mode": "background"}),
            "done in one",
        ),
        hands_on(
            "level two",
            json!({"prompt": "level three", "name": "three", "run_in_background": true}),
            "done in two",
        ),
        (
            "level three",
            vec![
                Turn::user("level three")
                    .calls([task("t", json!({"prompt": "level four", "name": "four"}))]),
                Turn::results([too_deep]).says("done in three"),
            ],
        ),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .env("LOOPD_AGENTS_MAX_DEPTH", "3")
        .env("LOOPD_AGENTS_MAX_CONCURRENT", "1")
        .yolo()
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("level zero").await;
    assert_eq!(last_said(&session), "done at the top");
    assert_eq!(kinds_told(&session), [], "all were waited for");
    let events = session.events();
    let started: Vec<(&str, &str, &Value)> = events
        .iter()
        .filter(|event| event["type"] == "subagent.started")
        .map(|event| {
            (
                event["agentId"].as_str().unwrap(),
                event["data"]["executionMode"].as_str().unwrap(),
                &event["data"]["parentId"],
            )
        })
        .collect();
    assert_eq!(
        started,
        [
            ("one", "sync", &Value::Null),
            ("one.two", "sync", &json!("one")),
            ("one.two.three", "sync", &json!("one.two")),
        ]
    );
    let mut said: BTreeMap<&str, &str> = BTreeMap::new();
    for event in events.iter().filter(|e| e["type"] == "assistant.message") {
        if let Some(agent) = event["agentId"].as_str() {
            said.insert(agent, event["data"]["content"].as_str().unwrap());
        }
    }
    assert_eq!(
        said,
        BTreeMap::from([
            ("one", "done in one"),
            ("one.two", "done in two"),
            ("one.two.three", "done in three"),
        ])
    );
    let refused = events.iter().find(|event| {
        event["type"] == "tool.execution_complete" && event["agentId"] == "one.two.three"
    });
    let refused = &refused.unwrap()["data"];
    assert_eq!(
        (&refused["success"], &refused["error"]["message"]),
        (&json!(false), &json!(too_deep))
    );
    let requests = daemon.script().requests().len();
    assert_eq!(requests, 8);
    let metrics = session.call("session.usage.getMetrics", json!({})).await;
    let used = &metrics["modelMetrics"]["scripted"];
    assert_eq!(used["requests"]["count"], requests);
    assert_eq!(used["usage"]["inputTokens"], 10 * requests);
    let one = session.call("loopd.taskRead", json!({"id": "one"})).await;
    assert_eq!(one["node"]["tokens"], 15 * 6);
    assert_eq!(one["node"]["toolCalls"], 3);
    session.destroy().await;
    let end = session.next("session.shutdown").await;
    let used = &end["data"]["modelMetrics"]["scripted"];
    assert_eq!(used["requests"]["count"], requests);
    daemon.finish().await;
}

#[tokio::test]
async fn two_at_a_time_is_never_more_than_two_and_the_first_come_first() {
    let names: Vec<String> = (1..=6).map(|number| format!("part-{number}")).collect();
    let gates: Vec<Gate> = names.iter().map(|_| Gate::new()).collect();
    let calls: Vec<_> = names
        .iter()
        .map(|name| background(name, &format!("do {name}."), name))
        .collect();
    let script = {
        let (names, gates) = (names.clone(), gates.clone());
        Script::answering(move |request| {
            let first = request.first_user_text();
            for (name, gate) in names.iter().zip(&gates) {
                if first.contains(&format!("do {name}.")) {
                    return Turn::any().says("done").held_by(gate);
                }
            }
            match request.messages().len() {
                2 => Turn::any().calls(calls.clone()),
                _ => Turn::any().says("go on"),
            }
        })
        .await
    };
    let daemon = Daemon::builder()
        .script(script)
        .env("LOOPD_AGENTS_MAX_CONCURRENT", "2")
        .yolo()
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    session.next("assistant.idle").await;
    let asked = || -> Vec<String> {
        let requests = daemon.script().requests();
        let firsts = requests
            .iter()
            .map(loopd_tests::script::Recorded::first_user_text);
        let known = firsts.filter_map(|first| {
            let found = names
                .iter()
                .find(|name| first.contains(&format!("do {name}.")));
            found.cloned()
        });
        known.collect()
    };
    let started: Vec<usize> = session
        .events()
        .iter()
        .filter(|event| event["type"] == "subagent.started")
        .map(|event| {
            let name = event["agentId"].as_str().unwrap();
            names.iter().position(|known| known == name).unwrap()
        })
        .collect();
    assert_eq!(started.len(), 6);
    gates[started[0]].reached().await;
    gates[started[1]].reached().await;
    // Those two ask in any order, the others when it is their turn.
    assert_eq!(asked().len(), 2);
    let waits = session
        .call(
            "session.tasks.getProgress",
            json!({"id": names[started[5]]}),
        )
        .await;
    assert_eq!(waits["progress"]["latestIntent"], "waits for a free slot");
    for next in 2..6 {
        gates[started[next - 2]].open();
        gates[started[next]].reached().await;
        let asked = asked();
        assert_eq!(asked.len(), next + 1, "two at once: {asked:?}");
        assert_eq!(asked.last(), Some(&names[started[next]]), "fair");
    }
    gates[started[4]].open();
    gates[started[5]].open();
    session.next("session.idle").await;
    let list = session.call("session.tasks.list", json!({})).await;
    let all: Vec<&Value> = list["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| &task["status"])
        .collect();
    assert_eq!(all, ["idle"; 6]);
    assert_eq!(kinds_told(&session).len(), 6);
    daemon.finish().await;
}
