//! What agents may do: asked of the clients at the top, granted for all, never more than the parent.

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

use super::{background, last_said, of_agent, task};

fn bash(id: &str, command: &str) -> loopd_tests::script::Call {
    call(id, "bash", json!({"command": command}))
}

async fn asking<'a>(voices: impl IntoIterator<Item = (&'a str, Vec<Turn>)>) -> Daemon {
    Daemon::with(Script::voices(voices).await).await
}

/// A main agent, its agent `outer`, and that one's agent `inner`, which runs a command.
fn three_deep(after: Vec<Turn>) -> Vec<(&'static str, Vec<Turn>)> {
    let mut main = vec![
        Turn::user("begin").calls([task("o", json!({"prompt": "go deeper", "name": "outer"}))]),
        Turn::any().says("done"),
    ];
    main.extend(after);
    vec![
        ("begin", main),
        (
            "go deeper",
            vec![
                Turn::user("go deeper")
                    .calls([task("i", json!({"prompt": "run it", "name": "inner"}))]),
                Turn::any().says("outer is done"),
            ],
        ),
        (
            "run it",
            vec![
                Turn::user("run it").calls([bash("b", "echo from the depth")]),
                Turn::any().says("inner is done"),
            ],
        ),
    ]
}

fn result_of(daemon: &Daemon, prompt: &str) -> String {
    let requests = daemon.script().requests();
    let mut requests = requests.iter().rev();
    let last = requests.find(|request| request.first_user_text().contains(prompt));
    last.unwrap().last_results().concat()
}

