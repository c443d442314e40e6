//! Agents of a daemon that was stopped: what they answered is told, what they knew is not lost.

use loopd_kernel::tasks::Task;
use loopd_tests::{Daemon, Gate, Session, Turn, call};
use serde_json::{Value, json};

use super::{background, daemon, kinds_told, last_said, task, task_of};

async fn again(daemon: &mut Daemon, id: &str, options: Value) -> Session {
    daemon.restart().await;
    daemon.client().resume(id, options).await
}

async fn read(session: &Session, id: &str) -> Vec<String> {
    let read = session.call("loopd.taskRead", json!({"id": id})).await;
    let turns = read["turns"].as_array().unwrap().iter();
    turns
        .map(|turn| turn["response"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn one_that_had_answered_is_idle_again_and_goes_on_with_all_it_knows() {
    let write = call(
        "w",
        "write_agent",
        json!({"agent_id": "Sage", "message": "and the second digit"}),
    );
    let mut daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "what is pi", "Sage")]),
                Turn::results(["agent_id: sage"]).says("it thinks"),
                Turn::user("\"Sage\"").says("three"),
                Turn::user("more").calls([write]),
                Turn::results(["goes on in the background"]).says("it thinks again"),
                Turn::user("\"Sage\"").says("one"),
            ],
        ),
        (
            "what is pi",
            vec![
                Turn::user("what is pi").says("it begins with 3"),
                Turn::user("and the second digit").says("then 1"),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    let before = task_of(&session, "sage").await;
    let mut session = again(&mut daemon, &session.id, json!({})).await;
    let after = task_of(&session, "sage").await;
    assert_eq!(after, before, "a task is what its log says");
    assert_eq!(after["status"], "idle");
    assert_eq!(read(&session, "Sage").await, ["it begins with 3"]);
    session.ask("more").await;
    assert_eq!(last_said(&session), "one");
    assert_eq!(read(&session, "sage").await, ["it begins with 3", "then 1"]);
    assert_eq!(kinds_told(&session), [("agent_idle", "sage".to_owned())]);
    let requests = daemon.script().requests();
    let mut asked = requests.iter().rev();
    let asked = asked
        .find(|request| request.last_user_text().contains("and the second digit"))
        .unwrap();
    let said: Vec<&str> = asked
        .messages()
        .iter()
        .skip(1)
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["user", "assistant", "user"]);
    daemon.finish().await;
}

#[tokio::test]
async fn an_answer_that_nobody_was_told_of_is_told_once_after_the_restart() {
    let gate = Gate::new();
    let mut daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "what is pi", "sage")]),
                Turn::results(["agent_id: sage"]).says("it thinks"),
                Turn::user("\"sage\"").says("three"),
                Turn::user("thanks").says("you are welcome"),
            ],
        ),
        (
            "what is pi",
            vec![Turn::user("what is pi").says("it is 3").held_by(&gate)],
        ),
    ])
    .await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.send("begin").await;
    session
        .next_where("the main agent to rest", |event| {
            event["data"]["content"] == "it thinks"
        })
        .await;
    gate.reached().await;
    client.vanish().await;
    gate.open();
    let state = daemon
        .until(&session.id, "the agent to answer", |state| {
            state.tasks.get("sage").is_some_and(Task::is_idle)
        })
        .await;
    assert!(!state.is_busy(), "nobody is there to answer to");
    let options = json!({"continuePendingWork": true});
    let mut session = again(&mut daemon, &session.id, options.clone()).await;
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "three");
    assert_eq!(kinds_told(&session), [("agent_idle", "sage".to_owned())]);
    let mut session = again(&mut daemon, &session.id, options).await;
    session.ask("thanks").await;
    let all = session.messages().await;
    let told = all
        .iter()
        .filter(|event| event["type"] == "system.notification");
    assert_eq!(told.count(), 1, "once, whatever is restarted");
    daemon.finish().await;
}

#[tokio::test]
async fn one_that_was_at_work_has_failed_and_can_be_resumed() {
    let (never, gate) = (Gate::new(), Gate::new());
    let look = call("g", "glob", json!({"pattern": "*.rs"}));
    let write = call(
        "w",
        "write_agent",
        json!({"agent_id": "sage", "message": "go on"}),
    );
    let unknown = call(
        "u",
        "write_agent",
        json!({"agent_id": "nobody", "message": "go on"}),
    );
    let mut daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t1", "find it all", "sage")]),
                Turn::results(["agent_id: sage"]).says("it looks"),
                Turn::user("did not finish: it was interrupted because the daemon stopped")
                    .calls([write, unknown]),
                Turn::results([
                    "The agent sage goes on in the background",
                    "There is no agent \"nobody\" in this session. The agents are: sage.",
                ])
                .says("it goes on"),
                Turn::user("\"sage\"").says("all of it"),
            ],
        ),
        (
            "find it all",
            vec![
                Turn::user("find it all").calls([look]),
                Turn::results([""]).says("never heard").held_by(&never),
                Turn::user("go on").says("found it").held_by(&gate),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    session
        .next_where("the main agent to rest", |event| {
            event["data"]["content"] == "it looks"
        })
        .await;
    never.reached().await;
    let options = json!({"continuePendingWork": true});
    let mut session = again(&mut daemon, &session.id, options).await;
    session
        .next_where("the main agent to let it go on", |event| {
            event["data"]["content"] == "it goes on"
        })
        .await;
    gate.reached().await;
    let sage = task_of(&session, "sage").await;
    assert_eq!(sage["status"], "running");
    gate.open();
    session.next("session.idle").await;
    assert_eq!(
        kinds_told(&session),
        [
            ("agent_completed", "sage".to_owned()),
            ("agent_idle", "sage".to_owned())
        ]
    );
    assert_eq!(last_said(&session), "all of it");
    let all = session.messages().await;
    let failed = all
        .iter()
        .find(|event| event["type"] == "subagent.failed")
        .unwrap();
    assert_eq!(
        failed["data"]["error"],
        "it was interrupted because the daemon stopped"
    );
    let asked = daemon.script().requests();
    let asked = asked
        .iter()
        .rfind(|request| request.first_user_text().contains("find it all"))
        .unwrap();
    assert!(asked.last_user_text().contains("go on"));
    let roles: Vec<&Value> = asked.messages().iter().map(|m| &m["role"]).collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "user"],
        "it remembers"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn one_that_was_waited_for_at_the_stop_is_told_of_by_the_result_of_its_call() {
    let never = Gate::new();
    let mut daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin")
                    .calls([task("t1", json!({"prompt": "find it all", "name": "sage"}))]),
                Turn::user("hello").says("hi"),
            ],
        ),
        (
            "find it all",
            vec![Turn::user("find it all").says("no").held_by(&never)],
        ),
    ])
    .await;
    let session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    never.reached().await;
    let mut session = again(&mut daemon, &session.id, json!({})).await;
    let sage = task_of(&session, "sage").await;
    assert_eq!(sage["status"], "failed");
    assert_eq!(
        sage["error"],
        "it was interrupted because the daemon stopped"
    );
    session.ask("hello").await;
    assert_eq!(kinds_told(&session), [], "once is enough");
    let requests = daemon.script().requests();
    let hello = requests
        .iter()
        .find(|request| request.last_user_text().contains("hello"))
        .unwrap();
    let result = hello
        .messages()
        .iter()
        .find(|message| message["role"] == "tool")
        .unwrap();
    assert!(
        result
            .to_string()
            .contains("did not finish: it was interrupted because the daemon stopped"),
        "{result}"
    );
    daemon.finish().await;
}
