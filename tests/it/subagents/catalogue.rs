//! Which agent is started: custom ones before ours, none in place of a denied one, and with which
//! model, tools and turns.

use loopd_tests::script::Recorded;
use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

use super::{daemon, execution_complete, task, task_of};

fn write(daemon: &Daemon, file: &str, text: &str) {
    let path = daemon.file(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
}

/// The request that an agent was asked with.
fn asked(daemon: &Daemon, prompt: &str) -> Recorded {
    let requests = daemon.script().requests();
    let mut requests = requests.into_iter();
    requests
        .find(|request| request.first_user_text().contains(prompt))
        .unwrap_or_else(|| panic!("nobody was asked {prompt}"))
}

fn system(request: &Recorded) -> String {
    text_of(&request.messages()[0])
}

/// Asks for an agent that is not to be had, and returns what the model is told.
async fn refusal(session: &mut Session, call: &str) -> String {
    let end = execution_complete(session, call).await;
    assert_eq!(end["success"], false, "{end}");
    end["error"]["message"].as_str().unwrap().to_owned()
}

/// A main agent that asks for one agent and then goes on.
fn asks(arguments: Value) -> (&'static str, Vec<Turn>) {
    (
        "begin",
        vec![
            Turn::user("begin").calls([task("t1", arguments)]),
            Turn::any().says("well"),
        ],
    )
}

#[tokio::test]
async fn a_clients_agent_goes_before_ours_and_has_its_own_prompt_and_tools() {
    let daemon = daemon([
        asks(json!({"prompt": "look around", "agent_type": "Explore"})),
        (
            "look around",
            vec![
                Turn::user("look around").calls([call("v", "glob", json!({"pattern": "*"}))]),
                Turn::results(["glob"]).says("seen"),
            ],
        ),
    ])
    .await;
    let custom =
        json!([{"name": "explore", "prompt": "YOU ARE THE CLIENT'S", "tools": ["view", "grep"]}]);
    let mut session = daemon
        .client()
        .create(json!({"customAgents": custom}))
        .await;
    session.ask("begin").await;
    let request = asked(&daemon, "look around");
    assert!(system(&request).contains("YOU ARE THE CLIENT'S"));
    let mut tools = request.tools();
    tools.sort_unstable();
    assert_eq!(tools, ["grep", "view"]);
    // What it was not given does not run, whatever it calls.
    let refused = session.events().into_iter().find(|event| {
        event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == "v"
    });
    assert_eq!(refused.unwrap()["data"]["success"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn a_file_of_the_project_goes_before_ours() {
    let daemon = daemon([
        asks(json!({"prompt": "do something"})),
        (
            "do something",
            vec![Turn::user("do something").says("done")],
        ),
    ])
    .await;
    let text = "---\ndescription: Ours.\ndisallowedTools: [bash]\n---\nYOU ARE THE PROJECT'S\n";
    write(&daemon, ".github/agents/general-purpose.md", text);
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    let request = asked(&daemon, "do something");
    assert!(system(&request).contains("YOU ARE THE PROJECT'S"));
    assert!(!request.tools().contains(&"bash") && request.tools().contains(&"view"));
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_that_is_denied_is_an_error_and_no_other_is_started() {
    let deny = |argument: Value| json!({"rules": {"approved": [], "denied": [{"kind": "agent", "argument": argument}]}});
    for denied in [json!("explore"), Value::Null] {
        let daemon = daemon([asks(
            json!({"prompt": "look around", "agent_type": "explore"}),
        )])
        .await;
        let mut session = daemon.client().create(json!({})).await;
        session
            .call("session.permissions.configure", deny(denied))
            .await;
        session.send("begin").await;
        let told = refusal(&mut session, "t1").await;
        assert_eq!(
            told,
            "The rules of this session deny the agent explore. Do the work without it."
        );
        session.next("session.idle").await;
        assert_eq!(session.count("subagent.started"), 0);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_rule_that_denies_all_agents_denies_forks() {
    let script = loopd_tests::Script::voices([asks(json!({"prompt": "look around"}))]).await;
    let daemon = Daemon::builder()
        .script(script)
        .env("LOOPD_AGENTS_FORK", "1")
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    let rules = json!({"rules": {"approved": [], "denied": [{"kind": "agent"}]}});
    session.call("session.permissions.configure", rules).await;
    session.send("begin").await;
    let told = refusal(&mut session, "t1").await;
    assert_eq!(
        told,
        "The rules of this session deny the agent fork. Do the work without it."
    );
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_that_is_switched_off_or_left_out_is_an_error() {
    let daemon = daemon([asks(
        json!({"prompt": "look around", "agent_type": "explore"}),
    )])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    let off = json!({"subagents": {"disabledSubagents": ["explore"]}});
    session
        .call("session.tools.updateSubagentSettings", off)
        .await;
    session.send("begin").await;
    let told = refusal(&mut session, "t1").await;
    assert_eq!(
        told,
        "the agent `explore` is switched off in this session; do the work without it"
    );
    session.next("session.idle").await;
    let offered = &asked(&daemon, "begin").body["tools"];
    let offered = offered.as_array().unwrap().iter();
    let mut offered = offered.filter(|tool| tool["function"]["name"] == "task");
    let names = offered.next().unwrap()["function"]["parameters"].to_string();
    assert!(
        names.contains("research") && !names.contains("\"explore\""),
        "{names}"
    );
    daemon.finish().await;

    let daemon = super::daemon([asks(
        json!({"prompt": "look around", "agent_type": "explore"}),
    )])
    .await;
    let options = json!({"excludedBuiltinAgents": ["explore"]});
    let mut session = daemon.client().create(options).await;
    session.send("begin").await;
    let told = refusal(&mut session, "t1").await;
    assert!(
        told.starts_with("there is no agent `explore`; the agents are: "),
        "{told}"
    );
    session.next("session.idle").await;
    assert_eq!(session.count("subagent.started"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn what_is_unknown_is_answered_with_what_is_known() {
    let calls = [
        task("type", json!({"prompt": "x", "agent_type": "wizard"})),
        task(
            "model",
            json!({"prompt": "x", "agent_type": "explore", "model": "gpt-99"}),
        ),
        task("empty", json!({"prompt": "  "})),
        task("place", json!({"prompt": "x", "cwd": "not/here"})),
    ];
    let daemon = daemon([(
        "begin",
        vec![Turn::user("begin").calls(calls), Turn::any().says("well")],
    )])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    let results = daemon.script().last_request().last_results();
    for (result, parts) in results.iter().zip([
        ["`wizard`", "explore", "general-purpose"],
        ["gpt-99", "scripted", "scripted-small"],
        ["The prompt is empty", "", ""],
        ["there is no folder", "not/here", ""],
    ]) {
        for part in parts {
            assert!(result.contains(part), "{part:?} is not in {result:?}");
        }
    }
    assert_eq!(session.count("subagent.started"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn one_with_few_turns_is_warned_and_then_fails_with_what_it_has() {
    let look = |id: &str| call(id, "glob", json!({"pattern": "*"}));
    let daemon = daemon([
        asks(json!({"prompt": "look around", "agent_type": "hasty", "name": "h"})),
        (
            "look around",
            vec![
                Turn::user("look around").says_and_calls("I begin", [look("g1")]),
                Turn::any().says_and_calls("I am not done", [look("g2")]),
            ],
        ),
    ])
    .await;
    let text = "---\ndescription: Hasty.\nmaxTurns: 2\n---\nHurry.\n";
    write(&daemon, ".github/agents/hasty.md", text);
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    let told = refusal(&mut session, "t1").await;
    session.next("session.idle").await;
    assert!(
        told.contains("used all of its 2 turns") && told.contains("I am not done"),
        "{told}"
    );
    let requests = daemon.script().requests();
    let own: Vec<&Recorded> = requests
        .iter()
        .filter(|request| request.first_user_text().contains("look around"))
        .collect();
    let warned = |request: &Recorded| {
        let messages = request.messages().iter();
        let texts: Vec<String> = messages.map(ToString::to_string).collect();
        texts.concat().contains("This is your last step")
    };
    assert_eq!(own.len(), 2);
    assert!(!warned(own[0]) && warned(own[1]));
    let task = task_of(&session, "h").await;
    assert_eq!(
        (&task["status"], &task["latestResponse"]),
        (&json!("failed"), &json!("I am not done"))
    );
    daemon.finish().await;
}

#[tokio::test]
async fn the_model_is_the_small_one_the_named_one_or_the_sessions() {
    let calls = [
        task(
            "small",
            json!({"prompt": "look around", "agent_type": "explore", "name": "small"}),
        ),
        task("own", json!({"prompt": "do it all", "name": "own"})),
        task(
            "named",
            json!({"prompt": "do a part", "name": "named", "model": "Scripted Small"}),
        ),
    ];
    let daemon = daemon([
        (
            "begin",
            vec![Turn::user("begin").calls(calls), Turn::any().says("well")],
        ),
        ("look around", vec![Turn::any().says("a")]),
        ("do it all", vec![Turn::any().says("b")]),
        ("do a part", vec![Turn::any().says("c")]),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    for (prompt, id, model) in [
        ("look around", "small", "scripted-small"),
        ("do it all", "own", "scripted"),
        ("do a part", "named", "scripted-small"),
    ] {
        assert_eq!(asked(&daemon, prompt).body["model"], model, "{prompt}");
        let task = task_of(&session, id).await;
        assert_eq!(task["resolvedModel"], model);
    }
    let named = task_of(&session, "named").await;
    assert_eq!(named["model"], "Scripted Small", "as it was asked for");
    let metrics = session.call("session.usage.getMetrics", json!({})).await;
    assert_eq!(
        metrics["modelMetrics"]["scripted-small"]["requests"]["count"],
        2
    );
    daemon.finish().await;
}
