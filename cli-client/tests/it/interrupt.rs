//! Ctrl-C stops the turn and keeps the session.

use std::process::{Command, Stdio};

use crate::home::{Home, read_until, signal, stderr};

#[test]
fn an_interrupted_turn_is_aborted_and_its_session_goes_on() {
    stops_and_keeps("-INT");
}

#[test]
fn a_terminated_run_is_stopped_like_an_interrupted_one() {
    stops_and_keeps("-TERM");
}

fn stops_and_keeps(sent: &str) {
    let home = Home::new();
    let fifo = home.path("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let mut child = home
        .command(&["--yolo", "run cat fifo"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = stderr(&mut child);
    read_until(&mut err, "• bash  cat fifo");
    // Opens only once the command reads it, so the tool runs for certain.
    let held = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    signal(&child, sent);
    let rest = read_until(&mut err, "the session is kept: loop resume ");
    assert!(rest.contains("aborted"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(held);
    let id = rest.split_whitespace().last().unwrap();
    let out = home.prints(&["resume", id, "run echo on we go"]);
    assert!(out.contains("\non we go\n"), "{out}");
    let events = home.prints(&["events", id]);
    assert!(events.contains("abort"), "{events}");
}
