//! What `loop` prints as the answer, and what it says when there is none, or not all of one.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use loopd_tests::{Turn, call};
use serde_json::json;

use crate::home::{Home, RunOutput};
use crate::model::Model;

#[test]
fn stdout_has_only_the_answer_that_counts_after_a_broken_stream() {
    let home = Home::new();
    let mut first = true;
    let model = Model::answering(move |_| {
        if std::mem::take(&mut first) {
            return Turn::any().breaks_off_after(["half of ", "a failed"]);
        }
        Turn::any().streams(["the whole ", "answer"])
    });
    let said = model.run(&home, &["go"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "the whole answer\n", "{said:?}");
    assert!(said.err.contains("trying again: "), "{said:?}");
    model.finish();
}

#[cfg(unix)]
#[test]
fn a_screen_is_told_that_the_answer_begins_again() {
    use crate::terminal::OnTerminal;

    let home = Home::new();
    let mut first = true;
    let model = Model::answering(move |_| {
        if std::mem::take(&mut first) {
            return Turn::any().breaks_off_after(["half of ", "a failed"]);
        }
        Turn::any().streams(["the whole ", "answer"])
    });
    let mut screen = OnTerminal::start(model.command(&home, &["go"]));
    screen.read_until("half of a failed");
    screen.read_until("the answer above broke off and begins again");
    screen.read_until("the whole answer\r\n");
    assert_eq!(screen.ends(), Some(0));
    model.finish();
}

#[test]
fn a_model_that_nothing_can_serve_fails_by_name_and_makes_no_session() {
    let home = Home::new();
    for (args, variable) in [
        (&["--model", "gpt-5", "hello"][..], None),
        (&["hello"][..], Some(("LOOPD_MODEL", "gpt-5"))),
    ] {
        let mut command = home.command(args);
        let said: RunOutput = command.envs(variable).output().unwrap().into();
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("`gpt-5`"), "{said:?}");
        assert!(said.err.contains("OPENAI_API_KEY"), "{said:?}");
        assert_eq!(said.out, "", "{said:?}");
    }
    assert_eq!(home.prints(&["sessions"]), "");
    home.prints(&["--model", "offline", "run echo hello"]);
}

#[test]
fn a_model_that_nothing_can_serve_is_not_switched_to() {
    let home = Home::new();
    let said = home.run(&["/model gpt-5"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("`gpt-5`"), "{said:?}");
    assert!(said.err.contains("OPENAI_API_KEY"), "{said:?}");
    let said = home.run(&["-c", "/model"]);
    assert!(!said.out.contains("gpt-5 answers"), "{said:?}");
    // The provider that a session has is not asked which models it has.
    let mut with_key = home.command(&["/model gpt-5"]);
    let said: RunOutput = with_key.env("OPENAI_API_KEY", "k").output().unwrap().into();
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.err.contains("gpt-5 answers from the next call on"),
        "{said:?}"
    );
}

#[test]
fn an_answer_that_was_cut_is_told_and_has_its_exit_code() {
    for (reason, word) in [
        ("length", "output tokens"),
        ("content_filter", "content filter"),
    ] {
        let home = Home::new();
        let model = Model::answering(move |_| Turn::any().says("half an").stops_by(reason));
        let said = model.run(&home, &["go"]);
        assert_eq!(said.code, 4, "{said:?}");
        assert_eq!(said.out, "half an\n", "{said:?}");
        assert!(said.err.contains("not complete"), "{said:?}");
        assert!(said.err.contains(word), "{said:?}");
        model.finish();
    }
    let help = Home::new().prints(&["--help"]);
    assert!(help.contains("the answer is not complete"), "{help}");
}

#[test]
fn the_usage_line_counts_sub_agents() {
    let home = Home::new();
    let model = Model::answering(|request| {
        let is_agent = request.first_user_text().contains("look for it");
        match (is_agent, request.last_results().is_empty()) {
            (true, _) => Turn::any().says("found"),
            (false, true) => Turn::any().calls([call(
                "t",
                "task",
                json!({"name": "finder", "prompt": "look for it", "description": "looks",
                       "agent_type": "general-purpose"}),
            )]),
            (false, false) => Turn::any().says("thanks"),
        }
    });
    let said = model.run(&home, &["go"]);
    assert_eq!(said.code, 0, "{said:?}");
    // Each of the three calls has 10 tokens in and 5 out.
    let line = "scripted: 3 model calls (1 of sub-agents), 30 tokens in, 15 out, ";
    assert!(said.err.contains(line), "{said:?}");
    model.finish();
}

