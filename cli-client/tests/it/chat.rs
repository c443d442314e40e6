//! A conversation that draws on a terminal, in a pane of tmux.

mod leaving;
mod recorded;
mod shown;

use loopd_tests::script::{Gate, call};
use loopd_tests::{Turn, script::Recorded};
use serde_json::json;

use crate::home::Home;
use crate::model::Model;
use crate::pane::Pane;

/// The key hint of a permission question, which shows that it takes keys.
pub(super) const KEYS: &str = "[y] yes";

/// A model that streams a text in Markdown and stops in its middle until the gate opens.
pub(super) fn markdown(gate: &Gate) -> Model {
    let gate = gate.clone();
    Model::answering(move |_| {
        let parts = [
            "# The plan\n\nSome **strong** words in a paragraph that is long enough to be wrapped ",
            "on a narrow screen.\n\n- first item\n- second item\n\n",
            "```rust\nlet answer = 42;\n",
        ];
        let rest = [
            "// done\n```\n\n",
            "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
            "The end.",
        ];
        Turn::any()
            .streams(parts.into_iter().chain(rest))
            .paused_by(&gate)
    })
}

pub(super) fn bash(command: &str) -> Turn {
    let arguments = json!({"command": command, "description": "Try it"});
    Turn::any().calls([call("c1", "bash", arguments)])
}

pub(super) fn has_result(request: &Recorded) -> bool {
    !request.last_results().is_empty()
}

/// Counts the lines that are exactly this text.
pub(super) fn count(shown: &str, line: &str) -> usize {
    shown.lines().filter(|it| it.trim_end() == line).count()
}

#[test]
fn streamed_markdown_is_laid_out_and_stays_in_the_scrollback() {
    let (home, gate) = (Home::new(), Gate::new());
    let model = markdown(&gate);
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("go");
    gate.open();
    pane.until("The end.");
    let shown = pane.wait("idle", |shown| !shown.contains("Esc stops"));
    for line in [
        "> go",
        "The plan",
        "• first item",
        "• second item",
        "```rust",
        "let answer = 42;",
        "// done",
        "a │ b",
        "The end.",
    ] {
        assert_eq!(count(&shown, line), 1, "{line}: {shown}");
    }
    assert!(!shown.contains("**"), "{shown}");
    // The scrollback has lines that left the screen.
    pane.sends("again");
    let shown = pane.wait("twice", |shown| count(shown, "The end.") == 2);
    assert_eq!(count(&shown, "let answer = 42;"), 2, "{shown}");
    model.finish();
}

#[test]
fn a_resize_in_the_middle_of_a_stream_keeps_every_line_once() {
    let (home, gate) = (Home::new(), Gate::new());
    let model = markdown(&gate);
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("go");
    pane.until("let answer");
    for (columns, rows) in [(44, 20), (100, 30), (20, 8), (30, 12), (60, 24)] {
        pane.resize(columns, rows);
        pane.types("x");
        pane.presses(&["BSpace"]);
    }
    gate.open();
    pane.until("The end.");
    let shown = pane.wait("idle", |shown| !shown.contains("Esc stops"));
    for line in ["The plan", "• first item", "let answer = 42;", "The end."] {
        assert_eq!(count(&shown, line), 1, "{line}: {shown}");
    }
    model.finish();
}

#[test]
fn twenty_columns_are_enough() {
    let (home, gate) = (Home::new(), Gate::new());
    let model = markdown(&gate);
    let mut pane = Pane::start(&model.command(&home, &[]), 20, 12);
    pane.until("> ");
    gate.open();
    pane.sends("a message that is longer than the screen is wide");
    pane.until("The end.");
    let shown = pane.wait("idle", |shown| !shown.contains("⠋"));
    for line in [
        "The plan",
        "• first item",
        "let answer = 42;",
        "a │ b",
        "The end.",
    ] {
        assert_eq!(count(&shown, line), 1, "{line}: {shown}");
    }
    model.finish();
}

#[test]
fn a_permission_is_denied_with_a_reason_that_the_model_reads() {
    let home = Home::new();
    let model = Model::answering(|request| {
        let messages = request.messages().iter();
        let mut told = messages.filter(|it| it.to_string().contains("use cp instead"));
        match told.next() {
            Some(_) => Turn::any().says("I understand."),
            None => bash("touch made && echo 'exactly this'"),
        }
    });
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("go");
    let shown = pane.until(KEYS);
    assert!(
        shown.contains("touch made && echo 'exactly this'"),
        "{shown}"
    );
    pane.types("n");
    pane.until("no, because: ");
    pane.sends("use cp instead");
    pane.until("denied: use cp instead");
    // A no ends the turn; the model reads the reason with the next message.
    pane.wait("idle", |shown| !shown.contains("Esc stops"));
    pane.sends("go on");
    pane.until("I understand.");
    assert!(!home.path("made").exists());
    model.finish();
}

