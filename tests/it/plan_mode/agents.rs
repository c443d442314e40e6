//! Agents and plan mode: it holds for all that work below, however they were started.

use loopd_tests::Gate;

use super::*;

fn task(id: &str, arguments: Value) -> loopd_tests::script::Call {
    let mut arguments = arguments;
    arguments["description"] = "a part of it".into();
    call(id, "task", arguments)
}

async fn voices<'a>(voices: impl IntoIterator<Item = (&'a str, Vec<Turn>)>) -> Daemon {
    let script = Script::voices(voices).await;
    Daemon::builder().script(script).yolo().start().await
}

/// The calls with which an agent tries to write.
fn attempts() -> Vec<loopd_tests::script::Call> {
    vec![
        call(
            "create",
            "create",
            json!({"path": "new.txt", "file_text": "x"}),
        ),
        bash("echo", "echo x > new.txt"),
    ]
}

fn writer(prompt: &str) -> Vec<Turn> {
    vec![
        Turn::user(prompt).calls(attempts()),
        Turn::any().says("I could not"),
    ]
}

/// The results that the agent with this prompt was told last.
fn told(daemon: &Daemon, prompt: &str) -> Vec<String> {
    let requests = daemon.script().requests();
    let mut requests = requests.iter().rev();
    let last = requests.find(|request| request.first_user_text().contains(prompt));
    last.unwrap().last_results()
}

fn assert_refused(daemon: &Daemon, prompt: &str) {
    let told = told(daemon, prompt);
    assert!(!daemon.file("new.txt").exists(), "{told:?}");
    let [create, echo] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert!(create.contains("plan mode"), "{create}");
    assert!(echo.contains("Permission denied"), "{echo}");
}

#[tokio::test]
async fn agents_of_agents_write_nothing() {
    let daemon = voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task("o", json!({"prompt": "go deeper"}))]),
                Turn::any().says("done"),
            ],
        ),
        (
            "go deeper",
            vec![
                Turn::user("go deeper").calls([task("i", json!({"prompt": "write it"}))]),
                Turn::any().says("outer"),
            ],
        ),
        ("write it", writer("write it")),
    ])
    .await;
    let mut session = planning(&daemon).await;
    session.ask("begin").await;
    assert_refused(&daemon, "write it");
    daemon.finish().await;
}

#[tokio::test]
async fn an_explore_agent_writes_nothing() {
    let daemon = voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task(
                    "o",
                    json!({"prompt": "find it", "agent_type": "explore"}),
                )]),
                Turn::any().says("done"),
            ],
        ),
        ("find it", writer("find it")),
    ])
    .await;
    let mut session = planning(&daemon).await;
    session.ask("begin").await;
    assert!(!daemon.file("new.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_in_the_background_writes_nothing_from_the_moment_plan_mode_begins() {
    let gate = Gate::new();
    let daemon = voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task(
                    "o",
                    json!({"prompt": "write later", "name": "late", "mode": "background"}),
                )]),
                Turn::any().says("started"),
                Turn::user("\"late\"").says("it ended"),
            ],
        ),
        (
            "write later",
            vec![
                Turn::user("write later").calls(attempts()).held_by(&gate),
                Turn::any().says("I could not"),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    gate.reached().await;
    set(&session, "plan").await;
    let warning = session.next("session.warning").await;
    let message = warning["data"]["message"].as_str().unwrap();
    assert!(message.contains("late"), "{message}");
    gate.open();
    session
        .next_where("the end of the agent", |event| {
            event["type"] == "assistant.message" && event["data"]["content"] == "it ended"
        })
        .await;
    assert_refused(&daemon, "write later");
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_that_goes_on_after_a_restart_is_still_in_plan_mode() {
    let more = json!({"agent_id": "idler", "message": "write it"});
    let mut daemon = voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task(
                    "o",
                    json!({"prompt": "wait", "name": "idler", "mode": "background"}),
                )]),
                Turn::any().says("started"),
                Turn::user("\"idler\"").says("it waits"),
                Turn::user("more").calls([call("w", "write_agent", more)]),
                Turn::any().says("told"),
                Turn::user("\"idler\"").says("it ended"),
            ],
        ),
        (
            "wait",
            vec![
                Turn::user("wait").says("ready"),
                Turn::user("write it").calls(attempts()),
                Turn::any().says("I could not"),
            ],
        ),
    ])
    .await;
    let mut session = planning(&daemon).await;
    session.send("begin").await;
    session
        .next_where("the first answer", |event| {
            event["type"] == "assistant.message" && event["data"]["content"] == "it waits"
        })
        .await;
    session.next("session.idle").await;
    let id = session.id.clone();
    daemon.restart().await;
    let mut session = daemon.client().resume(&id, json!({})).await;
    session.send("more").await;
    session
        .next_where("the second answer", |event| {
            event["type"] == "assistant.message" && event["data"]["content"] == "it ended"
        })
        .await;
    assert_refused(&daemon, "wait");
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_gets_no_worktree() {
    let daemon = daemon(vec![
        Turn::user("go").calls([task(
            "o",
            json!({"prompt": "write it", "isolation": "worktree"}),
        )]),
        Turn::results(["plan mode"]).says("ok"),
    ])
    .await;
    project(&daemon);
    let before = files(daemon.work());
    let mut session = planning(&daemon).await;
    session.ask("go").await;
    assert_eq!(files(daemon.work()), before);
    daemon.finish().await;
}

#[tokio::test]
async fn the_plan_agent_has_a_bash_that_asks_and_cannot_write() {
    let script = Script::play(vec![
        Turn::user("go").calls([bash("a", "sh ./write.sh; cat a.txt")]),
        Turn::any().says("done"),
    ]);
    let daemon = Daemon::builder().script(script.await).yolo().start().await;
    std::fs::write(daemon.file("a.txt"), "one\n").unwrap();
    // What certainly writes is denied, so that nobody has to be asked about it.
    std::fs::write(daemon.file("write.sh"), "echo x > new.txt\n").unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session
        .call("session.agent.select", json!({"name": "plan"}))
        .await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    assert!(
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    session.next("session.idle").await;
    let told = result_of(&session, "a");
    assert!(told.contains("one"), "{told}");
    assert!(!daemon.file("new.txt").exists());
    let request = daemon.script().last_request();
    let tools = request.tools();
    assert!(
        tools.contains(&"bash") && !tools.contains(&"edit"),
        "{tools:?}"
    );
    daemon.finish().await;
}
