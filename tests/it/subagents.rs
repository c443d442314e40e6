//! Agents that a model starts: waited for, in the background, and what each of the files below is
//! about. What those files share is here.

mod catalogue;
mod closed;
mod cut_short;
mod fork;
mod joined;
mod left_running;
mod listed;
mod nested;
mod notice;
mod permission;
mod promotion;
mod restart;
mod settings;
mod stopping;
mod talk;
mod wakes;
mod worktree;
mod worktree_rules;

use loopd_tests::{Daemon, Gate, Script, Session, Turn, call};
use serde_json::{Value, json};

/// A call of the tool `task`.
fn task(id: &str, arguments: Value) -> loopd_tests::script::Call {
    let mut arguments = arguments;
    if arguments.get("description").is_none() {
        arguments["description"] = "a part of it".into();
    }
    call(id, "task", arguments)
}

async fn daemon<'a>(voices: impl IntoIterator<Item = (&'a str, Vec<Turn>)>) -> Daemon {
    let script = Script::voices(voices).await;
    Daemon::builder().script(script).yolo().start().await
}

/// An agent that is asked this, and says that once the gate is open.
fn worker<'a>(prompt: &'a str, says: &str, gate: &Gate) -> (&'a str, Vec<Turn>) {
    (prompt, vec![Turn::user(prompt).says(says).held_by(gate)])
}

/// A call that starts an agent in the background.
fn background(id: &str, prompt: &str, name: &str) -> loopd_tests::script::Call {
    task(
        id,
        json!({"prompt": prompt, "name": name, "mode": "background"}),
    )
}

/// Waits until the main agent says this.
async fn says(session: &mut Session, text: &str) {
    session
        .next_where(text, |event| {
            event["type"] == "assistant.message" && event["data"]["content"] == text
        })
        .await;
}

/// One task as the session lists it.
async fn task_of(session: &Session, id: &str) -> Value {
    let list = session.call("session.tasks.list", json!({})).await;
    let mut tasks = list["tasks"].as_array().unwrap().iter();
    let found = tasks.find(|task| task["id"] == id);
    found
        .unwrap_or_else(|| panic!("{id} is not listed: {list}"))
        .clone()
}

/// Which agents the model was told of, and as what, in order.
fn kinds_told(session: &Session) -> Vec<(&'static str, String)> {
    let events = session.events().into_iter();
    let told = events.filter(|event| event["type"] == "system.notification");
    told.map(|event| {
        let kind = &event["data"]["kind"];
        let name = ["agent_idle", "agent_completed"]
            .into_iter()
            .find(|name| kind["type"] == *name);
        (
            name.unwrap_or("something else"),
            kind["agentId"].as_str().unwrap_or_default().to_owned(),
        )
    })
    .collect()
}

