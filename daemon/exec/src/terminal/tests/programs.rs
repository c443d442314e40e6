use std::time::Instant;

use super::*;

#[tokio::test]
async fn a_python_prompt_is_detected_and_takes_input() {
    needs("python3");
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let run = shell
        .start("PYTHON_HISTORY=/dev/null python3 -q")
        .await
        .unwrap();
    until(&run, |run| matches!(run.state(), CommandState::Waiting(_))).await;
    assert!(text(&run.unread()).contains(">>> "));
    send(&run, "print(6 * 7){enter}").await;
    until_shows(&run, "42").await;
    until(&run, |run| matches!(run.state(), CommandState::Waiting(_))).await;
    send(&run, "exit(5){enter}").await;
    assert_eq!(end(&run).await, CommandEnd::Exited(5));
}

#[tokio::test]
async fn a_question_is_detected_within_two_seconds() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let before = Instant::now();
    let run = shell
        .start("read -p 'Name: ' name; echo \"Hello $name\"")
        .await
        .unwrap();
    until_waiting(&run, WaitingFor::Line).await;
    assert!(
        before.elapsed() < Duration::from_secs(2),
        "{:?}",
        before.elapsed()
    );
    send(&run, "Ada Lovelace{enter}").await;
    assert_eq!(end(&run).await, CommandEnd::Exited(0));
    assert_eq!(
        text(&run.output()),
        "Name: Ada Lovelace\nHello Ada Lovelace\n"
    );
}

#[tokio::test]
async fn a_password_prompt_is_detected_and_input_is_not_shown() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let stub = "printf '[sudo] password for ada: ' >/dev/tty; stty -echo </dev/tty; read -r p </dev/tty; stty echo </dev/tty; echo; echo ${#p}";
    let run = shell.start(stub).await.unwrap();
    until_waiting(&run, WaitingFor::Password).await;
    send(&run, "secret{enter}").await;
    assert_eq!(end(&run).await, CommandEnd::Exited(0));
    assert_eq!(text(&run.output()), "[sudo] password for ada: \n6\n");
}

#[tokio::test]
async fn a_quiet_program_does_not_wait_for_input() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let work = "sleep 2.5; mkfifo p; (sleep 2.5; echo x >p) & cat p; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done";
    let run = shell.start(work).await.unwrap();
    let mut changes = run.changes();
    let seen = async {
        while !matches!(run.state(), CommandState::Ended(_)) {
            assert!(
                !matches!(run.state(), CommandState::Waiting(_)),
                "{:?}",
                run.output()
            );
            changes.changed().await.unwrap();
        }
    };
    timeout(PATIENCE, seen).await.unwrap();
    assert_eq!(text(&run.output()), "x\ndone\n");
}

#[tokio::test]
async fn a_pager_shows_a_screen_and_quits_by_key() {
    needs("less");
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let run = shell
        .start("seq 1 1000 > numbers; LESS= less numbers; echo \"left $?\"")
        .await
        .unwrap();
    until_waiting(&run, WaitingFor::Screen).await;
    let screen = run.unread().screen.unwrap();
    assert!(screen.text.starts_with("1\n2\n3\n"), "{}", screen.text);
    assert_eq!(text(&run.output()), "");
    send(&run, "{pagedown}").await;
    until_shows(&run, "\n45\n").await;
    until_waiting(&run, WaitingFor::Screen).await;
    send(&run, "q").await;
    assert_eq!(end(&run).await, CommandEnd::Exited(0));
    assert_eq!(text(&run.output()), "left 0\n");
    assert_eq!(run.output().screen, None);
}

#[tokio::test]
async fn vim_writes_and_quits_by_keys() {
    needs("vim");
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let run = shell
        .start("vim -u NONE -i NONE note.txt; cat note.txt")
        .await
        .unwrap();
    until_waiting(&run, WaitingFor::Screen).await;
    send(&run, "ihello world{esc}").await;
    until_shows(&run, "hello world").await;
    send(&run, ":wq{enter}").await;
    assert_eq!(end(&run).await, CommandEnd::Exited(0));
    assert!(
        text(&run.output()).ends_with("hello world\n"),
        "{:?}",
        run.output()
    );
}

#[tokio::test]
async fn terminal_queries_get_replies() {
    needs("python3");
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let program = r#"
import os, sys, termios, tty
old = termios.tcgetattr(0)
tty.setraw(0)
def ask(question, end):
    os.write(1, question)
    got = b""
    while not got.endswith(end):
        got += os.read(0, 1)
    return got
answers = [ask(b"ab\x1b[6n", b"R"), ask(b"\x1b[999;999H\x1b[6n", b"R"), ask(b"\x1b[c", b"c"),
    ask(b"\x1b[5n", b"n"), ask(b"\x1b]11;?\x07", b"\\"), ask(b"\x1b[?2026$p", b"y"), ask(b"\x1b[18t", b"t")]
os.write(1, b"\x1b[?1049h\x1b[4;7H")
answers.append(ask(b"\x1b[6n", b"R"))
os.write(1, b"\x1b[?1049l\x1b[H\x1b[K")
termios.tcsetattr(0, termios.TCSANOW, old)
print(answers)
"#;
    std::fs::write(fixture.folder.path().join("ask.py"), program).unwrap();
    let (said, end) = run(&mut shell, "python3 ask.py").await;
    assert_eq!(end, CommandEnd::Exited(0));
    let expected = r"[b'\x1b[1;3R', b'\x1b[30;120R', b'\x1b[?62;22c', b'\x1b[0n', b'\x1b]11;rgb:0000/0000/0000\x1b\\', b'\x1b[?2026;0$y', b'\x1b[8;30;120t', b'\x1b[4;7R']";
    assert_eq!(said.trim_end(), expected);
}

#[tokio::test]
async fn editors_and_pagers_do_not_open_by_themselves() {
    needs("git");
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let setup = "git init -q . && git config user.email a@b && git config user.name a && echo x > f && git add f";
    assert_eq!(
        run(&mut shell, setup).await,
        (String::new(), CommandEnd::Exited(0))
    );
    let (said, end) = run(&mut shell, "git commit").await;
    assert_eq!(end, CommandEnd::Exited(1));
    assert!(said.contains("No editor is opened"), "{said}");
    let (said, end) = run(
        &mut shell,
        "git commit -q -m first; for i in $(seq 200); do echo $i >> f; done; git diff | tail -1",
    )
    .await;
    assert_eq!((said.as_str(), end), ("+200\n", CommandEnd::Exited(0)));
    let (said, end) = run(&mut shell, "git diff").await;
    assert!(said.ends_with("+200\n"), "{said}");
    assert_eq!(end, CommandEnd::Exited(0));
}
