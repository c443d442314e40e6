//! `loop queue` and `loop abort`, and what Ctrl-C stops.

use std::process::Stdio;

use loopd_sdk::proto::params::session::SendMode;
use loopd_sdk::{Client, Message, SessionConfig, Wait};
use loopd_tests::{Gate, Turn};

use crate::home::{Home, interrupt, read_until, stderr};
use crate::model::Model;

/// A model whose first answer is held back until the gate opens.
fn holding(gate: &Gate) -> Model {
    let mut held = Some(gate.clone());
    Model::answering(move |request| {
        let turn = Turn::any().says(&format!("[{}]", request.last_user_text()));
        match held.take() {
            Some(gate) => turn.held_by(&gate),
            None => turn,
        }
    })
}

#[test]
fn what_waits_is_listed_and_changed() {
    let home = Home::new();
    let gate = Gate::new();
    let model = holding(&gate);
    let mut first = model.start(&home, &["one"]);
    model.asked(1);
    let id = home.last_session();
    let queue = |args: &[&str]| {
        let mut all = vec!["queue", "--session", &id];
        all.extend(args);
        home.prints(&all)
    };
    let texts = || -> Vec<String> {
        let list = queue(&["list"]);
        let text = |line: &str| line.split("  ").last().unwrap().to_owned();
        list.lines().map(text).collect()
    };
    assert!(texts().is_empty());
    queue(&["insert", "two"]);
    queue(&["insert", "three"]);
    queue(&["insert", "zero", "--at", "1"]);
    assert_eq!(texts(), ["zero", "two", "three"]);
    queue(&["move", "1", "3"]);
    assert_eq!(texts(), ["two", "three", "zero"]);
    queue(&["edit", "2", "thirty"]);
    queue(&["remove", "3"]);
    assert_eq!(texts(), ["two", "thirty"]);
    queue(&["withdraw", "2"]);
    assert_eq!(texts(), ["two"]);
    let missing = home.run(&["queue", "--session", &id, "remove", "9"]);
    assert_eq!(missing.code, 1);
    assert!(missing.err.contains("see loop queue"), "{missing:?}");
    queue(&["clear"]);
    assert!(texts().is_empty());
    gate.open();
    assert!(first.wait().unwrap().success());
    model.finish();
}

#[test]
fn ctrl_c_stops_no_turn_of_another_client_and_loop_abort_does() {
    let home = Home::new();
    let gate = Gate::new();
    let model = holding(&gate);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut options = home.connect_options();
    for (name, value) in model.command(&home, &[]).get_envs() {
        let value = value.unwrap().to_str().unwrap().to_owned();
        let env = options.env.as_mut().unwrap();
        env.insert(name.to_str().unwrap().to_owned(), value);
    }
    let (session, mut turn) = runtime.block_on(async {
        let client = Client::connect(options).await.unwrap();
        let session = client.create(SessionConfig::new()).await.unwrap();
        let turn = session.turn("theirs", Wait::Session);
        (session, turn)
    });
    model.asked(1);
    let id = session.id().as_str();
    let mut ours = model
        .command(&home, &["resume", id, "ours"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Our message waits behind theirs.
    while home.prints(&["queue", "--session", id]).is_empty() {}
    let mut err = stderr(&mut ours);
    interrupt(&ours);
    let told = read_until(&mut err, "the session is kept");
    assert!(
        !told.contains("somebody"),
        "we stopped it ourselves: {told}"
    );
    assert_eq!(ours.wait().unwrap().code(), Some(130));
    assert_eq!(home.prints(&["queue", "--session", id]), "", "ours is gone");
    let status = home.prints(&["sessions"]);
    assert!(!status.contains("  idle  "), "theirs goes on: {status}");
    let stopped = home.run(&["abort", id]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(stopped.err.contains("was told to stop"), "{stopped:?}");
    let end = runtime.block_on(async {
        while turn.next().await.is_some() {}
        turn.finish()
    });
    assert!(matches!(end, Err(loopd_sdk::Error::Aborted)), "{end:?}");
    gate.open();
    model.finish();
}

#[test]
fn loop_abort_says_that_nothing_ran() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    let said = home.run(&["abort"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("nothing was stopped"), "{said:?}");
    assert!(!said.err.contains("told to stop"), "{said:?}");
}

#[test]
fn a_steering_message_is_listed_with_its_sender_and_can_be_taken_back() {
    let home = Home::new();
    let gate = Gate::new();
    let model = holding(&gate);
    let mut first = model.start(&home, &["one"]);
    model.asked(1);
    let id = home.last_session();
    let steer = |text: &str| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let client = Client::connect(home.connect_options()).await.unwrap();
            let config = SessionConfig::new().leave_permissions_open();
            let session = client.watch(id.as_str(), config).await.unwrap();
            let message = Message {
                mode: SendMode::Immediate,
                ..text.into()
            };
            let sent = session.send(message).await.unwrap();
            drop(session);
            client.close().await;
            sent.to_string()
        })
    };
    let queue = |args: &[&str]| home.run(&[&["queue", "--session", &id], args].concat());
    let message = steer("rather left");
    let list = queue(&[]);
    assert!(
        list.out.contains("now") && list.out.contains("rather left"),
        "{list:?}"
    );
    assert!(!list.err.contains("nothing waits"), "{list:?}");
    let json = home.prints(&["--json", "queue", "--session", &id]);
    assert!(json.contains(&message), "{json}");
    let taken = queue(&["withdraw", &message]);
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(queue(&[]).err.contains("nothing waits"));
    steer("or right");
    let cleared = queue(&["clear"]);
    assert!(cleared.err.contains("1 item was removed"), "{cleared:?}");
    gate.open();
    assert!(first.wait().unwrap().success());
    model.finish();
}

#[test]
fn who_inserts_a_message_is_named_in_the_list() {
    let home = Home::new();
    let gate = Gate::new();
    let model = holding(&gate);
    let first = model.start(&home, &["one"]);
    model.asked(1);
    let id = home.last_session();
    home.prints(&["queue", "--session", &id, "insert", "two"]);
    let listed = home.prints(&["queue", "--session", &id]);
    let words: Vec<&str> = listed.split_whitespace().collect();
    assert_eq!((words[2], words[3]), ("loop", "two"), "{listed}");
    gate.open();
    model.asked(2);
    let said = first.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    model.finish();
}
