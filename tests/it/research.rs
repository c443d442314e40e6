//! Research: the model hands questions to research agents and writes one report, and can do nothing
//! else meanwhile.

use loopd_tests::script::Recorded;
use loopd_tests::{Daemon, Gate, Script, Turn, call};
use serde_json::{Value, json};

fn task(id: &str, thread: &str, kind: &str, mode: &str) -> loopd_tests::script::Call {
    call(
        id,
        "task",
        json!({"description": thread, "prompt": format!("Look into {thread}"), "agent_type": kind, "mode": mode}),
    )
}

fn result_of(session: &loopd_tests::Session, id: &str) -> Value {
    let events = session.events();
    let complete = events.iter().find(|event| {
        event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == id
    });
    complete.unwrap_or_else(|| panic!("{id} has no result"))["data"].clone()
}

fn is_agent(request: &Recorded) -> bool {
    request.first_user_text().contains("Look into thread")
}

#[tokio::test]
async fn four_agents_look_into_it_and_a_report_is_written() {
    let gates: Vec<Gate> = (0..4).map(|_| Gate::new()).collect();
    let held = gates.clone();
    let mut round = 0;
    let script = Script::answering(move |request| {
        if is_agent(request) {
            let text = request.first_user_text();
            let number: usize = text.rsplit(' ').next().unwrap().parse().unwrap();
            let said = format!("found {number} [1]\n\nSources: [1] https://example.org/{number}");
            return Turn::any().says(&said).held_by(&held[number]);
        }
        round += 1;
        match round {
            1 => Turn::any().calls([
                call(
                    "i",
                    "report_intent",
                    json!({"intent": "Dividing the question"}),
                ),
                task("t0", "thread 0", "research", "sync"),
                task("t1", "thread 1", "research", "sync"),
                task("t2", "thread 2", "research", "sync"),
                task("t3", "thread 3", "research", "sync"),
            ]),
            2 => Turn::any().calls([
                call("g", "grep", json!({"pattern": "x"})),
                task("e", "thread 9", "explore", "sync"),
                task("b", "thread 9", "research", "background"),
                call("v", "view", json!({"path": "secret.txt"})),
                call("o", "create", json!({"path": "other.md", "file_text": "x"})),
            ]),
            3 => {
                let lead = request.first_user_text();
                let path = lead.split("exactly this file: ").nth(1).unwrap();
                let path = path.split('\n').next().unwrap();
                let text = "# Answer\n\nFour findings.\n\n## Sources\n[1] https://example.org/0\n";
                Turn::any().calls([call(
                    "c",
                    "create",
                    json!({"path": path, "file_text": text}),
                )])
            }
            4 => Turn::any().says("The report is written."),
            _ => Turn::any().says("free again"),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    std::fs::write(daemon.file("secret.txt"), "not for the lead").unwrap();
    let mut session = daemon.client().create(json!({})).await;
    let begun = session
        .call(
            "loopd.research",
            json!({"topic": "How do Bees, exactly, dance?"}),
        )
        .await;
    let report = begun["reportPath"].as_str().unwrap().to_owned();
    assert!(
        report.ends_with("/research/how-do-bees-exactly-dance.md"),
        "{report}"
    );
    // All four are at work before the first may answer.
    for gate in &gates {
        gate.reached().await;
    }
    for gate in &gates {
        gate.open();
    }
    session.next("session.idle").await;
    let written = std::fs::read_to_string(&report).unwrap();
    assert!(written.contains("https://example.org/0"));
    assert!(!daemon.file("other.md").exists());
    for number in 0..4 {
        let found = result_of(&session, &format!("t{number}"));
        let text = found["result"]["content"].as_str().unwrap();
        assert!(text.contains(&format!("found {number}")), "{text}");
    }
    for (id, reason) in [
        ("g", "Tool 'grep' does not exist"),
        ("e", "only agents of the type research"),
        ("b", "Pass mode \"sync\""),
        ("v", "only the outputs of your agents"),
        ("o", "only the report can be written"),
    ] {
        let refused = result_of(&session, id);
        assert_eq!(refused["success"], false, "{id}");
        let text = refused["error"]["message"].as_str().unwrap();
        assert!(text.contains(reason), "{id}: {text}");
    }
    assert_eq!(result_of(&session, "i")["success"], true);
    let requests = daemon.script().requests();
    let lead = requests.iter().find(|request| !is_agent(request)).unwrap();
    assert_eq!(lead.tools(), ["view", "create", "report_intent", "task"]);
    let asked = session
        .events()
        .into_iter()
        .find(|event| event["type"] == "user.message");
    assert_eq!(
        asked.unwrap()["data"]["content"],
        "Research: How do Bees, exactly, dance?"
    );
    // The rules end with the run.
    session.ask("and now").await;
    let tools = daemon.script().last_request();
    assert!(tools.tools().contains(&"grep") && !tools.tools().contains(&"report_intent"));
    daemon.finish().await;
}

#[tokio::test]
async fn at_most_five_agents_are_started_by_one_message() {
    let mut round = 0;
    let script = Script::answering(move |request| {
        if is_agent(request) {
            return Turn::any().says("found");
        }
        round += 1;
        match round {
            1 => Turn::any().calls(
                (0..7).map(|n| task(&format!("t{n}"), &format!("thread {n}"), "research", "sync")),
            ),
            _ => Turn::any().says("enough"),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    let error = session
        .refused("loopd.research", json!({"topic": " "}))
        .await;
    assert!(
        error.message.contains("say what is to be found out"),
        "{error}"
    );
    session
        .call(
            "loopd.research",
            json!({"topic": "many", "path": "out/r.md"}),
        )
        .await;
    session.next("session.idle").await;
    let ended: Vec<bool> = (0..7)
        .map(|n| result_of(&session, &format!("t{n}"))["success"] == true)
        .collect();
    assert_eq!(ended, [true, true, true, true, true, false, false]);
    daemon.finish().await;
}

/// A lead that tries what it may not do, once for each topic.
fn tries(request: &Recorded) -> Turn {
    if !request.last_results().is_empty() {
        return Turn::any().says("done");
    }
    let of = request.last_user_text();
    let number = if of.contains("second topic") { 2 } else { 1 };
    Turn::any().calls(forbidden(number))
}

fn forbidden(number: u32) -> [loopd_tests::script::Call; 3] {
    let other = json!({"path": "other.md", "file_text": "x"});
    [
        task(&format!("e{number}"), "thread 9", "explore", "sync"),
        call(&format!("o{number}"), "create", other),
        call(&format!("b{number}"), "bash", json!({"command": "true"})),
    ]
}

async fn daemon(answer: impl FnMut(&Recorded) -> Turn + Send + 'static) -> Daemon {
    let script = Script::answering(answer).await;
    Daemon::builder().script(script).yolo().start().await
}

#[track_caller]
fn all_refused(session: &loopd_tests::Session, number: u32) {
    for (id, reason) in [
        ("e", "only agents of the type research"),
        ("o", "only the report can be written"),
        ("b", "Tool 'bash' does not exist"),
    ] {
        let refused = result_of(session, &format!("{id}{number}"));
        let text = refused["error"]["message"].as_str().unwrap();
        assert!(text.contains(reason), "{id}{number}: {text}");
    }
}

#[tokio::test]
async fn the_slash_command_and_the_method_are_one_way() {
    for by_name in [true, false] {
        let daemon = daemon(tries).await;
        let mut session = daemon.client().create(json!({})).await;
        let wrong = json!({"commandName": "research", "args": " "});
        let wrong = session.call("session.commands.execute", wrong).await;
        let why = wrong["error"].as_str().unwrap();
        assert!(why.contains("say what is to be found out"), "{why}");
        if by_name {
            let command = json!({"commandName": "research", "args": "tides"});
            session.call("session.commands.execute", command).await;
        } else {
            session
                .call("loopd.research", json!({"topic": "tides"}))
                .await;
        }
        session.next("session.idle").await;
        all_refused(&session, 1);
        let asked = &session.events();
        let asked = asked.iter().find(|event| event["type"] == "user.message");
        assert_eq!(asked.unwrap()["data"]["content"], "Research: tides");
        let lead = daemon.script().requests()[0].first_user_text();
        assert!(lead.contains("/research/tides.md\n"), "{lead}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn researches_that_wait_keep_their_rules_each() {
    let gate = Gate::new();
    let held = gate.clone();
    let daemon = daemon(move |request| {
        if request.last_user_text().contains("busy") {
            return Turn::any().says("done").held_by(&held);
        }
        tries(request)
    })
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("busy").await;
    gate.reached().await;
    for topic in ["first topic", "second topic"] {
        session
            .call("loopd.research", json!({"topic": topic}))
            .await;
    }
    gate.open();
    session.next("session.idle").await;
    all_refused(&session, 1);
    all_refused(&session, 2);
    daemon.finish().await;
}

#[tokio::test]
async fn a_report_never_takes_the_place_of_a_file() {
    let daemon = daemon(tries).await;
    let session = daemon.client().create(json!({})).await;
    std::fs::create_dir(daemon.file("research")).unwrap();
    std::fs::write(daemon.file("research/tides.md"), "mine").unwrap();
    let begun = session
        .call("loopd.research", json!({"topic": "tides"}))
        .await;
    let report = begun["reportPath"].as_str().unwrap();
    assert!(report.ends_with("/research/tides-2.md"), "{report}");
    let taken = json!({"topic": "tides", "path": "research/tides.md"});
    let error = session.refused("loopd.research", taken).await;
    assert!(error.message.contains("is there already"), "{error}");
    daemon.finish().await;
}

#[tokio::test]
async fn in_autopilot_mode_the_rules_last_until_the_task_is_complete() {
    let script = Script::play([
        Turn::user("Lead a research").says("I will"),
        Turn::user("The task is not marked as complete").calls(forbidden(1)),
        Turn::results(["only agents", "only the report", "'bash' does not"]).calls([call(
            "c",
            "task_complete",
            json!({"summary": "researched", "blocked": "the tide tables"}),
        )]),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    session
        .call("session.mode.set", json!({"mode": "autopilot"}))
        .await;
    session
        .call("loopd.research", json!({"topic": "tides"}))
        .await;
    session.next("session.idle").await;
    all_refused(&session, 1);
    assert_eq!(session.count("session.task_complete"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_research_that_ends_without_its_report_has_failed_for_every_client() {
    let daemon = Daemon::playing([
        Turn::any().says("I know it already"),
        Turn::user("next").says("ok"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    let mut other = daemon.client().resume(&session.id, json!({})).await;
    let begun = session
        .call("loopd.research", json!({"topic": "bees"}))
        .await;
    for client in [&mut session, &mut other] {
        let error = client.next("session.error").await;
        assert_eq!(error["data"]["errorCode"], "research_without_report");
        let message = error["data"]["message"].as_str().unwrap();
        let report = begun["reportPath"].as_str().unwrap();
        assert!(message.contains(report), "{message}");
        client.next("session.idle").await;
    }
    session.ask("next").await;
    assert_eq!(session.count("session.error"), 1, "it was that run only");
    daemon.finish().await;
}

#[tokio::test]
async fn in_autopilot_a_research_goes_on_until_its_report_is_written() {
    let mut round = 0;
    let script = Script::answering(move |request| {
        round += 1;
        let done = json!({"summary": "all is known"});
        match round {
            1 => Turn::any().calls([call("early", "task_complete", done)]),
            2 => {
                let lead = request.first_user_text();
                let path = lead.split("exactly this file: ").nth(1).unwrap();
                let path = path.split('\n').next().unwrap();
                let create = json!({"path": path, "file_text": "# Bees\n"});
                Turn::any().calls([call("write", "create", create)])
            }
            _ => Turn::any().calls([call("done", "task_complete", done)]),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    session
        .call("session.mode.set", json!({"mode": "autopilot"}))
        .await;
    session
        .call("loopd.research", json!({"topic": "bees"}))
        .await;
    session.next("session.idle").await;
    let early = result_of(&session, "early");
    assert_eq!(early["success"], false);
    let why = early["error"]["message"].as_str().unwrap();
    assert!(why.contains("not written yet"), "{why}");
    assert_eq!(session.count("session.task_complete"), 1);
    assert_eq!(session.count("session.error"), 0);
    daemon.finish().await;
}
