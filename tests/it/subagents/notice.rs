//! What is told of agents beside the conversation: notifications, what they stream, output files,
//! and work that clients register themselves.

use std::path::PathBuf;

use loopd_kernel::tasks::Task;
use loopd_tests::{Daemon, Gate, Script, Session, Turn, call};
use serde_json::{Value, json};

use super::{background, daemon, execution_complete, kinds_told, last_said, says, task_of, worker};

/// The notifications so far, whole.
fn notices(session: &Session) -> Vec<Value> {
    let events = session.events().into_iter();
    let told = events.filter(|event| event["type"] == "system.notification");
    told.map(|event| event["data"].clone()).collect()
}

#[tokio::test]
async fn an_answer_a_failure_and_a_stop_are_told_each_in_its_way() {
    let (one, two, three) = (Gate::new(), Gate::new(), Gate::new());
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([
                    background("t1", "part one", "one"),
                    background("t2", "part two", "two"),
                    background("t3", "part three", "three"),
                ]),
                Turn::results(["one", "two", "three"]).says("they work"),
                Turn::user("<status>idle</status>").says("one is there"),
                Turn::user("<status>failed</status>").says("two is not"),
                Turn::user("<status>cancelled</status>").says("three never will"),
            ],
        ),
        worker("part one", "the <first> part", &one),
        (
            "part two",
            vec![
                Turn::user("part two")
                    .fails(400, "no such part")
                    .held_by(&two),
            ],
        ),
        worker("part three", "never heard", &three),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    for gate in [&one, &two, &three] {
        gate.reached().await;
    }
    says(&mut session, "they work").await;
    one.open();
    says(&mut session, "one is there").await;
    two.open();
    says(&mut session, "two is not").await;
    session
        .call("session.tasks.cancel", json!({"id": "three"}))
        .await;
    session.next("session.idle").await;
    assert_eq!(session.count("session.idle"), 1);
    let told = notices(&session);
    let kinds: Vec<Value> = told
        .iter()
        .map(|notice| without_usage(&notice["kind"]))
        .collect();
    assert_eq!(
        kinds,
        [
            json!({"type": "agent_idle", "agentId": "one", "displayName": "one",
                "agentType": "general-purpose", "description": "a part of it", "status": "idle"}),
            json!({"type": "agent_completed", "agentId": "two", "displayName": "two",
                "agentType": "general-purpose", "status": "failed", "description": "a part of it",
                "prompt": "part two"}),
            json!({"type": "agent_completed", "agentId": "three", "displayName": "three",
                "agentType": "general-purpose", "status": "failed", "description": "a part of it",
                "prompt": "part three", "cancelled": true}),
        ]
    );
    let first = told[0]["content"].as_str().unwrap();
    let file = output_file(&session, "one").await;
    for part in [
        "<task_id>one</task_id>",
        "<tool_use_id>t1</tool_use_id>",
        "<summary>a part of it</summary>",
        "<result>\nthe &lt;first&gt; part\n</result>",
        "<usage>15 tokens, 0 tool calls",
        &format!("<output_file>{}</output_file>", file.display()),
    ] {
        assert!(first.contains(part), "{part} is not in {first}");
    }
    let second = told[1]["content"].as_str().unwrap();
    assert!(second.contains("no such part"), "{second}");
    daemon.finish().await;
}

/// The kind of a notification without the session and what the agent used there.
fn without_usage(kind: &Value) -> Value {
    let mut kind = kind.clone();
    let members = kind.as_object_mut().unwrap();
    for name in ["sessionId", "totalToolCalls", "totalTokens", "durationMs"] {
        assert!(members.remove(name).is_some(), "{name} is missing");
    }
    kind
}

