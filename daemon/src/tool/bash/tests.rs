use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::tool::DynTool;
use crate::tool::fixture::{Fixture, names};

/// Waits are cut short where a test lets them pass.
fn quick() -> Bash {
    Bash {
        timing: Timing {
            limit: Duration::from_secs(60),
            kill_after: Duration::from_millis(100),
            pipe_grace: Duration::from_millis(100),
            partial_every: Duration::from_millis(5),
        },
    }
}

fn make_pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

async fn run(fixture: &Fixture, command: &str) -> Outcome {
    fixture
        .call(&quick(), json!({"command": command, "description": "x"}))
        .await
}

/// Waits until a running command has said something.
async fn first_output(fixture: &mut Fixture) -> String {
    fixture.partial.recv().await.unwrap()
}

fn is_running(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    // A process that is dead but not yet buried counts as gone.
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
    let tool = quick();
    let args = json!({"command": "echo first; read -r line < pipe; echo got $line"});
    let grant = Grant::allowed(Some(fixture.request(&tool, &args).await));
    let context = fixture.context.clone();
    let running = tokio::spawn(async move { DynTool::run(&tool, &grant, args, &context).await });
    assert_eq!(first_output(&mut fixture).await, "first\n");
    tokio::fs::write(&pipe, "it\n").await.unwrap();
    let outcome = running.await.unwrap();
    assert_eq!(outcome.text, "first\ngot it\n<exited with exit code 0>");
    assert_eq!(first_output(&mut fixture).await, "got it\n");
}

/// Starts a command, waits for its first output, aborts the turn and returns both.
async fn abort(tool: Bash, command: &str) -> (String, Outcome, Fixture) {
    let mut fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    let args = json!({"command": command});
    let grant = Grant::allowed(Some(fixture.request(&tool, &args).await));
    let context = fixture.context.clone();
    let running = tokio::spawn(async move { DynTool::run(&tool, &grant, args, &context).await });
    let said = first_output(&mut fixture).await;
    fixture.context.cancel.cancel();
    (said, running.await.unwrap(), fixture)
}

#[tokio::test]
async fn an_aborted_command_is_asked_to_end() {
    let mut tool = quick();
    tool.timing.kill_after = Duration::from_secs(30);
    let command = "trap 'echo bye; exit' TERM; echo ready; read -r _ < pipe & wait";
    let (_, outcome, _) = abort(tool, command).await;
    assert_eq!(
        outcome,
        Outcome::failure(format!("ready\nbye\n{}", texts::INTERRUPTED))
    );
}

#[tokio::test]
async fn a_command_that_does_not_listen_is_killed_with_its_children() {
    let command = "trap '' TERM; (trap '' TERM; echo $BASHPID; read -r _ < pipe); read -r _ < pipe";
    let (pid, outcome, _) = abort(quick(), command).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(outcome.text.contains("<interrupted"), "{}", outcome.text);
    assert!(!is_running(&pid), "{pid} is still there");
}

