use super::*;

#[tokio::test]
async fn a_terminal_shell_keeps_its_state_between_commands() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let steps = [
        ("echo hi", "hi\n", 0),
        (
            "mkdir sub; cd sub; x=5; export y=6; f() { echo \"f $1\"; }; declare -A m=([a]=1)",
            "",
            0,
        ),
        (
            "pwd | sed 's|.*/||'; echo $x $y ${m[a]}; f 7; bash -c 'echo $y'",
            "sub\n5 6 1\nf 7\n6\n",
            0,
        ),
        ("false", "", 1),
        ("echo $?", "1\n", 0),
        ("(exit 7)", "", 7),
        (
            "cat <<END\nit is $x\n'quoted\" text\nEND",
            "it is 5\n'quoted\" text\n",
            0,
        ),
        ("printf '%s\\n' \"a\nb\" 'c  d'", "a\nb\nc  d\n", 0),
        ("break", "", 0),
        ("break 5; echo no", "", 0),
        ("continue", "", 0),
        ("echo still here", "still here\n", 0),
        ("sleep 0.01 & wait; echo waited", "waited\n", 0),
        ("stty size; echo -n no newline", "30 120\nno newline", 0),
        ("printf 'grüße 世界 👍\\n'", "grüße 世界 👍\n", 0),
        ("PROMPT_COMMAND=nothing; PS1='$ '", "", 0),
        (
            "exec 2>/dev/null 3>&1 >/dev/null; echo lost; exec >&3 2>&3; echo back",
            "back\n",
            0,
        ),
        ("history | wc -l", "0\n", 0),
        (
            "echo $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $DEBIAN_FRONTEND",
            "cat cat 0 noninteractive\n",
            0,
        ),
        ("env | grep -c -e PROMPT_COMMAND -e __loopd", "0\n", 1),
    ];
    for (command, expected, code) in steps {
        let ended = run(&mut shell, command).await;
        assert_eq!(
            ended,
            (expected.to_owned(), CommandEnd::Exited(code)),
            "{command}"
        );
    }
    assert!(shell.alive());
    shell.close(CloseMode::Gently).await;
    assert_eq!(fixture.processes.list(), []);
}

/// A folder with the files of a bare repository is one for git, and its configuration names a program
/// that `git status` runs.
#[tokio::test]
async fn git_runs_nothing_of_a_repository_that_is_only_files_of_a_project() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let plant = "( git init -q --bare planted && cd planted && export GIT_DIR=. && \
        git config core.bare false && git config core.worktree . && \
        git config core.fsmonitor 'touch ran; false' )";
    let (_, planted) = run(&mut shell, plant).await;
    assert_eq!(planted, CommandEnd::Exited(0));
    let (said, ended) = run(&mut shell, "cd planted && git status").await;
    assert_eq!(ended, CommandEnd::Exited(128), "{said}");
    let (_, absent) = run(&mut shell, "test ! -e ran").await;
    assert_eq!(
        absent,
        CommandEnd::Exited(0),
        "git ran a program of the project"
    );
    shell.close(CloseMode::Gently).await;
}

#[tokio::test]
async fn a_syntax_error_does_not_end_the_shell() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    for command in [
        "if then",
        "echo \"open",
        "cat <<E\nno end",
        ")",
        "${a b}",
        "${x:?is not set}",
    ] {
        let (_, end) = run(&mut shell, command).await;
        assert!(matches!(end, CommandEnd::Exited(_)), "{command}: {end:?}");
        assert_eq!(
            run(&mut shell, "echo fine").await.0,
            "fine\n",
            "after {command}"
        );
    }
}

#[tokio::test]
async fn a_long_command_arrives_whole() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let long = "x".repeat(300_000);
    let (said, end) = run(&mut shell, &format!("v='{long}'; echo ${{#v}}")).await;
    assert_eq!((said.as_str(), end), ("300000\n", CommandEnd::Exited(0)));
}

#[tokio::test]
async fn output_that_looks_like_a_marker_is_output() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let command =
        "printf '\\033_01ARZ3NDEKTSV4RRFFQ69G5FAV;D3\\033\\\\'; printf 'a\\033]0;open'; false";
    let (said, end) = run(&mut shell, command).await;
    assert_eq!((said.as_str(), end), ("a", CommandEnd::Exited(1)));
    let (said, _) = run(&mut shell, "echo next").await;
    assert_eq!(said, "next\n");
}

#[tokio::test]
async fn escape_sequences_are_applied_and_never_shown() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let table = [
        ("printf '\\033[1;31mred\\033[0m\\n'", "red\n"),
        (
            "for i in 1 50 100; do printf '\\r%3d%%' $i; done; echo",
            "100%\n",
        ),
        ("printf 'abc\\b\\bX\\n'", "aXc\n"),
        ("printf 'one\\ntwo\\n\\033[1A\\033[2KTWO\\n'", "one\nTWO\n"),
        ("printf '\\033]52;c;ZXZpbA==\\007safe\\n'", "safe\n"),
        ("printf 'a\\tb\\n'", "a\tb\n"),
        ("printf 'long line\\rshort\\033[K\\n'", "short\n"),
    ];
    for (command, expected) in table {
        assert_eq!(run(&mut shell, command).await.0, expected, "{command}");
    }
}

#[tokio::test]
async fn unread_returns_each_output_once() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let run = shell
        .start("echo one; read a; echo two; read b; echo three")
        .await
        .unwrap();
    until_shows(&run, "one").await;
    assert!(run.has_unread());
    assert_eq!(text(&run.unread()), "one\n");
    assert!(!run.has_unread());
    assert_eq!(text(&run.unread()), "");
    send(&run, "x{enter}").await;
    until_shows(&run, "two").await;
    assert_eq!(text(&run.unread()), "x\ntwo\n");
    send(&run, "y{enter}").await;
    assert_eq!(end(&run).await, CommandEnd::Exited(0));
    assert_eq!(text(&run.unread()), "y\nthree\n");
    assert_eq!(text(&run.output()), "one\nx\ntwo\ny\nthree\n");
    assert!(!run.has_unread());
}

#[tokio::test]
async fn a_second_command_is_refused_while_one_runs() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let first = shell.start("read x; echo $x").await.unwrap();
    assert!(matches!(
        shell.start("echo second").await,
        Err(CommandStartError::Busy)
    ));
    assert!(matches!(
        shell.start("a\0b").await,
        Err(CommandStartError::Nul)
    ));
    send(&first, "go\n").await;
    assert_eq!(end(&first).await, CommandEnd::Exited(0));
    assert_eq!(run(&mut shell, "echo second").await.0, "second\n");
    let late = first.send(&parse_input("late").unwrap()).await;
    assert_eq!(late, Err(InputError::Ended));
}

/// Input that a program did not read must not reach the next program or become a command.
#[tokio::test]
async fn unread_input_is_dropped() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let first = shell
        .start("stty -echo; echo ready; sleep 0.3")
        .await
        .unwrap();
    until_shows(&first, "ready").await;
    send(&first, "touch made{enter}").await;
    assert_eq!(end(&first).await, CommandEnd::Exited(0));
    let (said, _) = run(
        &mut shell,
        "read -t 0.1 x; echo \"[$x]\"; ls made 2>&1 | wc -l; stty -a | grep -o -- '[-]*echo '",
    )
    .await;
    assert_eq!(said, "[]\n1\necho \n");
}
