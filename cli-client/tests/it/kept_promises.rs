//! What `loop` says and takes at the edges: answers with a reason, lines typed too early, homes that cannot
//! be used, a damaged database, texts in the queue, and the session of an agent.

use std::os::unix::fs::{FileExt, PermissionsExt};

use loopd_tests::{Gate, Turn, call};
use serde_json::json;

use crate::home::{Home, RunOutput};
use crate::model::Model;
use crate::terminal::OnTerminal;

/// A model that wants to make a file once, and then says what it was told of that.
fn making_a_file() -> Model {
    Model::answering(|request| match request.last_results().first() {
        None => Turn::any().calls([call("c", "bash", json!({"command": "touch made"}))]),
        Some(result) => Turn::any().says(&format!("told: {result}")),
    })
}

#[test]
fn the_reason_of_a_no_reaches_the_model_and_the_run_is_no_failure() {
    let home = Home::new();
    let model = making_a_file();
    let mut asked = OnTerminal::start(model.command(&home, &["go"]));
    asked.read_until("[y/a/n] ");
    asked.types("no, use the folder out instead\r");
    // The result of the call, which the model reads with what is said next.
    asked.read_until("User feedback: use the folder out instead");
    assert_eq!(asked.ends(), Some(0));
    assert!(!home.path("made").exists());
    model.finish();
}

#[test]
fn a_persons_no_to_the_autopilot_is_no_failure_of_the_run() {
    let home = Home::new();
    let mut asked = OnTerminal::start(home.command(&["--autopilot", "run touch made"]));
    asked.read_until("[y/a/n] ");
    asked.types("n\r");
    assert_eq!(asked.ends(), Some(0));
    assert!(!home.path("made").exists());
}

#[test]
fn what_is_typed_before_a_question_does_not_answer_it() {
    let home = Home::new();
    let gate = Gate::new();
    let mut held = Some(gate.clone());
    let model = Model::answering(move |request| match request.last_results().first() {
        None => {
            let asks = Turn::any().calls([call("c", "bash", json!({"command": "touch made"}))]);
            match held.take() {
                Some(gate) => asks.held_by(&gate),
                None => asks,
            }
        }
        Some(_) => Turn::any().says("answered"),
    });
    let mut early = OnTerminal::start(model.command(&home, &["go"]));
    model.asked(1);
    early.types("y\n");
    // The terminal shows what it has taken.
    early.read_until("y");
    gate.open();
    early.read_until("is no answer to the question and was not used");
    early.read_until("[y/a/n] ");
    assert!(!home.path("made").exists());
    early.types("n\r");
    early.read_until("rejected");
    assert_eq!(early.ends(), Some(0));
    assert!(!home.path("made").exists());
    model.finish();
}

/// Runs `loop` in this home.
fn run_in(home: &Home, folder: &std::path::Path, args: &[&str]) -> RunOutput {
    let mut command = home.command(args);
    command.env("LOOPD_HOME", folder).output().unwrap().into()
}

#[test]
fn a_home_that_cannot_be_used_is_told_with_its_cause_and_its_fix() {
    let home = Home::new();
    let file = home.path("file");
    std::fs::write(&file, "").unwrap();
    for (folder, cause) in [
        (file.clone(), "file is not a folder; move it away"),
        (file.join("below"), "file is not a folder; move it away"),
        (
            home.path(&"x".repeat(300)),
            "is longer than the file system takes",
        ),
    ] {
        for args in [&["run echo hi"][..], &["sessions"], &["doctor"]] {
            let said = run_in(&home, &folder, args);
            assert_eq!(said.code, 1, "{said:?}");
            let told = said.out + &said.err;
            assert!(told.contains(cause), "{args:?}: {told}");
            assert!(told.contains("LOOPD_HOME"), "{args:?}: {told}");
            assert!(!told.contains("os error"), "{args:?}: {told}");
        }
    }
}