#[tokio::test]
async fn what_is_read_first_is_not_told_again() {
    let (gate, ready) = (Gate::new(), Gate::new());
    let wait = call(
        "r",
        "read_agent",
        json!({"agent_id": "one", "wait": true, "timeout": 60}),
    );
    let since = call(
        "r2",
        "read_agent",
        json!({"agent_id": "one", "since_turn": 1}),
    );
    let list = call("l", "list_agents", json!({}));
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "part one", "one")]),
                Turn::results(["agent_id: one"]).calls([wait]),
                Turn::results(["Agent is idle (waiting for messages). agent_id: one"])
                    .calls([since, list]),
                Turn::results([
                    "Nothing new since turn 1.",
                    "- one (general-purpose): idle, a part of it",
                ])
                .says("I know")
                .held_by(&ready),
                Turn::user("next").says("fine"),
            ],
        ),
        worker("part one", "the first part", &gate),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    session
        .next_where("the read", |event| {
            event["type"] == "tool.execution_start" && event["data"]["toolCallId"] == "r"
        })
        .await;
    gate.open();
    let read = execution_complete(&mut session, "r").await;
    let read = read["result"]["content"].as_str().unwrap();
    assert!(read.ends_with("\n\n[Turn 1]\nthe first part"), "{read}");
    ready.open();
    session.next("session.idle").await;
    session.ask("next").await;
    assert_eq!(kinds_told(&session), []);
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_person_says_comes_before_what_an_agent_says() {
    let (gate, main) = (Gate::new(), Gate::new());
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "part one", "one")]),
                Turn::results(["agent_id: one"])
                    .says("it works")
                    .held_by(&main),
                Turn::user("person").says("yes"),
                Turn::user("\"one\"").says("noted"),
            ],
        ),
        worker("part one", "the first part", &gate),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    gate.reached().await;
    main.reached().await;
    gate.open();
    daemon
        .until(&session.id, "the agent to answer", |state| {
            state.tasks.get("one").is_some_and(Task::is_idle)
        })
        .await;
    session.send("person").await;
    main.open();
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "noted");
    assert_eq!(session.count("session.idle"), 1);
    daemon.finish().await;
}

/// Lets an agent stream its answer, and returns how many pieces of it the client got.
async fn pieces_heard(options: Value) -> usize {
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([super::task(
                    "t1",
                    json!({"prompt": "part one", "name": "one"}),
                )]),
                Turn::results(["all of it"]).says("done"),
            ],
        ),
        (
            "part one",
            vec![Turn::user("part one").streams(["all", " of", " it"])],
        ),
    ])
    .await;
    let mut session = daemon.client().create(options).await;
    session.ask("begin").await;
    let events = session.events();
    let of_agent = |kind: &str| {
        let own = events
            .iter()
            .filter(|event| event["type"] == kind && event["agentId"] == "one");
        own.count()
    };
    assert_eq!(of_agent("assistant.message"), 1, "the whole comes always");
    let main = events
        .iter()
        .filter(|event| event["type"] == "assistant.message_delta" && event["agentId"].is_null());
    assert!(main.count() > 0, "the main agent is always heard");
    let heard = of_agent("assistant.message_delta");
    daemon.finish().await;
    heard
}

#[tokio::test]
async fn what_an_agent_streams_is_heard_unless_the_client_does_not_want_it() {
    assert_eq!(pieces_heard(json!({"streaming": true})).await, 3);
    let wanted = json!({"streaming": true, "includeSubAgentStreamingEvents": true});
    assert_eq!(pieces_heard(wanted).await, 3);
    let unwanted = json!({"streaming": true, "includeSubAgentStreamingEvents": false});
    assert_eq!(pieces_heard(unwanted).await, 0);
}

async fn output_file(session: &Session, id: &str) -> PathBuf {
    let read = session.call("loopd.taskRead", json!({"id": id})).await;
    PathBuf::from(read["node"]["outputFile"].as_str().unwrap())
}