/// What the main agent said last.
fn last_said(session: &Session) -> String {
    let said = session
        .events()
        .into_iter()
        .rfind(|event| event["type"] == "assistant.message" && event["agentId"].is_null());
    said.unwrap()["data"]["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Waits for the end of a call.
async fn execution_complete(session: &mut Session, call: &str) -> Value {
    let what = format!("the end of the call {call}");
    let event = session
        .next_where(&what, |event| {
            event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == call
        })
        .await;
    event["data"].clone()
}

/// The events of an agent, by its id.
fn of_agent(session: &Session, agent: &str) -> Vec<String> {
    let events = session.events().into_iter();
    let own = events.filter(|event| event["agentId"] == agent);
    own.map(|event| event["type"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn one_that_is_waited_for_answers_in_the_same_call() {
    let look = task(
        "t1",
        json!({"prompt": "find the parser", "agent_type": "explore", "name": "finder"}),
    );
    let daemon = daemon([
        (
            "go",
            vec![
                Turn::user("go").calls([look]),
                Turn::results(["it is in src/parser.rs"]).says("found"),
            ],
        ),
        (
            "find the parser",
            vec![
                Turn::user("find the parser").calls([call(
                    "g",
                    "glob",
                    json!({"pattern": "**/*.rs"}),
                )]),
                Turn::results([""]).says("it is in src/parser.rs"),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    let started = session
        .events()
        .into_iter()
        .find(|e| e["type"] == "subagent.started")
        .unwrap();
    assert_eq!(started["agentId"], "finder");
    assert_eq!(started["data"]["toolCallId"], "t1");
    assert_eq!(started["data"]["agentName"], "explore");
    assert_eq!(started["data"]["executionMode"], "sync");
    let done = session
        .events()
        .into_iter()
        .find(|e| e["type"] == "subagent.completed")
        .unwrap();
    assert_eq!(done["agentId"], "finder");
    assert_eq!(done["data"]["totalToolCalls"], 1);
    let seen = of_agent(&session, "finder");
    for kind in [
        "user.message",
        "assistant.message",
        "tool.execution_start",
        "tool.execution_complete",
    ] {
        assert!(
            seen.iter().any(|own| own == kind),
            "{kind} of the agent is not in {seen:?}"
        );
    }
    assert!(
        !seen
            .iter()
            .any(|kind| kind == "session.idle" || kind == "session.start"),
        "{seen:?}"
    );
    let tasks = session.call("session.tasks.list", json!({})).await;
    assert_eq!(tasks["tasks"][0]["status"], "completed");
    assert_eq!(tasks["tasks"][0]["result"], "it is in src/parser.rs");
    assert_eq!(session.count("system.notification"), 0);
    // The agent's tools are its own: it cannot write.
    let requests = daemon.script().requests();
    let agent = requests
        .iter()
        .find(|r| r.first_user_text().contains("find the parser"))
        .unwrap();
    assert!(
        !agent.tools().contains(&"create") && agent.tools().contains(&"view"),
        "{:?}",
        agent.tools()
    );
    daemon.finish().await;
}

#[tokio::test]
async fn eight_in_the_background_and_one_answer_from_all() {
    let names: Vec<String> = (1..=8).map(|number| format!("part-{number}")).collect();
    let gate = Gate::new();
    let calls: Vec<_> = names
        .iter()
        .map(|name| {
            task(
                name,
                json!({"prompt": format!("do {name}."), "name": name, "mode": "background"}),
            )
        })
        .collect();
    let script = {
        let gate = gate.clone();
        let names = names.clone();
        Script::answering(move |request| {
            let first = request.first_user_text();
            if let Some(name) = names
                .iter()
                .find(|name| first.contains(&format!("do {name}.")))
            {
                return Turn::any().says(&format!("{name} is done")).held_by(&gate);
            }
            let told = request
                .messages()
                .iter()
                .filter(|m| m.to_string().contains("system_notification"))
                .count();
            match request.last_results().len() {
                8 => Turn::any().says("they work"),
                _ if told == 8 => Turn::any().says("all eight are done"),
                _ if told > 0 => Turn::any().says("some are done"),
                _ => Turn::any().calls(calls.clone()),
            }
        })
        .await
    };
    let daemon = Daemon::builder()
        .script(script)
        .env("LOOPD_AGENTS_MAX_CONCURRENT", "8")
        .yolo()
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    // All eight ask at once: nobody waits for anybody.
    daemon.script().asked(10).await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(
        session.count("session.idle"),
        1,
        "idle only when all is done"
    );
    let last = session
        .events()
        .into_iter()
        .rfind(|e| e["type"] == "assistant.message" && e["agentId"].is_null())
        .unwrap();
    assert_eq!(last["data"]["content"], "all eight are done");
    let mut told: Vec<String> = session
        .events()
        .into_iter()
        .filter(|e| e["type"] == "system.notification")
        .map(|e| e["data"]["kind"]["agentId"].as_str().unwrap().to_owned())
        .collect();
    told.sort();
    assert_eq!(told, names, "each is told exactly once");
    daemon.finish().await;
}
