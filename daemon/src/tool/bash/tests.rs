use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::tool::fixture::{Fixture, granted, names};
use crate::tool::{DynTool, Partial, Status};

mod bypasses;
mod opens;

fn make_pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

async fn run(fixture: &Fixture, command: &str) -> Outcome {
    fixture
        .call(&Bash, json!({"command": command, "description": "x"}))
        .await
}

/// Waits for the first output of a running command.
async fn first_output(fixture: &mut Fixture) -> String {
    let output = match fixture.partial.recv().await.unwrap() {
        Partial::Output(output) => Some(output),
        Partial::Progress(_) => None,
    };
    // A command reports no progress.
    output.unwrap()
}

fn is_running(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    // A zombie process counts as gone.
    state.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn output_is_followed_by_the_exit_code() {
    let fixture = Fixture::new();
    let table = [
        (
            "echo hello && echo world",
            "hello\nworld\n<exited with exit code 0>",
        ),
        (
            "echo error_msg >&2; echo ok",
            "error_msg\nok\n<exited with exit code 0>",
        ),
        ("true", "<exited with exit code 0>"),
        (
            "printf 'no end'; exit 3",
            "no end\n<exited with exit code 3>",
        ),
        (
            "kill -9 $$",
            "<killed by signal 9>\n<exited with exit code 137>",
        ),
        ("cat; echo no input", "no input\n<exited with exit code 0>"),
        (
            "for i in 1 2 3; do echo o$i; echo e$i >&2; done",
            "o1\ne1\no2\ne2\no3\ne3\n<exited with exit code 0>",
        ),
    ];
    for (command, expected) in table {
        let outcome = run(&fixture, command).await;
        assert_eq!(outcome, Outcome::success(expected), "{command}");
    }
}

#[tokio::test]
async fn a_command_sees_its_folder_and_environment_and_no_more() {
    let mut fixture = Fixture::new();
    fixture
        .context
        .env
        .insert("ONLY".to_owned(), "this".to_owned());
    let outcome = run(
        &fixture,
        "pwd; echo $ONLY; echo ${CARGO_MANIFEST_DIR-unset}; echo ${HOME-unset}",
    )
    .await;
    let cwd = fixture.context.cwd.display();
    assert_eq!(
        outcome.text,
        format!("{cwd}\nthis\nunset\nunset\n<exited with exit code 0>")
    );
}

#[tokio::test]
async fn output_arrives_while_the_command_runs() {
    let mut fixture = Fixture::new();
    let pipe = fixture.path("pipe");
    make_pipe(&pipe);
    let tool = Bash;
    let args = json!({"command": "echo first; read -r line < pipe; echo got $line"});
    let grant = granted(fixture.request(&tool, &args).await);
    let context = fixture.context.clone();
    let running = tokio::spawn(async move { DynTool::run(&tool, &grant, args, &context).await });
    assert_eq!(first_output(&mut fixture).await, "first\n");
    tokio::fs::write(&pipe, "it\n").await.unwrap();
    let outcome = running.await.unwrap();
    assert_eq!(outcome.text, "first\ngot it\n<exited with exit code 0>");
    assert_eq!(first_output(&mut fixture).await, "got it\n");
}

/// Starts a command, waits for its first output and aborts the turn; returns output and outcome.
async fn abort(command: &str) -> (String, Outcome, Fixture) {
    let mut fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    let args = json!({"command": command});
    let grant = granted(fixture.request(&Bash, &args).await);
    let context = fixture.context.clone();
    let running = tokio::spawn(async move { DynTool::run(&Bash, &grant, args, &context).await });
    let said = first_output(&mut fixture).await;
    fixture.context.cancel.cancel();
    (said, running.await.unwrap(), fixture)
}

async fn gone(pid: &str) {
    let gone = async {
        while is_running(pid) {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
    assert!(gone.is_ok(), "{pid} is still there");
}

#[tokio::test]
async fn an_aborted_command_is_killed_with_its_children_even_if_it_ignores_signals() {
    let command = "trap '' TERM; (trap '' TERM; echo $BASHPID; read -r _ < pipe); read -r _ < pipe";
    let (pid, outcome, fixture) = abort(command).await;
    let printed = pid.trim_end().to_owned();
    assert_eq!(
        outcome,
        words::interrupted(printed),
        "what it printed is told"
    );
    gone(&pid).await;
    assert_eq!(fixture.noted.count("TaskStarted"), 0);
}

#[tokio::test]
async fn a_command_that_outlasts_its_wait_goes_on_in_the_background_and_can_be_read() {
    let fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    let args = json!({"command": "echo started; read -r line < pipe; echo got $line",
        "shellId": "s", "initial_wait": 0.2, "description": "Wait"});
    let outcome = fixture.call(&Bash, args).await;
    assert_eq!(outcome.status, Status::Success);
    assert!(
        outcome.text.contains("background as shellId s"),
        "{}",
        outcome.text
    );
    assert!(
        outcome.text.starts_with("started\n<the command still runs"),
        "{}",
        outcome.text
    );
    fixture.noted.told("TaskStarted").await;
    let quick = json!({"shellId": "s", "delay": 0});
    let still = fixture.call(&Read, quick.clone()).await;
    assert_eq!(still.text, "<shellId: s is still running>");
    let list = fixture.call(&List, json!({})).await;
    assert!(list.text.contains("`echo started;"), "{}", list.text);
    tokio::fs::write(fixture.path("pipe"), "it\n")
        .await
        .unwrap();
    let read = fixture
        .call(&Read, json!({"shellId": "s", "delay": 30}))
        .await;
    assert_eq!(read.text, "got it\n<shellId: s completed with exit code 0>");
    fixture.noted.told("TasksDelivered").await;
    let ended = fixture.noted.told("TaskEnded").await;
    assert!(
        ended.contains("Completed") && ended.contains("Some(0)"),
        "{ended}"
    );
}

#[tokio::test]
async fn commands_of_one_shell_run_in_order_and_other_shells_run_in_parallel() {
    let fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    let first = json!({"command": "read -r _ < pipe; echo 1 >> order", "shellId": "one"});
    let second = json!({"command": "echo 2 >> order", "shellId": "one"});
    let other = async {
        let args = json!({"command": "echo other", "shellId": "two"});
        let outcome = fixture.call(&Bash, args).await;
        assert!(outcome.text.starts_with("other\n"), "{}", outcome.text);
        tokio::fs::write(fixture.path("pipe"), "x\n").await.unwrap();
    };
    let (one, two, ()) = tokio::join!(
        fixture.call(&Bash, first),
        fixture.call(&Bash, second),
        other
    );
    assert_eq!([one.status, two.status], [Status::Success; 2]);
    assert_eq!(fixture.read("order"), "1\n2\n");
}

#[tokio::test]
async fn a_call_does_not_wait_longer_than_initial_wait_for_a_busy_shell() {
    let fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    let first = json!({"command": "read -r _ < pipe", "shellId": "s", "initial_wait": 0});
    fixture.call(&Bash, first).await;
    let second = json!({"command": "echo never", "shellId": "s", "initial_wait": 0});
    let outcome = fixture.call(&Bash, second).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(
        outcome.text.contains("still runs `read -r _ < pipe`"),
        "{}",
        outcome.text
    );
    let stopped = fixture.call(&Stop, json!({"shellId": "s"})).await;
    assert!(stopped.text.contains("was stopped"), "{}", stopped.text);
    fixture.noted.told("TasksDelivered").await;
    let ended = fixture.noted.told("TaskEnded").await;
    assert!(ended.contains("Cancelled"), "{ended}");
}

#[tokio::test]
async fn the_error_says_why_a_shell_cannot_be_used() {
    let fixture = Fixture::new();
    let read = |id: &str| json!({"shellId": id, "delay": 0});
    let none = fixture.call(&Read, read("x")).await;
    assert!(
        none.text.contains("no other shell is open"),
        "{}",
        none.text
    );
    let args = json!({"command": "true", "shellId": "kept", "mode": "async"});
    fixture.call(&Bash, args).await;
    let unknown = fixture.call(&Stop, json!({"shellId": "x"})).await;
    assert!(
        unknown.text.contains("Open shells: kept."),
        "{}",
        unknown.text
    );
    fixture.call(&Stop, json!({"shellId": "kept"})).await;
    let stopped = fixture.call(&Read, read("kept")).await;
    assert!(stopped.text.contains("you stopped it"), "{}", stopped.text);
    make_pipe(&fixture.path("pipe"));
    let args = json!({"command": "read -r _ < pipe", "initial_wait": 0});
    let moved = fixture.call(&Bash, args).await;
    let (_, id) = moved.text.split_once("shellId ").unwrap();
    let (id, _) = id.split_once('.').unwrap();
    tokio::fs::write(fixture.path("pipe"), "x\n").await.unwrap();
    fixture
        .call(&Read, json!({"shellId": id, "delay": 30}))
        .await;
    let again = fixture.call(&Read, read(id)).await;
    assert!(again.text.contains("its output was read"), "{}", again.text);
    let args = json!({"shellId": "kept", "input": "x{enter}"});
    assert!(fixture.refusal(&Write, &args).await.contains("closed"));
}

#[tokio::test]
async fn a_command_that_nobody_could_come_back_to_is_stopped() {
    let mut fixture = Fixture::new();
    fixture.context.may_go_on = false;
    make_pipe(&fixture.path("pipe"));
    let command = "echo $$; read -r _ < pipe";
    let args = json!({"command": command, "initial_wait": 0.3});
    let outcome = fixture.call(&Bash, args).await;
    let (pid, note) = outcome.text.split_once('\n').unwrap();
    assert_eq!(outcome.status, Status::Failure, "{}", outcome.text);
    assert!(note.contains("was stopped"), "{note}");
    assert!(!is_running(pid), "{pid}");
    assert_eq!(
        run(&fixture, "echo on").await.text,
        "on\n<exited with exit code 0>"
    );
}

#[tokio::test]
async fn typing_needs_a_terminal_and_a_command_that_runs() {
    let fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    let args = json!({"command": "true", "shellId": "s", "mode": "async"});
    fixture.call(&Bash, args).await;
    let write = json!({"shellId": "s", "input": "x{enter}"});
    assert!(fixture.refusal(&Write, &write).await.contains("has ended"));
    let args = json!({"command": "read -r _ < pipe", "shellId": "s", "mode": "async"});
    fixture.call(&Bash, args).await;
    let refused = fixture.refusal(&Write, &write).await;
    assert!(refused.contains("without a terminal"), "{refused}");
    let unknown = json!({"shellId": "s", "input": "{nokey}"});
    assert!(
        fixture
            .refusal(&Write, &unknown)
            .await
            .contains("there is no key")
    );
    fixture.call(&Stop, json!({"shellId": "s"})).await;
}

#[tokio::test]
async fn a_detached_command_is_read_from_its_log() {
    let fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    let args = json!({"command": "echo one; read -r _ < pipe; echo two; exit 3",
        "shellId": "d", "mode": "async", "detach": true});
    let outcome = fixture.call(&Bash, args).await;
    assert!(
        outcome.text.contains("runs detached as shellId d"),
        "{}",
        outcome.text
    );
    let started = fixture.noted.told("TaskStarted").await;
    assert!(started.contains("Detached"), "{started}");
    fixture.noted.told("TaskProcess").await;
    let write = json!({"shellId": "d", "input": "x{enter}"});
    assert!(fixture.refusal(&Write, &write).await.contains("only a log"));
    let again = json!({"command": "true", "shellId": "d"});
    let again = fixture.call(&Bash, again).await;
    assert!(
        again.text.contains("detached command that still runs"),
        "{}",
        again.text
    );
    tokio::fs::write(fixture.path("pipe"), "x\n").await.unwrap();
    let read = fixture
        .call(&Read, json!({"shellId": "d", "delay": 30}))
        .await;
    assert_eq!(
        read.text,
        "one\ntwo\n<shellId: d completed with exit code 3>"
    );
    let ended = fixture.noted.told("TaskEnded").await;
    assert!(ended.contains("Some(3)"), "{ended}");
}

#[tokio::test]
async fn a_detached_command_can_be_stopped() {
    let fixture = Fixture::new();
    let args = json!({"command": "sleep 600", "mode": "async", "detach": true});
    fixture.call(&Bash, args).await;
    let stopped = fixture.call(&Stop, json!({"shellId": "1"})).await;
    assert!(stopped.text.contains("was stopped"), "{}", stopped.text);
    let ended = fixture.noted.told("TaskEnded").await;
    assert!(ended.contains("Cancelled"), "{ended}");
}

#[tokio::test]
async fn a_dropped_call_kills_its_processes() {
    let mut fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    let tool = Bash;
    let args = json!({"command": "(trap '' TERM HUP; echo $BASHPID; read -r _ < pipe); true"});
    let grant = granted(fixture.request(&tool, &args).await);
    let context = fixture.context.clone();
    let running = tokio::spawn(async move { DynTool::run(&tool, &grant, args, &context).await });
    let pid = first_output(&mut fixture).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    gone(&pid).await;
}

#[tokio::test]
async fn a_large_output_is_saved_to_a_file() {
    let fixture = Fixture::new();
    let outcome = run(
        &fixture,
        "head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end",
    )
    .await;
    let saved = names(&fixture.context.scratch);
    let [name] = saved.as_slice() else {
        unreachable!("one file is saved: {saved:?}");
    };
    let path = fixture.context.scratch.join(name);
    assert_eq!(path.metadata().unwrap().len(), 50_000_005);
    let start = format!(
        "Output too large to read at once (47.7 MB). Saved to: {}\n",
        path.display()
    );
    assert!(outcome.text.starts_with(&start), "{}", outcome.text);
    assert!(
        outcome.text.ends_with("x\nend\n<exited with exit code 0>"),
        "{}",
        outcome.text
    );
    assert!(outcome.text.len() < 5000);
}

#[tokio::test]
async fn the_permission_request_shows_exactly_what_runs() {
    let fixture = Fixture::new();
    let here = places::directory(&fixture.context.cwd);
    let args = json!({"command": "git status && cat a/b.txt", "description": "Look around"});
    let command = |identifier: &str| ShellCommand {
        identifier: identifier.to_owned(),
        read_only: false,
    };
    assert_eq!(
        fixture.request(&Bash, &args).await,
        PermissionRequest::Shell {
            managed_approval_required: None,
            tool_call_id: None,
            full_command_text: "git status && cat a/b.txt".to_owned(),
            intention: "Look around".to_owned(),
            commands: vec![command("git status"), command("cat")],
            possible_paths: vec!["a/b.txt".to_owned()],
            possible_urls: Vec::new(),
            has_write_file_redirection: false,
            can_offer_session_approval: true,
            warning: None,
            resolved_paths: std::collections::BTreeMap::new(),
            resolved_working_directory: Some(here.clone()),
            changed_shell: None,
            shell_directories: Vec::new(),
            shell_directory_unknown: None,
            repository_folders: Vec::new(),
            writes_protected: None,
            reached: None,
            typed_before: Vec::new(),
        }
    );
    let args = json!({"command": "curl https://x.y/z > \"$OUT\""});
    assert_eq!(
        fixture.request(&Bash, &args).await,
        PermissionRequest::Shell {
            managed_approval_required: None,
            tool_call_id: None,
            full_command_text: "curl https://x.y/z > \"$OUT\"".to_owned(),
            intention: "Run a shell command".to_owned(),
            commands: vec![command("curl https://x.y/z > \"$OUT\"")],
            possible_paths: Vec::new(),
            possible_urls: vec![PossibleUrl {
                url: "https://x.y/z".to_owned(),
            }],
            has_write_file_redirection: true,
            can_offer_session_approval: false,
            warning: None,
            resolved_paths: std::collections::BTreeMap::new(),
            resolved_working_directory: Some(here.clone()),
            changed_shell: None,
            shell_directories: Vec::new(),
            shell_directory_unknown: None,
            repository_folders: Vec::new(),
            writes_protected: None,
            reached: None,
            typed_before: Vec::new(),
        }
    );
}

#[tokio::test]
async fn another_command_than_the_allowed_one_does_not_run() {
    let fixture = Fixture::new();
    let tool = Bash;
    let grant = granted(fixture.request(&tool, &json!({"command": "true"})).await);
    for grant in [grant, granted(None)] {
        let args = json!({"command": "touch made"});
        let outcome = DynTool::run(&tool, &grant, args, &fixture.context).await;
        assert_eq!(outcome.status, Status::Failure);
    }
    assert!(names(&fixture.context.cwd).is_empty());
}

#[tokio::test]
async fn invalid_arguments_are_refused() {
    let fixture = Fixture::new();
    let long = "x".repeat(MAX_COMMAND + 1);
    let table: [(Value, &str); 8] = [
        (json!({"command": " \n"}), "The command is empty"),
        (json!({"command": "a\0b"}), "NUL"),
        (json!({"command": long}), "Create a script file"),
        (json!({"command": "ls", "detach": true}), "only with mode"),
        (
            json!({"command": "ls", "initial_wait": -1}),
            "initial_wait is not valid",
        ),
        (
            json!({"command": "ls", "initial_wait": 1e12}),
            "initial_wait is not valid",
        ),
        (
            json!({"command": "ls", "shellId": "a b"}),
            "shellId is not valid",
        ),
        (
            json!({"command": "ls", "mode": "later"}),
            "mode: unknown value",
        ),
    ];
    for (args, expected) in table {
        let text = fixture.refusal(&Bash, &args).await;
        assert!(text.contains(expected), "{text}");
    }
    for delay in [json!(-1), json!(1e9)] {
        let args = json!({"shellId": "s", "delay": delay});
        assert!(
            fixture
                .refusal(&Read, &args)
                .await
                .contains("delay is not valid")
        );
    }
    let args = json!({"command": "echo a", "mode": "sync", "initial_wait": 5, "detach": false, "shellId": "s"});
    assert_eq!(
        fixture.call(&Bash, args).await.text,
        "a\n<exited with exit code 0>"
    );
}

#[tokio::test]
async fn the_error_names_a_missing_working_directory() {
    let fixture = Fixture::new();
    std::fs::remove_dir(&fixture.context.cwd).unwrap();
    let outcome = run(&fixture, "ls").await;
    let expected = format!(
        "Nothing was run: the working directory {} does not exist.",
        fixture.context.cwd.display()
    );
    assert_eq!(outcome, Outcome::failure(expected));
}
