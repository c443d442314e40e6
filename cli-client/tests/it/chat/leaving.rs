//! Leaving a conversation and coming back, also after the daemon was killed.

use std::process::Command;

use loopd_tests::Turn;
use loopd_tests::script::Gate;

use crate::home::Home;
use crate::model::Model;
use crate::pane::Pane;

#[test]
fn ctrl_c_twice_leaves_and_the_session_goes_on() {
    let (home, gate) = (Home::new(), Gate::new());
    let held = gate.clone();
    let model = Model::answering(move |_| Turn::any().says("The late answer.").held_by(&held));
    let mut command = Command::new("sh");
    let inner = model.command(&home, &[]);
    command
        .args(["-c", "\"$0\"; read end"])
        .arg(inner.get_program())
        .envs(inner.get_envs().map(|(name, value)| (name, value.unwrap())))
        .current_dir(home.folder.path());
    let mut pane = Pane::start(&command, 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("go");
    pane.until("thinking");
    pane.types("a draft");
    pane.until("> a draft");
    // The first one only clears the line.
    pane.presses(&["C-c"]);
    pane.wait("an empty line", |shown| !shown.contains("a draft"));
    pane.presses(&["C-c"]);
    pane.until("Ctrl-C again leaves; the session works on");
    pane.presses(&["C-c"]);
    let shown = pane.until("the session goes on; to come back: loop attach ");
    assert!(
        !shown.contains("Ctrl-C again"),
        "the region is gone: {shown}"
    );
    let id = home.last_session();
    let mut other = Pane::start(&model.command(&home, &["attach", &id]), 80, 24);
    other.until("> go");
    other.until("thinking");
    gate.open();
    other.until("The late answer.");
    other.presses(&["C-d"]);
    other.until_over();
    model.finish();
}

#[test]
fn a_second_pane_sees_the_same_and_can_speak() {
    let home = Home::new();
    let model = Model::answering(|request| {
        let asked = request.last_user_text();
        Turn::any().says(&format!("[{}]", asked.lines().last().unwrap_or_default()))
    });
    let mut one = Pane::start(&model.command(&home, &[]), 80, 24);
    one.until("/help lists commands and keys");
    one.sends("from one");
    one.until("[from one]");
    let id = home.last_session();
    let mut two = Pane::start(&model.command(&home, &["attach", &id]), 80, 20);
    let shown = two.until("[from one]");
    assert!(shown.contains("> from one"), "{shown}");
    two.until("/help lists commands and keys");
    two.sends("from two");
    two.until("[from two]");
    let shown = one.until("[from two]");
    assert!(shown.contains("> from two"), "{shown}");
    model.finish();
}

#[test]
fn a_conversation_goes_on_after_the_daemon_was_killed() {
    let home = Home::new();
    let model = Model::answering(|request| {
        let asked = request.last_user_text();
        Turn::any().says(&format!("[{}]", asked.lines().last().unwrap_or_default()))
    });
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("before");
    pane.until("[before]");
    let status = home.prints(&["daemon", "status"]);
    let pid = status.split("process ").nth(1).unwrap();
    let pid: String = pid.chars().take_while(char::is_ascii_digit).collect();
    let killed = Command::new("kill").args(["-9", &pid]).status().unwrap();
    assert!(killed.success());
    pane.sends("after");
    let shown = pane.until("[after]");
    assert_eq!(shown.matches("[before]").count(), 1, "{shown}");
    model.finish();
}
