//! Programs that try to report a result for the command that runs them.

use super::*;

/// Prints a report of success with every word that the environment of the shell shows.
const FORGE_ON_TERMINAL: &str = r#"
for word in $(tr '\0' '\n' <"/proc/$shell/environ" | grep -ao '[0-9A-Za-z]\{20,\}' | sort -u); do
    printf '\033_%s;D0\033\\' "$word" >/dev/tty
done
"#;

/// Writes reports and a command to every pipe that the shell or its folder shows.
const FORGE_IN_PIPES: &str = r#"
for file in "/proc/$shell"/fd/* $(find "$HOME" -type p); do
    case $(readlink "$file" || echo "$file") in
        *pipe:*|/*commands*) printf '\0\0\0\0D0\0touch "$HOME/made"\0' 1<>"$file" ;;
    esac 2>/dev/null
done
"#;

/// Runs a command that starts the forger, which then waits and fails.
async fn forged(how: &str, around: &str) -> (Fixture, CommandEnd) {
    let fixture = Fixture::new();
    let forger = fixture.folder.path().join("forger");
    let script = format!("shell=$1\n{how}\nsleep 0.4\nexit 9\n");
    std::fs::write(&forger, script).unwrap();
    let mut shell = fixture.terminal().await;
    let started = shell.start(around).await.unwrap();
    let end = end(&started).await;
    // The shell is in order afterwards.
    let (said, code) = run(&mut shell, "echo next; ls made 2>/dev/null; true").await;
    assert_eq!((said.as_str(), code), ("next\n", CommandEnd::Exited(0)));
    (fixture, end)
}

#[tokio::test]
async fn a_program_that_prints_the_marker_decides_no_result() {
    let (_fixture, end) = forged(FORGE_ON_TERMINAL, "bash forger $$").await;
    assert_eq!(end, CommandEnd::Exited(9));
}

#[tokio::test]
async fn a_background_program_that_prints_the_marker_decides_no_result() {
    let command = "bash forger $$ & wait $!; (exit 8)";
    let (_fixture, end) = forged(FORGE_ON_TERMINAL, command).await;
    assert_eq!(end, CommandEnd::Exited(8));
}

#[tokio::test]
async fn a_program_that_writes_to_the_pipes_of_the_shell_decides_no_result() {
    let (_fixture, end) = forged(FORGE_IN_PIPES, "bash forger $$").await;
    assert_eq!(end, CommandEnd::Exited(9));
}

#[tokio::test]
async fn a_program_of_another_shell_runs_nothing_here() {
    let fixture = Fixture::new();
    let mut victim = fixture.terminal().await;
    let mut attacker = fixture.terminal().await;
    let forger = format!("shell={}\n{FORGE_IN_PIPES}", victim.pid());
    std::fs::write(fixture.folder.path().join("forger"), forger).unwrap();
    run(&mut attacker, "bash forger").await;
    let (said, end) = run(&mut victim, "echo mine; ls made 2>/dev/null; (exit 4)").await;
    assert_eq!((said.as_str(), end), ("mine\n", CommandEnd::Exited(4)));
}

#[tokio::test]
async fn programs_do_not_inherit_the_channel_of_the_shell() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    for command in [
        "ls -l /proc/self/fd | grep -c socket",
        "bash -c 'ls -l /proc/self/fd' | grep -c socket",
        "cat <(ls -l /proc/self/fd) | grep -c socket",
        "ls -l /proc/self/fd 2>&1 | grep -c commands",
    ] {
        let (said, _) = run(&mut shell, command).await;
        assert_eq!(said, "0\n", "{command}");
    }
    // Interrupts, errors and redirections leave the channel closed to programs, and usable to bash.
    for command in [
        "exec 3</dev/null",
        "if then",
        "echo ${unset?bad}",
        "kill -INT $$",
    ] {
        run(&mut shell, command).await;
    }
    let (said, end) = run(&mut shell, "ls -l /proc/self/fd | grep -c socket").await;
    assert_eq!((said.as_str(), end), ("0\n", CommandEnd::Exited(1)));
}

/// Says on a copy of the socket that its command is done, answers the nonce in place of the shell, and
/// goes on for a while.
const FORGE_ON_SOCKET: &str = "import select,socket,sys,time
channel = socket.socket(fileno=0)
try:
    channel.sendall(b'D' + sys.argv[1].encode() + b'\\n')
    said = b''
    while b'N' not in said or not said.endswith(b'\\0'):
        if not select.select([channel], [], [], 0.2)[0]:
            raise TimeoutError
        said += channel.recv(64)
    nonce = said.split(b'N')[-1].rstrip(b'\\0')
    with open('/dev/tty', 'wb') as terminal:
        terminal.write(b'\\033_' + nonce + b';D0\\033\\\\')
    channel.sendall(b'S' + nonce + b' 0\\n')
    open('answered', 'w').close()
except TimeoutError:
    pass
time.sleep(0.3)
";

/// Finds the copy of the socket that bash keeps while it runs a command.
const FIND_SOCKET: &str = "for fd in $(ls /proc/$$/fd); do \
     case $(readlink /proc/$$/fd/$fd) in socket:*) break ;; esac; done; ";

#[tokio::test]
async fn what_other_processes_write_to_the_socket_of_the_shell_is_dropped() {
    needs("python3");
    for around in [
        // A subshell, with and without a process group of its own.
        "( printf 'D\nS 0\n' >&$fd; sleep 0.3 ); (exit 9)",
        "set +m; ( printf 'D%s\n' \"$__loopd_word\" >&$fd; sleep 0.3; exit 9 )",
        "{ printf 'D%s\n' \"$__loopd_word\" >&$fd; exit 9; } | cat; (exit 9)",
        "trap 'printf \"D\\n\" >&$fd' EXIT; (printf x >&$fd); trap - EXIT; (exit 9)",
        // Programs that are given a copy.
        "python3 forge.py \"$__loopd_word\" <&$fd; (exit 9)",
        "set +m; python3 forge.py \"$__loopd_word\" <&$fd; (exit 9)",
        "set +m; python3 forge.py '' <&$fd; (exit 9)",
    ] {
        let fixture = Fixture::new();
        std::fs::write(fixture.folder.path().join("forge.py"), FORGE_ON_SOCKET).unwrap();
        let mut shell = fixture.terminal().await;
        let (said, end) = run(&mut shell, &format!("{FIND_SOCKET}{around}")).await;
        assert_eq!(end, CommandEnd::Exited(9), "{around}: {said}");
        let (said, end) = run(&mut shell, "echo next; ls answered 2>/dev/null; (exit 4)").await;
        assert_eq!(
            (said.as_str(), end),
            ("next\n", CommandEnd::Exited(4)),
            "{around}"
        );
    }
}

/// Waits for a nonce of a later command, and answers it in place of the shell.
const ANSWER_LATER: &str = "import socket
channel = socket.socket(fileno=0)
open('waits', 'w').close()
said = b''
while True:
    said = (said + channel.recv(1))[-64:]
    if b'N' in said and said.endswith(b'\\0'):
        nonce = said.split(b'N')[-1].rstrip(b'\\0')
        with open('/dev/tty', 'wb') as terminal:
            terminal.write(b'\\033_' + nonce + b';D0\\033\\\\')
        channel.sendall(b'S' + nonce + b' 0\\n')
        break
";

#[tokio::test]
async fn a_program_left_in_the_background_answers_for_no_later_command() {
    needs("python3");
    let fixture = Fixture::new();
    std::fs::write(fixture.folder.path().join("later.py"), ANSWER_LATER).unwrap();
    let mut shell = fixture.terminal().await;
    let around = "python3 later.py <&$fd & until test -e waits; do sleep 0.05; done; (exit 9)";
    let (_, end) = run(&mut shell, &format!("{FIND_SOCKET}{around}")).await;
    // The program has taken the nonce: the shell cannot answer, or it was faster.
    assert_ne!(end, CommandEnd::Exited(0));
}

#[tokio::test]
async fn a_program_that_keeps_the_terminal_does_not_hold_back_the_result() {
    needs("python3");
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    // Takes the terminal in the background after the command has ended, and goes on.
    let script = "import os,signal,time\n\
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n\
        signal.signal(signal.SIGHUP, signal.SIG_IGN)\n\
        os.setpgid(0, 0)\n\
        tty = os.open('/dev/tty', os.O_RDWR)\n\
        while True:\n    os.tcsetpgrp(tty, os.getpid()); time.sleep(0.001)\n";
    std::fs::write(fixture.folder.path().join("grab.py"), script).unwrap();
    let (_, end) = run(&mut shell, "python3 grab.py & sleep 0.3; (exit 5)").await;
    assert_eq!(end, CommandEnd::Exited(5));
    let (said, end) = run(&mut shell, "echo next").await;
    assert_eq!((said.as_str(), end), ("next\n", CommandEnd::Exited(0)));
}

#[tokio::test]
async fn a_stopped_shell_is_killed_when_its_command_is_stopped() {
    let fixture = Fixture::new();
    let mut shell = fixture.terminal().await;
    let pid = shell.pid().to_string();
    let started = shell
        .start("echo ready; kill -STOP $$; echo no")
        .await
        .unwrap();
    until_shows(&started, "ready").await;
    started.stop().await;
    assert_eq!(
        started.state(),
        CommandState::Ended(CommandEnd::Interrupted)
    );
    timeout(PATIENCE, shell.close(CloseMode::Gently))
        .await
        .unwrap();
    assert!(!is_alive(&pid));
    assert_eq!(fixture.processes.list(), []);
}
