//! Agents that a run has left in the background end with it, however it ends.

use std::process::Child;

use loopd_tests::script::Recorded;
use loopd_tests::{Gate, Turn, call};
use serde_json::json;

use crate::home::{Home, RunOutput, signal};
use crate::model::Model;

fn with_output(child: Child) -> RunOutput {
    child.wait_with_output().unwrap().into()
}

/// A model that starts an agent in the background and answers. The agent goes on and on, or waits at the
/// gate.
fn leaves_an_agent(gate: Option<Gate>) -> Model {
    Model::answering(move |request: &Recorded| {
        let count = request.messages().len();
        if request.first_user_text().contains("look for it") {
            let look = call(&format!("g{count}"), "glob", json!({"pattern": "*"}));
            let turn = Turn::any().calls([look]).uses(4_000, 50);
            return match &gate {
                Some(gate) => turn.held_by(gate),
                None => turn,
            };
        }
        let task = json!({"name": "finder", "prompt": "look for it", "description": "looks",
                          "agent_type": "general-purpose", "mode": "background"});
        if request.last_results().is_empty() {
            Turn::any().calls([call("t", "task", task)]).uses(900, 50)
        } else {
            Turn::any().says("it looks").uses(900, 50)
        }
    })
}

/// Whether anything of the last session is still at work.
fn assert_rests(home: &Home, what: &str) {
    let tasks = home.prints(&["tasks", &home.last_session(), "--once"]);
    assert!(!tasks.contains("running"), "{what}: {tasks}");
    let status = home.prints(&["daemon", "status"]);
    assert!(status.contains("work      0"), "{what}: {status}");
}

#[test]
fn agents_in_the_background_end_with_the_time_of_the_run() {
    let home = Home::new();
    let gate = Gate::new();
    let model = leaves_an_agent(Some(gate.clone()));
    let said = model.run(&home, &["--yolo", "--timeout", "2", "-p", "go"]);
    assert_eq!(said.code, 124, "{said:?}");
    assert!(said.err.contains("stopped after 2 seconds"), "{said:?}");
    assert!(!said.err.contains("daemon stopped"), "{said:?}");
    assert_rests(&home, "time");
    let asked = model.requests();
    gate.open();
    assert_rests(&home, "time");
    assert_eq!(model.requests(), asked, "nothing goes on unseen");
    model.finish();
}

#[test]
fn agents_in_the_background_end_with_the_limits_of_the_run() {
    for limit in [["--max-turns", "4"], ["--budget-tokens", "30000"]] {
        let home = Home::new();
        let model = leaves_an_agent(None);
        let args = [&["--yolo"][..], &limit, &["-p", "go"]].concat();
        let said = model.run(&home, &args);
        assert_eq!(said.code, 4, "{limit:?}: {said:?}");
        assert_rests(&home, limit[0]);
        let asked = model.requests();
        assert!(asked < 20, "{limit:?}: {asked}");
        assert_rests(&home, limit[0]);
        assert_eq!(model.requests(), asked, "{limit:?}");
        model.finish();
    }
}

#[test]
fn agents_in_the_background_end_with_ctrl_c() {
    for sent in ["-INT", "-TERM"] {
        let home = Home::new();
        let gate = Gate::new();
        let model = leaves_an_agent(Some(gate.clone()));
        let child = model.start(&home, &["--yolo", "-p", "go"]);
        // The session answers twice, and the agent asks.
        model.asked(3);
        signal(&child, sent);
        let said = with_output(child);
        assert_eq!(said.code, 130, "{sent}: {said:?}");
        assert!(said.err.contains("the session is kept"), "{sent}: {said:?}");
        assert_rests(&home, sent);
        gate.open();
        assert_rests(&home, sent);
        model.finish();
    }
}
