use std::time::Instant;

use super::*;

async fn stopped_at_once(run: &CommandRun) {
    let before = Instant::now();
    run.stop().await;
    let took = before.elapsed();
    assert!(took < Duration::from_millis(300), "stopping took {took:?}");
    assert_eq!(run.state(), CommandState::Ended(CommandEnd::Interrupted));
}

#[tokio::test]
async fn exit_closes_the_shell_with_its_code() {
    let fixture = Fixture::new();
    for (command, expected, end) in [
        ("echo a; exit 3", "a\n", CommandEnd::Exited(3)),
        (
            "trap 'echo bye >&2' EXIT; false; exit",
            "bye\n",
            CommandEnd::Exited(1),
        ),
        (
            "exec sh -c 'echo exit; exit 4'",
            "exit\n",
            CommandEnd::Exited(4),
        ),
        ("set -e; false; echo no", "", CommandEnd::Exited(1)),
        ("kill -9 $$", "", CommandEnd::Killed(9)),
    ] {
        let mut shell = fixture.terminal().await;
        assert_eq!(
            run(&mut shell, command).await,
            (expected.to_owned(), end),
            "{command}"
        );
        let next = shell.start("echo again").await;
        assert!(
            matches!(next, Err(CommandStartError::Closed(closed)) if closed == end),
            "{command}"
        );
        assert!(!shell.alive());
    }
}

#[tokio::test]
async fn a_stopped_command_leaves_the_shell_and_its_state() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    run(&mut shell, "x=kept").await;
    for command in [
        "echo ready; sleep 100; echo no",
        "echo ready; while :; do :; done",
        "echo ready; for i in 1 2 3; do sleep 100; done",
        "echo ready; cat; touch made",
        "echo ready; trap '' INT; sleep 100",
        "bash -c 'trap \"\" INT; echo ready; sleep 100; sleep 100'; touch made",
        "python3 -c 'import time; print(\"ready\", flush=True); time.sleep(100)' || touch made",
    ] {
        let started = shell.start(command).await.unwrap();
        until_shows(&started, "ready").await;
        stopped_at_once(&started).await;
        let (said, _) = run(&mut shell, "trap - INT; echo $x; ls made 2>/dev/null").await;
        assert_eq!(said, "kept\n", "after {command}");
    }
}

#[tokio::test]
async fn a_program_that_ignores_signals_is_killed() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let command =
        "bash -c 'trap \"\" INT TERM HUP; echo $$ ready; while :; do sleep 100; done'; touch made";
    let started = shell.start(command).await.unwrap();
    until_shows(&started, "ready").await;
    let pid = text(&started.output())
        .split(' ')
        .next()
        .unwrap()
        .to_owned();
    stopped_at_once(&started).await;
    let before = Instant::now();
    assert_eq!(
        run(&mut shell, "ls made 2>/dev/null; echo next").await.0,
        "next\n"
    );
    assert!(
        before.elapsed() >= Duration::from_secs(4),
        "five seconds to end are given"
    );
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn closing_a_shell_ends_its_programs() {
    let fixture = Fixture::new();
    for how in [Some(CloseMode::Now), Some(CloseMode::Gently), None] {
        let mut shell = fixture.terminal().await;
        let started = shell
            .start("(trap '' HUP; sleep 100) & echo $! ready; sleep 100")
            .await
            .unwrap();
        until_shows(&started, "ready").await;
        let pid = text(&started.output())
            .split(' ')
            .next()
            .unwrap()
            .to_owned();
        match how {
            Some(how) => shell.close(how).await,
            None => drop(shell),
        }
        // A gentle close sends a signal first, so a quick shell may still report its exit.
        let ended = end(&started).await;
        let told = how == Some(CloseMode::Gently) && matches!(ended, CommandEnd::Exited(128..));
        assert!(told || ended == CommandEnd::Closed, "{how:?}: {ended:?}");
        let gone = async {
            while !fixture.processes.list().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        assert!(
            timeout(PATIENCE, gone).await.is_ok(),
            "{:?}",
            fixture.processes.list()
        );
        assert!(!is_alive(&pid), "{how:?}");
    }
    let scratch = fixture.folder.path().join("scratch");
    assert!(!scratch.exists(), "files were left");
}
