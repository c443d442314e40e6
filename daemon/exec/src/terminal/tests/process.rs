use std::time::Instant;

use super::*;

#[tokio::test]
async fn each_command_runs_in_its_own_process() {
    let fixture = Fixture::new();
    let mut shell = fixture.process().await;
    let table = [
        (
            "x=1; echo out; echo err >&2",
            "out\nerr\n",
            CommandEnd::Exited(0),
        ),
        ("echo [$x]; exit 3", "[]\n", CommandEnd::Exited(3)),
        ("kill -9 $$", "", CommandEnd::Killed(9)),
        (
            "read x; echo [$x]; tty",
            "[]\nnot a tty\n",
            CommandEnd::Exited(1),
        ),
        (
            "printf '\\033[31mred\\033[0m \\033]52;c;eA==\\007\\n'",
            "red \n",
            CommandEnd::Exited(0),
        ),
    ];
    for (command, expected, end) in table {
        assert_eq!(
            run(&mut shell, command).await,
            (expected.to_owned(), end),
            "{command}"
        );
    }
}

#[tokio::test]
async fn a_process_gets_no_input_and_stops_at_once() {
    let fixture = Fixture::new();
    let mut shell = fixture.process().await;
    for command in [
        "echo ready; sleep 100",
        "trap '' TERM; echo ready; while :; do sleep 100; done",
    ] {
        let started = shell.start(command).await.unwrap();
        until_shows(&started, "ready").await;
        let sent = started.send(&parse_input("x").unwrap()).await;
        assert_eq!(sent, Err(InputError::NoTerminal));
        assert!(matches!(
            shell.start("echo").await,
            Err(CommandStartError::Busy)
        ));
        let before = Instant::now();
        started.stop().await;
        assert!(before.elapsed() < Duration::from_millis(300));
        assert_eq!(
            started.state(),
            CommandState::Ended(CommandEnd::Interrupted)
        );
        assert_eq!(run(&mut shell, "echo next").await.0, "next\n");
    }
    shell.close(CloseMode::Now).await;
    assert_eq!(fixture.processes.list(), []);
}

#[tokio::test]
async fn processes_left_in_the_background_are_reported_and_killed() {
    let fixture = Fixture::new();
    let mut shell = fixture.process().await;
    let started = shell.start("sleep 100 & echo $!").await.unwrap();
    assert_eq!(end(&started).await, CommandEnd::Exited(0));
    assert!(started.left_behind());
    let pid = text(&started.output()).trim().to_owned();
    shell.close(CloseMode::Gently).await;
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn a_missing_folder_is_reported() {
    let fixture = Fixture::new();
    let mut spec = fixture.spec();
    spec.cwd = fixture.folder.path().join("gone");
    let mut shell = Shell::open(&fixture.processes, Backend::Process, spec.clone())
        .await
        .unwrap();
    let error = shell.start("ls").await.unwrap_err().to_string();
    assert!(error.ends_with("gone does not exist"), "{error}");
    let error = Shell::open(&fixture.processes, Backend::Terminal, spec)
        .await
        .unwrap_err();
    assert!(
        error.to_string().ends_with("gone does not exist"),
        "{error}"
    );
}
