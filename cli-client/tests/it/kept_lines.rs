//! What is typed is not lost when Ctrl-C comes.

use crate::home::Home;
use crate::pane::Pane;
use crate::terminal::OnTerminal;

fn plain(home: &Home) -> Pane {
    let mut command = home.command(&["--yolo"]);
    command.env("LOOPD_PLAIN", "1");
    Pane::start(&command, 80, 24)
}

#[test]
fn a_line_that_was_typed_while_the_agent_works_is_in_the_next_prompt() {
    let home = Home::new();
    let mut pane = plain(&home);
    pane.until("/help lists commands");
    pane.sends("run sleep 1000");
    pane.until("• bash  sleep 1000");
    pane.types("echo my next idea");
    pane.until("echo my next idea");
    pane.presses(&["C-c"]);
    pane.until("> echo my next idea");
    pane.presses(&["C-u"]);
    pane.presses(&["C-d"]);
    pane.until_over();
}

#[test]
fn what_ctrl_c_takes_away_from_the_prompt_comes_back() {
    let home = Home::new();
    let mut chat = OnTerminal::start(home.command(&[]));
    chat.read_until("> ");
    chat.types("a long draft");
    chat.read_until("a long draft");
    chat.types("\u{3}");
    chat.read_until("the Up key brings back what you typed");
    chat.read_until("> ");
    chat.types("\u{1b}[A");
    chat.read_until("a long draft");
    chat.types("\u{15}\u{4}");
    assert_eq!(chat.ends(), Some(0));
}

#[test]
fn what_ctrl_c_takes_away_in_a_drawn_conversation_comes_back() {
    let home = Home::new();
    let mut pane = Pane::start(&home.command(&[]), 80, 24);
    pane.until("/help lists commands and keys");
    pane.types("a long draft");
    pane.until("> a long draft");
    pane.presses(&["C-c"]);
    pane.wait("the line is empty", |shown| !shown.contains("a long draft"));
    pane.until("Up brings back what you typed");
    pane.presses(&["Up"]);
    pane.until("> a long draft");
    pane.presses(&["C-c", "C-d"]);
    pane.until_over();
}