/// Starts `loop` with a pipe as stdin.
fn piped(mut command: Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn given(command: Command, text: &[u8]) -> RunOutput {
    let mut child = piped(command);
    let mut stdin = child.stdin.take().unwrap();
    // It fails if the reader has had enough.
    stdin.write_all(text).ok();
    drop(stdin);
    child.wait_with_output().unwrap().into()
}

#[test]
fn what_is_piped_in_is_added_to_the_prompt() {
    let home = Home::new();
    let model = Model::answering(|request| {
        let asked = request.last_user_text();
        let all = asked.contains("explain\n\n<stdin>\nline one\nline two\n</stdin>");
        Turn::any().says(if all { "all of it" } else { "something else" })
    });
    let said = given(model.command(&home, &["explain"]), b"line one\nline two\n");
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "all of it\n"),
        "{said:?}"
    );
    std::fs::write(home.path("log"), "line one\nline two").unwrap();
    let mut from_file = model.command(&home, &["explain"]);
    from_file.stdin(std::fs::File::open(home.path("log")).unwrap());
    let said: RunOutput = from_file.output().unwrap().into();
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "all of it\n"),
        "{said:?}"
    );
    let said = given(model.command(&home, &["explain"]), b"");
    assert_eq!(said.out, "something else\n", "an empty pipe adds nothing");
    model.finish();
}

#[test]
fn too_much_on_stdin_and_bytes_that_are_no_text_are_refused() {
    let home = Home::new();
    for args in [&["explain"][..], &[][..]] {
        let said = given(home.command(args), &vec![b'x'; 4 * 1024 * 1024 + 1]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("more than 4 MiB"), "{said:?}");
        let said = given(home.command(args), &[0xff, 0xfe, 0x00]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("not text"), "{said:?}");
    }
}

#[test]
fn a_pipe_that_stays_silent_is_left_alone() {
    let home = Home::new();
    let mut child = piped(home.command(&["run echo on"]));
    let held = child.stdin.take().unwrap();
    let said = RunOutput::from(child.wait_with_output().unwrap());
    drop(held);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("\non\n"), "{said:?}");
    assert!(
        said.err.contains("brought nothing for 3 seconds"),
        "{said:?}"
    );
}

#[test]
fn an_agent_of_a_file_answers_and_an_unknown_one_is_refused_with_the_list() {
    let home = Home::new();
    let agents = home.path(".github/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let text = "---\ndescription: Speaks like a pirate.\n---\nSpeak like a pirate, always.";
    std::fs::write(agents.join("pirate.agent.md"), text).unwrap();
    let model = Model::answering(|request| {
        let is_pirate = request.raw.contains("Speak like a pirate, always.");
        Turn::any().says(if is_pirate { "arr" } else { "hello" })
    });
    assert_eq!(model.prints(&home, &["--agent", "pirate", "hi"]), "arr\n");
    assert_eq!(model.prints(&home, &["hi"]), "hello\n");
    assert_eq!(
        model.prints(&home, &["-c", "--agent", "pirate", "hi"]),
        "arr\n"
    );
    let said = model.run(&home, &["--agent", "parrot", "hi"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("`parrot`"), "{said:?}");
    assert!(said.err.contains("pirate"), "{said:?}");
    model.finish();
}

#[test]
fn a_broken_agent_file_is_shown_by_the_doctor_and_in_a_session() {
    let home = Home::new();
    let agents = home.path(".github/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let text = "---\ndescription: Does.\ntools: 5\n---\nHi.";
    std::fs::write(agents.join("broken.agent.md"), text).unwrap();
    let doctor = home.prints(&["doctor"]);
    let line = doctor.lines().find(|line| line.contains("broken.agent.md"));
    assert!(line.unwrap().starts_with("warn files"), "{doctor}");
    let said = home.run(&["run echo hello"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.err.matches("broken.agent.md").count(), 1, "{said:?}");
}

#[test]
fn slash_commands_are_run_or_refused_and_not_sent() {
    let home = Home::new();
    let model = Model::answering(|request| Turn::any().says(&request.last_user_text()));
    let help = model.prints(&home, &["/help"]);
    assert!(help.contains("/exit") && help.contains("/agents"), "{help}");
    let agents = model.prints(&home, &["/agents"]);
    assert!(agents.contains("- `general-purpose`: "), "{agents}");
    let said = model.run(&home, &["/frobnicate it"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("no command /frobnicate"), "{said:?}");
    assert!(said.err.contains("/help lists"), "{said:?}");
    for (typed, sent) in [
        ("/tmp/x is full", "/tmp/x is full"),
        ("//frobnicate it", "/frobnicate it"),
        ("/etc is a folder", "/etc is a folder"),
    ] {
        let out = model.prints(&home, &[typed]);
        assert!(out.contains(sent) && !out.contains("//"), "{out}");
    }
    model.finish();
}
