//! Agents that do not come to their end: stopped by their model, by a client, with their turn or
//! with their session; and agents that fail.

use loopd_tests::{Gate, Session, Turn, call};
use serde_json::{Value, json};

use super::{
    background, daemon, execution_complete, kinds_told, last_said, of_agent, says, task, task_of,
};

/// An agent that says something, looks around, and is then held back for good.
fn half_way<'a>(prompt: &'a str, said: &str, gate: &Gate) -> (&'a str, Vec<Turn>) {
    let look = call("g", "glob", json!({"pattern": "*"}));
    (
        prompt,
        vec![
            Turn::user(prompt).says_and_calls(said, [look]),
            Turn::results([""]).says("never heard").held_by(gate),
        ],
    )
}

fn ended(session: &Session, agent: &str) -> Value {
    let events = session.events().into_iter();
    let mut ended = events.filter(|event| {
        event["agentId"] == agent
            && (event["type"] == "subagent.completed" || event["type"] == "subagent.failed")
    });
    let end = ended
        .next()
        .unwrap_or_else(|| panic!("{agent} did not end:\n{}", session.transcript()));
    assert!(ended.next().is_none(), "{agent} ended twice");
    end
}

#[tokio::test]
async fn the_model_stops_one_and_gets_the_last_it_said() {
    let (never, ready) = (Gate::new(), Gate::new());
    let stop = call("s", "stop_agent", json!({"agent_id": "digger"}));
    let again = call("s2", "stop_agent", json!({"agent_id": "digger"}));
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "dig deep", "digger")]),
                Turn::results(["agent_id: digger"])
                    .calls([stop])
                    .held_by(&ready),
                Turn::results(["The agent digger was stopped. The last it said:\n\nhalf a hole"])
                    .calls([again]),
                Turn::results(["The agent digger is not at work; there is nothing to stop."])
                    .says("enough"),
                Turn::user("next").says("fine"),
            ],
        ),
        half_way("dig deep", "half a hole", &never),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    never.reached().await;
    ready.open();
    session.next("session.idle").await;
    daemon.script().hung_up().await;
    session.ask("next").await;
    assert_eq!(kinds_told(&session), [], "the model knows");
    let end = ended(&session, "digger");
    assert_eq!(end["data"]["cancelled"], true);
    assert_eq!(end["data"]["totalToolCalls"], 1);
    let digger = task_of(&session, "digger").await;
    assert_eq!(digger["status"], "cancelled");
    assert_eq!(digger["latestResponse"], "half a hole");
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_stops_one_and_the_model_is_told_how_far_it_got() {
    let never = Gate::new();
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "dig deep", "digger")]),
                Turn::results(["agent_id: digger"]).says("it digs"),
                Turn::user("<status>cancelled</status>").says("a pity"),
            ],
        ),
        half_way("dig deep", "half a hole", &never),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    never.reached().await;
    says(&mut session, "it digs").await;
    let digger = json!({"id": "digger"});
    let cancelled = session.call("session.tasks.cancel", digger.clone()).await;
    assert_eq!(cancelled, json!({"cancelled": true}));
    assert_eq!(
        task_of(&session, "digger").await["status"],
        "cancelled",
        "who cancels finds it ended"
    );
    let again = session.call("session.tasks.cancel", digger.clone()).await;
    assert_eq!(again, json!({"cancelled": false}));
    session.next("session.idle").await;
    assert_eq!(session.count("session.idle"), 1);
    assert_eq!(
        kinds_told(&session),
        [("agent_completed", "digger".to_owned())]
    );
    let told = daemon.script().last_request().last_user_text();
    assert!(
        told.contains("was stopped: a client stopped it.") && told.contains("half a hole"),
        "{told}"
    );
    let removed = session.call("session.tasks.remove", digger).await;
    assert_eq!(removed, json!({"removed": true}));
    let tasks = session.call("session.tasks.list", json!({})).await;
    assert_eq!(tasks, json!({"tasks": []}));
    daemon.finish().await;
}

#[tokio::test]
async fn all_in_the_background_are_stopped_but_not_the_one_that_is_waited_for() {
    let (one, two, waited) = (Gate::new(), Gate::new(), Gate::new());
    let calls = [
        background("t1", "dig deep", "digger"),
        background("t2", "look far", "looker"),
        task("t3", json!({"prompt": "count all", "name": "counter"})),
    ];
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls(calls),
                // It hears of the two with the result of the third.
                Turn::any().says("seven, and two were stopped"),
            ],
        ),
        half_way("dig deep", "half a hole", &one),
        half_way("look far", "a mast", &two),
        super::worker("count all", "seven", &waited),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    for gate in [&one, &two, &waited] {
        gate.reached().await;
    }
    let cancelled = session
        .call("session.cancelAllBackgroundAgents", json!({}))
        .await;
    assert_eq!(cancelled, 2);
    for (id, status) in [
        ("digger", "cancelled"),
        ("looker", "cancelled"),
        ("counter", "running"),
    ] {
        assert_eq!(task_of(&session, id).await["status"], status, "{id}");
    }
    waited.open();
    session.next("session.idle").await;
    assert_eq!(task_of(&session, "counter").await["status"], "completed");
    let mut told = kinds_told(&session);
    told.sort();
    assert_eq!(
        told,
        [
            ("agent_completed", "digger".to_owned()),
            ("agent_completed", "looker".to_owned())
        ]
    );
    let none = session
        .call("session.cancelAllBackgroundAgents", json!({}))
        .await;
    assert_eq!(none, 0);
    daemon.finish().await;
}

