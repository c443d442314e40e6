//! What the live region and questions show, and what is shown when somebody comes back.

use loopd_tests::Turn;
use loopd_tests::script::{Gate, call};
use serde_json::json;

use super::{KEYS, bash, count, has_result};
use crate::home::Home;
use crate::model::Model;
use crate::pane::Pane;
use crate::terminal::OnTerminal;

#[test]
fn todos_and_the_context_are_shown_below_the_answer() {
    let (home, gate) = (Home::new(), Gate::new());
    let held = gate.clone();
    let model = Model::answering(move |request| {
        if has_result(request) {
            return Turn::any().says("Planned.").held_by(&held);
        }
        let todos = json!({"todos": [
            {"content": "read the file", "status": "completed", "priority": "high"},
            {"content": "change the file", "status": "in_progress", "priority": "high"},
            {"content": "test it", "status": "pending", "priority": "low"},
        ]});
        Turn::any().calls([call("c1", "todowrite", todos)])
    });
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("go");
    let shown = pane.until("todos: 1 of 3 done");
    for line in ["[x] read the file", "[>] change the file", "[ ] test it"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    // The one that is being done stands where the work is shown, too.
    assert_eq!(shown.matches("change the file").count(), 2, "{shown}");
    pane.until("scripted · context ▰");
    gate.open();
    pane.until("Planned.");
    model.finish();
}

#[test]
fn a_change_of_a_file_is_asked_for_with_its_diff_and_may_hold_for_the_session() {
    let home = Home::new();
    std::fs::write(home.path("notes.txt"), "one\ntwo\n").unwrap();
    let model = Model::answering(|request| {
        if has_result(request) {
            return Turn::any().says("Changed.");
        }
        let (old, new) = if request.last_user_text().contains("first") {
            ("one", "uno")
        } else {
            ("two", "dos")
        };
        let arguments = json!({"path": "notes.txt", "old_str": old, "new_str": new});
        Turn::any().calls([call("c1", "edit", arguments)])
    });
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("the first");
    let shown = pane.until(KEYS);
    for line in ["  -one", "  +uno"] {
        assert_eq!(count(&shown, line), 1, "{line}: {shown}");
    }
    pane.types("a");
    pane.until("allowed in this session");
    pane.until("Changed.");
    pane.sends("the second");
    let shown = pane.wait("no question", |shown| count(shown, "Changed.") == 2);
    assert_eq!(shown.matches("allowed").count(), 1, "{shown}");
    let text = std::fs::read_to_string(home.path("notes.txt")).unwrap();
    assert_eq!(text, "uno\ndos\n");
    model.finish();
}

#[test]
fn a_message_that_is_sent_right_before_leaving_is_not_lost() {
    let (home, gate) = (Home::new(), Gate::new());
    let held = gate.clone();
    let model = Model::answering(move |_| Turn::any().says("The late answer.").held_by(&held));
    let mut command = model.command(&home, &[]);
    command.env("TERM", "xterm");
    let mut chat = OnTerminal::sized(command, 80, 24);
    chat.read_until("/help lists");
    // One write: the end of input comes before the daemon can have answered.
    chat.types("go\r\x04");
    chat.read_until("the session goes on; to come back: loop attach ");
    assert_eq!(chat.ends(), Some(0));
    gate.open();
    let id = home.last_session();
    let mut pane = Pane::start(&model.command(&home, &["attach", &id]), 80, 24);
    let shown = pane.until("The late answer.");
    assert!(shown.contains("> go"), "{shown}");
    model.finish();
}

#[test]
fn who_resumes_sees_what_was_said_and_can_recall_it() {
    let home = Home::new();
    let model = Model::answering(|request| {
        let asked = request.last_user_text();
        Turn::any().says(&format!("[{}]", asked.lines().last().unwrap_or_default()))
    });
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("remember me");
    pane.until("[remember me]");
    pane.wait("idle", |shown| !shown.contains("Esc stops"));
    pane.sends("/exit");
    pane.until_over();
    let mut later = Pane::start(&model.command(&home, &["-c"]), 80, 24);
    let shown = later.until("/help lists commands and keys");
    for line in ["> remember me", "[remember me]"] {
        assert_eq!(count(&shown, line), 1, "{line}: {shown}");
    }
    assert!(!shown.contains("Esc stops"), "nothing runs: {shown}");
    later.presses(&["Up", "Enter"]);
    later.wait("the answer again", |shown| {
        count(shown, "[remember me]") == 2
    });
    model.finish();
}

#[test]
fn who_attaches_from_elsewhere_gets_the_files_and_the_rights_of_the_session() {
    let home = Home::new();
    std::fs::create_dir(home.path("elsewhere")).unwrap();
    std::fs::write(home.path("notes.txt"), "x").unwrap();
    let model = Model::answering(|request| {
        if has_result(request) {
            return Turn::any().says("Made.");
        }
        let asked = request.last_user_text();
        let name = asked.split_whitespace().last().unwrap_or_default();
        if name == "hello" {
            return Turn::any().says("Hello.");
        }
        bash(&format!("touch {name}"))
    });
    model.prints(&home, &["hello"]);
    let id = home.last_session();
    let mut command = model.command(&home, &["attach", &id]);
    command.current_dir(home.path("elsewhere"));
    let mut pane = Pane::start(&command, 80, 24);
    pane.until("/help lists commands and keys");
    pane.types("see @not");
    pane.presses(&["Tab"]);
    pane.until("> see @notes.txt");
    pane.presses(&["C-u"]);
    pane.sends("make one");
    pane.until(KEYS);
    pane.types("A");
    pane.until("Made.");
    pane.presses(&["C-d"]);
    pane.until_over();
    // A new session in the folder of the session is not asked.
    let said = model.run(&home, &["make two"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(home.path("two").exists());
    model.finish();
}
