//! Runs that somebody or something else ends: another client, Ctrl-C, a reader that has gone. None of
//! them reads as success, and nothing goes on without a word.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use loopd_sdk::{Client, Mode, SessionConfig};
use loopd_tests::script::Recorded;
use loopd_tests::{Gate, Turn, call};
use serde_json::json;

use crate::home::{Home, RunOutput, interrupt, read_until, signal, stderr};
use crate::model::Model;

fn with_output(child: Child) -> RunOutput {
    child.wait_with_output().unwrap().into()
}

/// Another client switches the session out of autopilot mode.
fn switch_off(home: &Home, id: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::connect(home.connect_options()).await.unwrap();
        let session = client.resume(id, SessionConfig::new()).await.unwrap();
        session.set_mode(Mode::Interactive).await.unwrap();
        client.close().await;
    });
}

/// A model that starts a command in the background and answers.
fn leaves_a_command() -> Model {
    Model::answering(|request| {
        let slow = json!({"command": "sleep 600", "description": "waits", "mode": "async"});
        if request.last_results().is_empty() {
            Turn::any().calls([call("b", "bash", slow)])
        } else {
            Turn::any().says("it runs")
        }
    })
}

/// Whether the command of that model still runs.
fn runs_on(home: &Home) -> bool {
    home.prints(&["ps"]).contains("sleep 600")
}

#[test]
fn a_run_whose_autopilot_another_client_switches_off_ends_with_4() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |request| {
        if request.last_user_text().contains("hi") {
            Turn::any().says("hello")
        } else {
            Turn::any().says("not yet").held_by(&held)
        }
    });
    let child = model.start(&home, &["--autopilot", "-p", "go"]);
    model.asked(1);
    let id = home.last_session();
    switch_off(&home, &id);
    gate.open();
    let said = with_output(child);
    assert_eq!((said.code, said.out.as_str()), (4, "not yet\n"), "{said:?}");
    assert!(said.err.contains("switched the autopilot off"), "{said:?}");
    assert!(said.err.contains(&format!("loop resume {id}")), "{said:?}");
    // Who does not ask for the autopilot does not miss it.
    let said = model.run(&home, &["-c", "-p", "hi"]);
    assert_eq!((said.code, said.out.as_str()), (0, "hello\n"), "{said:?}");
    model.finish();
}

#[test]
fn a_task_that_was_complete_before_the_autopilot_was_switched_off_ends_with_0() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |request: &Recorded| {
        let task = json!({"name": "finder", "prompt": "look for it", "description": "looks",
                          "agent_type": "general-purpose", "mode": "background"});
        if request.first_user_text().contains("look for it") {
            Turn::any().says("found").held_by(&held)
        } else if request.last_user_text().contains("<system_notification>") {
            Turn::any().says("it was found")
        } else if request.last_results().is_empty() {
            Turn::any().calls([call("t", "task", task)])
        } else {
            Turn::any().calls([call("c", "task_complete", json!({"summary": "done"}))])
        }
    });
    let child = model.start(&home, &["--autopilot", "--yolo", "-p", "go"]);
    model.asked(3);
    let id = home.last_session();
    let mut stopped = String::new();
    while !stopped.contains("stopped last: task_complete") {
        stopped = home.prints(&["autopilot", "--session", &id]);
    }
    switch_off(&home, &id);
    gate.open();
    let said = with_output(child);
    assert_eq!(said.code, 0, "{said:?}");
    model.finish();
}

#[test]
fn an_autopilot_that_cannot_tell_its_agent_to_go_on_ends_with_4() {
    let home = Home::new();
    let model = Model::answering(|_| Turn::any().says("not yet"));
    // An app keeps the tool from its agent, or goes on with the agent itself.
    for (word, set) in [
        ("task_complete", json!({"excludedTools": ["task_complete"]})),
        (
            "the app of the session",
            json!({"autopilot": {"continuationEnabled": false}}),
        ),
    ] {
        model.prints(&home, &["-p", "begin"]);
        let id = home.last_session();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let client = Client::connect(home.connect_options()).await.unwrap();
            let mut config = SessionConfig::new();
            config.options = serde_json::from_value(set).unwrap();
            let session = client.resume(id.as_str(), config).await.unwrap();
            session.destroy().await.unwrap();
            client.close().await;
        });
        let said = model.run(&home, &["resume", &id, "--autopilot", "go"]);
        assert_eq!((said.code, said.out.as_str()), (4, "not yet\n"), "{said:?}");
        assert!(said.err.contains(word), "{said:?}");
    }
    model.finish();
}

