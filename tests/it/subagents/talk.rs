//! Talk with agents: messages to those at work, to those that rest, and from clients.

use loopd_tests::script::Recorded;
use loopd_tests::{Daemon, Gate, Latch, Script, Turn, call};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    background, daemon, execution_complete, kinds_told, last_said, says, task, task_of, worker,
};

#[tokio::test]
async fn messages_to_one_at_work_are_heard_at_its_next_step() {
    let (gate, ready) = (Gate::new(), Gate::new());
    let tell = |id: &str, who: &str, message: &str| {
        call(
            id,
            "write_agent",
            json!({"agent_id": who, "message": message}),
        )
    };
    let look = call("g", "glob", json!({"pattern": "*"}));
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "dig deep", "Digger")]),
                Turn::results(["agent_id: digger"])
                    .calls([
                        tell("w1", "digger", "mind the pipes"),
                        tell("w2", "Digger", "and the cables"),
                        tell("w3", "digger", "  "),
                    ])
                    .held_by(&ready),
                Turn::results([
                    "The agent digger is at work and reads the message at its next step.",
                    "The agent digger is at work",
                    "The message is empty",
                ])
                .says("told"),
                Turn::user("\"Digger\"").says("done"),
            ],
        ),
        (
            "dig deep",
            vec![
                Turn::user("dig deep").calls([look]).held_by(&gate),
                Turn::user("and the cables").says("I minded them"),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    gate.reached().await;
    ready.open();
    says(&mut session, "told").await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "done");
    assert_eq!(kinds_told(&session), [("agent_idle", "digger".to_owned())]);
    let requests = daemon.script().requests();
    let last = requests
        .iter()
        .rfind(|request| request.first_user_text().contains("dig deep"))
        .unwrap();
    let said: Vec<String> = last
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(Value::to_string)
        .collect();
    let pipes = said.iter().position(|text| text.contains("mind the pipes"));
    let cables = said.iter().position(|text| text.contains("and the cables"));
    assert!(pipes.is_some() && pipes <= cables, "{said:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_starts_one_speaks_to_it_and_waits_for_it() {
    let (gate, more) = (Gate::new(), Gate::new());
    let daemon = daemon([
        (
            "\"helper\"",
            vec![
                Turn::user("\"helper\"").says("it helped"),
                Turn::user("\"helper\"").says("it helped again"),
            ],
        ),
        (
            "help me",
            vec![
                Turn::user("help me").says("helped once").held_by(&gate),
                Turn::user("once more").says("helped twice").held_by(&more),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    let params = json!({"agentType": "explore", "prompt": "help me", "name": "helper",
        "description": "some help"});
    let started = session.call("session.tasks.startAgent", params).await;
    assert_eq!(started, json!({"agentId": "helper"}));
    gate.reached().await;
    let helper = task_of(&session, "helper").await;
    assert_eq!(
        (&helper["toolCallId"], &helper["description"]),
        (&json!("helper"), &json!("some help"))
    );
    let read = session.start("loopd.taskRead", json!({"id": "helper", "wait": 60}));
    let pending = session.start("session.tasks.waitForPending", json!({}));
    gate.open();
    assert_eq!(read.await.unwrap()["turns"][0]["response"], "helped once");
    assert_eq!(pending.await.unwrap(), json!({}));
    assert_eq!(last_said(&session), "it helped");
    session.next("session.idle").await;
    let message = json!({"id": "helper", "message": "once more"});
    let sent = session.call("session.tasks.sendMessage", message).await;
    assert_eq!(sent, json!({"sent": true}));
    more.reached().await;
    assert_eq!(task_of(&session, "helper").await["status"], "running");
    more.open();
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "it helped again");
    assert_eq!(kinds_told(&session).len(), 2);
    let empty = json!({"id": "helper", "message": " "});
    let sent = session.call("session.tasks.sendMessage", empty).await;
    assert_eq!(
        sent,
        json!({"sent": false, "error": "The message is empty."})
    );
    let wrong = json!({"id": "helper", "wait": -1});
    let wrong = session.refused("loopd.taskRead", wrong).await;
    assert!(
        wrong.message.contains("wait: -1 is no number of seconds"),
        "{wrong}"
    );
    let unknown = session
        .refused("loopd.taskRead", json!({"id": "nobody"}))
        .await;
    assert!(
        unknown.message.contains("The agents are: helper."),
        "{unknown}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn equal_and_strange_names_make_ids_that_are_safe_and_their_own() {
    let names = ["Twin", "twin", "../../etc/passwd", "*"];
    let calls: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            task(
                &format!("t{at}"),
                json!({"prompt": "be there", "name": name, "description": "???"}),
            )
        })
        .collect();
    let script = Script::answering(move |request| {
        if request.first_user_text().contains("be there") {
            Turn::any().says("here")
        } else if request.last_results().is_empty() {
            Turn::any().calls(calls.clone())
        } else {
            Turn::any().says("done")
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    let list = session.call("session.tasks.list", json!({})).await;
    let ids: Vec<&str> = list["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["etc-passwd", "general-purpose", "twin", "twin-2"]);
    daemon.finish().await;
}

#[tokio::test]
async fn the_end_of_an_agents_command_is_told_to_the_agent_alone() {
    let folder = TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let gate = Gate::new();
    let start = call(
        "b",
        "bash",
        json!({"command": latch.wait(), "mode": "async", "shellId": "s"}),
    );
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin")
                    .calls([task("t1", json!({"prompt": "run it", "name": "runner"}))]),
                Turn::results(["it ran"]).says("done"),
            ],
        ),
        (
            "run it",
            vec![
                Turn::user("run it").calls([start]),
                Turn::results(["background as shellId s"])
                    .calls([call("g", "glob", json!({"pattern": "*"}))])
                    .held_by(&gate),
                Turn::user("<status>completed</status>").says("it ran"),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    gate.reached().await;
    let read = session
        .call("loopd.taskRead", json!({"id": "runner"}))
        .await;
    let agent = read["node"]["sessionId"].as_str().unwrap().to_owned();
    latch.release("x").await;
    daemon
        .until(&agent, "the command to end", |state| {
            state.tasks.get("s").is_some_and(|task| !task.is_running())
        })
        .await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "done");
    let own = session.messages().await;
    assert!(
        own.iter()
            .all(|event| event["type"] != "system.notification")
    );
    let requests = daemon.script().requests();
    let told: Vec<&Recorded> = requests
        .iter()
        .filter(|request| request.last_user_text().contains("<status>completed"))
        .collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].first_user_text().contains("run it"));
    daemon.finish().await;
}

#[tokio::test]
async fn sessions_of_agents_are_part_of_the_one_that_people_opened() {
    let gate = Gate::new();
    let inner = task("t2", json!({"prompt": "count all", "name": "counter"}));
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task("t1", json!({"prompt": "ask around"}))]),
                Turn::results(["seven"]).says("done"),
            ],
        ),
        (
            "ask around",
            vec![
                Turn::user("ask around").calls([inner]),
                Turn::results(["seven"]).says("seven it is"),
            ],
        ),
        worker("count all", "seven", &gate),
    ])
    .await;
    gate.open();
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("begin").await;
    execution_is_over(&session);
    let stored = daemon.app.services.store.list().await.unwrap();
    assert_eq!(stored.len(), 3);
    for method in ["session.list", "sessions.list"] {
        let listed = client.call(method, json!({})).await;
        let ids: Vec<&Value> = listed["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|listed| &listed["sessionId"])
            .collect();
        assert_eq!(ids, [session.id.as_str()], "{method}");
    }
    for method in ["session.getLastId", "sessions.getLastForContext"] {
        let last = client.call(method, json!({})).await;
        assert_eq!(last["sessionId"], session.id.as_str(), "{method}");
    }
    let agent = stored.iter().find(|record| record.agent.is_some()).unwrap();
    let prefix = json!({"prefix": agent.id.as_str()});
    let found = client.call("sessions.findByPrefix", prefix).await;
    assert_eq!(found["sessionId"], Value::Null);
    let sizes = client.call("sessions.getSizes", json!({})).await;
    let sizes = sizes["sizes"].as_object().unwrap();
    assert_eq!(sizes.keys().collect::<Vec<_>>(), [&session.id]);

    // A copy of the session has the conversation, and no agents to speak to.
    let fork = client
        .call("sessions.fork", json!({"sessionId": session.id}))
        .await;
    let fork = fork["sessionId"].as_str().unwrap();
    let copy = client.resume(fork, json!({})).await;
    let tasks = copy.call("session.tasks.list", json!({})).await;
    assert_eq!(tasks, json!({"tasks": []}));
    copy.destroy().await;

    let deleted = client
        .call("session.delete", json!({"sessionId": session.id}))
        .await;
    assert_eq!(deleted["success"], true);
    let left = daemon.app.services.store.list().await.unwrap();
    let left: Vec<&str> = left.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(left, [fork], "nothing is orphaned");
    daemon.finish().await;
}

