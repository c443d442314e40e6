//! A session that another client uses at the same time, and options for sessions that exist.

use std::process::{Child, Command, Stdio};

use loopd_sdk::{Client, SessionConfig};

use crate::home::{Home, RunOutput, read_until, stderr};
use crate::terminal::OnTerminal;

/// Starts `loop` with a command that waits for a line in a pipe.
fn one_message(home: &Home, options: &[&str]) -> Child {
    let fifo = home.path("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let args = [options, &["--yolo", "run cat fifo"]].concat();
    home.command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets another client send a message to the session while it works.
fn send(home: &Home, id: &str, message: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::connect(home.connect_options()).await.unwrap();
        let config = SessionConfig::new().leave_permissions_open();
        let session = client.watch(id, config).await.unwrap();
        session.send(message).await.unwrap();
        drop(session);
        client.close().await;
    });
}

fn output(child: Child, err: impl std::io::Read) -> RunOutput {
    let rest = std::io::read_to_string(err).unwrap();
    let mut output = RunOutput::from(child.wait_with_output().unwrap());
    output.err = rest;
    output
}

#[test]
fn one_message_prints_only_its_own_answer() {
    let home = Home::new();
    let mut child = one_message(&home, &[]);
    let mut err = stderr(&mut child);
    read_until(&mut err, "• bash  cat fifo");
    send(&home, &home.last_session(), "run echo OTHERS");
    std::fs::write(home.path("fifo"), "MINE\n").unwrap();
    let said = output(child, err);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("MINE"), "{said:?}");
    assert!(!said.out.contains("OTHERS"), "{said:?}");
    assert!(said.err.contains("another client"), "{said:?}");
}

/// Lines of JSON are those of the own message, too. Events about the session as a whole come always.
#[test]
fn one_message_as_json_has_only_the_events_of_its_own_run() {
    let home = Home::new();
    let mut child = one_message(&home, &["--json"]);
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut said = read_until(&mut out, "tool.execution_start");
    send(&home, &home.last_session(), "run echo OTHERS");
    std::fs::write(home.path("fifo"), "MINE\n").unwrap();
    said.push_str(&std::io::read_to_string(out).unwrap());
    assert!(child.wait().unwrap().success());
    assert!(said.contains("MINE"), "{said}");
    assert!(!said.contains("OTHERS"), "{said}");
    let kinds: Vec<String> = said
        .lines()
        .map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            event["type"].as_str().unwrap().to_owned()
        })
        .collect();
    let count = |kind: &str| kinds.iter().filter(|it| *it == kind).count();
    assert_eq!(count("user.message"), 1, "{kinds:?}");
    assert_eq!(count("assistant.idle"), 1, "{kinds:?}");
    assert_eq!(count("tool.execution_complete"), 1, "{kinds:?}");
    assert_eq!(kinds.last().map(String::as_str), Some("session.idle"));
}

#[test]
fn one_message_that_is_aborted_says_so_and_prints_no_other_answer() {
    let home = Home::new();
    let mut child = one_message(&home, &[]);
    let mut err = stderr(&mut child);
    read_until(&mut err, "• bash  cat fifo");
    let id = home.last_session();
    send(&home, &id, "run echo OTHERS");
    home.prints(&["abort", &id]);
    let said = output(child, err);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(!said.out.contains("OTHERS"), "{said:?}");
    assert!(said.err.contains("aborted"), "{said:?}");
}

/// Runs `loop` with these arguments and this text as stdin.
fn piped(home: &Home, args: &[&str], text: &str) -> RunOutput {
    use std::io::Write;
    let mut child = home
        .command(args)
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

#[test]
fn attach_takes_rules_and_an_agent() {
    let home = Home::new();
    home.prints(&["run echo one"]);
    let id = home.last_session();
    let args = ["--allow-tool", "shell", "attach", &id];
    let said = piped(&home, &args, "run touch made\n");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(home.path("made").exists());
    let said = piped(&home, &["--agent", "plan", "attach", &id], "run pwd\n");
    assert_eq!(said.code, 0, "{said:?}");
    let events = home.prints(&["--json", "events", &id]);
    assert!(events.contains("\"agentName\":\"plan\""), "{events}");
    let said = piped(&home, &["--agent", "nobody", "attach", &id], "run pwd\n");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("nobody"), "{said:?}");
}

#[test]
fn options_that_a_subcommand_would_ignore_are_refused() {
    let home = Home::new();
    for (args, option) in [
        (["--agent", "plan", "sessions"], "--agent"),
        (["--allow-tool", "shell", "ps"], "--allow-tool"),
        (["--model", "offline", "queue"], "--model"),
        (["--continue", "--json", "sessions"], "--continue"),
    ] {
        let said = home.run(&args);
        assert_ne!(said.code, 0, "{said:?}");
        assert!(said.err.contains(option), "{said:?}");
    }
}

#[test]
fn a_terminal_that_is_closed_answers_no_question() {
    let home = Home::new();
    let mut asks = OnTerminal::start(home.command(&["run touch made"]));
    asks.read_until("[y/a/n] ");
    let id = home.last_session();
    asks.hangs_up();
    let events = home.prints(&["events", &id]);
    assert!(!events.contains("permission.completed"), "{events}");
    assert!(!home.path("made").exists());
}

#[test]
fn the_hint_for_a_command_that_writes_protected_files_names_no_rule() {
    let home = Home::new();
    std::fs::create_dir_all(home.path(".git/hooks")).unwrap();
    let args = ["--allow-tool", "shell", "run cp a.txt .git/hooks/pre-push"];
    let said = home.run(&args);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("no rule covers"), "{said:?}");
    assert!(!said.err.contains("--allow-tool"), "{said:?}");
}

#[test]
fn one_message_leaves_the_question_of_a_terminal_open() {
    let home = Home::new();
    let mut chat = OnTerminal::start(home.command(&[]));
    chat.read_until("> ");
    chat.types("run touch made\r");
    chat.read_until("[y/a/n] ");
    let id = home.last_session();
    let mut one = home.command(&["resume", &id, "run pwd"]);
    let mut one = one
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = stderr(&mut one);
    read_until(&mut err, "another client of the session is");
    chat.types("y\r");
    chat.read_until("Done.");
    let said = output(one, err);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(home.path("made").exists());
    chat.types("\x04");
}
