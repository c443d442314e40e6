//! One message, its permissions and its exit code.

use std::io::Write;
use std::process::Stdio;

use loopd_tests::{Turn, call};

use crate::home::{Home, RunOutput};
use crate::model::Model;

#[test]
fn the_answer_goes_to_stdout_and_everything_else_to_stderr() {
    let home = Home::new();
    let said = home.run(&["run echo hel''lo"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.starts_with("Done. The output was:\nhello\n"),
        "{said:?}"
    );
    assert!(
        said.err.contains("• bash  echo hel''lo\n  hello\n"),
        "{said:?}"
    );
    let hint = said.err.lines().next().unwrap();
    assert!(
        hint.contains("offline") && hint.contains("OPENAI_API_KEY"),
        "{hint}"
    );
    assert!(!said.err.contains('\x1b'), "colours where nobody sees them");
}

#[test]
fn a_prompt_can_be_piped_in() {
    let home = Home::new();
    let mut command = home.command(&[]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"run echo piped\n").unwrap();
    drop(stdin);
    let said = RunOutput::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("\npiped\n"), "{said:?}");
}

#[test]
fn json_is_one_event_per_line_from_start_to_idle() {
    let home = Home::new();
    let out = home.prints(&["--json", "run pwd"]);
    let kinds: Vec<String> = out
        .lines()
        .map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            event["type"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(kinds.first().unwrap(), "session.start");
    assert_eq!(kinds.last().unwrap(), "session.idle");
    assert!(kinds.contains(&"tool.execution_complete".to_owned()));
}

/// Lets rules of settings in the project ask about something.
fn ask_about(home: &Home, rule: &str) {
    std::fs::create_dir_all(home.path(".claude")).unwrap();
    let text = serde_json::json!({"permissions": {"ask": [rule]}}).to_string();
    std::fs::write(home.path(".claude/settings.json"), text).unwrap();
}

#[test]
fn what_a_rule_asks_about_is_denied_with_a_hint_that_works() {
    let home = Home::new();
    ask_about(&home, "Bash(touch:*)");
    let said = home.run(&["--yolo", "run touch made"]);
    assert_eq!(said.code, 3, "{said:?}");
    let hint = "a rule in settings asks about it (shell(touch:*)), and neither --allow-tool nor --yolo answers that";
    assert!(said.err.contains(hint), "{said:?}");
    assert!(!home.path("made").exists());
}

#[cfg(unix)]
#[test]
fn what_a_rule_asks_about_can_be_approved_for_the_session() {
    use crate::terminal::OnTerminal;
    let home = Home::new();
    ask_about(&home, "Bash(touch:*)");
    let mut chat = OnTerminal::start(home.command(&["--yolo"]));
    chat.read_until("> ");
    chat.types("run touch made\r");
    chat.read_until("a rule in settings asks about it: shell(touch:*)");
    chat.read_until("yes, always in this session for exactly this, or no (and why)? [y/a/n] ");
    chat.types("a\r");
    chat.read_until("Done.");
    chat.read_until("> ");
    std::fs::remove_file(home.path("made")).unwrap();
    chat.types("run touch made\r");
    chat.read_until("Done.");
    assert!(home.path("made").exists());
    chat.read_until("> ");
    chat.types("run touch other\r");
    chat.read_until("[y/a/n] ");
    chat.types("n\r");
    chat.read_until("> ");
    chat.types("\x04");
    assert_eq!(chat.ends(), Some(0));
    assert!(!home.path("other").exists());
}

#[test]
fn what_needs_a_permission_is_denied_when_nobody_can_be_asked() {
    let home = Home::new();
    let said = home.run(&["run touch made"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.err.contains("--allow-tool 'shell(touch)'"), "{said:?}");
    assert!(!home.path("made").exists());
}

#[test]
fn default_rules_allow_plain_commands_only() {
    let home = Home::new();
    for command in [
        "run echo hello > made",
        "run echo $(touch made)",
        "run echo hello; touch made",
    ] {
        let said = home.run(&[command]);
        assert_eq!(said.code, 3, "{command}: {said:?}");
        assert!(!home.path("made").exists(), "{command}");
    }
}

#[test]
fn rules_and_yolo_allow() {
    let home = Home::new();
    home.prints(&["--allow-tool", "shell(touch)", "run touch by-rule"]);
    assert!(home.path("by-rule").exists());
    home.prints(&["--yolo", "write by-yolo.txt some text"]);
    let written = std::fs::read_to_string(home.path("by-yolo.txt")).unwrap();
    assert_eq!(written.trim_end(), "some text");
    let said = home.run(&["run touch other"]);
    assert_eq!(said.code, 3, "neither holds in another session: {said:?}");
}

#[test]
fn files_of_the_directory_can_be_read_and_others_not() {
    let home = Home::new();
    std::fs::write(home.path("note.txt"), "remember the milk\n").unwrap();
    assert!(
        home.prints(&["read note.txt"])
            .contains("remember the milk")
    );
    assert_eq!(home.run(&["read /etc/hostname"]).code, 3);
}

#[test]
fn wrong_usage_is_reported() {
    let home = Home::new();
    assert_eq!(home.run(&["--no-such-flag"]).code, 2);
    assert_eq!(home.run(&["--allow-tool", "everything", "x"]).code, 2);
    let said = home.run(&[]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("give a prompt"), "{said:?}");
}

#[test]
fn a_failed_turn_fails_the_run() {
    let home = Home::new();
    // Nobody listens on this port.
    let said: RunOutput = home
        .command(&["hello"])
        .env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        .env("LOOPD_MODEL", "some-model")
        .output()
        .unwrap()
        .into();
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("error: "), "{said:?}");
}

#[test]
fn a_budget_in_dollars_needs_the_price_of_the_model() {
    let home = Home::new();
    let model = Model::answering(|_| Turn::any().says("never"));
    let said = model.run(&home, &["--budget-usd", "0.5", "-p", "hello"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{said:?}");
    assert!(
        said.err.contains("[prices.\"scripted\"]") && said.err.contains("config.toml"),
        "{said:?}"
    );
    model.finish();
    // With a price the run is counted, and ends with 4 when the money is gone.
    let home = Home::new();
    std::fs::create_dir(home.path("home")).unwrap();
    let prices = "[prices.scripted]\ninput = 1000.0\noutput = 1000.0\n";
    std::fs::write(home.path("home/config.toml"), prices).unwrap();
    let model = Model::answering(|request| {
        let id = format!("c{}", request.messages().len());
        let look = call(&id, "glob", serde_json::json!({"pattern": "*"}));
        Turn::any().calls([look]).uses(400, 100)
    });
    let said = model.run(&home, &["--budget-usd", "1.2", "-p", "hello"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("of the 1.20 US dollars"), "{said:?}");
    model.finish();
}

#[test]
fn a_folder_on_stdin_is_refused_by_name() {
    let home = Home::new();
    for args in [&["run echo one"][..], &[]] {
        let folder = std::fs::File::open(home.folder.path()).unwrap();
        let said = home.command(args).stdin(folder).output().unwrap();
        assert_eq!(said.status.code(), Some(2), "{said:?}");
        let said = String::from_utf8(said.stderr).unwrap();
        assert!(said.contains("stdin is a folder"), "{said}");
    }
}

#[test]
fn text_on_stdin_for_a_command_that_takes_none_is_refused() {
    let home = Home::new();
    let file = home.path("data");
    std::fs::write(&file, "data\n").unwrap();
    let file = std::fs::File::open(&file).unwrap();
    let said = home.command(&["-p", "/help"]).stdin(file).output().unwrap();
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("/help takes nothing after it"), "{said}");
}