#[test]
fn a_permission_holds_for_the_session_or_for_good() {
    let home = Home::new();
    let model = Model::answering(|request| {
        if has_result(request) {
            return Turn::any().says("Made.");
        }
        let asked = request.last_user_text();
        let name = asked.split_whitespace().last().unwrap_or_default();
        bash(&format!("touch {name}"))
    });
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("make one");
    pane.until(KEYS);
    pane.types("A");
    pane.until("allowed in this folder from now on");
    pane.until("Made.");
    assert!(home.path("one").exists());
    pane.sends("make two");
    pane.wait("two answers", |shown| count(shown, "Made.") == 2);
    assert!(home.path("two").exists());
    pane.sends("/exit");
    pane.until_over();
    // Another session here is not asked, either.
    let mut later = Pane::start(&model.command(&home, &[]), 80, 24);
    later.until("/help lists commands and keys");
    later.sends("make three");
    let shown = later.wait("an answer", |shown| {
        shown.contains(KEYS) || shown.contains("Made.")
    });
    assert!(home.path("three").exists(), "{shown}");
    model.finish();
}

#[test]
fn what_is_typed_when_a_question_comes_is_no_answer() {
    let (home, gate) = (Home::new(), Gate::new());
    let held = gate.clone();
    let model = Model::answering(move |request| {
        if has_result(request) {
            Turn::any().says("Over.")
        } else {
            bash("touch made").held_by(&held)
        }
    });
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("go");
    pane.until("thinking");
    pane.types("yay");
    gate.open();
    pane.until(KEYS);
    let shown = pane.screen();
    assert!(shown.contains("> yay"), "{shown}");
    assert!(!home.path("made").exists());
    pane.types("y");
    pane.until("Over.");
    assert!(home.path("made").exists());
    model.finish();
}

#[test]
fn a_message_that_is_sent_while_the_agent_works_steers_it() {
    let (home, gate) = (Home::new(), Gate::new());
    let held = gate.clone();
    let model = Model::answering(move |request| {
        if request
            .messages()
            .iter()
            .any(|it| it.to_string().contains("and be brief"))
        {
            return Turn::any().says("Brief it is.");
        }
        if has_result(request) {
            Turn::any().says("Not steered.")
        } else {
            bash("pwd").held_by(&held)
        }
    });
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("go");
    pane.until("thinking");
    pane.sends("and be brief");
    pane.until("(sent)");
    gate.open();
    let shown = pane.until("Brief it is.");
    assert!(shown.contains("> and be brief"), "{shown}");
    assert!(shown.contains("● bash  pwd"), "{shown}");
    model.finish();
}

#[test]
fn escape_stops_what_runs_and_the_conversation_goes_on() {
    let home = Home::new();
    let held = Gate::new();
    let model = Model::answering(move |request| {
        if request.last_user_text().contains("second") {
            return Turn::any().says("Here again.");
        }
        Turn::any().says("never").held_by(&held)
    });
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("first");
    pane.until("thinking");
    pane.presses(&["Escape"]);
    pane.until("stopped");
    pane.sends("second");
    let shown = pane.until("Here again.");
    assert!(!shown.contains("never"), "{shown}");
    model.finish();
}

#[test]
fn what_runs_goes_on_in_the_background() {
    let home = Home::new();
    let model = Model::answering(|request| {
        if has_result(request) {
            Turn::any().says("It runs on.")
        } else {
            bash("echo begun; sleep 300")
        }
    });
    let mut pane = Pane::start(&model.command(&home, &["--yolo"]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("go");
    // Its output is shown while it runs.
    pane.wait("its output", |shown| count(shown, "  begun") == 1);
    pane.presses(&["C-b"]);
    pane.until("in the background now: echo begun; sleep 300");
    pane.until("It runs on.");
    model.finish();
}

#[test]
fn a_command_of_the_user_runs_and_calls_are_unfolded() {
    let home = Home::new();
    let model = Model::answering(|request| {
        if has_result(request) {
            Turn::any().says("Counted.")
        } else {
            bash("seq 100 130")
        }
    });
    let mut pane = Pane::start(&model.command(&home, &["--yolo"]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.sends("!echo mi''ne");
    pane.wait("its output", |shown| count(shown, "  mine") == 1);
    pane.sends("go");
    let shown = pane.until("Counted.");
    assert!(shown.contains("● bash  seq 100 130"), "{shown}");
    assert!(!shown.contains("117"), "the result is folded: {shown}");
    pane.presses(&["C-o"]);
    pane.until("117");
    pane.sends("/show 1");
    pane.wait("the first call", |shown| count(shown, "  mine") == 2);
    model.finish();
}

#[test]
fn commands_and_files_are_completed() {
    let home = Home::new();
    std::fs::write(home.path("notes.txt"), "x").unwrap();
    std::fs::create_dir(home.path("nowhere")).unwrap();
    let model = Model::answering(|request| {
        let asked = request.last_user_text();
        Turn::any().says(&format!("[{}]", asked.lines().last().unwrap_or_default()))
    });
    let mut pane = Pane::start(&model.command(&home, &[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.types("/rese");
    pane.presses(&["Tab"]);
    pane.until("> /research ");
    pane.presses(&["C-u"]);
    pane.types("read @no");
    pane.presses(&["Tab"]);
    pane.until("  notes.txt");
    pane.presses(&["Tab", "Enter"]);
    pane.until("> read @notes.txt");
    pane.presses(&["C-j"]);
    pane.sends("twice");
    let shown = pane.until("[twice]");
    assert!(shown.contains("> read @notes.txt \n  twice"), "{shown}");
    // The history has it.
    pane.presses(&["Up", "Up"]);
    pane.wait("the text again", |shown| {
        shown.matches("@notes.txt").count() >= 2
    });
    model.finish();
}
