//! Commands that take away what the shell itself needs: the shell answers all the same, or is closed
//! at once with the cause. It never spins, and never says of such a command that it still runs.

use super::*;

#[tokio::test]
async fn a_shell_that_cannot_take_another_command_is_closed_with_the_cause() {
    for command in [
        "ulimit -n 3; (exit 3)",
        "ulimit -n 10; (exit 3)",
        "unset -f $(compgen -A function); (exit 3)",
        "for v in $(compgen -v | grep loopd); do readonly $v; done; (exit 3)",
        "exec 59>&-; for i in $(seq 10 99); do eval \"exec $i>&-\"; done; (exit 3)",
    ] {
        let fixture = Fixture::new();
        let mut shell = fixture.terminal().await;
        let (said, end) = run(&mut shell, command).await;
        if end == CommandEnd::Exited(3) {
            // What the command took away was not needed after all.
            let (said, end) = run(&mut shell, "echo next").await;
            assert_eq!(
                (said.as_str(), end),
                ("next\n", CommandEnd::Exited(0)),
                "{command}"
            );
            continue;
        }
        assert_eq!(end, CommandEnd::Exited(125), "{command}: {said}");
        assert!(said.contains("this shell was closed"), "{command}: {said}");
        assert!(said.len() < 10_000, "{command}: {} bytes", said.len());
    }
}

#[tokio::test]
async fn a_terminal_that_a_program_has_stopped_goes_on_when_the_program_has_ended() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    for stops in [
        "python3 -c 'import termios; termios.tcflow(0, termios.TCOOFF)'",
        "python3 -c 'import termios; termios.tcflow(0, termios.TCOOFF)'; (exit 3)",
    ] {
        let (_, end) = run(&mut shell, stops).await;
        let status = if stops.ends_with("3)") { 3 } else { 0 };
        assert_eq!(end, CommandEnd::Exited(status), "{stops}");
    }
    let (said, end) = run(&mut shell, "echo next").await;
    assert_eq!((said.as_str(), end), ("next\n", CommandEnd::Exited(0)));
}

#[tokio::test]
async fn descriptors_that_bash_uses_itself_may_be_taken_by_commands() {
    for command in [
        "exec 10>/dev/null",
        "exec 10>&1 11>&2",
        "sleep 60 11>&10 &",
        "exec 11>&10",
    ] {
        let fixture = Fixture::new();
        let mut shell = fixture.terminal().await;
        let (said, end) = run(&mut shell, command).await;
        assert_eq!(end, CommandEnd::Exited(0), "{command}: {said}");
        let (said, end) = run(&mut shell, "(exit 4)").await;
        assert_eq!(end, CommandEnd::Exited(4), "{command}: {said}");
    }
}

#[tokio::test]
async fn a_shell_goes_on_without_its_variables_and_after_leaving_every_loop() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let unset = "for v in $(compgen -v | grep loopd); do unset $v; done; (exit 3)";
    for (command, status) in [
        (unset, 3),
        ("break 50", 0),
        ("(exit 4)", 4),
        ("readonly __loopd_lost; (exit 5)", 5),
        ("break 50", 0),
        ("(exit 6)", 6),
        ("PROMPT_COMMAND=; (exit 7)", 7),
        ("if then", 2),
        ("(exit 8)", 8),
    ] {
        let (said, end) = run(&mut shell, command).await;
        assert_eq!(end, CommandEnd::Exited(status), "{command}: {said}");
    }
}

#[tokio::test]
async fn a_command_that_a_crippled_shell_never_begins_has_no_exit_code() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let (_, end) = run(&mut shell, "readonly __loopd_word; (exit 3)").await;
    assert_eq!(end, CommandEnd::Exited(3));
    let (_, end) = run(&mut shell, "echo next").await;
    assert_eq!(end, CommandEnd::Closed);
}