/// What was answered is printed, whoever ends the wait for what goes on in the background, and what
/// goes on ends with it.
#[test]
fn a_signal_during_the_wait_for_background_commands_leaves_the_answer_and_no_command() {
    let home = Home::new();
    let model = leaves_a_command();
    for sent in ["-TERM", "-INT"] {
        let mut child = model.start(&home, &["--yolo", "-p", "go"]);
        let mut err = stderr(&mut child);
        read_until(&mut err, "waiting for a command in the background");
        signal(&child, sent);
        let mut rest = String::new();
        err.read_to_string(&mut rest).unwrap();
        let said = with_output(child);
        assert_eq!(
            (said.code, said.out.as_str()),
            (130, "it runs\n"),
            "{sent}: {rest}"
        );
        assert!(
            rest.contains("stopped in the background: sleep 600"),
            "{rest}"
        );
        assert!(rest.contains("the session is kept"), "{rest}");
        assert!(!runs_on(&home));
    }
    model.finish();
}

#[test]
fn what_goes_on_for_another_client_after_ctrl_c_is_named() {
    let home = Home::new();
    let model = leaves_a_command();
    let mut child = model.start(&home, &["--yolo", "-p", "go"]);
    let mut err = stderr(&mut child);
    read_until(&mut err, "waiting for a command in the background");
    let id = home.last_session();
    let mut watcher = model
        .command(&home, &["--json", "resume", &id, "stay"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap());
    read_until(&mut lines, "it runs");
    interrupt(&child);
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    let word = format!("loop tasks stop --all --session {id}");
    assert!(
        rest.contains("goes on in the background: sleep 600") && rest.contains(&word),
        "{rest}"
    );
    assert!(runs_on(&home));
    home.prints(&["tasks", "stop", "--all", "--session", &id]);
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    model.finish();
}

#[test]
fn a_time_that_is_over_says_what_was_stopped_in_the_background() {
    let home = Home::new();
    let model = leaves_a_command();
    let said = model.run(&home, &["--yolo", "--timeout", "2", "-p", "go"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (124, "it runs\n"),
        "{said:?}"
    );
    assert!(
        said.err.contains("stopped in the background: sleep 600"),
        "{said:?}"
    );
    assert!(!runs_on(&home));
    model.finish();
}

/// The model of a run that goes on for as long as it may: it waits at the second gate.
fn held_model(first: &Gate, second: &Gate) -> Model {
    let gates = [first.clone(), second.clone()];
    let mut calls = 0;
    Model::answering(move |_| {
        calls += 1;
        let look = call(&format!("c{calls}"), "glob", json!({"pattern": "*"}));
        let turn = Turn::any().says_and_calls("more", [look]);
        match gates.get(calls - 1) {
            Some(gate) => turn.held_by(gate),
            None => turn,
        }
    })
}

#[test]
fn a_run_whose_reader_has_gone_is_stopped() {
    for args in [
        &["--autopilot", "--json", "-p", "go"][..],
        &["--autopilot", "-p", "go"],
        &["--autopilot", "go"],
        &["-p", "/fk"],
    ] {
        let home = Home::new();
        std::fs::create_dir_all(home.path(".claude/commands")).unwrap();
        let fork = "---\ncontext: fork\n---\nFORK";
        std::fs::write(home.path(".claude/commands/fk.md"), fork).unwrap();
        let (first, second) = (Gate::new(), Gate::new());
        let model = held_model(&first, &second);
        let mut child = model.start(&home, args);
        model.asked(1);
        // As `| head -1` does.
        drop(child.stdout.take());
        let mut err = String::new();
        stderr(&mut child).read_to_string(&mut err).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{args:?}: {err}");
        assert!(
            err.contains("nobody reads the output any more"),
            "{args:?}: {err}"
        );
        first.open();
        second.open();
        let id = home.last_session();
        let tasks = home.prints(&["tasks", &id, "--once"]);
        assert!(!tasks.contains("running"), "{args:?}: {tasks}");
        let status = home.prints(&["daemon", "status"]);
        assert!(status.contains("work      0"), "{args:?}: {status}");
        assert_eq!(model.requests(), 1, "{args:?}");
        model.finish();
    }
}

#[test]
fn a_run_whose_output_cannot_be_written_is_stopped() {
    let home = Home::new();
    let (first, second) = (Gate::new(), Gate::new());
    let model = held_model(&first, &second);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    first.open();
    let child = model
        .command(&home, &["--autopilot", "--json", "-p", "go"])
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = with_output(child);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("No space left"), "{said:?}");
    second.open();
    let status = home.prints(&["daemon", "status"]);
    assert!(status.contains("work      0"), "{status}");
    assert!(model.requests() <= 1, "{}", model.requests());
    model.finish();
}

/// Whoever stops a run is not told that the daemon has stopped.
#[test]
fn a_very_short_time_ends_with_true_words() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |_| Turn::any().says("late").held_by(&held));
    model.prints(&home, &["sessions"]);
    for time in ["0.001", "0.005", "0.01", "0.02", "0.05"] {
        let said = model.run(&home, &["--timeout", time, "-p", "go"]);
        assert_eq!(said.code, 124, "{time}: {said:?}");
        assert!(!said.err.contains("daemon stopped"), "{time}: {said:?}");
        assert!(
            said.err.contains(&format!("stopped after {time} seconds")),
            "{said:?}"
        );
    }
    gate.open();
    model.finish();
}