/// Both calls of the two agents are over.
fn execution_is_over(session: &loopd_tests::Session) {
    let events = session.events();
    let over = events
        .iter()
        .filter(|event| event["type"] == "tool.execution_complete");
    assert_eq!(over.count(), 2);
}

#[tokio::test]
async fn a_question_that_nobody_heard_waits_for_who_comes() {
    let run = call("b", "bash", json!({"command": "echo at last"}));
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "run it", "runner")]),
                Turn::results(["agent_id: runner"]).says("it runs"),
                Turn::user("\"runner\"").says("done"),
            ],
        ),
        (
            "run it",
            vec![
                Turn::user("run it").calls([run]),
                Turn::results(["at last"]).says("it ran"),
            ],
        ),
    ])
    .await;
    let daemon = Daemon::with(script).await;
    let offer = json!({"requestPermission": true});
    let client = daemon.client();
    let mut session = client.create(offer.clone()).await;
    session.send("begin").await;
    let asked = session.next("permission.requested").await;
    client.vanish().await;
    let mut session = daemon.client().resume(&session.id, offer).await;
    let shown = session.next("permission.requested").await;
    assert_eq!(shown, asked);
    let request = asked["data"]["requestId"].as_str().unwrap();
    assert!(
        session
            .decide(request, json!({"kind": "approve-once"}))
            .await
    );
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "done");
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_that_a_command_resists_is_told_once() {
    let stubborn = call(
        "b",
        "bash",
        json!({"command": "trap '' TERM INT HUP; echo resisting; while :; do sleep 0.1; done"}),
    );
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin")
                    .calls([task("t1", json!({"prompt": "run it", "name": "runner"}))]),
                Turn::user("next").says("fine"),
            ],
        ),
        (
            "run it",
            vec![Turn::user("run it").says_and_calls("I run it", [stubborn])],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    session
        .next_where("the command to run", |event| {
            event["type"] == "tool.execution_partial_result"
                && event["data"].to_string().contains("resisting")
        })
        .await;
    session.call("session.abort", json!({})).await;
    execution_complete(&mut session, "t1").await;
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true);
    daemon
        .until(&session.id, "the agent to end", |state| {
            let runner = state.tasks.get("runner");
            runner.is_some_and(|task| !task.is_running())
        })
        .await;
    let runner = task_of(&session, "runner").await;
    assert_eq!(
        (&runner["status"], &runner["latestResponse"]),
        (&json!("cancelled"), &json!("I run it"))
    );
    session.ask("next").await;
    assert_eq!(session.count("session.idle"), 2, "{}", session.transcript());
    assert_eq!(kinds_told(&session), []);
    daemon.finish().await;
}