#[test]
fn a_home_that_may_not_be_written_is_told_with_its_folder() {
    let home = Home::new();
    let closed = home.path("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o555)).unwrap();
    if std::fs::write(closed.join("probe"), "").is_ok() {
        // This user may write everywhere.
        return;
    }
    for args in [&["run echo hi"][..], &["doctor"]] {
        let said = run_in(&home, &closed.join("home"), args);
        assert_eq!(said.code, 1, "{said:?}");
        let told = said.out + &said.err;
        assert!(told.contains("this user may not use "), "{told}");
        assert!(told.contains("make it writable"), "{told}");
    }
}

#[test]
fn the_doctor_looks_through_the_database_for_damage() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    let healthy = home.prints(&["doctor"]);
    assert!(healthy.contains("loopd.db is not damaged"), "{healthy}");
    home.prints(&["daemon", "stop"]);
    let file = std::fs::OpenOptions::new();
    let file = file
        .clone()
        .write(true)
        .open(home.path("home/loopd.db"))
        .unwrap();
    let length = file.metadata().unwrap().len();
    // All but the first two pages: the file still begins as a database does.
    let rest = usize::try_from(length - 8192).unwrap();
    file.write_all_at(&vec![0xff; rest], 8192).unwrap();
    let damaged = home.run(&["doctor"]);
    assert_eq!(damaged.code, 1, "{damaged:?}");
    let line = damaged.out.lines().find(|line| line.contains(" data "));
    let line = line.unwrap();
    assert!(
        line.starts_with("fail") && line.contains("damaged"),
        "{line}"
    );
    assert!(line.contains("backup"), "{line}");
}

#[test]
fn a_text_for_the_queue_is_read_as_a_typed_line_is() {
    let home = Home::new();
    let gate = Gate::new();
    let mut held = Some(gate.clone());
    let model = Model::answering(move |request| {
        let turn = Turn::any().says(&format!("[{}]", request.last_user_text()));
        match held.take() {
            Some(gate) => turn.held_by(&gate),
            None => turn,
        }
    });
    let mut first = model.start(&home, &["one"]);
    model.asked(1);
    let id = home.last_session();
    let queue = |args: &[&str]| home.run(&[&["queue", "--session", &id], args].concat());
    assert_eq!(queue(&["insert", "two"]).code, 0);
    for (text, why) in [
        ("/model offline", "cannot become the command"),
        ("/nonesuch", "there is no command /nonesuch"),
        ("/exit", "a command of `loop` itself"),
        ("", "the text is empty"),
    ] {
        let said = queue(&["edit", "1", text]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains(why), "{said:?}");
    }
    assert_eq!(queue(&["edit", "1", "//model is a word"]).code, 0);
    let listed = queue(&[]).out;
    assert!(listed.contains("  /model is a word"), "{listed}");
    let refused = queue(&["insert", "/model offline", "--at", "1"]);
    assert!(
        refused.err.contains("only be queued at the end"),
        "{refused:?}"
    );
    assert_eq!(queue(&["clear"]).code, 0);
    gate.open();
    assert!(first.wait().unwrap().success());
    model.finish();
}

#[test]
fn the_session_of_an_agent_is_resumed_and_answers() {
    let home = Home::new();
    let model = Model::answering(|request| {
        let is_agent = request.first_user_text().contains("look for it");
        match (is_agent, request.last_results().is_empty()) {
            (true, _) => Turn::any().says(&format!("<{}>", request.last_user_text())),
            (false, true) => Turn::any().calls([call(
                "t",
                "task",
                json!({"name": "finder", "prompt": "look for it", "description": "looks",
                       "agent_type": "general-purpose"}),
            )]),
            (false, false) => Turn::any().says("thanks"),
        }
    });
    model.prints(&home, &["go"]);
    let tasks = home.prints(&["--json", "tasks", "--once"]);
    let task: serde_json::Value = serde_json::from_str(tasks.lines().next().unwrap()).unwrap();
    let parent = home.last_session();
    let is_id = |text: &&str| text.len() == 36 && text.matches('-').count() == 4;
    let child = tasks.split('"').filter(is_id).find(|id| *id != parent);
    let child = child.unwrap_or_else(|| panic!("{task}"));
    let said = model.run(&home, &["resume", child, "and more"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("and more"), "{said:?}");
    model.finish();
}

#[test]
fn yolo_says_that_it_means_everything_protected_files_too() {
    let home = Home::new();
    let help = home.prints(&["--help"]);
    let at = help.rfind("--yolo").unwrap();
    let about: String = help[at..].chars().take(400).collect();
    let words = about.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("protected"), "{words}");
    std::fs::create_dir(home.path(".git")).unwrap();
    home.prints(&["--yolo", "run echo x > .git/config"]);
    assert!(home.path(".git/config").exists());
}