#[tokio::test]
async fn a_command_out_of_time_is_stopped() {
    let fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    let mut tool = quick();
    tool.timing.limit = Duration::from_millis(50);
    let args = json!({"command": "echo started; read -r _ < pipe"});
    let outcome = fixture.call(&tool, args).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(
        outcome.text.starts_with("started\n<stopped: "),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_stopped() {
    let fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    let outcome = run(&fixture, "(read -r _ < pipe) & echo $!").await;
    let (pid, rest) = outcome.text.split_once('\n').unwrap();
    assert_eq!(
        rest,
        format!("{}\n<exited with exit code 0>", texts::LEFT_BEHIND)
    );
    assert!(!is_running(pid), "{pid} is still there");
}

#[tokio::test]
async fn a_grandchild_in_its_own_session_ends_with_the_call() {
    let fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    make_pipe(&fixture.path("ready"));
    let child = "setsid bash -c 'echo $$; echo x > ready; read -r _ < pipe'";
    let outcome = run(&fixture, &format!("{child} & read -r _ < ready; echo done")).await;
    let (pid, rest) = outcome.text.split_once('\n').unwrap();
    assert_eq!(
        rest,
        format!("done\n{}\n<exited with exit code 0>", texts::LEFT_BEHIND)
    );
    assert!(!is_running(pid), "{pid} is still there");
}

#[tokio::test]
async fn a_dropped_call_takes_its_processes_along() {
    let mut fixture = Fixture::new();
    make_pipe(&fixture.path("pipe"));
    let tool = quick();
    let args = json!({"command": "(trap '' TERM HUP; echo $BASHPID; read -r _ < pipe); true"});
    let grant = Grant::allowed(Some(fixture.request(&tool, &args).await));
    let context = fixture.context.clone();
    let running = tokio::spawn(async move { DynTool::run(&tool, &grant, args, &context).await });
    let pid = first_output(&mut fixture).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let gone = async {
        while is_running(&pid) {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
    assert!(gone.is_ok(), "{pid} is still there");
}

#[tokio::test]
async fn a_large_output_ends_up_in_a_file() {
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
async fn permission_says_exactly_what_runs() {
    let fixture = Fixture::new();
    let args = json!({"command": "git status && cat a/b.txt", "description": "Look around"});
    let command = |identifier: &str| ShellCommand {
        identifier: identifier.to_owned(),
        read_only: false,
    };
    assert_eq!(
        fixture.request(&Bash::default(), &args).await,
        PermissionRequest::Shell {
            tool_call_id: None,
            full_command_text: "git status && cat a/b.txt".to_owned(),
            intention: "Look around".to_owned(),
            commands: vec![command("git status"), command("cat")],
            possible_paths: vec!["a/b.txt".to_owned()],
            possible_urls: Vec::new(),
            has_write_file_redirection: false,
            can_offer_session_approval: true,
            warning: None,
        }
    );
    let args = json!({"command": "curl https://x.y/z > \"$OUT\""});
    assert_eq!(
        fixture.request(&Bash::default(), &args).await,
        PermissionRequest::Shell {
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
        }
    );
}

#[tokio::test]
async fn another_command_than_the_allowed_one_does_not_run() {
    let fixture = Fixture::new();
    let tool = quick();
    let grant = Grant::allowed(Some(
        fixture.request(&tool, &json!({"command": "true"})).await,
    ));
    for grant in [grant, Grant::allowed(None)] {
        let args = json!({"command": "touch made"});
        let outcome = DynTool::run(&tool, &grant, args, &fixture.context).await;
        assert_eq!(outcome.status, Status::Failure);
    }
    assert!(names(&fixture.context.cwd).is_empty());
}

#[tokio::test]
async fn what_cannot_work_is_refused() {
    let fixture = Fixture::new();
    let long = "x".repeat(MAX_COMMAND + 1);
    let table: [(Value, &str); 6] = [
        (json!({"command": " \n"}), "The command is empty"),
        (json!({"command": "a\0b"}), "NUL"),
        (json!({"command": long}), "Create a script file"),
        (
            json!({"command": "ls", "mode": "async"}),
            "not available in this build yet",
        ),
        (
            json!({"command": "ls", "detach": true}),
            "not available in this build yet",
        ),
        (
            json!({"command": "ls", "mode": "later"}),
            "mode: unknown variant",
        ),
    ];
    for (args, expected) in table {
        let text = fixture.refusal(&quick(), &args).await;
        assert!(text.contains(expected), "{text}");
    }
    let args = json!({"command": "echo a", "mode": "sync", "initial_wait": 5, "detach": false, "shellId": "s"});
    assert_eq!(
        fixture.call(&quick(), args).await.text,
        "a\n<exited with exit code 0>"
    );
}

#[tokio::test]
async fn a_folder_that_is_gone_is_named() {
    let fixture = Fixture::new();
    std::fs::remove_dir(&fixture.context.cwd).unwrap();
    let outcome = run(&fixture, "ls").await;
    let expected = format!(
        "The command was not run: the working directory {} does not exist.",
        fixture.context.cwd.display()
    );
    assert_eq!(outcome, Outcome::failure(expected));
}
