//! Slash commands in prompt mode: what they print, what they wait for, and their exit codes.

use loopd_tests::{Gate, Turn, call};
use serde_json::{Value, json};

use crate::home::{Home, RunOutput, interrupt};
use crate::model::Model;

/// Writes a command of the user.
fn command(home: &Home, name: &str, text: &str) {
    let folder = home.path(".claude/commands");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
}

const FORK: &str = "---\ncontext: fork\n---\nFORK";

#[test]
fn a_command_that_hangs_ends_with_the_time_of_the_run() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |_| Turn::any().says("late").held_by(&held));
    let home = Home::new();
    command(&home, "fk", FORK);
    let said = model.run(&home, &["-p", "/fk", "--timeout", "1"]);
    assert_eq!(said.code, 124, "{said:?}");
    assert!(
        said.err.contains("/fk was stopped after 1 seconds"),
        "{said:?}"
    );
    let id = home.last_session();
    let tasks = model.prints(&home, &["tasks", &id, "--once"]);
    assert!(!tasks.contains("running"), "{tasks}");
    gate.open();
    model.finish();
}

#[test]
fn ctrl_c_ends_a_command_with_130() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |_| Turn::any().says("late").held_by(&held));
    let home = Home::new();
    command(&home, "fk", FORK);
    let child = model.start(&home, &["-p", "/fk"]);
    model.asked(1);
    interrupt(&child);
    let said = RunOutput::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, 130, "{said:?}");
    assert!(said.err.contains("/fk was stopped"), "{said:?}");
    gate.open();
    model.finish();
}

#[test]
fn a_cut_answer_of_a_forked_command_ends_with_4() {
    let model = Model::answering(|_| Turn::any().says("half").stops_by("length"));
    let home = Home::new();
    command(&home, "fk", FORK);
    let said = model.run(&home, &["-p", "/fk"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.out.contains("half"), "{said:?}");
    assert!(said.err.contains("not complete"), "{said:?}");
    model.finish();
}

#[test]
fn what_a_command_may_not_run_ends_with_3() {
    let model = Model::answering(|_| Turn::any().says("never"));
    let home = Home::new();
    // A command of the user needs no trust.
    std::fs::create_dir_all(home.path("home/commands")).unwrap();
    std::fs::write(home.path("home/commands/mk.md"), "Made !`touch made`").unwrap();
    let said = model.run(&home, &["-p", "/mk"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(!home.path("made").exists());
    model.finish();
}

#[test]
fn a_command_that_only_tells_does_not_wait_for_the_run_of_another_client() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |_| Turn::any().says("SECRET-OF-OTHER").held_by(&held));
    let home = Home::new();
    let other = model.start(&home, &["-p", "work"]);
    model.asked(1);
    let said = model.run(&home, &["-p", "/todos", "-c"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "Nothing is on the list.\n"),
        "{said:?}"
    );
    let said = model.run(&home, &["-p", "/todos", "-c", "--json"]);
    let line: Value = serde_json::from_str(said.out.trim()).unwrap();
    assert_eq!(line["data"]["text"], "Nothing is on the list.", "{said:?}");
    gate.open();
    assert_eq!(RunOutput::from(other.wait_with_output().unwrap()).code, 0);
    model.finish();
}

#[test]
fn in_autopilot_each_client_prints_its_own_answer() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |request| {
        let last = request.last_user_text();
        let (arguments, gate) = if last.contains("SECOND") {
            (json!({"summary": "answer to SECOND"}), None)
        } else {
            let blocked = json!({"summary": "cannot", "blocked": "a key"});
            (blocked, Some(&held))
        };
        let turn = Turn::any().calls([call("c", "task_complete", arguments)]);
        match gate {
            Some(gate) => turn.held_by(gate),
            None => turn,
        }
    });
    let home = Home::new();
    let first = model.start(&home, &["-p", "FIRST", "--autopilot"]);
    model.asked(1);
    let second = model.start(&home, &["-p", "SECOND", "-c", "--autopilot"]);
    let queued = || home.prints(&["queue"]).contains("SECOND");
    while !queued() {
        std::thread::yield_now();
    }
    gate.open();
    let first = RunOutput::from(first.wait_with_output().unwrap());
    let second = RunOutput::from(second.wait_with_output().unwrap());
    assert!(!first.out.contains("SECOND"), "{first:?}");
    assert_eq!(second.out, "answer to SECOND\n", "{second:?}");
    assert!(!second.err.contains("a key"), "{second:?}");
    assert_eq!(second.code, 0, "{second:?}");
    model.finish();
}

