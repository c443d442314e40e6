//! Prompt mode: only the answer on stdout, and an exit code for every way in which a run can end.

use std::io::BufReader;
use std::process::Stdio;

use loopd_tests::script::{Call, Recorded};
use loopd_tests::{Gate, Turn, call};
use serde_json::{Value, json};

use crate::home::{Home, RunOutput, read_until, stderr};
use crate::model::Model;

fn complete(arguments: Value) -> Call {
    call("c", "task_complete", arguments)
}

fn look(id: &str) -> Call {
    call(id, "glob", json!({"pattern": "*"}))
}

fn was_told_to_go_on(request: &Recorded) -> bool {
    request.last_user_text().contains("not marked as complete")
}

/// A model that talks first, and completes its task when it is told to go on.
fn completing() -> Model {
    Model::answering(|request| {
        if was_told_to_go_on(request) {
            Turn::any().calls([complete(json!({"summary": "built and tested"}))])
        } else {
            Turn::any().says("I will build it")
        }
    })
}

/// A model that calls a tool again and again.
fn never_done() -> Model {
    let mut calls = 0;
    Model::answering(move |_| {
        calls += 1;
        Turn::any().calls([look(&format!("a{calls}"))])
    })
}

#[test]
fn a_completed_task_ends_with_0_and_its_summary_is_the_answer() {
    let home = Home::new();
    let model = completing();
    let said = model.run(&home, &["--autopilot", "-p", "build it"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "built and tested\n");
    assert_eq!(said.err, "", "nothing but the answer");
    model.finish();
}

#[test]
fn completion_is_shown_as_such_and_not_as_a_tool_call() {
    let home = Home::new();
    let model = completing();
    let said = model.run(&home, &["--autopilot", "build it"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "built and tested\n");
    for shown in [
        "I will build it",
        "the agent is told to go on",
        "task complete: built and tested",
    ] {
        assert!(said.err.contains(shown), "{shown}: {said:?}");
    }
    assert!(!said.err.contains("task_complete"), "{said:?}");
    model.finish();
}

#[test]
fn a_blocked_agent_ends_with_5_and_says_what_it_needs() {
    let home = Home::new();
    let model = Model::answering(|_| {
        let blocked = json!({"summary": "It is built.", "blocked": "the password of the server"});
        Turn::any().calls([complete(blocked)])
    });
    let said = model.run(&home, &["--autopilot", "-p", "deploy"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert_eq!(said.out, "It is built.\n");
    assert!(
        said.err.contains("blocked: the password of the server"),
        "{said:?}"
    );
    model.finish();
}

#[test]
fn an_agent_that_was_denied_something_ends_with_3_whatever_it_says() {
    let home = Home::new();
    let model = Model::answering(|request| {
        if request.last_results().is_empty() {
            Turn::any().calls([call("t", "bash", json!({"command": "touch made"}))])
        } else {
            Turn::any().calls([complete(json!({"summary": "done without it"}))])
        }
    });
    let said = model.run(&home, &["--autopilot", "-p", "go"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (3, "done without it\n"),
        "{said:?}"
    );
    assert!(!home.path("made").exists());
    model.finish();
}

#[test]
fn an_agent_that_was_told_to_go_on_too_often_ends_with_4() {
    let home = Home::new();
    let model = Model::answering(|_| Turn::any().says("not yet"));
    let said = model.run(&home, &["--autopilot", "--max-continues", "1", "-p", "go"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert_eq!(said.out, "not yet\n");
    assert!(said.err.contains("maxContinues"), "{said:?}");
    model.asked(2);
    model.finish();
}

#[test]
fn a_run_with_too_many_turns_ends_with_4() {
    let home = Home::new();
    let model = never_done();
    let said = model.run(&home, &["--yolo", "--max-turns", "2", "-p", "go"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("2 of the 2 model calls"), "{said:?}");
    assert_eq!(model.requests(), 2);
    // The limit was that of the run. The next one has its own.
    let said = model.run(&home, &["--yolo", "-c", "--max-turns", "3", "-p", "go"]);
    assert!(said.err.contains("3 of the 3 model calls"), "{said:?}");
    assert_eq!(model.requests(), 5);
    model.finish();
    let enough = Model::answering(|request| {
        if request.last_results().is_empty() {
            Turn::any().calls([look("a")])
        } else {
            Turn::any().says("done")
        }
    });
    let home = Home::new();
    let said = enough.run(&home, &["--yolo", "--max-turns", "2", "-p", "go"]);
    assert_eq!((said.code, said.out.as_str()), (0, "done\n"), "{said:?}");
    enough.finish();
}

#[test]
fn the_calls_of_sub_agents_count_as_turns() {
    let home = Home::new();
    let mut calls = 0;
    let model = Model::answering(move |request| {
        calls += 1;
        let is_agent = request.first_user_text().contains("look for it");
        let task = json!({"name": "finder", "prompt": "look for it", "description": "looks",
                          "agent_type": "general-purpose", "mode": "sync"});
        if is_agent || !request.last_results().is_empty() {
            Turn::any().calls([look(&format!("a{calls}"))])
        } else {
            Turn::any().calls([call("t", "task", task)])
        }
    });
    let said = model.run(&home, &["--yolo", "--max-turns", "4", "-p", "go"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert_eq!(model.requests(), 4);
    model.finish();
}

#[test]
fn an_answer_that_came_before_the_limit_is_printed() {
    let home = Home::new();
    let model = Model::answering(|_| Turn::any().says("so far"));
    let said = model.run(&home, &["--autopilot", "--max-turns", "1", "-p", "go"]);
    assert_eq!((said.code, said.out.as_str()), (4, "so far\n"), "{said:?}");
    assert_eq!(model.requests(), 1);
    model.finish();
}

#[test]
fn the_limits_of_a_run_hold_without_its_client() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let mut calls = 0;
    let model = Model::answering(move |_| {
        calls += 1;
        let turn = Turn::any().calls([look(&format!("a{calls}"))]);
        if calls == 1 {
            turn.held_by(&held)
        } else {
            turn
        }
    });
    let mut child = model.start(&home, &["--yolo", "--max-turns", "2", "-p", "go"]);
    model.asked(1);
    let id = home.last_session();
    // Somebody else is there, so that the session goes on.
    let watcher = home
        .command(&["--json", "attach", &id])
        .stdout(Stdio::piped())
        .spawn();
    let mut watcher = watcher.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    gate.open();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap());
    read_until(&mut lines, "2 of the 2 model calls");
    assert_eq!(model.requests(), 2);
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    model.finish();
}

#[test]
fn text_beside_the_completion_is_printed_before_the_summary() {
    let home = Home::new();
    let model = Model::answering(|_| {
        let done = complete(json!({"summary": "built and tested"}));
        Turn::any().says_and_calls("That was hard.", [done])
    });
    let said = model.run(&home, &["--autopilot", "-p", "go"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "That was hard.\n\nbuilt and tested\n"),
        "{said:?}"
    );
    model.finish();
}

#[test]
fn a_run_whose_autopilot_is_paused_ends_with_4() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |request| {
        if request.last_user_text().contains("again") {
            Turn::any().calls([complete(json!({"summary": "done"}))])
        } else {
            Turn::any().says("not yet").held_by(&held)
        }
    });
    let child = model.start(&home, &["--autopilot", "-p", "go"]);
    model.asked(1);
    home.prints(&["autopilot", "pause"]);
    gate.open();
    let said: RunOutput = child.wait_with_output().unwrap().into();
    assert_eq!((said.code, said.out.as_str()), (4, "not yet\n"), "{said:?}");
    assert!(said.err.contains("the autopilot is paused"), "{said:?}");
    // Who asks for the autopilot lets it go on.
    model.prints(&home, &["-c", "--autopilot", "-p", "again"]);
    let status: Value = serde_json::from_str(&home.prints(&["--json", "autopilot"])).unwrap();
    assert_eq!(status["paused"], false);
    model.finish();
}

#[test]
fn a_limit_of_tokens_is_told_with_its_option() {
    let home = Home::new();
    let model = never_done();
    let said = model.run(&home, &["--yolo", "--budget-tokens", "20", "-p", "go"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("--budget-tokens"), "{said:?}");
    assert!(!said.err.contains("sessionLimits"), "{said:?}");
    model.finish();
}

#[test]
fn commands_in_the_background_are_waited_for() {
    let home = Home::new();
    let model = Model::answering(|request| {
        let slow = json!({"command": "read line < fifo; touch late", "description": "waits", "mode": "async"});
        if request.last_user_text().contains("<system_notification>") {
            Turn::any().says("it has ended")
        } else if request.last_results().is_empty() {
            Turn::any().calls([call("b", "bash", slow)])
        } else {
            Turn::any().says("it runs")
        }
    });
    let fifo = home.path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let mut child = model.start(&home, &["--yolo", "-p", "go"]);
    read_until(
        &mut stderr(&mut child),
        "waiting for a command in the background",
    );
    // Opens only when the command reads it.
    std::fs::write(&fifo, "go\n").unwrap();
    let said: RunOutput = child.wait_with_output().unwrap().into();
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "it has ended\n"),
        "{said:?}"
    );
    assert!(home.path("late").exists());
    model.finish();
}

#[test]
fn a_command_in_the_background_that_takes_too_long_ends_with_124() {
    let home = Home::new();
    let model = Model::answering(|request| {
        let slow = json!({"command": "sleep 600", "description": "waits", "mode": "async"});
        if request.last_results().is_empty() {
            Turn::any().calls([call("b", "bash", slow)])
        } else {
            Turn::any().says("it runs")
        }
    });
    let said = model.run(&home, &["--yolo", "--timeout", "2", "-p", "go"]);
    assert_eq!(said.code, 124, "{said:?}");
    model.finish();
}

#[test]
fn a_run_that_takes_too_long_ends_with_124() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |_| Turn::any().says("never").held_by(&held));
    let said = model.run(&home, &["--timeout", "0.5", "-p", "go"]);
    assert_eq!(said.code, 124, "{said:?}");
    assert_eq!(said.out, "");
    assert!(said.err.contains("stopped after 0.5 seconds"), "{said:?}");
    gate.open();
    model.finish();
}

#[test]
fn a_failed_run_ends_with_1_and_has_no_answer() {
    let home = Home::new();
    let model = Model::answering(|request| {
        if request.last_results().is_empty() {
            Turn::any().says_and_calls("I look", [look("a")])
        } else {
            Turn::any().fails(401, "no such key")
        }
    });
    let said = model.run(&home, &["--yolo", "-p", "go"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{said:?}");
    assert!(said.err.contains("error: "), "{said:?}");
    model.finish();
}

#[test]
fn the_answer_comes_after_all_work_in_the_background() {
    let home = Home::new();
    let model = Model::answering(|request| {
        if request.first_user_text().contains("look for it") {
            return Turn::any().says("found");
        }
        let task = json!({"name": "finder", "prompt": "look for it", "description": "looks",
                          "agent_type": "general-purpose", "mode": "background"});
        if request.last_user_text().contains("<system_notification>") {
            Turn::any().says("it was found")
        } else if request.last_results().is_empty() {
            Turn::any().calls([call("t", "task", task)])
        } else {
            Turn::any().says("somebody looks")
        }
    });
    let said = model.run(&home, &["--yolo", "-p", "go"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "it was found\n"),
        "{said:?}"
    );
    model.finish();
}

#[test]
fn without_a_terminal_only_the_answer_goes_to_stdout() {
    let home = Home::new();
    let model = Model::answering(|request| {
        if request.last_results().is_empty() {
            Turn::any().says_and_calls("first I look", [look("a")])
        } else {
            Turn::any().says("there is nothing")
        }
    });
    let said = model.run(&home, &["--yolo", "go"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "there is nothing\n"),
        "{said:?}"
    );
    assert!(
        said.err.contains("first I look") && said.err.contains("• glob"),
        "{said:?}"
    );
    model.finish();
}

#[test]
fn json_lines_have_the_completion_as_events() {
    let home = Home::new();
    let model = completing();
    let out = model.prints(&home, &["--json", "--autopilot", "-p", "build it"]);
    let events: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"session.task_complete"), "{kinds:?}");
    assert!(kinds.contains(&"session.autopilot_stopped"), "{kinds:?}");
    assert_eq!(kinds.last().unwrap(), &"session.idle");
    model.finish();
}

#[test]
fn the_autopilot_of_a_session_is_shown_paused_and_continued() {
    let home = Home::new();
    let model = completing();
    model.prints(&home, &["--autopilot", "build it"]);
    let shown = home.prints(&["autopilot"]);
    assert!(shown.contains("autopilot: on"), "{shown}");
    assert!(shown.contains("told to go on: 1 of 5 times"), "{shown}");
    assert!(
        shown.contains("task: complete: built and tested"),
        "{shown}"
    );
    for (verb, word) in [("pause", "paused"), ("continue", "on"), ("pause", "paused")] {
        let shown = home.prints(&["autopilot", verb]);
        assert!(shown.contains(&format!("autopilot: {word}")), "{shown}");
    }
    let status: Value = serde_json::from_str(&home.prints(&["--json", "autopilot"])).unwrap();
    assert_eq!(status["paused"], true);
    // A paused agent is not told to go on; that is no failure.
    let said = model.run(&home, &["--continue", "-p", "more"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "I will build it\n"),
        "{said:?}"
    );
    model.prints(&home, &["--continue", "--mode", "interactive", "-p", "hi"]);
    let refused = home.run(&["autopilot", "pause"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.out.contains("autopilot: off"), "{refused:?}");
    model.finish();
}

#[test]
fn options_that_would_be_ignored_are_refused() {
    let home = Home::new();
    for (args, code, word) in [
        (&["--autopilot", "--mode", "plan", "x"][..], 2, "--mode"),
        (&["--max-turns", "0", "x"], 2, "--max-turns"),
        (&["--timeout", "soon", "x"], 2, "--timeout"),
        (&["-p", "x", "y"], 2, "--prompt"),
        (&["sessions", "--autopilot"], 2, "--autopilot"),
        (&["-p", "x", "sessions"], 2, "--prompt"),
        (&["--max-continues", "2", "-p", "x"], 2, "--max-continues"),
        (
            &["--max-continues", "2", "-p", "/todos"],
            2,
            "--max-continues",
        ),
        (&["--deny-tool", "shell", "sessions"], 2, "--deny-tool"),
        (&["--mode", "plan", "tasks"], 2, "--mode"),
        (&["--yolo", "doctor"], 2, "--yolo"),
        (&["--budget-usd", "1", "attach", "x"], 2, "--budget-usd"),
        (&["--no-hooks", "attach", "x"], 2, "--no-hooks"),
        (&["tasks", "--follow"], 2, "--follow"),
        (&["resume", "x", " "], 2, "empty"),
        (&[], 2, "nothing to do"),
    ] {
        let said = home.run(args);
        assert_eq!(said.code, code, "{args:?}: {said:?}");
        assert!(said.err.contains(word), "{args:?}: {said:?}");
    }
    assert_eq!(home.prints(&["sessions"]), "", "nothing was begun");
    // A session that is there is not in autopilot mode, either.
    home.prints(&["-p", "hello"]);
    let said = home.run(&["-c", "--max-continues", "2", "-p", "x"]);
    assert_eq!(said.code, 2, "{said:?}");
}