#[tokio::test]
async fn a_grandchild_asks_a_second_client_answers_and_all_may_from_then_on() {
    let daemon = asking(
        three_deep(vec![
            Turn::user("you, too").calls([
                bash("own", "echo from the top"),
                task("s", json!({"prompt": "run beside", "name": "sibling"})),
            ]),
            Turn::any().says("nobody asked"),
        ])
        .into_iter()
        .chain([(
            "run beside",
            vec![
                Turn::user("run beside").calls([bash("b", "echo from beside")]),
                Turn::results(["from beside"]).says("beside"),
            ],
        )]),
    )
    .await;
    let offer = json!({"requestPermission": true});
    let mut session = daemon.client().create(offer.clone()).await;
    session.send("begin").await;
    let asked = session.next("permission.requested").await;
    assert_eq!(asked["agentId"], "outer.inner");
    assert_eq!(
        asked["data"]["permissionRequest"]["fullCommandText"],
        "echo from the depth"
    );
    // Who comes late sees the question, and can list it.
    let mut second = daemon.client().resume(&session.id, offer).await;
    let shown = second.next("permission.requested").await;
    assert_eq!(shown, asked);
    let pending = second
        .call("session.permissions.pendingRequests", json!({}))
        .await;
    assert_eq!(
        pending["items"],
        json!([{"requestId": asked["data"]["requestId"], "request": asked["data"]["promptRequest"]}])
    );
    let request = asked["data"]["requestId"].as_str().unwrap();
    let decision = json!({"kind": "approve-for-session"});
    assert!(second.decide(request, decision.clone()).await);
    assert!(
        !session.decide(request, decision).await,
        "the first answer counted"
    );
    let done = session.next("permission.completed").await;
    assert_eq!(done["agentId"], "outer.inner");
    session.next("session.idle").await;
    assert!(result_of(&daemon, "run it").contains("from the depth"));
    session.ask("you, too").await;
    assert_eq!(last_said(&session), "nobody asked");
    assert_eq!(session.count("permission.requested"), 1);
    let results = result_of(&daemon, "begin");
    assert!(
        results.contains("from the top") && results.contains("beside"),
        "{results}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn nobody_who_answers_is_a_no_and_the_agent_goes_on() {
    let daemon = asking(three_deep(Vec::new())).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    assert_eq!(last_said(&session), "done");
    assert_eq!(session.count("permission.requested"), 0);
    let told = result_of(&daemon, "run it");
    assert!(told.contains("could not request permission"), "{told}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_no_reaches_the_agent_and_its_parent_goes_on() {
    let daemon = asking(vec![
        (
            "begin",
            vec![
                Turn::user("begin")
                    .calls([task("o", json!({"prompt": "run it", "name": "runner"}))]),
                Turn::any().says("well"),
            ],
        ),
        (
            "run it",
            vec![
                Turn::user("run it").says_and_calls("I try", [bash("b", "echo never")]),
                Turn::results(["User feedback: not here"]).says("I was not allowed to"),
            ],
        ),
    ])
    .await;
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.send("begin").await;
    let (request, _) = session.permission().await;
    let no = json!({"kind": "reject", "feedback": "not here"});
    assert!(session.decide(&request, no).await);
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "well");
    let told = result_of(&daemon, "begin");
    assert_eq!(told, "I was not allowed to");
    daemon.finish().await;
}

#[tokio::test]
async fn one_that_plans_writes_nothing_even_where_all_is_allowed() {
    let daemon = asking(vec![
        (
            "begin",
            vec![
                Turn::user("begin").calls([task(
                    "p",
                    json!({"prompt": "make a plan", "agent_type": "planner", "name": "planner"}),
                )]),
                Turn::any().says("well"),
            ],
        ),
        (
            "make a plan",
            vec![
                Turn::user("make a plan").calls([
                    call(
                        "c",
                        "create",
                        json!({"path": "plan.txt", "file_text": "no"}),
                    ),
                    call("v", "view", json!({"path": "seen.txt"})),
                ]),
                Turn::results(["This agent only plans", "to be seen"]).says("a plan"),
            ],
        ),
    ])
    .await;
    std::fs::write(daemon.file("seen.txt"), "to be seen\n").unwrap();
    let folder = daemon.file(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\ndescription: Plans.\npermissionMode: plan\n---\nPlan.\n";
    std::fs::write(folder.join("planner.md"), text).unwrap();
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.ask("begin").await;
    assert!(!daemon.file("plan.txt").exists());
    assert_eq!(session.count("permission.requested"), 0);
    let told = result_of(&daemon, "begin");
    assert!(told.starts_with("a plan\n\n[agent_id: planner"), "{told}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_leave_that_is_taken_back_is_taken_from_agents_at_work_too() {
    let gate = loopd_tests::Gate::new();
    let daemon = asking(vec![
        (
            "begin",
            vec![
                Turn::user("begin")
                    .calls([task("o", json!({"prompt": "run it", "name": "runner"}))]),
                Turn::any().says("well"),
            ],
        ),
        (
            "run it",
            vec![
                Turn::user("run it").calls([bash("b1", "echo first")]),
                Turn::results(["first"])
                    .calls([bash("b2", "echo second")])
                    .held_by(&gate),
                Turn::any().says("enough"),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.send("begin").await;
    gate.reached().await;
    session
        .call(
            "session.permissions.setApproveAll",
            json!({"enabled": false}),
        )
        .await;
    gate.open();
    session.next("session.idle").await;
    let told = result_of(&daemon, "run it");
    assert!(told.contains("could not request permission"), "{told}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_right_that_is_taken_back_is_taken_from_an_agent_that_waits_for_its_slot_too() {
    let gate = loopd_tests::Gate::new();
    let script = {
        let gate = gate.clone();
        Script::answering(move |request| {
            let first = request.first_user_text();
            let has_results = !request.last_results().is_empty();
            if first.contains("hold on") {
                return Turn::any().says("ok").held_by(&gate);
            }
            if first.contains("run it") && !has_results {
                return Turn::any().calls([bash("b", "echo hi")]);
            }
            match request.last_user_text() {
                said if has_results || said.contains("system_notification") => {
                    Turn::any().says("well")
                }
                said if said.contains("begin") => {
                    Turn::any().calls([background("t1", "hold on", "first")])
                }
                _ => Turn::any().calls([background("t2", "run it", "second")]),
            }
        })
        .await
    };
    let daemon = Daemon::builder()
        .script(script)
        .env("LOOPD_AGENTS_MAX_CONCURRENT", "1")
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.send("begin").await;
    gate.reached().await;
    session.next("assistant.idle").await;
    session.send("the other one").await;
    session.next("assistant.idle").await;
    session
        .call(
            "session.permissions.setApproveAll",
            json!({"enabled": false}),
        )
        .await;
    gate.open();
    session.next("session.idle").await;
    let told = result_of(&daemon, "run it");
    assert!(told.contains("could not request permission"), "{told}");
    daemon.finish().await;
}

fn lookup() -> Value {
    json!({
        "name": "lookup", "description": "Looks a word up", "skipPermission": true,
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
    })
}

#[tokio::test]
async fn a_clients_tool_that_an_agent_calls_is_answered_through_the_session() {
    let daemon = asking(vec![
        (
            "begin",
            vec![
                Turn::user("begin")
                    .calls([task("o", json!({"prompt": "look it up", "name": "looker"}))]),
                Turn::results(["a closed curve"]).says("well"),
            ],
        ),
        (
            "look it up",
            vec![
                Turn::user("look it up").calls([call("l", "lookup", json!({"word": "loop"}))]),
                Turn::results(["a closed curve"]).says("it is a closed curve"),
            ],
        ),
    ])
    .await;
    let offer = json!({"tools": [lookup()]});
    let mut session: Session = daemon.client().create(offer.clone()).await;
    session.send("begin").await;
    let asked = session.next("external_tool.requested").await;
    assert_eq!(asked["agentId"], "looker");
    assert_eq!(asked["data"]["arguments"], json!({"word": "loop"}));
    // Somebody who comes late and brings the tool may answer as well.
    let mut second = daemon.client().resume(&session.id, offer).await;
    let shown = second.next("external_tool.requested").await;
    assert_eq!(shown, asked);
    let request = asked["data"]["requestId"].as_str().unwrap();
    assert!(
        second
            .give(request, json!({"result": "a closed curve"}))
            .await
    );
    assert!(!session.give(request, json!({"result": "too late"})).await);
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "well");
    let seen = of_agent(&session, "looker");
    assert!(
        seen.iter().any(|kind| kind == "external_tool.completed"),
        "{seen:?}"
    );
    daemon.finish().await;
}