#[tokio::test]
async fn the_output_file_grows_while_the_agent_works_and_is_whole_at_its_end() {
    let gate = Gate::new();
    let look = call("g", "glob", json!({"pattern": "*.rs"}));
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "part one", "one")]),
                Turn::results(["What it does can be read meanwhile in "]).says("it works"),
                Turn::user("\"one\"").says("noted"),
            ],
        ),
        (
            "part one",
            vec![
                Turn::user("part one").says_and_calls("I look first", [look]),
                Turn::results([""]).says("the last word").held_by(&gate),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    gate.reached().await;
    let file = output_file(&session, "one").await;
    let text = loopd_tests::within("the file to have the call", async {
        loop {
            let text = tokio::fs::read_to_string(&file).await.unwrap_or_default();
            if text.contains("glob: *.rs") {
                return text;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(
        text.contains("part one") && text.contains("I look first"),
        "{text}"
    );
    assert!(!text.contains("the last word"), "{text}");
    let progress = session
        .call("session.tasks.getProgress", json!({"id": "one"}))
        .await;
    assert_eq!(progress["progress"]["latestIntent"], "glob: *.rs");
    gate.open();
    session.next("session.idle").await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.ends_with("the last word\n\n"), "{text:?}");
    let launched = execution(&session, "t1");
    assert_eq!(
        launched["toolTelemetry"]["properties"]["outputFile"],
        json!(file)
    );
    daemon.finish().await;
}

/// The end of a call that is over.
fn execution(session: &Session, call: &str) -> Value {
    let events = session.events().into_iter();
    let mut ends = events.filter(|event| {
        event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == call
    });
    ends.next().unwrap()["data"].clone()
}

#[tokio::test]
async fn work_of_a_client_is_listed_noted_and_told_of_when_it_ends() {
    let script = Script::play([
        Turn::user("<task_id>build:1</task_id>").says("the build is done"),
        Turn::user("did not finish: out of memory").says("a pity"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    let mut session = daemon.client().create(json!({})).await;
    for id in ["", "with space", "a/b", &"x".repeat(129)] {
        let params = json!({"id": id, "description": "no"});
        let error = session.refused("loopd.taskRegister", params).await;
        assert_eq!(error.code, -32602, "{id}: {error}");
    }
    let build = json!({"id": "build:1", "description": "the build", "prompt": "make all"});
    let registered = session.call("loopd.taskRegister", build.clone()).await;
    assert_eq!(registered, json!({"registered": true}));
    let twice = session.refused("loopd.taskRegister", build).await;
    assert!(twice.message.contains("build:1"), "{twice}");
    let task = task_of(&session, "build:1").await;
    assert_eq!(
        (&task["status"], &task["agentType"], &task["prompt"]),
        (&json!("running"), &json!("client-task"), &json!("make all"))
    );
    let (client, own) = (session.client().clone(), session.id.clone());
    let update = |id: &str, more: Value| {
        let mut params = more;
        params["id"] = id.into();
        params["sessionId"] = own.as_str().into();
        client.start("loopd.taskUpdate", params)
    };
    let noted = update("build:1", json!({"status": "running", "note": "half"})).await;
    assert_eq!(noted.unwrap(), json!({"updated": true}));
    let progress = session
        .call("session.tasks.getProgress", json!({"id": "build:1"}))
        .await;
    assert_eq!(progress["progress"]["latestIntent"], "half");
    let unknown = update("other", json!({"status": "completed", "result": "x"})).await;
    assert_eq!(unknown.unwrap(), json!({"updated": false}));
    let wrong = update("build:1", json!({"status": "exploded"})).await;
    assert_eq!(wrong.unwrap_err().code, -32602);
    let sent = session
        .call(
            "session.tasks.sendMessage",
            json!({"id": "build:1", "message": "hi"}),
        )
        .await;
    assert_eq!(sent["sent"], false);
    let done = update("build:1", json!({"status": "completed", "result": "ok"})).await;
    assert_eq!(done.unwrap(), json!({"updated": true}));
    session.next("session.idle").await;
    let again = update("build:1", json!({"status": "completed", "result": "ok"})).await;
    assert_eq!(again.unwrap(), json!({"updated": false}));
    let task = task_of(&session, "build:1").await;
    assert_eq!(
        (&task["status"], &task["result"]),
        (&json!("completed"), &json!("ok"))
    );
    session
        .call(
            "loopd.taskRegister",
            json!({"id": "test", "description": "the tests"}),
        )
        .await;
    let failed = session
        .call(
            "loopd.taskUpdate",
            json!({"id": "test", "status": "failed", "error": "out of memory"}),
        )
        .await;
    assert_eq!(failed, json!({"updated": true}));
    session.next("session.idle").await;
    assert_eq!(kinds_told(&session).len(), 2);
    daemon.finish().await;
}
