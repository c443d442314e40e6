//! `loop tasks`, against agents of a scripted model that work for as long as the test wants.

use std::io::{BufReader, Write};
use std::process::Stdio;

use loopd_tests::script::{Call, Recorded};
use loopd_tests::{Gate, Turn, call};
use serde_json::{Value, json};

use crate::home::{Home, RunOutput, read_until};
use crate::model::Model;

/// A call of the tool `task`.
fn task(name: &str, more: Value) -> Call {
    let mut arguments = json!({
        "name": name, "prompt": format!("the part of {name}."), "description": "a part of it",
        "agent_type": "general-purpose",
    });
    let more = more.as_object().unwrap().clone();
    arguments.as_object_mut().unwrap().extend(more);
    call(&format!("call-{name}"), "task", arguments)
}

fn is_of(request: &Recorded, agent: &str) -> bool {
    request
        .first_user_text()
        .contains(&format!("the part of {agent}."))
}

/// A model whose main agent starts `worker` at first and says `noted` to all else; the worker
/// answers with its number of answers, the first time once the gate is open.
fn one_worker(gate: &Gate, mode: &'static str) -> Model {
    let (gate, mut answers) = (gate.clone(), 0);
    Model::answering(move |request| {
        if is_of(request, "worker") {
            answers += 1;
            let turn = Turn::any().says(&format!("answer number {answers}"));
            return if answers == 1 {
                turn.held_by(&gate)
            } else {
                turn
            };
        }
        if request.messages().iter().any(|m| m["role"] == "tool") {
            return Turn::any().says("noted");
        }
        Turn::any().calls([task("worker", json!({"mode": mode}))])
    })
}

/// The line of a task.
fn line_of<'a>(shown: &'a str, id: &str) -> &'a str {
    let mut lines = shown.lines();
    let found = lines.find(|line| line.split_whitespace().any(|word| word == id));
    found.unwrap_or_else(|| panic!("{id} is not in {shown}"))
}

#[test]
fn agents_are_listed_read_and_sent_more() {
    let home = Home::new();
    let gate = Gate::new();
    let model = one_worker(&gate, "background");
    let talk = model.start(&home, &["--yolo", "go"]);
    model.asked(3);
    let session = home.last_session();

    let shown = model.prints(&home, &["tasks", &session[..30]]);
    let line = line_of(&shown, "worker");
    for word in ["general-purpose", "running"] {
        assert!(line.contains(word), "{word} in {shown}");
    }
    let lines = model.prints(&home, &["tasks", &session, "--json"]);
    let line: Value = serde_json::from_str(lines.trim()).unwrap();
    assert_eq!(line["id"], "worker");
    assert_eq!(line["parentId"], Value::Null);
    assert_eq!(line["topSessionId"], session.as_str());
    assert_eq!(line["task"]["status"], "running");
    let own = line["sessionId"].as_str().unwrap();
    let events = model.prints(&home, &["events", own]);
    assert!(events.contains("[worker] the part of worker."), "{events}");
    std::fs::create_dir(home.path("elsewhere")).unwrap();
    let mut elsewhere = model.command(&home, &["tasks"]);
    let elsewhere = elsewhere.current_dir(home.path("elsewhere")).output();
    let elsewhere = RunOutput::from(elsewhere.unwrap());
    assert!(line_of(&elsewhere.out, "worker").contains("running"));
    let read = model.run(&home, &["tasks", "read", "worker"]);
    assert_eq!((read.code, read.out.as_str()), (0, ""), "{read:?}");

    gate.open();
    let said = RunOutput::from(talk.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    let shown = model.prints(&home, &["tasks", &session, "--once"]);
    let line = line_of(&shown, "worker");
    assert!(
        line.contains("idle") && line.contains("answer number 1"),
        "{shown}"
    );

    let read = model.run(&home, &["tasks", "read", "Worker"]);
    assert_eq!(read.out, "answer number 1\n", "{read:?}");
    for word in [
        "worker (general-purpose) idle",
        "    output ",
        "    session ",
    ] {
        assert!(read.err.contains(word), "{word} in {read:?}");
    }
    let sent = model.run(&home, &["tasks", "send", "wor", "more"]);
    assert_eq!(sent.code, 0, "{sent:?}");
    assert!(sent.err.contains("sent to worker"), "{sent:?}");
    let wait = ["tasks", "read", "worker", "--wait", "60"];
    let read = model.run(&home, &wait);
    assert_eq!(read.out, "answer number 1\nanswer number 2\n", "{read:?}");
    model.finish();
}

#[test]
fn an_agent_is_stopped_by_the_beginning_of_its_id() {
    let home = Home::new();
    let gate = Gate::new();
    let model = one_worker(&gate, "background");
    let talk = model.start(&home, &["--yolo", "go"]);
    model.asked(3);
    let session = home.last_session();
    let in_session = ["--session", session.as_str()];
    let unknown = home.run(&[&["tasks", "stop", "nobody"], &in_session[..]].concat());
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("there are worker"), "{unknown:?}");
    let stopped = home.run(&[&["tasks", "stop", "w"], &in_session[..]].concat());
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(stopped.err.contains("stopped worker"), "{stopped:?}");
    let said = RunOutput::from(talk.wait_with_output().unwrap());
    assert!(
        said.err.contains("▸ worker (general-purpose) cancelled"),
        "{said:?}"
    );
    let shown = home.prints(&["tasks", &session]);
    assert!(line_of(&shown, "worker").contains("cancelled"), "{shown}");
    let again = home.run(&[&["tasks", "stop", "worker"], &in_session[..]].concat());
    assert_eq!(again.code, 1);
    assert!(again.err.contains("it is cancelled"), "{again:?}");
    model.finish();
}

