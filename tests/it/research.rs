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
