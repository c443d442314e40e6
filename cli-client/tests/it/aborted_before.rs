//! "aborted" is said of the turn that was aborted, and of no turn after it.

use std::io::Write;
use std::process::{Command, Stdio};

use loopd_sdk::{Client, SessionConfig};

use crate::home::{Home, RunOutput, read_until, stderr};
use crate::terminal::OnTerminal;

/// Starts a turn that waits in a command, sends the session another message, and aborts the turn.
/// Returns the id of the session.
fn aborted_turn(home: &Home, next: Option<&str>) -> String {
    let fifo = home.path("fifo");
    assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
    let mut child = home
        .command(&["--yolo", "run cat fifo"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = stderr(&mut child);
    read_until(&mut err, "• bash  cat fifo");
    let id = home.last_session();
    if let Some(next) = next {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let client = Client::connect(home.connect_options()).await.unwrap();
            let config = SessionConfig::new().leave_permissions_open();
            let session = client.watch(id.as_str(), config).await.unwrap();
            session.send(next).await.unwrap();
            drop(session);
            client.close().await;
        });
    }
    home.prints(&["abort", &id]);
    child.wait().unwrap();
    id
}

/// Runs `loop attach` with this text as stdin, stdout and stderr in one.
fn attached(home: &Home, id: &str, text: &str) -> RunOutput {
    let mut child = home
        .command(&["attach", id])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap().into()
}

fn assert_told_before_success(said: &RunOutput, message: &str) {
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.err.matches("aborted").count(), 1, "{said:?}");
    let aborted = said.err.find("aborted").unwrap();
    let begun = said.err.find(message).unwrap();
    assert!(aborted < begun, "{said:?}");
}

#[test]
fn attach_says_of_the_past_that_it_was_aborted_and_not_of_its_own_turn() {
    let home = Home::new();
    let id = aborted_turn(&home, None);
    let said = attached(&home, &id, "run echo fine\n");
    assert_told_before_success(&said, "• bash  echo fine");
}

#[test]
fn an_abort_is_told_before_the_message_that_waited_behind_it() {
    let home = Home::new();
    let id = aborted_turn(&home, Some("run echo OTHERS"));
    let said = attached(&home, &id, "run echo fine\n");
    assert_told_before_success(&said, "> run echo OTHERS");
}

#[test]
fn an_idle_session_whose_daemon_dies_was_not_aborted() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    let id = home.last_session();
    let mut attached = OnTerminal::start(home.command(&["attach", &id]));
    attached.read_until("leave it with Ctrl-C");
    let status = home.prints(&["daemon", "status"]);
    let (_, process) = status.split_once("process ").unwrap();
    let (process, _) = process.split_once(',').unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-9", process])
        .status();
    assert!(killed.unwrap().success());
    // What is typed is not what is printed.
    attached.types("run echo t'w'o\n");
    let shown = attached.read_until("two");
    assert!(!shown.contains("aborted"), "{shown}");
    assert!(!shown.contains("interrupted"), "{shown}");
}
