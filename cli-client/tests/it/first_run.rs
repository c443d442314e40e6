//! The first conversation, when no model is configured.

use std::process::Command;

use loopd_tests::Turn;

use crate::home::Home;
use crate::model::Model;
use crate::terminal::OnTerminal;

/// `loop` on a machine where Ollama is this model.
fn command(home: &Home, model: &Model, args: &[&str]) -> Command {
    let mut command = home.command(args);
    command
        .env("OLLAMA_HOST", model.address())
        .env("LOOPD_PLAIN", "1")
        .env("TERM", "xterm");
    command
}

#[test]
fn a_server_on_this_machine_is_offered_and_written_into_the_configuration() {
    let home = Home::new();
    let model = Model::answering(|_| Turn::any().says("hello there"));
    let mut shown = OnTerminal::start(command(&home, &model, &[]));
    let offer = shown.read_until("which one? ");
    assert!(
        offer.contains("1  Ollama runs at http://127.0.0.1:"),
        "{offer}"
    );
    shown.types("1\n");
    let asked = shown.read_until("write it? [y/n] ");
    assert!(asked.contains("model = \"ollama/scripted\""), "{asked}");
    shown.types("y\n");
    shown.read_until("wrote ");
    shown.read_until("> ");
    shown.types("hi\n");
    shown.read_until("hello there");
    let file = std::fs::read_to_string(home.path("home/config.toml")).unwrap();
    assert!(
        file.starts_with("model = \"ollama/scripted\"\n\n[provider.ollama]\n"),
        "{file}"
    );
    // The next one is asked nothing.
    let mut shown = OnTerminal::start(command(&home, &model, &[]));
    let begun = shown.read_until("> ");
    assert!(!begun.contains("which one?"), "{begun}");
}

#[test]
fn nothing_is_written_without_a_yes_and_a_file_that_is_there_stays_as_it_is() {
    let home = Home::new();
    let model = Model::answering(|_| Turn::any().says("hello"));
    let mut shown = OnTerminal::start(command(&home, &model, &[]));
    shown.read_until("which one? ");
    shown.types("1\n");
    shown.read_until("write it? [y/n] ");
    shown.types("n\n");
    shown.read_until("nothing was written");
    shown.read_until("> ");
    assert!(!home.path("home/config.toml").exists());
    drop(shown);
    home.run(&["daemon", "stop", "--force"]);
    std::fs::write(home.path("home/config.toml"), "local = false\n").unwrap();
    let mut shown = OnTerminal::start(command(&home, &model, &[]));
    shown.read_until("which one? ");
    shown.types("1\n");
    let told = shown.read_until("loop daemon stop");
    assert!(told.contains("exists and is not changed"), "{told}");
    let file = std::fs::read_to_string(home.path("home/config.toml")).unwrap();
    assert_eq!(file, "local = false\n");
}

#[test]
fn enter_goes_on_with_the_built_in_model() {
    let home = Home::new();
    let model = Model::answering(|_| Turn::any().says("hello"));
    let mut shown = OnTerminal::start(command(&home, &model, &[]));
    shown.read_until("which one? ");
    shown.types("\n");
    shown.read_until("> ");
    shown.types("run echo milk\n");
    shown.read_until("milk");
    assert_eq!(model.requests(), 0);
}

#[test]
fn nobody_is_asked_where_nobody_can_answer() {
    let home = Home::new();
    let model = Model::answering(|_| Turn::any().says("hello"));
    let mut piped = command(&home, &model, &["run echo milk"]);
    let output = piped.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("no model is configured") && !said.contains("which one?"),
        "{said}"
    );
}

#[test]
fn the_doctor_sends_a_request_only_if_it_is_asked_to() {
    let home = Home::new();
    let model = Model::answering(|_| Turn::any().says("ready"));
    let said = model.run(&home, &["doctor"]);
    assert!(!said.out.contains("request"), "{said:?}");
    assert_eq!(model.requests(), 0);
    let said = model.run(&home, &["doctor", "--request"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains("ok   request scripted answered in "),
        "{said:?}"
    );
    assert_eq!(model.requests(), 1);
    // Nothing of it is left in the list.
    assert_eq!(model.prints(&home, &["sessions"]), "");
    let broken = Model::answering(|_| Turn::any().fails(401, "Incorrect API key provided"));
    let other = Home::new();
    let said = broken.run(&other, &["doctor", "--request"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("fail request"), "{said:?}");
}
