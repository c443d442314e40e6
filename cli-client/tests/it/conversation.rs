//! A conversation on a terminal: editing a line, commands, questions in their order, and `attach`.

use loopd_sdk::{Client, SessionConfig, Wait};
use loopd_tests::Turn;

use crate::home::Home;
use crate::model::Model;
use crate::terminal::OnTerminal;

/// A model that repeats the message in brackets.
fn echo() -> Model {
    Model::answering(|request| {
        let asked = request.last_user_text();
        let asked = asked
            .rsplit("</current_datetime>")
            .next()
            .unwrap_or_default();
        Turn::any().says(&format!("[{}]", asked.trim()))
    })
}

#[test]
fn arrow_keys_edit_the_line_and_recall_lines() {
    let home = Home::new();
    let model = echo();
    let mut chat = OnTerminal::start(model.command(&home, &[]));
    chat.read_until("> ");
    // Two steps to the left, then a letter.
    chat.types("helo\x1b[D\x1b[Dl\r");
    chat.read_until("[hello]");
    chat.read_until("> ");
    chat.types("\x1b[A!\r");
    chat.read_until("[hello!]");
    chat.read_until("> ");
    // Pasted lines are one message.
    chat.types("\x1b[200~one\ntwo\x1b[201~\r");
    let answer = chat.read_until("two]");
    assert!(answer.contains("[one"), "{answer}");
    chat.read_until("> ");
    chat.types("\x04");
    assert_eq!(chat.ends(), Some(0));
    model.finish();
}

#[test]
fn ctrl_c_clears_the_line_and_leaves_when_pressed_twice() {
    let home = Home::new();
    let model = echo();
    let mut chat = OnTerminal::start(model.command(&home, &[]));
    chat.read_until("> ");
    chat.types("not this");
    chat.read_until("not this");
    chat.types("\x03");
    chat.read_until("> ");
    chat.types("but this\r");
    chat.read_until("[but this]");
    chat.read_until("> ");
    chat.types("\x03");
    chat.read_until("Ctrl-C again");
    chat.read_until("> ");
    chat.types("\x03");
    assert_eq!(chat.ends(), Some(0));
    model.finish();
}

#[test]
fn commands_are_run_in_a_conversation() {
    let home = Home::new();
    let model = echo();
    let mut chat = OnTerminal::start(model.command(&home, &[]));
    chat.read_until("> ");
    chat.types("/help\r");
    chat.read_until("/agents");
    chat.read_until("> ");
    chat.types("/nothing\r");
    chat.read_until("there is no command /nothing");
    chat.read_until("> ");
    chat.types("//slash\r");
    chat.read_until("[/slash]");
    chat.read_until("> ");
    chat.types("/exit\r");
    assert_eq!(chat.ends(), Some(0));
    model.finish();
}

#[test]
fn a_question_comes_after_the_line_of_its_tool_and_on_a_line_of_its_own() {
    let home = Home::new();
    for number in 0..5 {
        let command = format!("run touch t{number}");
        let mut asks = OnTerminal::start(home.command(&[&command]));
        let shown = asks.read_until("[y/a/n] ");
        let tool = shown.find(&format!("• bash  touch t{number}"));
        let question = shown.find(&format!("run `touch t{number}`"));
        assert!(tool.is_some() && tool < question, "{shown}");
        asks.types("y\r");
        asks.read_until("Done.");
        assert_eq!(asks.ends(), Some(0));
    }
}

#[test]
fn ctrl_c_in_a_question_stops_the_turn() {
    let home = Home::new();
    let mut asks = OnTerminal::start(home.command(&["run touch made"]));
    asks.read_until("[y/a/n] ");
    asks.types("\x03");
    asks.read_until("the session is kept: loop resume ");
    assert_eq!(asks.ends(), Some(130));
    assert!(!home.path("made").exists());
}

#[test]
fn what_is_typed_in_attach_is_sent_and_events_do_not_wreck_the_line() {
    let home = Home::new();
    let model = echo();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut options = home.connect_options();
    let variables = model.command(&home, &[]);
    for (name, value) in variables.get_envs() {
        let value = value.unwrap().to_str().unwrap().to_owned();
        let env = options.env.as_mut().unwrap();
        env.insert(name.to_str().unwrap().to_owned(), value);
    }
    let session = runtime.block_on(async {
        let client = Client::connect(options).await.unwrap();
        let session = client.create(SessionConfig::new()).await.unwrap();
        session.send_and_wait("before").await.unwrap();
        session
    });
    let mut attach = OnTerminal::start(model.command(&home, &["attach", session.id().as_str()]));
    attach.read_until("[before]");
    attach.read_until("> ");
    attach.types("typed here\r");
    attach.read_until("[typed here]");
    // Something happens while a line is being typed: it appears above, and the line stays.
    attach.types("unfinished");
    attach.read_until("unfinished");
    runtime
        .block_on(session.send_and_wait("from elsewhere"))
        .unwrap();
    attach.read_until("[from elsewhere]");
    attach.read_until("unfinished");
    attach.types(" business\r");
    attach.read_until("[unfinished business]");
    attach.types("/exit\r");
    assert_eq!(attach.ends(), Some(0));
    model.finish();
}

#[test]
fn a_question_in_attach_does_not_take_a_line_that_was_begun() {
    let home = Home::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let session = runtime.block_on(async {
        let client = Client::connect(home.connect_options()).await.unwrap();
        let config = SessionConfig::new().leave_permissions_open();
        client.create(config).await.unwrap()
    });
    let mut attach = OnTerminal::start(home.command(&["attach", session.id().as_str()]));
    attach.read_until("> ");
    attach.types("what is it");
    attach.read_until("what is it");
    let mut turn = runtime.block_on(async { session.turn("run touch made", Wait::Session) });
    attach.read_until("(after your line)");
    attach.types("\r");
    attach.read_until("[y/a/n] ");
    attach.types("y\r");
    let reply = runtime.block_on(async {
        while turn.next().await.is_some() {}
        turn.finish()
    });
    assert!(reply.is_ok(), "{reply:?}");
    let log = home.prints(&["events", session.id().as_str()]);
    assert!(
        log.contains("what is it"),
        "the line was sent as a message: {log}"
    );
    crate::home::interrupt(attach.child());
    assert_eq!(attach.ends(), Some(0));
    assert!(home.path("made").exists());
}

#[test]
fn tab_completes_commands_and_agents() {
    let home = Home::new();
    let model = echo();
    let mut chat = OnTerminal::start(model.command(&home, &[]));
    chat.read_until("> ");
    chat.types("/rese\t");
    chat.read_until("/research ");
    chat.types("\x15/agents pl\t");
    chat.read_until("/agents plan ");
    chat.types("\r");
    chat.read_until("plan answers");
    chat.read_until("> ");
    // Several fit: a second Tab lists them.
    chat.types("/agents none\r");
    chat.read_until("The usual agent answers");
    chat.read_until("> ");
    chat.types("/re\t\t");
    let listed = chat.read_until("/review");
    assert!(listed.contains("/rename"), "{listed}");
    // What is no command is typed as it is.
    chat.types("\x15say /re\t!\r");
    chat.read_until("[say /re");
    chat.read_until("> ");
    chat.types("\x04");
    assert_eq!(chat.ends(), Some(0));
    model.finish();
}