#[test]
fn the_task_that_the_session_waits_for_is_promoted() {
    let home = Home::new();
    let gate = Gate::new();
    let model = one_worker(&gate, "sync");
    let talk = model.start(&home, &["--yolo", "go"]);
    model.asked(2);
    let promote = ["tasks", "promote"];
    let promoted = home.run(&promote);
    assert_eq!(promoted.code, 0, "{promoted:?}");
    assert!(
        promoted.err.contains("worker goes on in the background"),
        "{promoted:?}"
    );
    // The main agent goes on while the worker is still held.
    model.asked(3);
    let again = home.run(&promote);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("waits for nothing"), "{again:?}");
    let named = home.run(&[&promote[..], &["worker"]].concat());
    assert!(named.err.contains("nobody waits for worker"), "{named:?}");
    gate.open();
    let said = RunOutput::from(talk.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    model.finish();
}

#[test]
fn nested_agents_are_listed_below_their_parents_and_can_be_stopped() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |request| {
        let results = request.messages().iter().any(|m| m["role"] == "tool");
        if is_of(request, "deep") {
            return Turn::any().says("deep down").held_by(&held);
        }
        if results {
            return Turn::any().says("that is it");
        }
        let next = if is_of(request, "upper") {
            task("deep", json!({}))
        } else {
            task("upper", json!({"mode": "background"}))
        };
        Turn::any().calls([next])
    });
    let talk = model.start(&home, &["--yolo", "go"]);
    // The main agent twice, then one each.
    model.asked(4);
    let session = home.last_session();
    let shown = home.prints(&["tasks", &session]);
    let at = shown.lines().position(|line| line.starts_with("upper "));
    let below = shown.lines().nth(at.unwrap() + 1).unwrap();
    assert!(below.starts_with("└─ upper.deep "), "{shown}");
    let lines = home.prints(&["tasks", &session, "--json"]);
    let below: Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        (&below["id"], &below["parentId"]),
        (&"upper.deep".into(), &"upper".into())
    );
    let stop = ["tasks", "stop", "deep"];
    let stopped = home.run(&stop);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(stopped.err.contains("stopped upper.deep"), "{stopped:?}");
    let said = RunOutput::from(talk.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.err.contains("  upper • task  deep\n"),
        "the agent's call is told: {said:?}"
    );
    model.finish();
}