#[test]
fn an_empty_prompt_is_wrong_usage_and_an_empty_answer_is_told() {
    let model = Model::answering(|_| Turn::any().says(""));
    let home = Home::new();
    for args in [["-p", ""], ["-p", "  "]] {
        let said = model.run(&home, &args);
        assert_eq!(said.code, 2, "{said:?}");
    }
    let said = model.run(&home, &["-p", "work"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{said:?}");
    assert_eq!(
        said.err.matches("ended without an answer").count(),
        1,
        "{said:?}"
    );
    let said = model.run(&home, &["--json", "-p", "work"]);
    assert_eq!(said.code, 1, "{said:?}");
    let told = |line: &str| line.contains("session.warning") && line.contains("answer_empty");
    assert_eq!(
        said.out.lines().filter(|line| told(line)).count(),
        1,
        "{said:?}"
    );
    model.finish();
}

#[test]
fn a_research_without_a_report_fails() {
    let model = Model::answering(|_| Turn::any().says("I know it already"));
    let home = Home::new();
    let said = model.run(&home, &["--yolo", "-p", "/research bees"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("ended without a report"), "{said:?}");
    model.finish();
}

/// A model whose forked agent calls a tool again and again.
fn busy() -> Model {
    Model::answering(|request| {
        let id = format!("c{}", request.messages().len());
        Turn::any()
            .calls([call(&id, "glob", json!({"pattern": "*"}))])
            .uses(4_000, 9)
    })
}

#[test]
fn a_forked_command_that_reaches_the_budget_ends_with_4() {
    let model = busy();
    let home = Home::new();
    command(&home, "fk", FORK);
    let said = model.run(&home, &["--budget-tokens", "9000", "-p", "/fk"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("of the 9000 tokens"), "{said:?}");
    model.finish();
}

#[test]
fn a_forked_command_makes_no_more_calls_than_the_run_may() {
    for mode in [&[][..], &["--autopilot"]] {
        let model = busy();
        let home = Home::new();
        command(&home, "fk", FORK);
        let args = [mode, &["--yolo", "--max-turns", "2", "-p", "/fk"]].concat();
        let said = model.run(&home, &args);
        assert_eq!(said.code, 4, "{said:?}");
        assert_eq!(model.requests(), 2, "{said:?}");
        model.finish();
    }
}

#[test]
fn the_autopilot_goes_on_with_the_answer_of_a_forked_command() {
    let model = Model::answering(|request| {
        let last = request.last_user_text();
        if last.contains("FORK") && !last.contains("answered") {
            Turn::any().says("found it")
        } else if last.contains("task_complete") {
            Turn::any().calls([call("d", "task_complete", json!({"summary": "all done"}))])
        } else {
            Turn::any().says("hm")
        }
    });
    let home = Home::new();
    command(&home, "fk", FORK);
    let said = model.run(&home, &["--autopilot", "-p", "/fk"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "all done\n"),
        "{said:?}"
    );
    model.finish();
}

/// A model whose forked agent finds something; `goes_on` says what the conversation makes of it.
fn found_it(goes_on: fn() -> Turn) -> Model {
    Model::answering(move |request| {
        let last = request.last_user_text();
        if last.contains("FORK") && !last.contains("answered") {
            Turn::any().says("found it")
        } else {
            goes_on()
        }
    })
}

#[test]
fn a_forked_command_after_which_the_autopilot_reaches_its_cap_ends_with_4() {
    let model = found_it(|| Turn::any().says("hm"));
    let home = Home::new();
    command(&home, "fk", FORK);
    let said = model.run(&home, &["--autopilot", "-p", "/fk"]);
    assert_eq!(said.code, 4, "{said:?}");
    model.finish();
}

#[test]
fn a_cut_answer_after_a_forked_command_in_autopilot_ends_with_4() {
    let model = found_it(|| Turn::any().says("half").stops_by("length"));
    let home = Home::new();
    command(&home, "fk", FORK);
    let said = model.run(&home, &["--autopilot", "-p", "/fk"]);
    assert_eq!(said.code, 4, "{said:?}");
    model.finish();
}

/// A name of a command may look like a path.
#[test]
fn a_command_whose_name_looks_like_a_path_runs_and_a_path_is_a_message() {
    let model = Model::answering(|request| {
        let last = request.last_user_text();
        Turn::any().says(&format!(
            "read: {}",
            last.lines().last().unwrap_or_default()
        ))
    });
    let home = Home::new();
    command(&home, "v1.2", "THE RELEASE $ARGUMENTS");
    let folder = home.path(".opencode/command/front");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("button.md"), "THE BUTTON").unwrap();
    command(&home, "b1.0", "---\nallowed-tools:\n---\nBROKEN");
    for (typed, expected) in [
        ("/v1.2 now", "read: THE RELEASE now"),
        ("/V1.2 now", "read: THE RELEASE now"),
        ("/front/button", "read: THE BUTTON"),
        ("/v1.3 now", "read: /v1.3 now"),
        ("/tmp/x is too big", "read: /tmp/x is too big"),
        ("/front/buttons", "read: /front/buttons"),
        ("//v1.2", "read: /v1.2"),
    ] {
        let out = model.prints(&home, &["-p", typed]);
        assert_eq!(out.trim_end(), expected, "{typed}");
    }
    let said = model.run(&home, &["-p", "/b1.0"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("names no tool"), "{said:?}");
    model.finish();
}

/// An embedded command that waits for input ends, and what it leaves is no reason to wait for ever.
#[test]
fn a_command_of_a_file_that_waits_for_input_ends_with_1() {
    let model = Model::answering(|_| Turn::any().says("never"));
    let home = Home::new();
    std::fs::create_dir_all(home.path("home/commands")).unwrap();
    std::fs::write(home.path("home/commands/wait.md"), "It is !`cat`.").unwrap();
    let said = model.run(&home, &["--yolo", "-p", "/wait"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{said:?}");
    assert!(said.err.contains("waited for input"), "{said:?}");
    assert_eq!(model.requests(), 0);
    model.finish();
}
