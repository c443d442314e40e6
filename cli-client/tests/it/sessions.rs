//! Sessions after their first message.

use std::io::BufReader;
use std::process::Stdio;

use crate::home::{Home, interrupt, read_until};

#[test]
fn sessions_are_listed_the_last_one_first() {
    let home = Home::new();
    let said = home.run(&["sessions"]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert!(said.err.contains("no sessions yet"));
    home.prints(&["run echo first"]);
    home.prints(&["run echo second"]);
    let listed = home.prints(&["sessions"]);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("run echo second"), "{listed}");
    assert!(lines[1].contains("run echo first"), "{listed}");
    let json = home.prints(&["sessions", "--json"]);
    let newest: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(newest["summary"], "run echo second");
}

#[test]
fn a_session_is_resumed_by_the_beginning_of_its_id() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    let id = home.last_session();
    let out = home.prints(&["resume", &id[..30], "run echo two"]);
    assert!(out.contains("\ntwo\n"), "{out}");
    assert_eq!(home.prints(&["sessions"]).lines().count(), 1);
    let unknown = home.run(&["resume", "zzz", "hello"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("no session begins with `zzz`"));
    home.prints(&["run echo another"]);
    let unclear = home.run(&["resume", "0", "hello"]);
    assert!(unclear.err.contains("2 sessions begin with `0`"));
}

#[test]
fn the_last_session_of_the_directory_goes_on() {
    let home = Home::new();
    let none = home.run(&["-c", "hello"]);
    assert_eq!(none.code, 1);
    assert!(none.err.contains("no session has worked in"), "{none:?}");
    home.prints(&["run echo one"]);
    home.prints(&["-c", "run echo two"]);
    assert_eq!(home.prints(&["sessions"]).lines().count(), 1);
}

#[test]
fn events_are_printed_for_people_and_programs() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    let id = home.last_session();
    let text = home.prints(&["events", &id]);
    assert!(
        text.contains("tool.execution_start       bash  echo one"),
        "{text}"
    );
    let json = home.prints(&["events", &id, "--json"]);
    assert_eq!(json.lines().count(), text.lines().count());
    for line in json.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn events_are_followed_while_they_happen() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    let id = home.last_session();
    let mut following = home
        .command(&["events", &id, "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap());
    read_until(&mut lines, "session.shutdown");
    home.prints(&["resume", &id, "run echo two"]);
    let seen = read_until(&mut lines, "session.idle");
    assert_eq!(seen.matches("user.message").count(), 1, "{seen}");
    interrupt(&following);
    assert_eq!(following.wait().unwrap().code(), Some(0));
}