#[test]
fn commands_are_read_and_stopped_with_everything_else() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |request| {
        if is_of(request, "worker") {
            return Turn::any().says("never").held_by(&held);
        }
        if request.messages().iter().any(|m| m["role"] == "tool") {
            return Turn::any().says("noted");
        }
        let command = json!({
            "command": "echo begun; tail -f /dev/null", "description": "waits", "mode": "async",
            "shellId": "waiting",
        });
        let agent = task("worker", json!({"mode": "background"}));
        Turn::any().calls([call("b", "bash", command), agent])
    });
    let talk = model.start(&home, &["--yolo", "go"]);
    model.asked(3);
    let session = home.last_session();
    let shown = home.prints(&["tasks", &session]);
    let line = line_of(&shown, "waiting");
    assert!(
        line.contains("shell") && line.contains("echo begun; tail"),
        "{shown}"
    );
    let read = home.run(&["tasks", "read", "waiting"]);
    assert!(read.out.contains("begun"), "{read:?}");
    assert!(read.err.contains("waiting (shell) running"), "{read:?}");
    let sent = home.run(&["tasks", "send", "waiting", "hello"]);
    assert_eq!(sent.code, 1, "{sent:?}");
    let stopped = home.run(&["tasks", "stop", "--all"]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(stopped.err.contains("stopped 2 tasks"), "{stopped:?}");
    let said = RunOutput::from(talk.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    let shown = home.prints(&["tasks", &session]);
    assert!(!shown.contains("running"), "{shown}");
    model.finish();
}

#[test]
fn changes_are_followed_until_nothing_runs() {
    let home = Home::new();
    let gate = Gate::new();
    let model = one_worker(&gate, "background");
    let talk = model.start(&home, &["--yolo", "go"]);
    model.asked(3);
    let session = home.last_session();
    let mut following = home
        .command(&["tasks", &session, "--json", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap());
    read_until(&mut lines, "\"status\":\"running\"");
    gate.open();
    let rest = read_until(&mut lines, "\"status\":\"idle\"");
    assert!(rest.contains("answer number 1"), "{rest}");
    assert_eq!(following.wait().unwrap().code(), Some(0));
    let said = RunOutput::from(talk.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    model.finish();
}

#[test]
fn a_message_comes_from_stdin_and_an_empty_one_is_refused() {
    let home = Home::new();
    let gate = Gate::new();
    gate.open();
    let model = one_worker(&gate, "sync");
    let said = model.run(&home, &["--yolo", "go"]);
    assert_eq!(said.code, 0, "{said:?}");
    let send = ["tasks", "send", "worker", "-"];
    let empty = model.run(&home, &send);
    assert_eq!(empty.code, 2);
    assert!(empty.err.contains("there is no message"), "{empty:?}");
    let mut sending = model.command(&home, &send);
    let mut sending = sending.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = sending.stdin.take().unwrap();
    stdin.write_all(b"a longer text\n").unwrap();
    drop(stdin);
    assert_eq!(sending.wait().unwrap().code(), Some(0));
    let read = home.prints(&["tasks", "read", "worker", "--wait", "60"]);
    assert_eq!(read, "answer number 1\nanswer number 2\n");
    model.finish();
}

#[test]
fn wrong_usage_and_an_empty_list_are_reported() {
    let home = Home::new();
    let none = home.run(&["tasks"]);
    assert_eq!(none.code, 1);
    assert!(none.err.contains("no session has worked in"), "{none:?}");
    home.prints(&["run echo one"]);
    let empty = home.run(&["tasks"]);
    assert_eq!((empty.code, empty.out.as_str()), (0, ""), "{empty:?}");
    assert!(empty.err.contains("no tasks"), "{empty:?}");
    let read = home.run(&["tasks", "read", "x"]);
    assert_eq!(read.code, 1);
    assert!(read.err.contains("the session has none"), "{read:?}");
    assert_eq!(home.run(&["tasks", "stop"]).code, 2);
    assert_eq!(home.run(&["tasks", "stop", "x", "--all"]).code, 2);
    assert_eq!(home.run(&["tasks", "read", "x", "--wait", "soon"]).code, 2);
    let follow = home.run(&["tasks", "--follow"]);
    assert!(follow.err.contains("--json"), "{follow:?}");
}

#[test]
fn the_help_teaches_each_verb() {
    let home = Home::new();
    for (verb, words) in [
        (
            &["tasks"][..],
            &["sub-agents", "idle", "--once", "Ctrl-C", "promote"][..],
        ),
        (&["tasks", "read"], &["--wait", "worktree", "stderr"]),
        (&["tasks", "send"], &["stdin", "next step"]),
        (&["tasks", "stop"], &["--all"]),
        (&["tasks", "promote"], &["background"]),
    ] {
        let help = home.prints(&[verb, &["--help"]].concat());
        for word in words {
            assert!(help.contains(word), "{word} in {help}");
        }
    }
}

#[cfg(unix)]
#[test]
fn on_a_terminal_the_list_stays_until_nothing_runs() {
    use crate::terminal::OnTerminal;

    let home = Home::new();
    let gate = Gate::new();
    let model = one_worker(&gate, "background");
    let talk = model.start(&home, &["--yolo", "go"]);
    model.asked(3);
    let session = home.last_session();
    let mut list = OnTerminal::start(home.command(&["tasks", &session]));
    list.read_until("running");
    let mut other = OnTerminal::start(home.command(&["tasks", &session, "--once"]));
    other.read_until("running");
    assert_eq!(other.ends(), Some(0));
    gate.open();
    let drawn = list.read_until("idle");
    assert!(
        drawn.contains("\u{1b}[2A"),
        "drawn over the last: {drawn:?}"
    );
    assert_eq!(list.ends(), Some(0));
    let said = RunOutput::from(talk.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    model.finish();
}

#[cfg(unix)]
#[test]
fn leaving_the_list_stops_nothing() {
    use crate::home::interrupt;
    use crate::terminal::OnTerminal;

    let home = Home::new();
    let gate = Gate::new();
    let model = one_worker(&gate, "background");
    let talk = model.start(&home, &["--yolo", "go"]);
    model.asked(3);
    let session = home.last_session();
    let mut list = OnTerminal::start(home.command(&["tasks", &session]));
    list.read_until("running");
    interrupt(list.child());
    assert_eq!(list.ends(), Some(0));
    gate.open();
    let said = RunOutput::from(talk.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.err.contains("worker (general-purpose) completed"),
        "{said:?}"
    );
    model.finish();
}

#[test]
fn a_message_to_a_nested_agent_is_answered_with_the_key_of_its_session() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let model = Model::answering(move |request| {
        let results = request.messages().iter().any(|m| m["role"] == "tool");
        if is_of(request, "deep") {
            return Turn::any().says("deep down");
        }
        let is_upper = is_of(request, "upper");
        if results && is_upper {
            return Turn::any().says("that is it");
        }
        if results {
            return Turn::any().says("done").held_by(&held);
        }
        let next = if is_upper { "deep" } else { "upper" };
        Turn::any().calls([task(next, json!({}))])
    });
    let talk = model
        .command(&home, &["--yolo", "go"])
        .env("OPENAI_API_KEY", "sk-of-the-session")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The main agent and the upper one twice, and the deep one.
    model.asked(5);
    // The message comes from a terminal without the key.
    let sent = model.run(&home, &["tasks", "send", "deep", "more"]);
    assert_eq!(sent.code, 0, "{sent:?}");
    model.asked(6);
    let keys = model.authorizations();
    assert_eq!(keys[5].as_deref(), Some("Bearer sk-of-the-session"));
    gate.open();
    let said = RunOutput::from(talk.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    model.finish();
}

#[test]
fn what_a_command_of_an_agent_prints_is_shown_and_ended_commands_are_listed_once() {
    let home = Home::new();
    let gate = Gate::new();
    let held = gate.clone();
    let release = home.path("release");
    let command = format!(
        "echo begun; until test -e {}; do sleep 0.1; done; echo ended",
        release.display()
    );
    let model = Model::answering(move |request| {
        let results = request.messages().iter().any(|m| m["role"] == "tool");
        if is_of(request, "runner") {
            let command = json!({
                "command": command, "description": "waits", "mode": "async", "shellId": "1",
            });
            return if results {
                Turn::any().says("it runs")
            } else {
                Turn::any().calls([call("b", "bash", command)])
            };
        }
        if request.last_user_text().contains("runner:1") {
            return Turn::any().says("so it has ended").held_by(&held);
        }
        if results {
            return Turn::any().says("noted");
        }
        Turn::any().calls([task("runner", json!({}))])
    });
    let talk = model.start(&home, &["--yolo", "go"]);
    // The main agent and the runner, each twice.
    model.asked(4);
    let listed = home.prints(&["tasks", "--once"]);
    assert_eq!(listed.matches("runner:1").count(), 1, "{listed}");
    let read = home.run(&["tasks", "read", "runner:1"]);
    assert!(read.out.contains("begun"), "{read:?}");
    std::fs::write(&release, "").unwrap();
    model.asked(5);
    let listed = home.prints(&["tasks", "--once"]);
    assert_eq!(listed.matches("begun").count(), 1, "{listed}");
    let read = home.run(&["tasks", "read", "runner:1"]);
    assert!(read.out.contains("ended"), "{read:?}");
    gate.open();
    let said = RunOutput::from(talk.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    model.finish();
}
