//! `loop attach` without a terminal: what is piped in is sent, and nothing is ignored.

use std::io::{BufReader, Write};
use std::process::{Child, Stdio};

use loopd_sdk::{Client, PermissionDecision, SessionConfig};

use crate::home::{Home, RunOutput, interrupt, read_until, stderr};

/// Starts `loop attach` with a pipe as stdin.
fn attach(home: &Home, id: &str) -> Child {
    home.command(&["attach", id])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs `loop attach` with this text as stdin, to its end.
fn attach_with(home: &Home, id: &str, text: &str) -> RunOutput {
    let mut child = attach(home, id);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap().into()
}

#[test]
fn piped_text_is_one_message_and_attach_ends_with_its_answer() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    let id = home.last_session();
    let said = attach_with(&home, &id, "run echo two\n");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("\none\n"), "the past is shown: {said:?}");
    assert!(said.out.contains("\ntwo\n"), "{said:?}");
    let log = home.prints(&["events", &id]);
    assert_eq!(log.matches("user.message").count(), 2, "{log}");
}

#[test]
fn a_command_that_is_piped_in_is_run() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    let id = home.last_session();
    let said = attach_with(&home, &id, "/help\n");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("/agents"), "{said:?}");
    let said = attach_with(&home, &id, "/nothing\n");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.err.contains("there is no command /nothing"),
        "{said:?}"
    );
}

#[test]
fn an_empty_pipe_is_an_error_and_dev_null_only_watches() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    let id = home.last_session();
    let said = attach_with(&home, &id, "\n");
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("stdin brought no message"), "{said:?}");
    let mut watching = home
        .command(&["attach", &id])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap());
    read_until(&mut lines, "one");
    home.prints(&["resume", &id, "run echo two"]);
    read_until(&mut lines, "two");
    interrupt(&watching);
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}

#[test]
fn a_question_that_piped_text_causes_stays_open_for_another_client() {
    let home = Home::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let (held, opened) = tokio::sync::oneshot::channel::<()>();
    let gate = std::sync::Mutex::new(Some(opened));
    let session = runtime.block_on(async {
        let client = Client::connect(home.connect_options()).await.unwrap();
        let config = SessionConfig::new().on_permission(move |_| {
            let opened = gate.lock().unwrap().take().unwrap();
            async move {
                opened.await.unwrap();
                PermissionDecision::ApproveOnce {}
            }
        });
        client.create(config).await.unwrap()
    });
    let mut child = attach(&home, session.id().as_str());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"run touch made").unwrap();
    drop(stdin);
    let mut err = stderr(&mut child);
    let told = read_until(&mut err, "the session waits for a permission");
    assert!(told.contains("run `touch made`"), "{told}");
    held.send(()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(home.path("made").exists());
}
