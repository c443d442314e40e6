//! Forks: copies of the conversation that go on beside it, from the very same bytes.

use std::collections::BTreeMap;

use loopd_tests::script::Recorded;
use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{kinds_told, last_said, task, task_of};

const PARTS: [&str; 3] = ["part one", "part two", "part three"];

fn forks() -> Vec<loopd_tests::script::Call> {
    let calls = PARTS.iter().map(|part| {
        let name = part.replace(' ', "-");
        task(
            &name,
            json!({"prompt": format!("Do {part}."), "name": name}),
        )
    });
    calls.collect()
}

/// Which part a request of a fork is about.
fn part_of(request: &Recorded) -> Option<&'static str> {
    let asked = request.last_user_text();
    if !asked.contains("You are a fork") {
        return None;
    }
    PARTS
        .into_iter()
        .find(|part| asked.contains(&format!("Do {part}.")))
}

/// The members of a body, as they were written.
fn members(request: &Recorded) -> BTreeMap<String, Box<RawValue>> {
    serde_json::from_str(&request.raw).unwrap()
}

/// The messages of a body, as they were written.
fn written(request: &Recorded) -> Vec<String> {
    let messages: Vec<Box<RawValue>> =
        serde_json::from_str(members(request)["messages"].get()).unwrap();
    messages.iter().map(|raw| raw.get().to_owned()).collect()
}

async fn forking(answer: impl FnMut(&Recorded) -> Turn + Send + 'static, most: &str) -> Daemon {
    let script = Script::answering(answer).await;
    Daemon::builder()
        .script(script)
        .env("LOOPD_AGENTS_FORK", "1")
        .env("LOOPD_AGENTS_MAX_CONCURRENT", most)
        .start()
        .await
}

/// A main agent that talks a little, forks three times, and waits for all.
fn main_agent(request: &Recorded) -> Turn {
    let told = request
        .messages()
        .iter()
        .filter(|message| message.to_string().contains("system_notification"))
        .count();
    match (request.last_results().len(), told) {
        (3, _) => Turn::any().says("they work"),
        (0, 0) if request.last_user_text().contains("hello") => Turn::any().says("hi"),
        (0, 0) => Turn::any().says_and_calls("I split it", forks()),
        (_, 3) => Turn::any().says("all is done"),
        _ => Turn::any().says("some is done"),
    }
}

/// Every fork was asked with what its parent was asked, to the byte, and one message more.
fn share_one_beginning(daemon: &Daemon) {
    let requests = daemon.script().requests();
    let parent = requests
        .iter()
        .find(|request| request.last_user_text().contains("split it"))
        .unwrap();
    let asked = requests.iter().filter(|request| part_of(request).is_some());
    let asked: Vec<&Recorded> = asked.collect();
    assert_eq!(asked.len(), 3);
    let beginning = written(parent);
    for fork in &asked {
        let (mut own, mut parents) = (members(fork), members(parent));
        own.remove("messages");
        parents.remove("messages");
        let text = |members: &BTreeMap<String, Box<RawValue>>| -> Vec<(String, String)> {
            let members = members.iter();
            members
                .map(|(name, raw)| (name.clone(), raw.get().to_owned()))
                .collect()
        };
        assert_eq!(text(&own), text(&parents), "model, tools and all else");
        let messages = written(fork);
        assert_eq!(messages[..beginning.len()], beginning);
        // The message that asked, three results, the directive.
        assert_eq!(messages.len(), beginning.len() + 5);
        let results = fork.messages()[beginning.len() + 1..].iter().take(3);
        let contents: Vec<&Value> = results.map(|result| &result["content"]).collect();
        assert!(contents.iter().all(|content| *content == contents[0]));
        let first = written(asked[0]);
        let last = messages.len() - 1;
        assert_eq!(messages[..last], first[..last], "only the last differs");
        assert_eq!(
            fork.raw.find("\"messages\""),
            parent.raw.find("\"messages\""),
            "the messages begin at the same byte"
        );
    }
}

async fn three_forks(most: &str) {
    let daemon = forking(
        |request| match part_of(request) {
            Some(part) => Turn::any().says(&format!("{part} is done")),
            None => main_agent(request),
        },
        most,
    )
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("hello").await;
    session.ask("split it").await;
    assert_eq!(last_said(&session), "all is done");
    assert_eq!(kinds_told(&session).len(), 3);
    share_one_beginning(&daemon);
    let fork = task_of(&session, "part-two").await;
    assert_eq!(
        (&fork["agentType"], &fork["latestResponse"]),
        (&json!("fork"), &json!("part two is done"))
    );
    // What the parent said before is not the fork's answer, nor its cost.
    let read = session
        .call("loopd.taskRead", json!({"id": "part-two"}))
        .await;
    assert_eq!(read["turns"].as_array().unwrap().len(), 1);
    assert_eq!(read["node"]["tokens"], 15);
    let metrics = session.call("session.usage.getMetrics", json!({})).await;
    let requests = daemon.script().requests().len();
    assert_eq!(
        metrics["modelMetrics"]["scripted"]["requests"]["count"],
        requests
    );
    daemon.finish().await;
}

#[tokio::test]
async fn three_at_once_share_one_beginning() {
    three_forks("3").await;
}

#[tokio::test]
async fn one_after_the_other_they_still_share_it() {
    three_forks("1").await;
}

#[tokio::test]
async fn a_fork_does_not_fork_again_and_may_start_no_other_in_the_background() {
    let again = task("again", json!({"prompt": "Do it for me.", "name": "again"}));
    let daemon = forking(
        move |request| {
            let asked = request.last_user_text();
            let results = request.last_results();
            match results.first() {
                Some(refused) if refused.contains("A fork cannot fork again") => {
                    Turn::any().says("then I do it myself")
                }
                Some(done) if done.contains("then I do it myself") => Turn::any().says("done"),
                Some(other) => Turn::any().says(&format!("what is {other}")),
                None if asked.contains("You are a fork") => Turn::any().calls([again.clone()]),
                None => Turn::any().calls([task(
                    "first",
                    json!({"prompt": "Do part one.", "name": "first", "mode": "sync"}),
                )]),
            }
        },
        "2",
    )
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("split it").await;
    assert_eq!(last_said(&session), "done");
    assert_eq!(task_of(&session, "first").await["status"], "completed");
    assert_eq!(session.count("subagent.started"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn the_question_of_a_fork_reaches_the_clients() {
    let daemon = forking(
        |request| {
            let results = request.last_results();
            match results.first() {
                Some(out) if out.contains("from the fork") => Turn::any().says("it ran"),
                Some(out) if out.contains("it ran") => Turn::any().says("done"),
                Some(other) => Turn::any().says(&format!("what is {other}")),
                None if request.last_user_text().contains("You are a fork") => {
                    Turn::any().calls([call("b", "bash", json!({"command": "echo from the fork"}))])
                }
                None => Turn::any().calls([task(
                    "first",
                    json!({"prompt": "Do part one.", "name": "first", "mode": "sync"}),
                )]),
            }
        },
        "2",
    )
    .await;
    let mut session: Session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.send("split it").await;
    let asked = session.next("permission.requested").await;
    assert_eq!(asked["agentId"], "first");
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