#[test]
fn the_hint_at_a_limit_can_be_typed_as_it_stands() {
    let home = Home::new();
    let mut calls = 0;
    let model = Model::answering(move |_| {
        calls += 1;
        Turn::any().calls([call(&format!("c{calls}"), "glob", json!({"pattern": "*"}))])
    });
    let said = model.run(&home, &["--budget-tokens", "20", "-p", "go"]);
    assert_eq!(said.code, 4, "{said:?}");
    let id = home.last_session();
    let hint = format!("loop resume {id} --budget-tokens …");
    assert!(said.err.contains(&hint), "{said:?}");
    model.finish();
}

/// A reader that takes its time is still a reader.
#[test]
fn a_slow_reader_gets_everything() {
    let home = Home::new();
    let model = Model::answering(|_| Turn::any().says(&"word ".repeat(40_000)));
    let mut child = model.start(&home, &["-p", "go"]);
    model.asked(1);
    let mut out = BufReader::with_capacity(64, child.stdout.take().unwrap());
    let mut read = 0;
    loop {
        let taken = out.fill_buf().unwrap().len();
        if taken == 0 {
            break;
        }
        out.consume(taken);
        read += taken;
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(read >= 199_999, "{read}");
    model.finish();
}

#[test]
fn a_budget_that_an_agent_uses_up_in_the_background_ends_with_4() {
    for flags in [&["-p", "go"][..], &["--autopilot", "-p", "go"]] {
        let home = Home::new();
        let model = Model::answering(|request| {
            if request.first_user_text().contains("do a part") {
                let id = format!("c{}", request.messages().len());
                let look = call(&id, "glob", json!({"pattern": "*"}));
                return Turn::any().calls([look]).uses(30_000, 100);
            }
            let agent = json!({"description": "a part", "prompt": "do a part", "name": "p", "mode": "background"});
            match request.messages().len() {
                2 => Turn::any().calls([call("t", "task", agent)]),
                _ => Turn::any().says("it works"),
            }
        });
        let budget = ["--yolo", "--budget-tokens", "60000"];
        let said = model.run(&home, &[&budget[..], flags].concat());
        assert_eq!(said.code, 4, "{flags:?}: {said:?}");
        assert!(said.err.contains("of the 60000 tokens"), "{said:?}");
        model.finish();
    }
}

#[test]
fn ctrl_c_does_not_wait_for_the_message_of_another_client() {
    let home = Home::new();
    let (mine, others) = (Gate::new(), Gate::new());
    let (held, held_too) = (mine.clone(), others.clone());
    let model = Model::answering(move |request| {
        let gate = if request.last_user_text().contains("of another") {
            &held_too
        } else {
            &held
        };
        Turn::any().says("done").held_by(gate)
    });
    let child = model.start(&home, &["-p", "go"]);
    model.asked(1);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(async {
        let client = Client::connect(home.connect_options()).await.unwrap();
        let id = home.last_session();
        let session = client
            .resume(id.as_str(), SessionConfig::new())
            .await
            .unwrap();
        session.send("of another").await.unwrap();
        (client, session)
    });
    interrupt(&child);
    // The other message is still being answered then.
    let said = with_output(child);
    assert_eq!(said.code, 130, "{said:?}");
    others.open();
    mine.open();
    drop(client);
    model.finish();
}