#[tokio::test]
async fn one_that_fails_half_way_gives_what_it_has_and_can_go_on() {
    let look = call("g", "glob", json!({"pattern": "*"}));
    let go_on = call(
        "w",
        "write_agent",
        json!({"agent_id": "digger", "message": "try again"}),
    );
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin")
                    .calls([task("t1", json!({"prompt": "dig deep", "name": "digger"}))]),
                Turn::results(["The last it said:\n\nhalf a hole\n\nwrite_agent with agent_id \"digger\" lets it go on"])
                    .calls([go_on]),
                Turn::results(["goes on in the background"]).says("again"),
                Turn::user("\"digger\"").says("done"),
            ],
        ),
        (
            "dig deep",
            vec![
                Turn::user("dig deep").says_and_calls("half a hole", [look]),
                Turn::results([""]).fails(400, "the shovel broke"),
                Turn::user("try again").says("a whole hole"),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    let failed = execution_complete(&mut session, "t1").await;
    assert_eq!(failed["success"], false);
    let text = failed["error"]["message"].as_str().unwrap();
    assert!(
        text.starts_with("The agent failed: ") && text.contains("the shovel broke"),
        "{text}"
    );
    assert_eq!(
        failed["toolTelemetry"]["properties"]["status"], "failed",
        "{failed}"
    );
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "done");
    assert_eq!(kinds_told(&session), [("agent_idle", "digger".to_owned())]);
    let read = session
        .call("loopd.taskRead", json!({"id": "digger"}))
        .await;
    assert_eq!(read["turns"][0]["response"], "half a hole");
    assert_eq!(read["turns"][1]["response"], "a whole hole");
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_stops_what_the_turn_waits_for_and_nothing_else() {
    let (never, background_one) = (Gate::new(), Gate::new());
    let calls = [
        background("t1", "dig deep", "digger"),
        task("t2", json!({"prompt": "ask around", "name": "asker"})),
    ];
    let inner = task("t3", json!({"prompt": "count all", "name": "counter"}));
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls(calls),
                Turn::user("\"digger\"").says("it has dug"),
            ],
        ),
        (
            "ask around",
            vec![Turn::user("ask around").says_and_calls("I ask", [inner])],
        ),
        super::worker("count all", "never heard", &never),
        super::worker("dig deep", "gold", &background_one),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    never.reached().await;
    background_one.reached().await;
    let tree = session.call("loopd.taskTree", json!({})).await;
    let asker = &tree["tasks"][0];
    assert_eq!(asker["task"]["id"], "asker");
    assert_eq!(asker["children"][0]["task"]["id"], "asker.counter");
    session.call("session.abort", json!({})).await;
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true);
    assert_eq!(ended(&session, "asker")["data"]["cancelled"], true);
    assert_eq!(ended(&session, "asker.counter")["data"]["cancelled"], true);
    let asker = task_of(&session, "asker").await;
    assert_eq!(
        (&asker["status"], &asker["latestResponse"]),
        (&json!("cancelled"), &json!("I ask"))
    );
    assert_eq!(task_of(&session, "digger").await["status"], "running");
    let seen = of_agent(&session, "digger");
    assert!(!seen.iter().any(|kind| kind == "abort"), "{seen:?}");
    background_one.open();
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "it has dug");
    assert_eq!(session.count("session.idle"), 2);
    assert_eq!(kinds_told(&session), [("agent_idle", "digger".to_owned())]);
    daemon.finish().await;
}

#[tokio::test]
async fn the_end_of_the_session_ends_them_all_and_they_can_be_woken_later() {
    let never = Gate::new();
    let inner = task("t3", json!({"prompt": "count all", "name": "counter"}));
    let go_on = call(
        "w",
        "write_agent",
        json!({"agent_id": "asker", "message": "never mind the count"}),
    );
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t2", "ask around", "asker")]),
                Turn::results(["agent_id: asker"]).says("it asks"),
                Turn::user("wake it").calls([go_on]),
                // It hears of the end before it hears of the message.
                Turn::any().says("it works again"),
                Turn::user("is now idle").says("it is done"),
            ],
        ),
        (
            "ask around",
            vec![
                Turn::user("ask around").calls([inner]),
                Turn::user("never mind the count").says("then I am done"),
            ],
        ),
        super::worker("count all", "never heard", &never),
    ])
    .await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.send("begin").await;
    says(&mut session, "it asks").await;
    never.reached().await;
    let agent = task_session(&session, "asker").await;
    session.destroy().await;
    daemon.script().hung_up().await;
    let live = daemon.app.sessions.ids();
    assert!(live.is_empty(), "nothing is orphaned: {live:?}");
    let log = daemon.app.services.store.load(&agent.as_str().into()).await;
    let (_, log) = log.unwrap().unwrap();
    let last = log
        .iter()
        .rev()
        .find(|event| &*event.kind == "loopd.loop_ended");
    assert!(
        last.is_some(),
        "its log says that it rests: {:?}",
        log.iter().map(|event| &event.kind).collect::<Vec<_>>()
    );
    let mut session = client.resume(&session.id, json!({})).await;
    let asker = task_of(&session, "asker").await;
    assert_eq!(asker["status"], "cancelled");
    assert_eq!(
        asker["error"],
        "it was stopped because the session was closed"
    );
    session.ask("wake it").await;
    assert_eq!(task_of(&session, "asker").await["status"], "idle");
    assert_eq!(last_said(&session), "it is done");
    daemon.finish().await;
}

/// The session that an agent works in.
async fn task_session(session: &Session, id: &str) -> String {
    let read = session.call("loopd.taskRead", json!({"id": id})).await;
    read["node"]["sessionId"].as_str().unwrap().to_owned()
}
