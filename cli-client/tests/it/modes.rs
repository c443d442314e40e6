//! The modes of a session on the command line, and a plan on the terminal.

use loopd_tests::{Turn, call};
use serde_json::json;

use crate::home::Home;
use crate::model::Model;
use crate::terminal::OnTerminal;

#[test]
#[cfg(target_os = "linux")]
fn in_plan_mode_a_command_writes_nothing_although_everything_is_allowed() {
    let home = Home::new();
    let said = home.run(&["--yolo", "--mode", "plan", "run echo x > made"]);
    assert!(!home.path("made").exists(), "{said:?}");
    let told = format!("{}{}", said.out, said.err);
    assert!(told.contains("Permission denied"), "{told}");
    // The session keeps its mode until it is told another one.
    let said = home.run(&["--yolo", "--continue", "run echo x > made"]);
    assert!(!home.path("made").exists(), "{said:?}");
    home.prints(&[
        "--yolo",
        "--continue",
        "--mode",
        "interactive",
        "run echo x > made",
    ]);
    assert!(home.path("made").exists());
}

#[test]
fn an_unknown_mode_is_refused_with_the_modes_there_are() {
    let said = Home::new().run(&["--mode", "dream", "hi"]);
    assert_eq!(said.code, 2, "{said:?}");
    for mode in ["interactive", "plan", "autopilot"] {
        assert!(said.err.contains(mode), "{said:?}");
    }
}

#[test]
fn a_plan_is_shown_changed_and_approved_on_the_terminal() {
    let home = Home::new();
    let model = Model::answering(|request| {
        let results = request.last_results().concat();
        let plan = |id: &str, summary: &str| {
            let arguments = json!({"summary": summary, "plan": "1. Look\n2. Do"});
            Turn::any().calls([call(id, "exit_plan_mode", arguments)])
        };
        if results.is_empty() {
            plan("first", "A long way")
        } else if results.contains("take fewer steps") {
            plan("second", "A short way")
        } else if results.contains("Plan approved!") {
            let new = json!({"path": "made", "file_text": "x"});
            Turn::any().calls([call("create", "create", new)])
        } else {
            Turn::any().says("all done")
        }
    });
    let mut chat = OnTerminal::start(model.command(&home, &["--yolo", "--mode", "plan", "go"]));
    chat.read_until("The plan is ready: ");
    chat.read_until("A long way");
    chat.read_until("2. Do");
    chat.read_until("interactive: carry it out");
    chat.types("take fewer steps\r");
    chat.read_until("A short way");
    assert!(!home.path("made").exists());
    chat.read_until("plan mode goes on");
    chat.types("2\r");
    chat.read_until("interactive mode");
    chat.read_until("all done");
    assert_eq!(chat.ends(), Some(0));
    assert!(home.path("made").exists());
    model.finish();
}
